package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPromptGolden shows, in one file, all that the first request holds besides
// the task: a change of the prompt or of a schema is a change that is seen.
func TestPromptGolden(t *testing.T) {
	e := New(Options{})
	var b bytes.Buffer
	b.WriteString(systemPrompt(promptOptions{roots: []string{"demo"}}))
	for _, tool := range e.tools.tools {
		var schema bytes.Buffer
		require.NoError(t, json.Indent(&schema, tool.spec.Parameters, "", "  "))
		b.WriteString("\n## " + tool.spec.Name + "\n" + tool.spec.Description + "\n" + schema.String() + "\n")
	}
	golden := filepath.Join("..", "testdata", "agent", "prompt.golden")
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}
