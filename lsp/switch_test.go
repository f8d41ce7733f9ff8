package lsp_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thinkflow/agent"
	userconfig "thinkflow/internal/config"
	"thinkflow/internal/fakeeditor"
)

// pausing is a model whose answer waits between its pieces.
type pausing struct {
	pieces []string
	asked  int
	paused chan struct{} // a piece is to follow
	goOn   chan struct{}
	models []string // that were asked for
}

func (m *pausing) Stream(_ context.Context, req *agent.Request) (agent.Stream, error) {
	m.asked++
	m.models = append(m.models, req.Model)
	if m.asked > 1 {
		return &spoken{text: "I see."}, nil
	}
	return &pausedStream{m, m.pieces}, nil
}

type pausedStream struct {
	*pausing
	left []string
}

func (s *pausedStream) Recv() (agent.Delta, error) {
	if len(s.left) == 0 {
		return agent.Delta{}, io.EOF
	}
	if len(s.left) < len(s.pieces) {
		s.paused <- struct{}{}
		<-s.goOn
	}
	d := agent.Delta{Text: s.left[0]}
	s.left = s.left[1:]
	return d, nil
}

func (s *pausedStream) Close() error { return nil }

// TestSwitchDuringRun: a mode that is switched while an answer streams acts on
// what that answer still executes; a model acts on the next request. Both however
// the run is named.
func TestSwitchDuringRun(t *testing.T) {
	for name, ref := range map[string]map[string]any{
		"by run": {"runId": "r1"}, "by session": {"session": "s1"}, "of all": {},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			m := &pausing{paused: make(chan struct{}), goOn: make(chan struct{}), pieces: []string{
				"<tf-write id=\"1\" path=\"a.txt\">\na\n</tf-write>\n", "<tf-write id=\"2\" path=\"b.txt\">\nb\n</tf-write>\n",
			}}
			s := start(t, config{root: root, backend: realEngine(t, root, t.TempDir(), m, userconfig.ReviewAfter)})
			done := make(chan agent.RunResult, 1)
			go func() {
				var res agent.RunResult
				_ = s.Try("thinkflow/run", map[string]any{"task": "x", "runId": "r1", "session": "s1"}, &res)
				done <- res
			}()
			<-m.paused
			s.Await("the first command", func() bool {
				for _, e := range s.Received("thinkflow/event") {
					if strings.Contains(string(e.Params), `"command.completed"`) {
						return true
					}
				}
				return false
			})
			ask := map[string]any{"mode": "ask"}
			model := map[string]any{"model": "other"}
			for k, v := range ref {
				ask[k], model[k] = v, v
			}
			var mode struct{ Session, Mode string }
			s.Request("thinkflow/mode", ask, &mode)
			s.Request("thinkflow/models", model, nil)
			if want, _ := ref["session"].(string); mode.Mode != "ask" || name == "by run" && mode.Session != "s1" || want != "" && mode.Session != want {
				t.Errorf("%+v", mode)
			}
			m.goOn <- struct{}{}
			res := <-done
			if res.Applied != 1 || res.Failed != 1 || len(m.models) != 2 || m.models[0] != "m" || m.models[1] != "other" {
				t.Errorf("%+v, models %v", res, m.models)
			}
			if _, err := os.Stat(filepath.Join(root, "b.txt")); err == nil {
				t.Error("b.txt was written although the mode was ask by then")
			}
		})
	}
}

// TestDecisionsAreTold: a decision outside of a run is told to every view of an
// editor that speaks our protocol, as changes.updated of no run.
func TestDecisionsAreTold(t *testing.T) {
	for _, row := range []struct {
		name   string
		review userconfig.Review
		method string
		params map[string]any
		want   map[bool]int // hunks that wait afterwards, by staged
	}{
		{"keep", userconfig.ReviewAfter, "thinkflow/keep", map[string]any{"all": true}, map[bool]int{false: 0, true: 0}},
		{"undo", userconfig.ReviewAfter, "thinkflow/undo", map[string]any{"path": "a.txt"}, map[bool]int{false: 0, true: 0}},
		{"undo of the run", userconfig.ReviewAfter, "thinkflow/undo", map[string]any{"runId": "r1"}, map[bool]int{false: 0, true: 0}},
		{"accept", userconfig.ReviewBefore, "thinkflow/keep", map[string]any{"all": true, "staged": true}, map[bool]int{true: 0}},
		{"reject", userconfig.ReviewBefore, "thinkflow/undo", map[string]any{"all": true, "staged": true}, map[bool]int{false: 0, true: 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := map[string]string{"a.txt": "one\n"}
			r := startReal(t, "vscode", fakeeditor.Options{Init: map[string]any{"protocol": 1}}, row.review, files)
			r.model.turns = []string{"<tf-edit id=\"1\" path=\"a.txt\"><old>one</old><new>two</new></tf-edit>\n"}
			r.Request("thinkflow/run", map[string]any{"task": "x", "runId": "r1"}, nil)
			told := func() map[bool]int {
				out := map[bool]int{}
				for _, m := range r.Received("thinkflow/event") {
					var ev agent.Event
					if err := json.Unmarshal(m.Params, &ev); err != nil {
						t.Error(err)
					}
					if ev.Run != "" || ev.Type != agent.ChangesUpdated {
						continue
					}
					if ev.Changes.Path != "a.txt" || ev.Seq != 0 {
						t.Errorf("%s", m.Params)
					}
					out[ev.Changes.Staged] = ev.Changes.Hunks
				}
				return out
			}
			if got := told(); len(got) != 0 {
				t.Fatalf("before the decision: %v", got)
			}
			// A preview of an undo decides nothing.
			r.Request("thinkflow/undo", map[string]any{"runId": "r1", "preview": true}, nil)
			r.Request(row.method, row.params, nil)
			r.Await("the news", func() bool { return len(told()) == 2 })
			for staged, hunks := range row.want {
				if got := told(); got[staged] != hunks {
					t.Errorf("%v, want %v", got, row.want)
				}
			}
		})
	}
}
