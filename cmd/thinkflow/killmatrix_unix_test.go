//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/internal/fakeeditor"
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
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src.txt"), []byte("source\n"), 0o644))
	if st.before != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, st.path), []byte(st.before), 0o644))
	}
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
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

// TestKillMatrixEditor is the same with a document that is open in an editor:
// the buffer is the editor's, so that it lives on and is one of the two whole
// texts; the ledger never claims more than it can know.
func TestKillMatrixEditor(t *testing.T) {
	bin := faultyProgram(t)
	survived, tried := 0, 0
	points := []struct {
		name string
		want ledger.Status
	}{
		{"before intent", ""},
		{"writing the intent", ""},
		{"after intent", ledger.StatusUncertain},
		{"applyEdit sent", ledger.StatusUncertain},
		{"applyEdit sent and ignored", ledger.StatusUncertain},
		{"before outcome", ledger.StatusUncertain},
		{"outcome not yet written", ledger.StatusUncertain},
		{"writing the outcome", ledger.StatusUncertain},
	}
	steps := []killStep{killSteps[1], killSteps[2], killSteps[3]}
	for _, st := range steps {
		for _, p := range points {
			tried++
			if t.Run(st.name+"/"+p.name, func(t *testing.T) { killWithEditor(t, bin, st, p.name, p.want) }) {
				survived++
			}
		}
	}
	t.Logf("editor: %d commands × %d points, %d of %d combinations survived", len(steps), len(points), survived, tried)
}

func killWithEditor(t *testing.T, bin string, st killStep, point string, want ledger.Status) {
	_, url := model(t, "turn\ntext <<END\n"+st.tag+"\nEND\nturn\ntext \"Done.\"\n")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, st.path), []byte(st.before), 0o644))
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	cmd := exec.CommandContext(t.Context(), bin, "lsp")
	cmd.Dir = dir
	cmd.Env = append(environ, "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
	sent := strings.HasPrefix(point, "applyEdit")
	if !sent {
		cmd.Env = append(cmd.Env, "THINKFLOW_FAULT="+point)
	}
	profile, err := fakeeditor.ProfileNamed("vscode")
	require.NoError(t, err)
	dead := make(chan error, 1)
	started := make(chan struct{})
	o := fakeeditor.Options{Profile: profile, Root: dir, Capabilities: "../../testdata/capabilities", Ignore: strings.HasSuffix(point, "ignored")}
	if sent {
		o.OnEdit = func() { _ = cmd.Process.Kill() }
	}
	e := fakeeditor.Start(t, o, func(r io.Reader, w io.WriteCloser) {
		in, ierr := cmd.StdinPipe()
		out, oerr := cmd.StdoutPipe()
		if ierr != nil || oerr != nil || cmd.Start() != nil {
			t.Error("the server could not be started")
			close(started)
			return
		}
		close(started)
		go func() { _, _ = io.Copy(in, r) }()
		_, _ = io.Copy(w, out)
		_ = w.Close()
		dead <- cmd.Wait()
	})
	<-started
	e.Open(st.path)
	_, err = e.Conn().Go("", "thinkflow/run", map[string]any{"task": "x"})
	require.NoError(t, err)
	err = <-dead
	require.True(t, killed(err), "not killed: %v", err)

	assert.Equal(t, st.before, state(t, filepath.Join(dir, st.path)), "nothing was saved")
	text := e.Text(st.path)
	if strings.HasPrefix(point, "writing") {
		want = found(t, environ, dir)
		assert.Contains(t, []ledger.Status{"", ledger.StatusUncertain, ledger.StatusApplied}, want)
		if want == "" || text == st.before {
			assert.NotEqual(t, ledger.StatusApplied, want)
			assert.Equal(t, st.before, text)
			checkAfterKill(t, environ, dir, want)
			return
		}
	}
	switch {
	case want == "", point == "after intent", strings.HasSuffix(point, "ignored"):
		assert.Equal(t, st.before, text)
	default:
		assert.Equal(t, st.after, text)
	}
	checkAfterKill(t, environ, dir, want)
}
