package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/need"
	"thinkflow/internal/redact"
	"thinkflow/internal/scripted"
	"thinkflow/internal/term"
)

const reviewScript = `turn
text <<END
<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>
<tf-edit id="2" path="a.txt"><old>five</old><new>FIVE</new></tf-edit>
<tf-write id="3" path="new.txt">
fresh
</tf-write>
Done.
END
`

// reviewed is a folder in which a run has worked.
func reviewed(t *testing.T, more ...string) (dir string, environ []string) {
	t.Helper()
	s, err := scripted.Parse("review", []byte(reviewScript))
	require.NoError(t, err)
	url, stop, err := scripted.New(s, scripted.Options{}).Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)
	environ = home(t)
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\nfour\nfive\n"), 0o644))
	got := call(t.Context(), environ, "", append([]string{"run", "-C", dir, "--model", "m", "--base-url", url, "change it"}, more...)...)
	require.Equal(t, 0, got.code, got.stderr)
	return dir, environ
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "absent"
	}
	return string(data)
}

func TestReviewCommand(t *testing.T) {
	dir, environ := reviewed(t)
	thinkflow := func(args ...string) ran { return call(t.Context(), environ, "", args...) }

	got := thinkflow("review", "-C", dir)
	require.Equal(t, 0, got.code, got.stderr)
	for _, want := range []string{"a.txt", "- two", "+ TWO", "+ FIVE", "new.txt", "+ fresh"} {
		require.Contains(t, got.stdout, want)
	}

	// The patch leads from the base to the text, as git has it.
	patch := filepath.Join(t.TempDir(), "p.patch")
	got = thinkflow("review", "last", "-C", dir, "--patch", patch)
	require.Equal(t, 0, got.code, got.stderr)
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "a.txt"), []byte("one\ntwo\nthree\nfour\nfive\n"), 0o644))
	cmd := exec.CommandContext(t.Context(), need.Program(t, "git"), "apply", patch)
	cmd.Dir = other
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(other))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "one\nTWO\nthree\nfour\nFIVE\n", content(t, other, "a.txt"))
	require.Equal(t, "fresh\n", content(t, other, "new.txt"))

	got = thinkflow("undo", "last/1/2", "-C", dir, "--dry-run")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "+five")
	require.Equal(t, "one\nTWO\nthree\nfour\nFIVE\n", content(t, dir, "a.txt"))
	got = thinkflow("undo", "last/1/2", "-C", dir)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "one\nTWO\nthree\nfour\nfive\n", content(t, dir, "a.txt"))
	got = thinkflow("undo", "last", "-C", dir)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "one\ntwo\nthree\nfour\nfive\n", content(t, dir, "a.txt"))
	require.Equal(t, "absent", content(t, dir, "new.txt"))
	for line := range strings.Lines(got.stdout) {
		if _, key, ok := strings.Cut(strings.TrimSpace(line), "thinkflow undo "); ok {
			again := thinkflow("undo", key, "-C", dir)
			require.Equal(t, 0, again.code, again.stderr)
		}
	}
	require.Equal(t, "fresh\n", content(t, dir, "new.txt"))
	require.Equal(t, "one\nTWO\nthree\nfour\nfive\n", content(t, dir, "a.txt"))

	// A file that moved on is refused, with a reason and an exit code.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("all mine\n"), 0o644))
	got = thinkflow("undo", "last", "-C", dir)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "a.txt")
	require.Equal(t, "all mine\n", content(t, dir, "a.txt"))
}

// Proposals of a run without an editor are accepted at the command line.
func TestReviewProposals(t *testing.T) {
	dir, environ := reviewed(t, "--set", "review=before")
	require.Equal(t, "one\ntwo\nthree\nfour\nfive\n", content(t, dir, "a.txt"))
	got := call(t.Context(), environ, "", "review", "-C", dir)
	require.Contains(t, got.stdout, "proposed")
	require.Contains(t, got.stdout, "+ TWO")
	got = call(t.Context(), environ, "", "review", "-C", dir, "--patch", "-")
	require.Contains(t, got.stdout, "new file mode")
	got = call(t.Context(), environ, "", "review", "-C", dir, "--keep")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "one\nTWO\nthree\nfour\nFIVE\n", content(t, dir, "a.txt"))
	require.Equal(t, "fresh\n", content(t, dir, "new.txt"))
	got = call(t.Context(), environ, "", "review", "-C", dir, "--staged")
	require.Contains(t, got.stdout, "Nothing waits")
}

// The keys of a person at the terminal.
func TestReviewKeys(t *testing.T) {
	rows := []struct {
		name, keys string
		a, fresh   string
		left       int
	}{
		{"quit", "q", "one\nTWO\nthree\nfour\nFIVE\n", "fresh\n", 3},
		{"undo first, keep second", "ukq", "one\ntwo\nthree\nfour\nFIVE\n", "fresh\n", 1},
		{"next and undo", "nuq", "one\nTWO\nthree\nfour\nfive\n", "fresh\n", 2},
		{"back around, undo the new file", "puq", "one\nTWO\nthree\nfour\nFIVE\n", "absent", 2},
		{"undo file", "Fq", "one\ntwo\nthree\nfour\nfive\n", "fresh\n", 1},
		{"keep file", "fq", "one\nTWO\nthree\nfour\nFIVE\n", "fresh\n", 1},
		{"keep all", "a", "one\nTWO\nthree\nfour\nFIVE\n", "fresh\n", 0},
		{"undo all", "U", "one\ntwo\nthree\nfour\nfive\n", "absent", 0},
		{"other keys explain", "x?q", "one\nTWO\nthree\nfour\nFIVE\n", "fresh\n", 3},
		{"the input ends", "", "one\nTWO\nthree\nfour\nFIVE\n", "fresh\n", 3},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir, environ := reviewed(t)
			var stdout, stderr bytes.Buffer
			a := &app{ctx: t.Context(), stdin: strings.NewReader(row.keys), stdout: &stdout, stderr: &stderr, environ: environ, redact: &redact.Redactor{}}
			c := &reviewCmd{Dir: dir}
			engine, ws, done, err := a.reviewing(&c.settings, dir)
			require.NoError(t, err)
			defer done()
			r := &reviewer{a: a, c: c, e: engine, ws: ws, screen: term.New(term.Options{Out: &stdout})}
			require.NoError(t, r.look())
			require.NoError(t, r.interact())
			require.Equal(t, row.a, content(t, dir, "a.txt"), stdout.String())
			require.Equal(t, row.fresh, content(t, dir, "new.txt"))
			left, err := engine.Changes(t.Context(), agent.Selection{All: true})
			require.NoError(t, err)
			n := 0
			for _, f := range left.Files {
				n += len(f.Hunks)
			}
			require.Equal(t, row.left, n)
		})
	}
}
