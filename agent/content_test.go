package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/parser"
	"thinkflow/workspace"
)

// TestContentIsPackedFromASizeOn: small contents are kept as they are, large ones
// packed; both come back whole.
func TestContentIsPackedFromASizeOn(t *testing.T) {
	for _, size := range []int{workspace.PackFrom / 2, 2 * workspace.PackFrom} {
		text := strings.Repeat("the quick brown fox\n", size/20)
		for name, c := range map[string]*parser.Command{
			"body": {Name: parser.Write, Body: text}, "pairs": {Name: parser.Edit, Pairs: []parser.Pair{{Old: "x", New: text}}},
		} {
			data := encodeContent(c)
			require.Equal(t, size > workspace.PackFrom, len(data) < size/2, "%s of %d bytes: %d bytes", name, size, len(data))
			back, err := DecodeContent(data)
			require.NoError(t, err)
			require.Equal(t, Content{Body: c.Body, Pairs: c.Pairs}, back, name)
		}
	}
}
