package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

func rpcCode(err error) int {
	var e *fakeeditor.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestOrder: 2,000 didChange, then a request: nothing is lost or reordered, and
// the request sees the last.
func TestOrder(t *testing.T) {
	s := start(t, config{run: func(_ context.Context, req agent.RunRequest) (agent.RunResult, error) {
		return agent.RunResult{Run: req.Run, State: agent.StateDone, Text: req.Attachments[0].Text}, nil
	}})
	uri := fakeeditor.FileURI(s.root + "/a.txt")
	s.OpenText(uri, "")
	s.document("a.txt")
	var want strings.Builder
	for i := range 2000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		s.Notify("textDocument/didChange", map[string]any{
			"textDocument":   map[string]any{"uri": uri, "version": i + 2},
			"contentChanges": []any{map[string]any{"range": fakeeditor.Range{Start: fakeeditor.Position{Line: i}, End: fakeeditor.Position{Line: i}}, "text": line}},
		})
	}
	var got agent.RunResult
	s.Request("thinkflow/run", map[string]any{"task": "x", "files": []string{uri}}, &got)
	if got.Text != want.String() {
		t.Errorf("the request saw %d bytes, want %d", len(got.Text), want.Len())
	}
	if doc := s.document("a.txt"); doc.Text != want.String() || doc.Version != 2001 {
		t.Errorf("the workspace has version %d with %d bytes", doc.Version, len(doc.Text))
	}
}

// TestCancelRequest: both kinds of ids; our own run answers a result, because
// Neovim never hears of -32800.
func TestCancelRequest(t *testing.T) {
	for _, id := range []string{`7`, `"seven"`} {
		t.Run(id, func(t *testing.T) {
			running := make(chan struct{})
			s := start(t, config{run: func(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
				close(running)
				<-ctx.Done()
				return agent.RunResult{Run: req.Run, State: agent.StateCancelled}, nil
			}})
			call, err := s.Conn().Go(id, "thinkflow/run", map[string]any{"task": "x"})
			if err != nil {
				t.Fatal(err)
			}
			<-running
			s.Notify("$/cancelRequest", map[string]any{"id": json.RawMessage(id)})
			var got agent.RunResult
			if err := call.Wait(&got); err != nil || got.State != agent.StateCancelled {
				t.Errorf("run: %v, %v", got.State, err)
			}
		})
	}
}

// TestNotificationsThatFail: the connection lives on.
func TestNotificationsThatFail(t *testing.T) {
	uri := "file:///ws/never-opened.txt"
	rows := []struct {
		name, method string
		params       any
	}{
		{"unknown", "workspace/didFoo", map[string]any{"x": 1}},
		{"unknown with $", "$/foo", nil},
		{"undecodable", "textDocument/didChange", []int{1}},
		{"undecodable didOpen", "textDocument/didOpen", "x"},
		{"fails", "textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri, "version": 1}, "contentChanges": []any{}}},
		{"close of what is not open", "textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uri}}},
		{"malformed cancel", "$/cancelRequest", map[string]any{"id": map[string]any{}}},
		{"cancel of nothing", "$/cancelRequest", map[string]any{"id": 4711}},
		{"no params", "textDocument/didSave", nil},
		{"negative line", "textDocument/didChange", json.RawMessage(`{"textDocument":{"uri":"file:///a","version":1},"contentChanges":[{"range":{"start":{"line":-1,"character":0},"end":{"line":0,"character":0}},"text":""}]}`)},
	}
	s := start(t, config{})
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s.Notify(row.method, row.params)
			if err := s.Try("thinkflow/cancel", map[string]any{"runId": "none"}, nil); err != nil {
				t.Errorf("the next request: %v", err)
			}
		})
	}
}

// TestErrorCodes: what is answered to what cannot be served.
func TestErrorCodes(t *testing.T) {
	s := start(t, config{run: func(_ context.Context, req agent.RunRequest) (agent.RunResult, error) {
		switch req.Task {
		case "panic":
			panic("boom")
		case "fail":
			return agent.RunResult{}, errors.New("no good")
		}
		return agent.RunResult{State: agent.StateDone}, nil
	}})
	rows := []struct {
		name, method string
		params       any
		code         int
		says         string
	}{
		{"unknown method", "foo/bar", nil, -32601, `unknown method "foo/bar"`},
		{"known to LSP, not to us", "textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": "file:///a"}, "position": map[string]any{"line": 0, "character": 0}}, -32601, ""},
		{"undecodable params", "workspace/executeCommand", []int{1}, -32602, "cannot be read"},
		{"undecodable own params", "thinkflow/run", map[string]any{"task": 7}, -32602, "cannot be read"},
		{"missing params", "thinkflow/run", nil, -32602, "task is empty"},
		{"null params", "thinkflow/run", json.RawMessage("null"), -32602, "task is empty"},
		{"no such command", "workspace/executeCommand", map[string]any{"command": "x"}, -32602, "thinkflow.server.run"},
		{"panic", "thinkflow/run", map[string]any{"task": "panic"}, -32603, "boom"},
		{"plain error", "thinkflow/run", map[string]any{"task": "fail"}, -32603, "no good"},
		{"bad decision", "thinkflow/approve", map[string]any{"decision": "maybe"}, -32602, `"once"`},
		{"bad selection", "thinkflow/run", map[string]any{"task": "x", "selection": map[string]any{"uri": "nonsense"}}, -32602, "no URI"},
		{"bad mode", "thinkflow/mode", map[string]any{"mode": 1}, -32602, "cannot be read"},
		{"bad model", "thinkflow/models", map[string]any{"model": []int{1}}, -32602, "cannot be read"},
		{"trust of nothing", "thinkflow/trust", map[string]any{"do": "grant"}, -32602, "which file"},
		{"trust without a hash", "thinkflow/trust", map[string]any{"do": "grant", "path": "AGENTS.md"}, -32602, "hash is missing"},
		{"trust of no file", "thinkflow/trust", map[string]any{"do": "show", "uri": "untitled:x"}, -32602, "no file"},
		{"bad ledger", "thinkflow/ledger", map[string]any{"limit": "all"}, -32602, "cannot be read"},
		{"an engine without modes", "thinkflow/mode", nil, -32603, "cannot be switched"},
		{"initialize again", "initialize", map[string]any{"processId": nil, "rootUri": nil, "capabilities": map[string]any{}}, -32600, "already"},
		{"fine", "thinkflow/run", map[string]any{"task": "x"}, 0, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := s.Try(row.method, row.params, nil)
			if code := rpcCode(err); code != row.code || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want code %d with %q", err, row.code, row.says)
			}
		})
	}
}

// TestApplyEditManyAtOnce: 200 edits of 20 documents from within runs, all at
// once, and none is lost.
func TestApplyEditManyAtOnce(t *testing.T) {
	const docs, each = 20, 10
	s := start(t, config{profile: "helix"})
	for i := range docs {
		s.OpenText(fakeeditor.FileURI(fmt.Sprintf("%s/%d.txt", s.root, i)), "")
	}
	setup := s.editorSide()
	s.Sync()
	var wg sync.WaitGroup
	for i := range docs {
		wg.Go(func() {
			name := fmt.Sprintf("%d.txt", i)
			for range each {
				c, err := s.ws.Plan(workspace.Op{Kind: workspace.OpAppend, Path: name, Body: "x\n"})
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := setup.Editor.ApplyEdit(t.Context(), c); err != nil || out.Verdict != agent.EditApplied {
					t.Errorf("%s: %+v, %v", name, out, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range docs {
		if got := s.Text(fmt.Sprintf("%d.txt", i)); got != strings.Repeat("x\n", each) {
			t.Errorf("%d.txt: %q", i, got)
		}
	}
}

// TestApplyEditEditorGone: an error, not a hang.
func TestApplyEditEditorGone(t *testing.T) {
	var s *session
	arrived := make(chan struct{})
	s = start(t, config{editor: fakeeditor.Options{OnEdit: func() {
		s.HangUp()
		close(arrived)
		<-s.code // the server ends although this edit is never answered
	}}})
	s.OpenText(fakeeditor.FileURI(s.root+"/a.txt"), "x\n")
	c := s.change("a.txt", "x", "y")
	out, err := s.editorSide().Editor.ApplyEdit(t.Context(), c)
	<-arrived
	if err == nil || out.Verdict != agent.EditUncertain {
		t.Errorf("got %+v, %v", out, err)
	}
	if out, err := s.editorSide().Editor.ApplyEdit(t.Context(), c); err == nil && out.Verdict == agent.EditApplied {
		t.Errorf("after the end: %+v, %v", out, err)
	}
}

// TestHangUpDuringRun: the run's context ends, the ledger is flushed, Main
// returns.
func TestHangUpDuringRun(t *testing.T) {
	running := make(chan struct{})
	s := start(t, config{run: func(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
		close(running)
		<-ctx.Done()
		return agent.RunResult{Run: req.Run, State: agent.StateCancelled}, nil
	}})
	if _, err := s.Conn().Go("", "thinkflow/run", map[string]any{"task": "x"}); err != nil {
		t.Fatal(err)
	}
	<-running
	s.HangUp()
	if code := <-s.code; code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	select {
	case <-s.closed:
	default:
		t.Error("the engine was not closed")
	}
}

// TestHangUpWithStuckRun: a run that does not stop does not keep the process.
func TestHangUpWithStuckRun(t *testing.T) {
	running := make(chan struct{})
	s := start(t, config{run: func(context.Context, agent.RunRequest) (agent.RunResult, error) {
		close(running)
		select {}
	}})
	_, _ = s.Conn().Go("", "thinkflow/run", map[string]any{"task": "x"})
	<-running
	s.HangUp()
	if code := <-s.code; code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestExit: with stdin left open; the exit code says whether shutdown came.
func TestExit(t *testing.T) {
	for _, shutdown := range []bool{true, false} {
		t.Run(fmt.Sprint("shutdown ", shutdown), func(t *testing.T) {
			s := start(t, config{})
			want := 1
			if shutdown {
				want = 0
				s.Request("shutdown", nil, nil)
				if code := rpcCode(s.Try("thinkflow/run", map[string]any{"task": "x"}, nil)); code != -32600 {
					t.Errorf("a run after shutdown: code %d, want -32600", code)
				}
			}
			s.Notify("exit", nil)
			if code := <-s.code; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
		})
	}
}

// TestBeforeInitialize: requests are refused, notifications dropped, and exit
// works.
func TestBeforeInitialize(t *testing.T) {
	s := start(t, config{raw: true})
	if code := rpcCode(s.Try("thinkflow/run", map[string]any{"task": "x"}, nil)); code != -32002 {
		t.Errorf("code %d, want -32002", code)
	}
	s.Notify("textDocument/didSave", map[string]any{})
	s.Initialize()
	s.Notify("exit", nil)
	<-s.code
}

// TestMalformedMessages: each is answered with an error of null id or skipped,
// and the server lives on.
func TestMalformedMessages(t *testing.T) {
	rows := []struct {
		name, bytes, says string
	}{
		{"no JSON", fakeeditor.Frame("nope"), `"code":-32700`},
		{"cut JSON", fakeeditor.Frame(`{"jsonrpc":"2.0","method":"x"`), `"code":-32700`},
		{"no method", fakeeditor.Frame(`{"jsonrpc":"2.0"}`), `"code":-32600`},
		{"other version", fakeeditor.Frame(`{"jsonrpc":"1.0","id":1,"method":"x"}`), `"code":-32600`},
		{"broken batch", fakeeditor.Frame(`[{"jsonrpc":`), `"code":-32700`},
		{"bad length", "Content-Length: x\r\n\r\n", `"code":-32600`},
		{"words before a header", "hello\nworld\n", ""},
		{"lone lf header", "Content-Length: 2\n\n{}", `"code":-32600`},
		{"broken params", fakeeditor.Frame(`{"jsonrpc":"2.0","id":77,"method":"thinkflow/cancel","params":{"a":}}`), ""},
	}
	s := start(t, config{})
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := s.Conn().Raw(row.bytes); err != nil {
				t.Fatal(err)
			}
			s.Sync()
			if err := s.Try("thinkflow/cancel", nil, nil); err != nil {
				t.Errorf("the next request: %v", err)
			}
			if row.says != "" {
				s.Await(row.says, func() bool {
					for _, m := range s.Received("") {
						raw, _ := json.Marshal(m)
						if strings.Contains(string(raw), row.says) {
							return true
						}
					}
					return false
				})
			}
		})
	}
}

// TestEngineThatCannotBeBuilt: initialize works, a run says why it does not,
// and the next one tries again.
func TestEngineThatCannotBeBuilt(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	s := start(t, config{build: func() error {
		if broken.Load() {
			return errors.New("config.toml line 3: unknown key")
		}
		return nil
	}})
	err := s.Try("thinkflow/run", map[string]any{"task": "x"}, nil)
	if rpcCode(err) != -32603 || !strings.Contains(err.Error(), "config.toml line 3") {
		t.Errorf("got %v", err)
	}
	broken.Store(false) // the person puts it right and runs again
	if err := s.Try("thinkflow/run", map[string]any{"task": "x"}, nil); err != nil {
		t.Error(err)
	}
}

// TestInitializeDoesNotWait: the reply comes although the engine never stands.
func TestInitializeDoesNotWait(t *testing.T) {
	block := make(chan struct{})
	s := start(t, config{build: func() error { <-block; return nil }})
	if s.Result.Capabilities.PositionEncoding != "utf-16" {
		t.Errorf("%+v", s.Result)
	}
	close(block)
}
