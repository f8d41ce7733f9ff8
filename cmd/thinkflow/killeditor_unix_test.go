//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/internal/fakeeditor"
	"thinkflow/ledger"
)

// editorStep is one command beside a document that is open in an editor.
type editorStep struct {
	killStep
	via  ledger.Via
	open string // the document; its text is what stands there, and unsaved
	init string // setting "apply"
}

const (
	twoOld = "one\ntwo\nthree\n"
	twoTag = "<tf-edit id=\"1\" path=\"f.txt\"><old>one</old><new>1</new><old>three</old><new>3</new></tf-edit>"
)

// editorSteps are all commands that an editor may have a part in: texts of open
// documents, files through it on wish, files that it has open, and those beside
// it that go to the disk.
var editorSteps = []editorStep{
	{killStep: killSteps[1], via: ledger.ViaEditor, open: "f.txt"}, // write over
	{killStep: killSteps[2], via: ledger.ViaEditor, open: "f.txt"}, // append
	{killStep: killSteps[3], via: ledger.ViaEditor, open: "f.txt"}, // edit
	{killStep: killStep{"edit of two places", twoTag, "f.txt", twoOld, "1\ntwo\n3\n", "", false}, via: ledger.ViaEditor, open: "f.txt"},
	{killStep: killStep{"edit of all places", "<tf-edit id=\"1\" path=\"f.txt\" all=\"true\"><old>o</old><new>0</new></tf-edit>", "f.txt", twoOld, "0ne\ntw0\nthree\n", "", false}, via: ledger.ViaEditor, open: "f.txt"},
	{killStep: killStep{"write new through the editor", killSteps[0].tag, "f.txt", "", "new text\n", "", false}, via: ledger.ViaEditor, init: "editor"},
	{killStep: killStep{"write over through the editor", killSteps[1].tag, "f.txt", "old text\n", "new text\n", "", false}, via: ledger.ViaEditor, init: "editor"},
	{killStep: killStep{"copy through the editor", killSteps[6].tag, "f.txt", "", "source\n", "", false}, via: ledger.ViaEditor, init: "editor"},
	{killStep: killStep{"move open", killSteps[7].tag, "f.txt", "", "source\n", "src.txt", false}, via: ledger.ViaEditor, open: "src.txt"},
	{killStep: killStep{"delete open", killSteps[8].tag, "f.txt", "old text\n", "", "", false}, via: ledger.ViaEditor, open: "f.txt"},
	{killStep: killStep{"copy of unsaved", killSteps[6].tag, "f.txt", "", "unsaved source\n", "", false}, via: ledger.ViaDisk, open: "src.txt"},
	{killStep: killSteps[4], via: ledger.ViaDisk, open: "src.txt"}, // touch
	{killStep: killSteps[5], via: ledger.ViaDisk, open: "src.txt"}, // mkdir
}

// editorPoints are where the server ends, beside the disk's: by the editor's
// hand in the middle of an applyEdit, or by its own.
var editorPoints = []struct {
	name string
	want ledger.Status // "" = it does not know of the command
	done bool          // the effect is there
	via  ledger.Via    // "" = both
}{
	{"before intent", "", false, ""},
	{"writing the intent", "", false, ""},
	{"after intent", ledger.StatusNotApplied, false, ""},
	{"after effect", ledger.StatusApplied, true, ledger.ViaDisk},
	{"applyEdit sent and ignored", ledger.StatusUncertain, false, ledger.ViaEditor},
	{"applyEdit sent", ledger.StatusUncertain, true, ledger.ViaEditor},
	{"applied and replied", ledger.StatusUncertain, true, ledger.ViaEditor},
	{"before outcome", ledger.StatusApplied, true, ""},
	{"outcome not yet written", ledger.StatusApplied, true, ""},
	{"writing the outcome", ledger.StatusApplied, true, ""},
}

// TestKillMatrixEditor is the same beside an editor: a buffer is the editor's, so
// that it lives on and is one of its two whole texts; the ledger never claims
// more than it can know. Editors differ in when they report and in what they
// answer: the texts are tried with a second one.
func TestKillMatrixEditor(t *testing.T) {
	bin := faultyProgram(t)
	survived, tried := 0, 0
	for _, client := range []string{"vscode", "nvim-0.10"} {
		for i, st := range editorSteps {
			if client != "vscode" && i > 3 {
				continue
			}
			for _, p := range editorPoints {
				if p.via != "" && p.via != st.via || client != "vscode" && !strings.Contains(p.name, "applied") && !strings.Contains(p.name, "applyEdit") && p.name != "before outcome" {
					continue
				}
				tried++
				if t.Run(client+"/"+st.name+"/"+p.name, func(t *testing.T) { killWithEditor(t, bin, client, st, p.name, p.want, p.done) }) {
					survived++
				}
			}
		}
	}
	t.Logf("editor: %d of %d combinations of client, command and point survived", survived, tried)
}

// killedServer is a server that was killed beside an editor.
type killedServer struct {
	editor  *fakeeditor.Editor
	dir     string
	environ []string
}

// seen is what a person sees at a path: the buffer, else the file.
func (k *killedServer) seen(t *testing.T, path string) string {
	if text, ok := k.editor.TextIfOpen(path); ok {
		return text
	}
	return state(t, filepath.Join(k.dir, path))
}

func (k *killedServer) disk(t *testing.T, path string) string {
	return state(t, filepath.Join(k.dir, path))
}

// killServer runs one command in an editor and kills the server at a point.
func killServer(t *testing.T, bin, client string, st editorStep, point string) *killedServer {
	t.Helper()
	_, url := model(t, "turn\ntext <<END\n"+st.tag+"\nEND\nturn\ntext \"Done.\"\n")
	k := &killedServer{dir: quickDir(t)}
	require.NoError(t, os.WriteFile(filepath.Join(k.dir, "src.txt"), []byte("source\n"), 0o644))
	if st.before != "" {
		require.NoError(t, os.WriteFile(filepath.Join(k.dir, st.path), []byte(st.before), 0o644))
	}
	k.environ = quickHome(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_ALLOW=delete")
	if st.init != "" {
		k.environ = append(k.environ, "THINKFLOW_APPLY="+st.init)
	}
	cmd := exec.CommandContext(t.Context(), bin, "lsp")
	cmd.Dir = k.dir
	cmd.Env = append(k.environ, "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
	o := fakeeditor.Options{Clock: new(fakeeditor.Clock)}
	kill := func() { _ = cmd.Process.Kill() }
	switch point {
	case "applyEdit sent":
		o.OnEdit = kill
	case "applyEdit sent and ignored":
		o.OnEdit, o.Ignore = kill, true
	case "applied and replied":
		o.OnReplied = kill
	default:
		cmd.Env = append(cmd.Env, "THINKFLOW_FAULT="+point)
		o.OnReplied = func() { o.Clock.Advance(time.Second) } // it reports
	}
	dead := make(chan error, 1)
	k.editor = startServer(t, client, k.dir, o, cmd, dead)
	if st.open != "" {
		k.editor.Open(st.open)
		if st.name == "copy of unsaved" {
			k.editor.Type("src.txt", "source", "unsaved ")
			k.editor.Flush("src.txt")
		}
	}
	_, err := k.editor.Conn().Go("", "thinkflow/run", map[string]any{"task": "x"})
	require.NoError(t, err)
	err = <-dead
	require.True(t, killed(err), "not killed: %v", err)
	<-k.editor.Conn().Done() // what had been sent is carried out
	return k
}

// startServer starts the program as an editor does.
func startServer(t *testing.T, client, dir string, o fakeeditor.Options, cmd *exec.Cmd, dead chan<- error) *fakeeditor.Editor {
	t.Helper()
	profile, err := fakeeditor.ProfileNamed(client)
	require.NoError(t, err)
	o.Profile, o.Root, o.Capabilities = profile, dir, "../../testdata/capabilities"
	started := make(chan struct{})
	e := fakeeditor.Start(t, o, func(r io.Reader, w io.WriteCloser) {
		in, ierr := cmd.StdinPipe()
		out, oerr := cmd.StdoutPipe()
		if ierr != nil || oerr != nil || cmd.Start() != nil {
			t.Error("the server could not be started")
			close(started)
			return
		}
		close(started)
		go func() {
			_, _ = io.Copy(in, r)
			_ = in.Close()
			_, _ = io.Copy(io.Discard, r) // the editor goes on, whoever listens
		}()
		_, _ = io.Copy(w, out)
		_ = w.Close()
		dead <- cmd.Wait()
	})
	<-started
	return e
}

func killWithEditor(t *testing.T, bin, client string, st editorStep, point string, want ledger.Status, done bool) {
	k := killServer(t, bin, client, st, point)
	got, disk := k.seen(t, st.path), k.disk(t, st.path)
	writing := strings.HasPrefix(point, "writing")
	if writing {
		// The kill races with the last of SQLite's writes: what had become of
		// them, the files and buffers must bear out.
		want = found(t, k.environ, k.dir)
		done = got == st.after
		if want == "" {
			assert.False(t, done, "no effect without a record of it")
		}
	}
	if want != "" && st.via == ledger.ViaEditor {
		// Only what the disk shows is known; what may stand in a buffer is not.
		switch settled := want == ledger.StatusApplied && writing; {
		case disk == st.after && disk != st.before:
			want = ledger.StatusApplied
		case !settled: // the outcome itself was written, and the buffer bears it out
			want = ledger.StatusUncertain
		}
	}
	if done {
		assert.Equal(t, st.after, got)
	} else {
		assert.Equal(t, st.before, got)
	}
	if want == ledger.StatusApplied {
		assert.True(t, done)
	}
	if st.other != "" {
		assert.NotEqual(t, got != "", k.seen(t, st.other) != "", "it is in one place")
	}
	if st.open == st.path && st.name != "delete open" {
		assert.Equal(t, st.before, disk, "nothing was saved")
	}
	checkAfterKill(t, k.environ, k.dir, want)
	r := call(t.Context(), k.environ, "", "resume", "--dir", k.dir)
	switch {
	case r.code == exitOK:
	case point == "writing the outcome": // its end may have been in the same commit
		assert.Contains(t, r.stderr, "is done")
	default:
		assert.Empty(t, want, r.stderr)
		assert.Contains(t, r.stderr, "not found", "nothing had been recorded yet")
	}
	assert.Equal(t, got, k.seen(t, st.path), "going on does nothing again")
	assert.Equal(t, disk, k.disk(t, st.path), "going on does nothing again")
}

// TestKillMatrixEditorGoesOn: after the kill another server is started, by the
// editor that lived on with its buffers, or by a new one that reads the disk
// because the editor died too; the run is gone on with from there. Nothing is
// done a second time, and what nobody can know stays uncertain.
func TestKillMatrixEditorGoesOn(t *testing.T) {
	bin := faultyProgram(t)
	for _, lives := range []bool{true, false} {
		for _, client := range []string{"vscode", "nvim-0.10"} {
			for _, st := range editorSteps[:4] {
				for _, point := range []string{"after intent", "applyEdit sent", "before outcome"} {
					t.Run(fmt.Sprintf("%s/editor lives %v/%s/%s", client, lives, st.name, point), func(t *testing.T) {
						k := killServer(t, bin, client, st, point)
						text := k.seen(t, st.path)
						if !lives {
							text = st.before
						}
						cmd := exec.CommandContext(t.Context(), bin, "lsp")
						cmd.Dir = k.dir
						cmd.Env = append(k.environ, "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
						dead := make(chan error, 1)
						e := startServer(t, client, k.dir, fakeeditor.Options{Clock: new(fakeeditor.Clock)}, cmd, dead)
						e.OpenText(fakeeditor.FileURI(filepath.Join(k.dir, st.path)), text)
						var res struct{ State string }
						e.Request("thinkflow/resume", map[string]any{"runId": "last"}, &res)
						assert.Equal(t, "done", res.State)
						assert.Empty(t, e.Edits(), "nothing is done again")
						assert.Equal(t, text, e.Text(st.path))
						assert.Equal(t, st.before, k.disk(t, st.path), "nothing was saved")
						e.Request("shutdown", nil, nil)
						e.Notify("exit", nil)
						require.NoError(t, <-dead)
						checkAfterKill(t, k.environ, k.dir, ledger.StatusUncertain)
					})
				}
			}
		}
	}
}
