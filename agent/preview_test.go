package agent_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
)

// TestPreviewPlace: what grows is told once, with its place as soon as the text
// to be replaced is known; the file stays as it is until the command is closed.
func TestPreviewPlace(t *testing.T) {
	const script = `chunk 3
turn
text <<END
<tf-edit id="1" path="a.txt">
<old>
two
three
</old>
<new>
TWO
</new>
</tf-edit>
<tf-edit id="2" path="a.txt"><old>absent</old><new>x</new></tf-edit>
END
turn
text "Stopped."
`
	p := play(t, "", map[string]string{"a.txt": "one\ntwo\nthree\nfour\n"}, script)
	var mu sync.Mutex
	var got []agent.Preview
	before := ""
	p.setRun("r1")
	_, err := p.engine.Run(t.Context(), agent.RunRequest{Run: "r1", Task: "x", Preview: func(v agent.Preview) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, v)
		if v.ID == 1 && v.Part == "old" {
			before = p.text("a.txt")
		}
	}})
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nthree\nfour\n", before)
	parts := map[string]string{}
	var places []*agent.PreviewPlace
	for _, v := range got {
		if v.ID == 1 {
			parts[v.Part] += v.Delta
		}
		if v.Place != nil {
			places = append(places, v.Place)
		}
	}
	require.Equal(t, "two\nthree\n", strings.TrimPrefix(parts["old"], "\n"))
	require.Equal(t, "TWO\n", strings.TrimPrefix(parts["new"], "\n"))
	require.Len(t, places, 1)
	require.Equal(t, 1, places[0].Line)
	require.Equal(t, 3, places[0].EndLine)
	require.Equal(t, "two\nthree\n", places[0].Old)
}
