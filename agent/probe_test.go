package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/scripted"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// row is a command as the ledger has it: channel, status, code.
type row struct{ channel, status, code string }

// rows are the commands and calls of the run, in order.
func rows(t *testing.T, r *rig, run string) []row {
	t.Helper()
	all, err := r.ledger.List(context.Background(), ledger.Filter{Run: run})
	require.NoError(t, err)
	var out []row
	for _, c := range all {
		out = append(out, row{c.Channel, string(c.Status), c.Code})
	}
	return out
}

// toolResults are the results that the model got in the second request.
func toolResults(t *testing.T, r *rig) string {
	t.Helper()
	reqs := r.server.Requests()
	require.GreaterOrEqual(t, len(reqs), 2, "the model is told")
	var b strings.Builder
	for _, m := range reqs[1].Messages() {
		if m.Role == "tool" {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

// TestSceneShell are the ways in which a call can go (see agent/registry), with
// the tools that are shipped and through the whole engine. Every run of the
// handler of bash leaves an intent, so the ledger counts them.
func TestSceneShell(t *testing.T) {
	// The shell must be started within this time, also on a busy machine; what it
	// leaves behind holds its output open for longer.
	const short = "bash_timeout = \"4s\"\n"
	tests := []struct {
		name     string
		settings string
		call     string
		slow     bool // the sandbox takes longer than the time-out, once
		says     []string
		not      string
		rows     []row
		lines    int // what the command itself left: how often it ran
	}{
		{name: "unknown", call: `fetch {}`, says: []string{"UNKNOWN_TOOL", "known tools: read_file"}, rows: []row{{"native", "failed", "UNKNOWN_TOOL"}}},
		{name: "unavailable", call: `diagnostics {}`, says: []string{"TOOL_UNAVAILABLE", "run the checks with a command"}, rows: []row{{"native", "failed", "TOOL_UNAVAILABLE"}}},
		{name: "invalid", call: `bash {"cmd":"echo x >> runs"}`, says: []string{"INVALID_ARGUMENT", `"cmd"`}, rows: []row{{"native", "failed", "INVALID_ARGUMENT"}}},
		{name: "normal", call: `bash {"command":"echo x >> runs; exit 3"}`, says: []string{"exit status 3"}, rows: []row{{"native", "applied", ""}}, lines: 1},
		{name: "time-out, but done", settings: short, call: `bash {"command":"echo x >> runs; echo done; sleep 60 &"}`,
			says: []string{"exit status 0\ndone"}, not: "TIMEOUT", rows: []row{{"native", "applied", ""}}, lines: 1},
		{name: "time-out, not done", settings: short, slow: true, call: `bash {"command":"echo x >> runs"}`,
			says: []string{"exit status 0"}, not: "TIMEOUT", rows: []row{{"native", "not_applied", "not_started"}, {"native.retry1", "applied", ""}}, lines: 1},
		{name: "time-out, killed in the middle", settings: short, call: `bash {"command":"echo x >> runs; echo half; sleep 60; echo x >> runs"}`,
			says: []string{"TIMEOUT: killed after 4s (bash_timeout)", "unknown", "\nhalf"}, rows: []row{{"native", "uncertain", "killed"}}, lines: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, dir, "allow = [\"bash\"]\nsandbox = \"none\"\n"+tt.settings, "turn\ncall "+tt.call+"\nturn\ntext ok\n")
			o := r.options
			o.Config.Sandbox = "none"
			r.engine = agent.New(o)
			r.engine.HoldOutput(time.Minute)
			if tt.slow {
				slowFirst(r.engine, o.Config.BashTimeout)
			}
			t.Cleanup(func() { _ = r.engine.Close() })
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
			require.NoError(t, err)
			require.Equal(t, agent.StateDone, res.State, res.Reason)
			said := toolResults(t, r)
			for _, s := range tt.says {
				require.Contains(t, said, s)
			}
			if tt.not != "" {
				require.NotContains(t, said, tt.not)
			}
			require.Equal(t, tt.rows, rows(t, r, "run1"))
			raw, _ := os.ReadFile(filepath.Join(dir, "runs"))
			require.Equal(t, tt.lines, strings.Count(string(raw), "\n"), "how often the command ran")
		})
	}
}

// slowFirst lets the first command be prepared only when its time is over: what is
// awaited is the passing of that time itself.
func slowFirst(e *agent.Engine, limit time.Duration) {
	e.SlowSandbox(func() { time.Sleep(limit + limit/8) })
}

// TestSceneShellTag: a tf-bash goes the same way.
func TestSceneShellTag(t *testing.T) {
	tests := []struct {
		name, line string
		slow       bool
		says       string
		rows       []row
	}{
		{"done", "echo done; sleep 60 &", false, "tf-bash, exit status 0", []row{{"text", "applied", ""}}},
		{"not begun", "echo done", true, "tf-bash, exit status 0", []row{{"text", "not_applied", "not_started"}, {"text.retry1", "applied", ""}}},
		{"in the middle", "echo half; sleep 60", false, "tf-bash, killed after 4s (bash_timeout), its effects are unknown", []row{{"text", "uncertain", "killed"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), "allow = [\"bash\"]\nbash_timeout = \"4s\"\n", "turn\ntext <<END\n<tf-bash id=\"1\">"+tt.line+"</tf-bash>\nEND\nturn\ntext ok\n")
			o := r.options
			o.Config.Sandbox = "none"
			r.engine = agent.New(o)
			r.engine.HoldOutput(time.Minute)
			t.Cleanup(func() { _ = r.engine.Close() })
			if tt.slow {
				slowFirst(r.engine, o.Config.BashTimeout)
			}
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
			require.NoError(t, err)
			require.Equal(t, agent.StateDone, res.State, res.Reason)
			reqs := r.server.Requests()
			require.Contains(t, lastOf(reqs[1]).Text, tt.says)
			require.Equal(t, tt.rows, rows(t, r, "run1"))
		})
	}
}

// TestSceneTask: a sub-agent whose time was over. Its turns count its model's
// answers; what it changed stands in the ledger whatever becomes of it.
func TestSceneTask(t *testing.T) {
	write := `text "<tf-write id=\"1\" path=\"a.txt\">\nx\n</tf-write>\n"` + "\n"
	sub := "turn\nwhen \"You are a sub-agent\"\n"
	tests := []struct {
		name, script string
		says         []string
		rows         []row
		requests     int
	}{
		{"not done, then done", sub + "hang headers\n" + sub + write, []string{"done after 1 turns; changed a.txt"},
			[]row{{"native", "applied", ""}, {"task1.1.text", "applied", ""}}, 4},
		{"not done, twice", sub + "hang headers\n" + sub + "hang headers\n", []string{"TIMEOUT", "(task_timeout), twice; nothing was done"},
			[]row{{"native", "not_applied", "TIMEOUT"}}, 4},
		{"in the middle", sub + write + "hang\n", []string{"TIMEOUT", "(task_timeout)", "changed a.txt"},
			[]row{{"native", "uncertain", "TIMEOUT"}, {"task1.1.text", "applied", ""}}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, t.TempDir(), "task_timeout = \"500ms\"\n", tt.script+"turn\ncall task {\"task\":\"slow\"}\nturn\ntext ok\n")
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
			require.NoError(t, err)
			require.Equal(t, agent.StateDone, res.State, res.Reason)
			reqs := r.server.Requests()
			require.Len(t, reqs, tt.requests)
			said := reqs[len(reqs)-1].Messages()
			for _, s := range tt.says {
				require.Contains(t, said[len(said)-1].Text, s)
			}
			require.ElementsMatch(t, tt.rows, rows(t, r, "run1"))
		})
	}
}

// vagueEditor never tells what became of an edit.
type vagueEditor struct {
	ws  *workspace.Workspace
	out agent.EditOutcome
	err error
	do  func(n int, ch *workspace.Change) // what happens all the same

	mu sync.Mutex // guards n
	n  int
}

func (v *vagueEditor) ApplyEdit(_ context.Context, ch *workspace.Change) (agent.EditOutcome, error) {
	v.mu.Lock()
	v.n++
	n := v.n
	v.mu.Unlock()
	if v.do != nil {
		v.do(n, ch)
	}
	return v.out, v.err
}

// TestSceneEdit: an edit, as a native call, that the editor gives no answer to.
// What stands in the document decides; the editor is asked again only when
// nothing of its request can still come.
func TestSceneEdit(t *testing.T) {
	silent := errors.New("no answer")
	put := func(ws *workspace.Workspace, text func(*workspace.Change) string) func(int, *workspace.Change) {
		return func(_ int, ch *workspace.Change) {
			ws.OpenDocument(workspace.Document{Path: ch.Target.Abs, Text: text(ch), Version: 2})
		}
	}
	uncertain := agent.EditOutcome{Verdict: agent.EditUncertain, Reason: "no change was seen"}
	over := agent.EditOutcome{Verdict: agent.EditUncertain, Over: true, Reason: "the disk does not show it"}
	edit := `edit_file {"path":"a.txt","edits":[{"old":"one","new":"two"}]}`
	tests := []struct {
		name string
		call string
		out  agent.EditOutcome
		err  error
		do   func(*workspace.Workspace) func(int, *workspace.Change)
		says string
		sent int
		rows []row
	}{
		{name: "after: done", call: edit, err: silent, sent: 1, rows: []row{{"native", "applied", ""}}, says: "edit_file a.txt: applied",
			do: func(ws *workspace.Workspace) func(int, *workspace.Change) {
				return put(ws, func(ch *workspace.Change) string { return ch.After() })
			}},
		{name: "after, and the verdict was uncertain", call: edit, out: uncertain, sent: 1, rows: []row{{"native", "applied", ""}}, says: "edit_file a.txt: applied",
			do: func(ws *workspace.Workspace) func(int, *workspace.Change) {
				return put(ws, func(ch *workspace.Change) string { return ch.After() })
			}},
		{name: "before, and it may still come", call: edit, err: silent, sent: 1, rows: []row{{"native", "uncertain", "uncertain"}}, says: "may or may not have been applied"},
		{name: "neither", call: edit, out: uncertain, sent: 1, rows: []row{{"native", "uncertain", "uncertain"}}, says: "may or may not have been applied",
			do: func(ws *workspace.Workspace) func(int, *workspace.Change) {
				return put(ws, func(*workspace.Change) string { return "something else\n" })
			}},
		{name: "before, and it is over: once more", call: `delete_file {"path":"a.txt"}`, out: over, sent: 2,
			rows: []row{{"native", "not_applied", "editor_refused"}, {"native.retry1", "applied", ""}}, says: "delete_file a.txt: applied",
			do: func(*workspace.Workspace) func(int, *workspace.Change) {
				return func(n int, ch *workspace.Change) {
					if n == 2 {
						_ = os.Remove(ch.Target.Abs)
					}
				}
			}},
		{name: "before, and it is over, twice", call: `delete_file {"path":"a.txt"}`, out: over, sent: 2,
			rows: []row{{"native", "not_applied", "editor_refused"}, {"native.retry1", "not_applied", "editor_refused"}}, says: "not applied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "a.txt"), "one\n")
			r := newRig(t, dir, "protocol = \"native\"\nallow = [\"delete\"]\n", "turn\ncall "+tt.call+"\nturn\ntext ok\n")
			o := r.options
			ed := &vagueEditor{ws: o.Workspace, out: tt.out, err: tt.err}
			if tt.do != nil {
				ed.do = tt.do(o.Workspace)
			}
			o.Editor = ed
			o.Workspace.OpenDocument(workspace.Document{Path: filepath.Join(dir, "a.txt"), Text: "one\n", Version: 1})
			r.engine = agent.New(o)
			r.engine.HoldOutput(time.Minute)
			t.Cleanup(func() { _ = r.engine.Close() })
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
			require.NoError(t, err)
			require.Equal(t, agent.StateDone, res.State, res.Reason)
			require.Equal(t, tt.sent, ed.n, "how often the editor was asked")
			require.Contains(t, toolResults(t, r), tt.says)
			require.Equal(t, tt.rows, rows(t, r, "run1"))
		})
	}
}

// lastOf is the last message of a request.
func lastOf(q scripted.Request) scripted.Message {
	m := q.Messages()
	return m[len(m)-1]
}

// slowPerson answers yes after an hour of the engine's clock.
type slowPerson struct{ hours *atomic.Int64 }

func (p slowPerson) Ask(context.Context, agent.ApprovalEvent) (agent.Decision, error) {
	p.hours.Add(1)
	return agent.AllowOnce, nil
}

// TestTimeOfACommandLeavesOutThePerson: what a command took does not hold the time
// in which somebody was asked, nor does that of one that waited behind it.
func TestTimeOfACommandLeavesOutThePerson(t *testing.T) {
	r := newRig(t, t.TempDir(), "", "turn\ntext <<END\n<tf-write id=\"1\" path=\".vscode/settings.json\">\n{}\n</tf-write>\n"+
		"<tf-write id=\"2\" path=\"a.txt\">\nx\n</tf-write>\n<tf-bash id=\"3\">true</tf-bash>\nEND\nturn\ntext ok\n")
	var hours atomic.Int64
	o := r.options
	o.Approver = slowPerson{&hours}
	o.Now = func() time.Time { return time.Now().Add(time.Duration(hours.Load()) * time.Hour) }
	r.engine = agent.New(o)
	t.Cleanup(func() { _ = r.engine.Close() })
	took := map[int]int64{}
	lines := map[int]string{}
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go", Events: func(ev agent.Event) {
		switch ev.Type {
		case agent.CommandCompleted:
			took[ev.Command.ID] = ev.Command.Micros
		case agent.CommandStarted:
			lines[ev.Command.ID] = ev.Command.Cmd
		}
	}})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.EqualValues(t, 2, hours.Load())
	require.Len(t, took, 3)
	for id, us := range took {
		require.Less(t, us, time.Hour.Microseconds(), "command %d", id)
	}
	require.Equal(t, "true", lines[3], "the start of a shell command tells its line")
}
