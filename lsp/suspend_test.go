package lsp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	userconfig "thinkflow/internal/config"
	"thinkflow/internal/fakeeditor"
	"thinkflow/ledger"
	"thinkflow/lsp"
	"thinkflow/workspace"
)

// desk is one workspace with one ledger, to which editors come and from which
// they go.
type desk struct {
	t     *testing.T
	root  string
	state string
	model *asked

	mu   sync.Mutex // guards told
	told []agent.Event
}

// asked is speech that counts the requests and keeps the tools offered.
type asked struct {
	speech
	mu       sync.Mutex // guards requests
	requests int
}

func (m *asked) Stream(ctx context.Context, r *agent.Request) (agent.Stream, error) {
	m.mu.Lock()
	m.requests++
	m.mu.Unlock()
	return m.speech.Stream(ctx, r)
}

func (m *asked) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

func newDesk(t *testing.T, turns ...string) *desk {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), []byte("one\n"), 0o644))
	return &desk{t: t, root: root, state: t.TempDir(), model: &asked{speech: speech{turns: turns}}}
}

// plugin is what a plugin that asks the person itself says of itself.
var plugin = map[string]any{"protocol": 1, "approvals": true}

// sit is an editor that opens the workspace.
func (d *desk) sit(profile string, o fakeeditor.Options) *session {
	d.t.Helper()
	loaded, err := userconfig.Load(userconfig.Options{File: filepath.Join(d.t.TempDir(), "none.toml"), Env: func(string) (string, bool) { return "", false }})
	require.NotNil(d.t, loaded, err)
	cfg := loaded.Config
	cfg.Model, cfg.MaxTurns, cfg.Sandbox = "m", 10, userconfig.SandboxNone
	return start(d.t, config{profile: profile, root: d.root, editor: o, backend: func(setup lsp.Setup, ws *workspace.Workspace) *lsp.Backend {
		e := agent.New(agent.Options{
			Config: cfg, Model: d.model, Workspace: ws, Editor: setup.Editor, Approver: setup.Approver, Asks: "editor",
			Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
				return ledger.Open(ctx, ledger.Options{Dir: d.state, Workspace: d.root, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
			},
		})
		return &lsp.Backend{Engine: e, Documents: ws, Settled: e.Settled, Close: e.Close, Notify: d.notify}
	}})
}

func (d *desk) notify(ev agent.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, ev)
}

func (d *desk) heard(typ agent.EventType) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ev := range d.told {
		if ev.Type == typ {
			return true
		}
	}
	return false
}

// eventsOf are the run events that an editor was sent.
func eventsOf(s *session) []agent.Event {
	var out []agent.Event
	for _, m := range s.Received("thinkflow/event") {
		var ev agent.Event
		if json.Unmarshal(m.Params, &ev) == nil {
			out = append(out, ev)
		}
	}
	return out
}

func has(s *session, typ agent.EventType) func() bool {
	return func() bool {
		for _, ev := range eventsOf(s) {
			if ev.Type == typ {
				return true
			}
		}
		return false
	}
}

// leave begins a run in an editor that goes away as soon as the question is
// open, and returns what waits.
func (d *desk) leave(profile, task string) agent.WaitingApproval {
	d.t.Helper()
	s := d.sit(profile, fakeeditor.Options{Init: plugin})
	go func() { _ = s.Try("thinkflow/run", map[string]any{"task": task}, nil) }()
	s.Await("the question", has(s, agent.ApprovalRequested))
	s.HangUp()
	<-s.code // the server has ended, and its ledger is closed
	led, err := ledger.Open(d.t.Context(), ledger.Options{Dir: d.state, Workspace: d.root})
	require.NoError(d.t, err)
	defer led.Close() //nolint:errcheck // read only
	waiting, err := agent.Waiting(d.t.Context(), led)
	require.NoError(d.t, err)
	require.Len(d.t, waiting, 1, "the run waits")
	return waiting[0]
}

const deletesA = "<tf-delete id=\"1\" path=\"a.txt\"/>\n"

// TestWaitingRunIsAnsweredFromAnotherEditor: the editor goes while a question is
// open; another kind of editor finds it, cannot go past it, and answers it.
func TestWaitingRunIsAnsweredFromAnotherEditor(t *testing.T) {
	d := newDesk(t, deletesA, deletesA)
	w := d.leave("vscode", "delete a.txt")
	asked := d.model.count()
	file := filepath.Join(d.root, "a.txt")

	s := d.sit("nvim-0.12", fakeeditor.Options{Init: plugin})
	var list struct {
		Sessions []agent.SessionInfo     `json:"sessions"`
		Waiting  []agent.WaitingApproval `json:"waiting"`
	}
	s.Request("thinkflow/sessions", nil, &list)
	require.Len(t, list.Sessions, 1)
	assert.Equal(t, "suspended", list.Sessions[0].State)
	require.Len(t, list.Waiting, 1)
	assert.Equal(t, w.ID, list.Waiting[0].ID)
	assert.Contains(t, list.Waiting[0].Target, "a.txt")
	var detail agent.SessionDetail
	s.Request("thinkflow/session", map[string]any{"session": list.Sessions[0].ID}, &detail)
	assert.Len(t, detail.Waiting, 1)
	require.Error(t, s.Try("thinkflow/session", map[string]any{"session": "none"}, nil))

	// Nothing goes past it.
	approve := func(run, id string, decision any) error {
		return s.Try("thinkflow/approve", map[string]any{"runId": run, "approvalId": id, "decision": decision}, nil)
	}
	for name, err := range map[string]error{
		"another task in its session":        s.Try("thinkflow/run", map[string]any{"task": "x", "session": list.Sessions[0].ID}, nil),
		"steering it":                        s.Try("thinkflow/steer", map[string]any{"runId": w.Run, "text": "just do it"}, nil),
		"another approval":                   approve(w.Run, "stale", agent.AllowOnce),
		"another run":                        approve("nothing", w.ID, agent.AllowOnce),
		"an answer that was not offered":     approve(w.Run, w.ID, agent.AllowOnceNet),
		"an answer that is none":             approve(w.Run, w.ID, "maybe"),
		"resuming with an answer to nothing": s.Try("thinkflow/resume", map[string]any{"runId": w.Run, "answers": map[string]any{"stale": "once"}}, nil),
	} {
		assert.Error(t, err, name)
	}
	assert.Equal(t, asked, d.model.count(), "a waiting run asks the model nothing: there is nothing that could call a tool")
	assert.FileExists(t, file)

	// Another run on the same file asks anew; its no is its own.
	go func() { _ = s.Try("thinkflow/run", map[string]any{"task": "delete it too", "runId": "other"}, nil) }()
	var other string
	s.Await("its own question", func() bool {
		for _, ev := range eventsOf(s) {
			if ev.Run == "other" && ev.Approval != nil {
				other = ev.Approval.ID
			}
		}
		return other != ""
	})
	assert.Error(t, approve("other", w.ID, agent.AllowOnce), "the answer to one run's question is none to another's")
	require.NoError(t, approve("other", other, agent.Deny))
	s.Await("its end", func() bool {
		for _, ev := range eventsOf(s) {
			if ev.Run == "other" && (ev.Type == agent.RunCompleted || ev.Type == agent.RunFailed) {
				return true
			}
		}
		return false
	})
	assert.FileExists(t, file)

	require.NoError(t, approve(w.Run, w.ID, agent.AllowOnce))
	s.Await("the end of the run", func() bool {
		for _, ev := range eventsOf(s) {
			if ev.Run == w.Run && ev.Type == agent.RunCompleted {
				return true
			}
		}
		return false
	})
	assert.NoFileExists(t, file)
	assert.Error(t, approve(w.Run, w.ID, agent.AllowOnce), "answered already")
	assert.True(t, d.heard(agent.RunSuspended) && d.heard(agent.ApprovalRequested) && d.heard(agent.RunCompleted), "the user's own notifications hear of it")
}

// TestWaitingRunIsResumed: thinkflow/resume with the answer stays open until the
// run ends; without one the question is put again.
func TestWaitingRunIsResumed(t *testing.T) {
	for name, answer := range map[string]bool{"with the answer": true, "asked again": false} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, deletesA)
			w := d.leave("nvim-0.12", "delete a.txt")
			s := d.sit("helix", fakeeditor.Options{Answer: func(message string, buttons []string) string {
				assert.Contains(t, message, filepath.Join(d.root, "a.txt"))
				return "Allow once"
			}})
			params := map[string]any{"runId": "last"}
			if answer {
				params["answers"] = map[string]any{w.ID: "once"}
			}
			var res agent.RunResult
			s.Request("thinkflow/resume", params, &res)
			assert.Equal(t, agent.StateDone, res.State, res.Reason)
			assert.NoFileExists(t, filepath.Join(d.root, "a.txt"))
			questions := len(s.Received("window/showMessageRequest"))
			assert.Equal(t, map[bool]int{true: 0, false: 1}[answer], questions)
			require.Error(t, s.Try("thinkflow/resume", params, nil), "it is done")
		})
	}
}

// TestTwoEditorsAnswerAtOnce: one of them goes on with the run, the command runs
// once.
func TestTwoEditorsAnswerAtOnce(t *testing.T) {
	d := newDesk(t, "<tf-bash id=\"1\">echo ran >> out.txt</tf-bash>\n")
	w := d.leave("vscode", "run it")
	editors := []*session{d.sit("vscode", fakeeditor.Options{Init: plugin}), d.sit("nvim-0.12", fakeeditor.Options{Init: plugin})}
	errs := make([]error, len(editors))
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i, s := range editors {
		s.editorSide()
		wg.Go(func() {
			<-begin
			errs[i] = s.Try("thinkflow/resume", map[string]any{"runId": w.Run, "answers": map[string]any{w.ID: "once"}}, nil)
		})
	}
	close(begin)
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	assert.Equal(t, 1, won, "%v", errs)
	got, err := os.ReadFile(filepath.Join(d.root, "out.txt"))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(got))
}

// TestAnswerToAnotherTarget: what was asked about leads elsewhere by now; the
// yes is to something else.
func TestAnswerToAnotherTarget(t *testing.T) {
	d := newDesk(t, "<tf-delete id=\"1\" path=\"d/a.txt\"/>\n")
	for _, dir := range []string{"d", "e"} {
		require.NoError(t, os.Mkdir(filepath.Join(d.root, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(d.root, dir, "a.txt"), []byte("x\n"), 0o644))
	}
	w := d.leave("vscode", "delete d/a.txt")
	require.NoError(t, os.RemoveAll(filepath.Join(d.root, "d")))
	if err := os.Symlink("e", filepath.Join(d.root, "d")); err != nil {
		t.Skip("no symbolic links here")
	}
	s := d.sit("vscode", fakeeditor.Options{Answer: func(string, []string) string { return "No" }})
	var res agent.RunResult
	s.Request("thinkflow/resume", map[string]any{"runId": w.Run, "answers": map[string]any{w.ID: "once"}}, &res)
	assert.FileExists(t, filepath.Join(d.root, "e", "a.txt"))
	assert.Len(t, s.Received("window/showMessageRequest"), 1, "it is asked about anew")
}

// TestWhoIsToldHowARunEnds: a client without a plugin is shown one message when
// its run ends or waits; a plugin shows it itself and is sent none.
func TestWhoIsToldHowARunEnds(t *testing.T) {
	shown := func(s *session) []string {
		var out []string
		for _, m := range s.Received("window/showMessage") {
			out = append(out, string(m.Params))
		}
		return out
	}
	t.Run("no plugin", func(t *testing.T) {
		d := newDesk(t, "Hello.\n")
		s := d.sit("helix", fakeeditor.Options{})
		s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.run", "arguments": []any{"say hello"}}, nil)
		s.Await("a message", func() bool { return len(shown(s)) > 0 })
		require.Len(t, shown(s), 1)
		assert.Contains(t, shown(s)[0], "ThinkFlow: done")
		assert.True(t, d.heard(agent.RunCompleted))
	})
	t.Run("plugin", func(t *testing.T) {
		d := newDesk(t, "Hello.\n")
		s := d.sit("vscode", fakeeditor.Options{Init: plugin})
		s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.run", "arguments": []any{"say hello"}}, nil)
		s.Await("the end", has(s, agent.RunCompleted))
		s.Sync()
		assert.Empty(t, shown(s))
		assert.True(t, d.heard(agent.RunCompleted), "the hook hears of it all the same")
	})
	t.Run("waits and is answered", func(t *testing.T) {
		d := newDesk(t, deletesA)
		w := d.leave("vscode", "delete a.txt")
		s := d.sit("helix", fakeeditor.Options{})
		s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.approve", "arguments": []any{map[string]any{"runId": w.Run, "approvalId": w.ID, "decision": "once"}}}, nil)
		s.Await("a message", func() bool { return len(shown(s)) > 0 })
		assert.True(t, strings.Contains(shown(s)[0], "done, 1 file changed: a.txt"), shown(s))
	})
}
