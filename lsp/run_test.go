package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
)

// lived is a run that emits some events and ends.
func lived(events ...agent.Event) func(context.Context, agent.RunRequest) (agent.RunResult, error) {
	return func(_ context.Context, req agent.RunRequest) (agent.RunResult, error) {
		for i, ev := range events {
			ev.Run, ev.Seq = req.Run, int64(i+1)
			req.Events(ev)
		}
		return agent.RunResult{Run: req.Run, State: agent.StateDone, Files: []string{"a.go"}, Text: "the answer"}, nil
	}
}

// waiting is a run that goes on until it is cancelled.
func waiting(started chan<- string) func(context.Context, agent.RunRequest) (agent.RunResult, error) {
	return func(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
		started <- req.Run
		<-ctx.Done()
		return agent.RunResult{Run: req.Run, State: agent.StateCancelled}, nil
	}
}

func TestEventsInOrder(t *testing.T) {
	var events []agent.Event
	for i := range 100 {
		events = append(events, agent.Event{Type: agent.TextDelta, Text: fmt.Sprint(i)})
	}
	s := start(t, config{run: lived(events...)})
	s.Request("thinkflow/run", map[string]any{"task": "x", "runId": "r1"}, nil)
	s.Await("all events", func() bool { return len(s.Received("thinkflow/event")) >= len(events) })
	got := s.Received("thinkflow/event")
	for i, m := range got {
		var ev agent.Event
		if err := json.Unmarshal(m.Params, &ev); err != nil || ev.Seq != int64(i+1) || ev.Text != fmt.Sprint(i) || ev.Run != "r1" {
			t.Fatalf("event %d: %s, %v", i, m.Params, err)
		}
	}
	if strings.Contains(string(got[0].Params), `"usage"`) {
		t.Errorf("absent fields are sent: %s", got[0].Params)
	}
}

// TestProgress: created only where advertised, begun and ended, and its message
// says what happens now.
func TestProgress(t *testing.T) {
	gate := make(chan string)
	run := func(_ context.Context, req agent.RunRequest) (agent.RunResult, error) {
		for _, ev := range []agent.Event{
			{Type: agent.TurnStarted},
			{Type: agent.CommandStarted, Command: &agent.CommandEvent{Name: "tf-write", Path: "a.go"}},
			{Type: agent.CommandStarted, Command: &agent.CommandEvent{Name: "tf-bash", Cmd: "go test"}},
			{Type: agent.ApprovalRequested, Approval: &agent.ApprovalEvent{Action: "delete", Target: "b.go"}},
		} {
			req.Events(ev)
			<-gate
		}
		return agent.RunResult{Run: req.Run, State: agent.StateDone}, nil
	}
	messages := func(s *session) (kinds, texts []string) {
		for _, m := range s.Received("$/progress") {
			var p struct {
				Token string
				Value struct{ Kind, Message string }
			}
			_ = json.Unmarshal(m.Params, &p)
			kinds, texts = append(kinds, p.Value.Kind), append(texts, p.Value.Message)
		}
		return kinds, texts
	}
	t.Run("advertised", func(t *testing.T) {
		s := start(t, config{profile: "nvim-0.10", run: run})
		call, err := s.Conn().Go("", "thinkflow/run", map[string]any{"task": "do it\nnow", "runId": "r"})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"thinking", "writing a.go", "running go test", "waiting for approval: delete b.go"} {
			s.Await(want, func() bool {
				_, texts := messages(s)
				return len(texts) > 0 && texts[len(texts)-1] == want
			})
			gate <- ""
		}
		if err := call.Wait(nil); err != nil {
			t.Fatal(err)
		}
		s.Await("end", func() bool { kinds, _ := messages(s); return kinds[len(kinds)-1] == "end" })
		kinds, _ := messages(s)
		if kinds[0] != "begin" || len(s.Received("window/workDoneProgress/create")) != 1 {
			t.Errorf("kinds %v", kinds)
		}
		if begin := string(s.Received("$/progress")[0].Params); !strings.Contains(begin, `"title":"ThinkFlow: do it"`) || !strings.Contains(begin, `"cancellable":true`) {
			t.Errorf("begin: %s", begin)
		}
	})
	t.Run("not advertised", func(t *testing.T) {
		s := start(t, config{profile: "eglot-1.9", run: lived(agent.Event{Type: agent.TurnStarted})})
		s.Request("thinkflow/run", map[string]any{"task": "x"}, nil)
		if n := len(s.Received("$/progress")) + len(s.Received("window/workDoneProgress/create")); n != 0 {
			t.Errorf("%d progress messages", n)
		}
	})
	t.Run("token of the client", func(t *testing.T) {
		s := start(t, config{profile: "eglot-1.9", run: lived()})
		s.Request("thinkflow/run", map[string]any{"task": "x", "workDoneToken": 7}, nil)
		s.Await("end", func() bool { kinds, _ := messages(s); return len(kinds) == 2 && kinds[1] == "end" })
		if m := s.Received("$/progress")[0]; !strings.Contains(string(m.Params), `"token":7`) {
			t.Errorf("%s", m.Params)
		}
	})
}

func TestProgressCancel(t *testing.T) {
	started := make(chan string, 1)
	s := start(t, config{run: waiting(started)})
	call, err := s.Conn().Go("", "thinkflow/run", map[string]any{"task": "x", "runId": "r"})
	if err != nil {
		t.Fatal(err)
	}
	<-started
	s.Await("begin", func() bool { return len(s.Received("$/progress")) > 0 })
	s.Notify("window/workDoneProgress/cancel", map[string]any{"token": "of somebody else"})
	s.Notify("window/workDoneProgress/cancel", map[string]any{"token": "thinkflow/r"})
	var got agent.RunResult
	if err := call.Wait(&got); err != nil || got.State != agent.StateCancelled {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestExecuteCommand: the run command answers at once and the person hears how
// it ended, without our events, which a bare client does not know.
func TestExecuteCommand(t *testing.T) {
	release := make(chan struct{})
	s := start(t, config{profile: "helix", run: func(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
		<-release
		return lived(agent.Event{Type: agent.TurnStarted})(ctx, req)
	}})
	var got struct{ RunID string }
	s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.run", "arguments": []any{"fix it"}}, &got)
	if got.RunID == "" {
		t.Fatal("no runId")
	}
	close(release)
	s.Await("the summary", func() bool { return len(s.Received("window/showMessage")) > 0 })
	if m := string(s.Received("window/showMessage")[0].Params); !strings.Contains(m, "ThinkFlow: done, 1 file changed: a.go") {
		t.Errorf("message %s", m)
	}
	if m := s.Received("window/logMessage"); len(m) != 1 || !strings.Contains(string(m[0].Params), "the answer") {
		t.Errorf("log %v", m)
	}
	if n := len(s.Received("thinkflow/event")); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestSeveralRuns: side by side; cancel of one, then of all by command.
func TestSeveralRuns(t *testing.T) {
	started := make(chan string, 3)
	s := start(t, config{run: waiting(started), editor: fakeeditor.Options{Init: map[string]any{"protocol": 1}}})
	calls := map[string]*fakeeditor.Call{}
	for _, id := range []string{"r1", "r2", "r3"} {
		call, err := s.Conn().Go("", "thinkflow/run", map[string]any{"task": "x", "runId": id})
		if err != nil {
			t.Fatal(err)
		}
		calls[id] = call
		<-started
	}
	if err := s.Try("thinkflow/run", map[string]any{"task": "x", "runId": "r1"}, nil); rpcCode(err) != -32602 {
		t.Errorf("the same id again: %v", err)
	}
	var got struct{ Cancelled bool }
	s.Request("thinkflow/cancel", map[string]any{"runId": "r2"}, &got)
	if err := calls["r2"].Wait(nil); err != nil || !got.Cancelled {
		t.Errorf("r2: %v %v", got, err)
	}
	s.Request("thinkflow/cancel", map[string]any{"runId": "r2"}, &got)
	if got.Cancelled {
		t.Error("a run that has ended was cancelled")
	}
	s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.cancel"}, &got)
	for _, id := range []string{"r1", "r3"} {
		var res agent.RunResult
		if err := calls[id].Wait(&res); err != nil || res.State != agent.StateCancelled {
			t.Errorf("%s: %+v %v", id, res, err)
		}
	}
}

func TestSteerAndApprove(t *testing.T) {
	s := start(t, config{})
	s.editorSide()
	s.Request("thinkflow/steer", map[string]any{"runId": "r", "text": "shorter"}, nil)
	if s.engine.steered["r"] != "shorter" {
		t.Errorf("steered %v", s.engine.steered)
	}
	if err := s.Try("thinkflow/steer", map[string]any{"runId": "gone", "text": "x"}, nil); rpcCode(err) != -32602 {
		t.Errorf("no such run: %v", err)
	}
	s.Request("thinkflow/approve", map[string]any{"runId": "r", "approvalId": "a", "decision": "session"}, nil)
	s.Request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.approve", "arguments": []any{map[string]any{"runId": "r", "approvalId": "b", "decision": "no"}}}, nil)
	if want := []string{"r a session", "r b no"}; !reflect.DeepEqual(s.engine.approved, want) {
		t.Errorf("approved %v, want %v", s.engine.approved, want)
	}
}

// TestAsk: a button is a decision; dismissed, unknown and unsupported are a no.
func TestAsk(t *testing.T) {
	answer := func(title string) func(string, []string) string {
		return func(string, []string) string { return title }
	}
	rows := []struct {
		name   string
		answer func(string, []string) string
		want   agent.Decision
	}{
		{"once", answer("Allow once"), agent.AllowOnce},
		{"session", answer("Allow for this session"), agent.AllowSession},
		{"no", answer("No"), agent.Deny},
		{"dismissed", nil, agent.Deny},
		{"unknown", answer("Whatever"), agent.Deny},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := start(t, config{editor: fakeeditor.Options{Answer: row.answer}})
			got, err := s.editorSide().Approver.Ask(t.Context(), agent.ApprovalEvent{
				Action: "bash", Target: "rm -rf build", Rule: "shell commands ask", Diff: strings.Repeat("+x\n", 50),
			})
			if err != nil || got != row.want {
				t.Errorf("%q, %v; want %q", got, err, row.want)
			}
			m := string(s.Received("window/showMessageRequest")[0].Params)
			for _, want := range []string{"rm -rf build", "shell commands ask", "38 more lines"} {
				if !strings.Contains(m, want) {
					t.Errorf("%q is not in %s", want, m)
				}
			}
		})
	}
	t.Run("plugin asks itself", func(t *testing.T) {
		s := start(t, config{editor: fakeeditor.Options{Init: map[string]any{"protocol": 1, "approvals": true}}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the engine has the answer
		if d, err := s.editorSide().Approver.Ask(ctx, agent.ApprovalEvent{}); d != agent.Deny || err == nil {
			t.Errorf("%q, %v", d, err)
		}
		if n := len(s.Received("window/showMessageRequest")); n != 0 {
			t.Errorf("%d message requests", n)
		}
	})
	t.Run("taken back", func(t *testing.T) {
		asked := make(chan struct{})
		s := start(t, config{editor: fakeeditor.Options{Answer: func(string, []string) string {
			close(asked)
			select {}
		}}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if d, _ := s.editorSide().Approver.Ask(ctx, agent.ApprovalEvent{}); d != agent.Deny {
			t.Errorf("%q", d)
		}
		s.Await("the cancellation", func() bool { return len(s.Received("$/cancelRequest")) == 1 })
	})
}

// TestSettings: from initialize, from didChangeConfiguration, and pulled.
func TestSettings(t *testing.T) {
	s := start(t, config{editor: fakeeditor.Options{Init: map[string]any{"settings": map[string]any{"model": "m1"}, "future": 1}}})
	if got := string(s.editorSide().Settings); got != `{"model":"m1"}` {
		t.Errorf("initial settings %s", got)
	}
	s.Notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"thinkflow": map[string]any{"model": "m2"}, "other": 1}})
	s.Notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"other": 1}})
	s.Sync()
	s.engine.mu.Lock()
	got := fmt.Sprint(s.engine.settings)
	s.engine.mu.Unlock()
	if got != `[{"model":"m2"}]` {
		t.Errorf("settings %s", got)
	}
	s.Notify("workspace/didChangeConfiguration", map[string]any{"settings": nil})
	s.Await("workspace/configuration", func() bool { return len(s.Received("workspace/configuration")) == 1 })
}

// TestAttachments: the selection in whole lines, its file, the named files;
// unsaved text wins; what is no text or too large is left to the model.
func TestAttachments(t *testing.T) {
	var req agent.RunRequest
	s := start(t, config{run: func(_ context.Context, r agent.RunRequest) (agent.RunResult, error) {
		req = r
		return agent.RunResult{}, nil
	}})
	files := map[string]string{"disk.txt": "on disk\n", "big.txt": strings.Repeat("x", 100<<10), "bin": "a\x00b", "sub/a b.txt": "one\n"}
	for name, text := range files {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(s.root, name)), 0o755)
		if err := os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Open("sub/a b.txt")
	s.Replace("sub/a b.txt", "one\n", "one\ntwo\nthree\n")
	s.Flush("sub/a b.txt")
	s.OpenText("untitled:Untitled-1", "draft\n")
	uri := func(name string) string { return fakeeditor.FileURI(filepath.Join(s.root, name)) }
	sel := func(uri string, l1, c1, l2, c2 int) map[string]any {
		return map[string]any{"uri": uri, "range": fakeeditor.Range{Start: fakeeditor.Position{Line: l1, Character: c1}, End: fakeeditor.Position{Line: l2, Character: c2}}}
	}
	whole := "file sub/a b.txt 0-0 \"one\\ntwo\\nthree\\n\""
	rows := []struct {
		name      string
		selection any
		files     []string
		want      []string
	}{
		{"nothing", nil, nil, nil},
		{"selection", sel(uri("sub/a b.txt"), 1, 1, 1, 2), nil, []string{`selection sub/a b.txt 2-2 "two"`, whole}},
		{"selection to the start of a line", sel(uri("sub/a b.txt"), 0, 0, 2, 0), nil, []string{`selection sub/a b.txt 1-2 "one\ntwo"`, whole}},
		{"all", sel(uri("sub/a b.txt"), 0, 0, 3, 0), nil, []string{`selection sub/a b.txt 1-3 "one\ntwo\nthree"`, whole}},
		{"cursor", sel(uri("sub/a b.txt"), 1, 1, 1, 1), nil, []string{whole}},
		{"selection and the same file", sel(uri("sub/a b.txt"), 1, 1, 1, 1), []string{uri("sub/a b.txt")}, []string{whole}},
		{"untitled", sel("untitled:Untitled-1", 0, 0, 0, 5), nil, []string{`selection untitled:Untitled-1 1-1 "draft"`, `file untitled:Untitled-1 0-0 "draft\n"`}},
		{"files", nil, []string{uri("disk.txt"), uri("big.txt"), uri("bin"), uri("missing"), uri("sub/a b.txt"), uri("disk.txt"), "git:/etc/passwd"}, []string{`file disk.txt 0-0 "on disk\n"`, whole}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			params := map[string]any{"task": "x", "files": row.files}
			if row.selection != nil {
				params["selection"] = row.selection
			}
			s.Request("thinkflow/run", params, nil)
			var got []string
			for _, a := range req.Attachments {
				got = append(got, fmt.Sprintf("%s %s %d-%d %q", a.Kind, a.Path, a.StartLine, a.EndLine, a.Text))
			}
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(row.want, "\n"))
			}
		})
	}
	for _, bad := range []any{sel(uri("sub/a b.txt"), 9, 0, 9, 1), sel(uri("sub/a b.txt"), 1, 1, 0, 0)} {
		if err := s.Try("thinkflow/run", map[string]any{"task": "x", "selection": bad}, nil); rpcCode(err) != -32602 {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestFolders: added and removed; the last one stays.
func TestFolders(t *testing.T) {
	s := start(t, config{})
	s.editorSide()
	other, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := func(dir string) []any {
		return []any{map[string]any{"uri": fakeeditor.FileURI(dir), "name": filepath.Base(dir)}}
	}
	change := func(added, removed []any) []string {
		s.Notify("workspace/didChangeWorkspaceFolders", map[string]any{"event": map[string]any{"added": added, "removed": removed}})
		s.Sync()
		var dirs []string
		for _, r := range s.ws.Roots() {
			dirs = append(dirs, r.Dir)
		}
		return dirs
	}
	none := []any{}
	for i, row := range []struct {
		added, removed []any
		want           []string
	}{
		{folder(other), none, []string{s.root, other}},
		{folder(other), none, []string{s.root, other}}, // again
		{none, folder(s.root), []string{other}},
		{none, folder(other), []string{other}}, // the last one
		{folder(s.root), folder(other), []string{s.root}},
	} {
		if got := change(row.added, row.removed); !reflect.DeepEqual(got, row.want) {
			t.Errorf("step %d: %v, want %v", i, got, row.want)
		}
	}
}

// TestExperimental: what we say about ourselves.
func TestExperimental(t *testing.T) {
	s := start(t, config{})
	var got struct {
		ThinkFlow struct {
			Version  string
			Protocol int
			Methods  []string
			Events   []agent.EventType
		}
	}
	if err := json.Unmarshal(s.Result.Capabilities.Experimental, &got); err != nil {
		t.Fatal(err)
	}
	tf := got.ThinkFlow
	if tf.Version != "1.2.3-test" || tf.Protocol != 1 || !reflect.DeepEqual(tf.Events, agent.EventTypes) || len(tf.Methods) < 4 {
		t.Errorf("%+v", tf)
	}
}
