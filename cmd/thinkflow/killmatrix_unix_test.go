//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/ledger"
)

// faulty is the real program, built with the tag faults: it ends itself as
// kill -9 does at the point that THINKFLOW_FAULT names.
var faulty = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tf-faulty-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "thinkflow")
	out, err := exec.Command("go", "build", "-tags", "faults", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

func faultyProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and kills many processes")
	}
	bin, err := faulty()
	require.NoError(t, err)
	return bin
}

// killStep is one command: what it does to which text.
type killStep struct {
	name, tag     string
	path          string // that is looked at afterwards
	before, after string // its text; "" = absent, "/" = folder
	other         string // move: where it comes from
	temp          bool   // it goes by a temp file
}

var killSteps = []killStep{
	{"write new", "<tf-write id=\"1\" path=\"f.txt\">\nnew text\n</tf-write>", "f.txt", "", "new text\n", "", true},
	{"write over", "<tf-write id=\"1\" path=\"f.txt\">\nnew text\n</tf-write>", "f.txt", "old text\n", "new text\n", "", true},
	{"append", "<tf-append id=\"1\" path=\"f.txt\">\nmore\n</tf-append>", "f.txt", "old text\n", "old text\nmore\n", "", true},
	{"edit", "<tf-edit id=\"1\" path=\"f.txt\"><old>old</old><new>new</new></tf-edit>", "f.txt", "old text\n", "new text\n", "", true},
	{"touch", "<tf-touch id=\"1\" path=\"f.txt\" />", "f.txt", "", "-", "", false},
	{"mkdir", "<tf-mkdir id=\"1\" path=\"f.txt\" />", "f.txt", "", "/", "", false},
	{"copy", "<tf-copy id=\"1\" path=\"src.txt\" dest=\"f.txt\" />", "f.txt", "", "source\n", "", true},
	{"move", "<tf-move id=\"1\" path=\"src.txt\" dest=\"f.txt\" />", "f.txt", "", "source\n", "src.txt", false},
	{"delete", "<tf-delete id=\"1\" path=\"f.txt\" />", "f.txt", "old text\n", "", "", false},
	{"bash", "<tf-bash id=\"1\" cmd=\"echo ran >> f.txt\" />", "f.txt", "", "ran\n", "", false},
}

// killPoints are where the process ends, and what the ledger must say then; ""
// = it does not know of the command, "effect" = what the files say.
var killPoints = []struct {
	name string
	want ledger.Status
	temp bool
}{
	{"before intent", "", false},
	{"writing the intent", "", false},
	{"after intent", ledger.StatusNotApplied, false},
	{"temp file begun", ledger.StatusNotApplied, true},
	{"after temp file", ledger.StatusNotApplied, true},
	{"after effect", ledger.StatusApplied, false},
	{"before outcome", ledger.StatusApplied, false},
	{"outcome not yet written", ledger.StatusApplied, false},
	{"writing the outcome", ledger.StatusApplied, false},
}

// quickDir is a folder in memory where there is such a file system: what a
// killed process wrote is there either way, and a sync costs nothing.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tf-kill-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return dir
}

// quickHome is home in such a folder.
func quickHome(t *testing.T, more ...string) []string {
	t.Helper()
	return homeIn(t, quickDir(t), more...)
}

// state is the text at a path: "" = absent, "/" = folder, "-" = an empty file.
func state(t *testing.T, path string) string {
	t.Helper()
	fi, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	if fi.IsDir() {
		return "/"
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if len(data) == 0 {
		return "-"
	}
	return string(data)
}

func killed(err error) bool {
	var exit *exec.ExitError
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Wait returns it bare
		exit = e
	}
	if exit == nil {
		return false
	}
	w, ok := exit.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}

// TestKillMatrix kills the real process at every point of every command,
// restarts, and checks: the file is one of its two whole texts, the ledger says
// which, nothing is left over, the chain holds, and going on with the run does
// nothing a second time (cases LR-01, LR-02, LR-16).
func TestKillMatrix(t *testing.T) {
	bin := faultyProgram(t)
	survived, tried := 0, 0
	for _, st := range killSteps {
		for _, p := range killPoints {
			if p.temp && !st.temp || st.name == "bash" && p.name == "after effect" {
				continue // there is no such point
			}
			tried++
			if t.Run(st.name+"/"+p.name, func(t *testing.T) { killOnDisk(t, bin, st, p.name, p.want) }) {
				survived++
			}
		}
	}
	t.Logf("disk: %d commands × %d points, %d of %d combinations survived", len(killSteps), len(killPoints), survived, tried)
}

func killOnDisk(t *testing.T, bin string, st killStep, point string, want ledger.Status) {
	_, url := model(t, "turn\ntext <<END\n"+st.tag+"\nEND\nturn\ntext \"Done.\"\n")
	dir := quickDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src.txt"), []byte("source\n"), 0o644))
	if st.before != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, st.path), []byte(st.before), 0o644))
	}
	environ := quickHome(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	cmd := exec.CommandContext(t.Context(), bin, "run", "x", "--dir", dir, "--allow", "bash,delete", "--set", "sandbox=none")
	cmd.Env = append(environ, "THINKFLOW_FAULT="+point, "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
	out, err := cmd.CombinedOutput()
	require.True(t, killed(err), "not killed: %v\n%s", err, out)

	file := filepath.Join(dir, st.path)
	if st.name == "bash" && want != "" && !strings.HasPrefix(point, "writing") {
		want = ledger.StatusUncertain
	}
	got := state(t, file)
	if strings.HasPrefix(point, "writing") {
		// The kill races with the last of SQLite's writes: what had become of
		// them the files must bear out.
		want = found(t, environ, dir)
		switch {
		case st.name == "bash" && want != "" && want != ledger.StatusApplied:
			assert.Equal(t, ledger.StatusUncertain, want)
			st.before, st.after = got, got
		case got == st.before:
			assert.Contains(t, []ledger.Status{"", ledger.StatusNotApplied}, want)
		default:
			assert.Equal(t, ledger.StatusApplied, want)
		}
	}
	checkAfterKill(t, environ, dir, want)
	switch {
	case st.name == "bash" && point == "after intent", want == "" || want == ledger.StatusNotApplied:
		assert.Equal(t, st.before, got)
	default:
		assert.Equal(t, st.after, got)
	}
	if st.other != "" {
		assert.NotEqual(t, got != "", state(t, filepath.Join(dir, st.other)) != "", "it is in one place")
	}
	r := call(t.Context(), environ, "", "resume", "--dir", dir, "--set", "sandbox=none")
	if want == "" && point == "before intent" && r.code != exitOK {
		assert.Contains(t, r.stderr, "not found", "nothing had been recorded yet")
		return
	}
	if r.code == exitOK {
		assert.Equal(t, got, state(t, file), "going on does nothing again")
	}
}

// found is the status of the one command in the ledger; "" when there is none.
func found(t *testing.T, environ []string, dir string) ledger.Status {
	t.Helper()
	r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir, "--json")
	require.Equal(t, exitOK, r.code, r.stderr)
	if r.stdout == "" {
		return ""
	}
	var c ledger.Command
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &c), r.stdout)
	return c.Status
}

// checkAfterKill opens the ledger as the next process does.
func checkAfterKill(t *testing.T, environ []string, dir string, want ledger.Status) {
	t.Helper()
	r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir, "--json")
	require.Equal(t, exitOK, r.code, r.stderr)
	var commands []ledger.Command
	for line := range strings.Lines(r.stdout) {
		var c ledger.Command
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		commands = append(commands, c)
	}
	if want == "" {
		assert.Empty(t, commands)
	} else if assert.Len(t, commands, 1) {
		assert.Equal(t, want, commands[0].Status, commands[0].Error)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if want != "" { // without an intent there is no effect, and no temp file
			assert.False(t, strings.HasPrefix(e.Name(), ".tf-"), "%s is left", e.Name())
		}
	}
	r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr+r.stdout)
}
