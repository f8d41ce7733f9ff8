//go:build unix

package attacks_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/workspace"
)

// Between the approval of a change and its write, folders of the approved path
// are swapped for links, out of the root and inside it, 10,000 times. No byte may
// land behind a link.
func TestTenThousandSwaps(t *testing.T) {
	swaps := 10_000
	if testing.Short() {
		swaps = 500
	}
	l := newLab(t)
	l.file("d/e/keep.txt", "k\n")
	require.NoError(t, os.MkdirAll(filepath.Join(l.root, "elsewhere/e"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(l.outside, "e"), 0o755))
	w := l.space(workspace.Options{})

	var done atomic.Bool
	go func() {
		defer done.Store(true)
		at := func(name string) string { return filepath.Join(l.root, name) }
		targets := []string{"elsewhere", l.outside, "../outside", "elsewhere/../../outside"}
		for i := range swaps {
			name := "d"
			to := targets[i%len(targets)]
			if i%3 == 0 { // one level deeper
				name, to = "d/e", filepath.Join([]string{l.outside, filepath.Join(l.root, "elsewhere")}[i%2], "e")
			}
			_ = os.Rename(at(name), at("aside"))
			_ = os.Symlink(to, at(name))
			_ = os.Remove(at(name))
			_ = os.Rename(at("aside"), at(name))
		}
	}()
	approved, applied := 0, 0
	for i := 0; !done.Load(); i++ {
		for _, op := range []workspace.Op{
			{Kind: workspace.OpWrite, Path: fmt.Sprintf("d/e/f%d.txt", i%50), Body: fmt.Sprintf("escaped %d\n", i)},
			{Kind: workspace.OpAppend, Path: "d/e/keep.txt", Body: "escaped\n"},
			{Kind: workspace.OpMkdir, Path: fmt.Sprintf("d/e/m%d/n", i)},
			{Kind: workspace.OpDelete, Path: fmt.Sprintf("d/e/f%d.txt", (i+25)%50)},
		} {
			c, err := w.Plan(op)
			if err != nil || c.Target.Rel != op.Path {
				continue // seen while a link was there: refused, or shown as what it is
			}
			approved++
			if _, err := w.Commit(t.Context(), c); err == nil {
				applied++
			}
		}
	}
	escaped := int64(0)
	for _, dir := range []string{l.outside, filepath.Join(l.root, "elsewhere")} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			rel, _ := filepath.Rel(dir, path)
			if rel == "." || rel == "e" || rel == "secret.txt" {
				return nil
			}
			if fi, err := d.Info(); err == nil {
				escaped += fi.Size() + 1
			}
			t.Errorf("%s came to be behind a link", path)
			return nil
		}))
	}
	require.Equal(t, "outside\n", l.read("../outside/secret.txt"))
	require.Zero(t, escaped)
	require.NotZero(t, applied)
	t.Logf("%d swaps, %d approved changes, %d applied, %d bytes escaped", swaps, approved, applied, escaped)
}
