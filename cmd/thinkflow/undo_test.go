package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands that build on each other: moved, edited there, copied from there.
const chained = `
turn
text <<END
<tf-move id="1" path="a.txt" dest="d/b.txt"/>
<tf-edit id="2" path="d/b.txt"><old>one</old><new>two</new></tf-edit>
<tf-write id="3" path="n/new.txt">
fresh
</tf-write>
<tf-copy id="4" path="d/b.txt" dest="c.txt"/>
END
`

// What an undo prints, run line by line as it stands, brings everything back;
// an undo that has nothing to do says so.
func TestUndoIsTakenBackInThePrintedOrder(t *testing.T) {
	_, url := model(t, chained)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644))
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	thinkflow := func(args ...string) ran {
		t.Helper()
		r := call(t.Context(), environ, "", append(args, "-C", dir)...)
		require.Equal(t, exitOK, r.code, r.stderr)
		return r
	}
	thinkflow("run", "x")
	undone := thinkflow("undo", "last")
	require.Contains(t, undone.stdout, "4 commands undone, files: a.txt, c.txt, d/b.txt, n/new.txt")
	require.Equal(t, "one\n", content(t, dir, "a.txt"))
	require.Equal(t, "absent", content(t, dir, "d/b.txt"))

	again := thinkflow("undo", "last")
	require.Contains(t, again.stdout, "nothing to undo")
	require.NotContains(t, again.stdout, "files:")
	require.Equal(t, nothingToUndo+"\n", thinkflow("ledger", "undo", "--run", "last").stdout)

	steps := 0
	for line := range strings.Lines(undone.stdout) {
		if _, key, ok := strings.Cut(strings.TrimSpace(line), "thinkflow undo "); ok {
			thinkflow("undo", key)
			steps++
		}
	}
	require.Equal(t, 4, steps)
	for name, want := range map[string]string{"a.txt": "absent", "d/b.txt": "two\n", "c.txt": "two\n", "n/new.txt": "fresh\n"} {
		require.Equal(t, want, content(t, dir, name), name)
	}
}
