package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// linted is an editor whose language server reports each line with "bad" in it.
type linted struct {
	dir   string
	blind bool // the client cannot tell

	mu    sync.Mutex
	asked int
	list  func(n int) []Diagnostic // overrides what is found
}

func (l *linted) ApplyEdit(context.Context, *workspace.Change) (EditOutcome, error) {
	return EditOutcome{}, errors.New("nothing is open")
}

func (l *linted) CanDiagnose() bool { return !l.blind }

func (l *linted) Diagnostics(_ context.Context, paths []string) ([]Diagnostic, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.list != nil {
		return l.list(l.asked), nil
	}
	if paths == nil {
		found, _ := filepath.Glob(filepath.Join(l.dir, "*.go"))
		paths = found
	}
	var out []Diagnostic
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		for i, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, "bad") {
				out = append(out, Diagnostic{Path: p, Line: i + 1, Column: 1, Severity: SeverityError, Source: "lint", Message: line})
			}
			if strings.Contains(line, "odd") {
				out = append(out, Diagnostic{Path: p, Line: i + 1, Severity: SeverityWarning, Source: "lint", Message: line})
			}
		}
	}
	return out, nil
}

// lintedEngine is an engine with such an editor.
func lintedEngine(t *testing.T, l *linted, m Model, cfg config.Config) *Engine {
	t.Helper()
	ws, err := workspace.New([]workspace.Root{{Name: "demo", Dir: l.dir}}, workspace.Options{})
	require.NoError(t, err)
	state := t.TempDir()
	cfg.MaxTurns, cfg.ResultBudget, cfg.AttachBudget, cfg.Verify = 10, 64<<10, 0, config.VerifyDiagnostics
	e := New(Options{
		Config: cfg, Model: m, Workspace: ws, Editor: l,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: l.dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
		},
	})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func said(text string) []Delta { return []Delta{{Text: text}, {Finish: "stop"}} }

// TestOnlyNewErrorsAreTold: what stood there before, also on another line now, is
// not the model's doing, and neither is what stands in files that it did not
// change; it is told once in a run.
func TestOnlyNewErrorsAreTold(t *testing.T) {
	l := &linted{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "a.go"), []byte("bad old\nbad twice\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "b.go"), []byte("bad elsewhere\n"), 0o644))
	m := &answers{turns: [][]Delta{
		said("<tf-write id=\"1\" path=\"a.go\">\n// more\nbad old\nbad twice\nbad twice\nbad new\nodd\n</tf-write>\n"),
		said("<tf-write id=\"1\" path=\"a.go\">\nbad old\nbad again\n</tf-write>\n"),
		said("never asked"),
	}}
	e := lintedEngine(t, l, m, config.Config{})
	res, err := e.Run(t.Context(), RunRequest{Task: "go"})
	require.NoError(t, err)
	require.Equal(t, StateDone, res.State, res.Reason)
	require.Len(t, m.asked, 2, "told once, whatever the repair brought")
	last := m.asked[1].Messages[len(m.asked[1].Messages)-1].Content
	require.Contains(t, last, headVerify)
	require.Contains(t, last, "a.go:5:1: error: bad new [lint]")
	require.Contains(t, last, "a.go:4:1: error: bad twice [lint]", "one more of the same")
	for _, not := range []string{"a.go:2", "a.go:3", "b.go", "odd"} {
		require.NotContains(t, last, not)
	}
	require.Equal(t, "2 new errors told to the model", res.Verify)
}

// TestNoErrorsCostNoCall: a run whose changes are clean, or which changed
// nothing, ends as it would without the check.
func TestNoErrorsCostNoCall(t *testing.T) {
	for name, answer := range map[string]string{
		"clean":   "<tf-write id=\"1\" path=\"a.go\">\nfine\n</tf-write>\n",
		"nothing": "Nothing to do.",
	} {
		t.Run(name, func(t *testing.T) {
			l := &linted{dir: t.TempDir()}
			m := &answers{turns: [][]Delta{said(answer)}}
			res, err := lintedEngine(t, l, m, config.Config{}).Run(t.Context(), RunRequest{Task: "go"})
			require.NoError(t, err)
			require.Equal(t, StateDone, res.State)
			require.Len(t, m.asked, 1)
		})
	}
}

// TestDiagnosticsTool: offered and answered where the editor can tell; else it is
// not offered, and a call is answered as unavailable.
func TestDiagnosticsTool(t *testing.T) {
	call := []Delta{{Calls: []CallDelta{{ID: "1", Name: "diagnostics", Args: `{"path":"a.go"}`}}}, {Finish: "tool_calls"}}
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprint("blind ", blind), func(t *testing.T) {
			l := &linted{dir: t.TempDir(), blind: blind}
			require.NoError(t, os.WriteFile(filepath.Join(l.dir, "a.go"), []byte("odd\nbad\n"), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(l.dir, "b.go"), []byte("bad\n"), 0o644))
			m := &answers{turns: [][]Delta{call, said("Seen.")}}
			_, err := lintedEngine(t, l, m, config.Config{}).Run(t.Context(), RunRequest{Task: "go"})
			require.NoError(t, err)
			offered := false
			for _, tool := range m.asked[0].Tools {
				offered = offered || tool.Name == "diagnostics"
			}
			require.Equal(t, !blind, offered)
			got := m.asked[1].Messages[len(m.asked[1].Messages)-1].Content
			if blind {
				require.Contains(t, got, "TOOL_UNAVAILABLE")
				return
			}
			require.Equal(t, "a.go:2:1: error: bad [lint]\na.go:1: warning: odd [lint]\n", got)
		})
	}
}

// TestSettled: diagnostics count when they have been quiet for half a second, at
// the latest after five.
func TestSettled(t *testing.T) {
	some := func(n int) []Diagnostic { return []Diagnostic{{Message: fmt.Sprint(n)}} }
	tests := []struct {
		name string
		list func(n int) []Diagnostic
		want time.Duration
	}{
		{"quiet at once", func(int) []Diagnostic { return nil }, 500 * time.Millisecond},
		{"a second of changes", func(n int) []Diagnostic { return some(min(n, 10)) }, 1400 * time.Millisecond},
		{"never quiet", some, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := settled(t.Context(), &linted{list: tt.list}, nil)
				require.NoError(t, err)
				require.Equal(t, tt.want, time.Since(start))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, _ = settled(ctx, &linted{list: some}, nil)
		require.Equal(t, time.Second, time.Since(start), "a cancelled run waits for nothing")
	})
}
