package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
)

// diagnose asks the server, as a run would.
func diagnose(s *session, paths ...string) ([]agent.Diagnostic, error) {
	return s.editorSide().Editor.(agent.Diagnoser).Diagnostics(context.Background(), paths)
}

func TestDiagnostics(t *testing.T) {
	var asked []string
	root := t.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	s := start(t, config{root: root, editor: fakeeditor.Options{
		Init: map[string]any{"protocol": 1, "diagnostics": true},
		Serve: map[string]func(json.RawMessage) any{"thinkflow/diagnostics": func(params json.RawMessage) any {
			asked = append(asked, string(params))
			return json.RawMessage(`{"files":[
				{"uri":"` + spelled(filepath.Join(root, "a b.go")) + `","diagnostics":[
					{"range":{"start":{"line":4,"character":2},"end":{"line":4,"character":3}},"severity":1,"code":2304,"source":"ts","message":"no x"},
					{"range":{"start":{"line":0,"character":0}},"severity":2,"code":"W1","message":{"kind":"markdown","value":"odd\n"}},
					{"range":{"start":{"line":1,"character":0}},"message":"bare"}]},
				{"uri":"untitled:Untitled-1","diagnostics":[{"message":"not a file"}]},
				{"uri":"nonsense","diagnostics":[{"message":"no URI"}]}]}`)
		}},
	}})
	got, err := diagnose(s, filepath.Join(root, "a b.go"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "a b.go")
	want := []agent.Diagnostic{
		{Path: path, Line: 5, Column: 3, Severity: agent.SeverityError, Source: "ts", Code: "2304", Message: "no x"},
		{Path: path, Line: 1, Column: 1, Severity: agent.SeverityWarning, Code: "W1", Message: "odd"},
		{Path: path, Line: 2, Column: 1, Severity: agent.SeverityError, Message: "bare"},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(asked) != 1 || !strings.Contains(asked[0], "a%20b.go") {
		t.Errorf("asked %v", asked)
	}
}

// TestDiagnosticsOfBareClients: a client that promised nothing is not asked.
func TestDiagnosticsOfBareClients(t *testing.T) {
	s := start(t, config{profile: "eglot-1.9"})
	if _, err := diagnose(s); !errors.Is(err, agent.ErrNoDiagnostics) {
		t.Errorf("%v", err)
	}
	if n := len(s.Received("thinkflow/diagnostics")); n != 0 {
		t.Errorf("asked %d times", n)
	}
	// One that promised and does not know it after all is an error, not a hang.
	s = start(t, config{editor: fakeeditor.Options{Init: map[string]any{"protocol": 1, "diagnostics": true}}})
	if _, err := diagnose(s); err == nil {
		t.Error("no error")
	}
}

func spelled(path string) string {
	return "file://" + strings.ReplaceAll(filepath.ToSlash(path), " ", "%20")
}
