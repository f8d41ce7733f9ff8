package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/workspace"
)

// waiting is a place in which a run waits when it is cancelled.
type waiting struct {
	name     string
	settings string
	script   string
	files    func(b *testing.B, dir string)
	editor   bool   // one that never answers
	open     string // a document that is open in it
	at       func(agent.Event) bool
	request  bool // it is there as soon as the model was asked
}

func event(typ agent.EventType) func(agent.Event) bool {
	return func(ev agent.Event) bool { return ev.Type == typ }
}

// bigTree makes a folder in which a search takes a while.
func bigTree(b *testing.B, dir string) {
	line := strings.Repeat("some words that no search looks for, and some more of them\n", 400)
	for i := range 100 {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i))
		require.NoError(b, os.MkdirAll(sub, 0o755))
		for j := range 40 {
			require.NoError(b, os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.txt", j)), []byte(line), 0o644))
		}
	}
}

var waits = []waiting{
	{name: "first token", script: "turn\nhang\nrepeat\n", request: true},
	{name: "stream", script: "turn\ntext Hello.\nhang\nrepeat\n", at: event(agent.TextDelta)},
	{name: "retry", script: "turn\nstatus 429\nheader Retry-After: 60\nrepeat\n", at: event(agent.TurnRestarted)},
	{name: "approval", settings: "# approver\n", script: "turn\ntext \"<tf-bash id=\\\"1\\\">true</tf-bash>\"\nrepeat\n", at: event(agent.ApprovalRequested)},
	{name: "shell", settings: "allow = [\"bash\"]\n", at: event(agent.ToolOutput),
		script: "turn\ntext \"<tf-bash id=\\\"1\\\">echo ready; sleep 100</tf-bash>\"\nrepeat\n"},
	{name: "shell with deaf children", settings: "allow = [\"bash\"]\n", at: event(agent.ToolOutput),
		script: "turn\ncall bash {\"command\":\"trap '' TERM INT HUP; for i in 1 2 3; do (trap '' TERM INT HUP; while :; do sleep 1; done) & done; echo ready; while :; do sleep 1; done\"}\nrepeat\n"},
	{name: "shell that has ended, output held", settings: "allow = [\"bash\"]\n", at: event(agent.ToolOutput),
		script: "turn\ncall bash {\"command\":\"echo ready; sleep 100 &\"}\nrepeat\n"},
	{name: "applyEdit", editor: true, open: "open.txt", at: event(agent.CommandStarted),
		script: "turn\ntext \"<tf-edit id=\\\"1\\\" path=\\\"open.txt\\\"><old>one</old><new>two</new></tf-edit>\"\nhang\nrepeat\n",
		files: func(b *testing.B, dir string) {
			require.NoError(b, os.WriteFile(filepath.Join(dir, "open.txt"), []byte("one\n"), 0o644))
		}},
	{name: "diagnostics", editor: true, script: "turn\ncall diagnostics {}\nrepeat\n", at: event(agent.ToolStarted)},
	{name: "grep in a big tree", files: bigTree, at: event(agent.ToolStarted), script: "turn\ncall grep {\"pattern\":\"x(y|z)+never\",\"regex\":true}\nrepeat\n"},
	{name: "glob in a big tree", files: bigTree, at: event(agent.ToolStarted), script: "turn\ncall glob {\"pattern\":\"**/never*.go\"}\nrepeat\n"},
	{name: "sub-agent", at: event(agent.ToolOutput),
		script: "turn\nwhen \"You are a sub-agent\"\ntext Hello.\nhang\nrepeat\nturn\ncall task {\"task\":\"slow\"}\nrepeat\n"},
	{name: "compaction", settings: "context_tokens = 6000\n", at: event(agent.Compaction), script: "turn\nhang\nrepeat\n"},
}

// BenchmarkCancel is the time from Cancel to the result, for every place in which
// a run can wait. Run it with -benchtime=300x.
func BenchmarkCancel(b *testing.B) {
	for _, w := range waits {
		b.Run(strings.ReplaceAll(w.name, " ", "-"), func(b *testing.B) { w.bench(b) })
	}
}

func (w *waiting) bench(b *testing.B) {
	dir := b.TempDir()
	if w.files != nil {
		w.files(b, dir)
	}
	r := newRig(b, dir, w.settings, w.script)
	if w.editor {
		o := r.options
		o.Editor = silentEditor{}
		if w.open != "" {
			o.Workspace.OpenDocument(workspace.Document{Path: filepath.Join(dir, w.open), Text: "one\n", Version: 1})
		}
		r.engine = agent.New(o)
		b.Cleanup(func() { _ = r.engine.Close() })
	}
	var took []time.Duration
	for i := range b.N {
		there := make(chan struct{})
		var once sync.Once
		done := make(chan struct{})
		id := fmt.Sprint("run", i)
		asked := len(r.server.Requests())
		task := "go"
		if w.name == "compaction" {
			task = strings.Repeat("a long task with many words in it ", 400)
		}
		go func() {
			defer close(done)
			_, _ = r.engine.Run(b.Context(), agent.RunRequest{Run: id, Task: task, Events: func(ev agent.Event) {
				if w.at != nil && w.at(ev) || ev.Type == agent.RunFailed {
					once.Do(func() { close(there) })
				}
			}})
		}()
		if w.request {
			require.NoError(b, r.await(b.Context(), func() bool { return len(r.server.Requests()) > asked }))
		} else {
			<-there
		}
		start := time.Now()
		r.engine.Cancel(id)
		<-done
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms-p50")
	b.ReportMetric(ms(took[len(took)*99/100]), "ms-p99")
	b.ReportMetric(ms(took[len(took)-1]), "ms-max")
	b.ReportMetric(0, "ns/op")
}

// silentEditor never answers.
type silentEditor struct{}

func (silentEditor) ApplyEdit(ctx context.Context, _ *workspace.Change) (agent.EditOutcome, error) {
	<-ctx.Done()
	return agent.EditOutcome{}, ctx.Err()
}

func (silentEditor) CanDiagnose() bool { return true }

func (silentEditor) Diagnostics(ctx context.Context, paths []string) ([]agent.Diagnostic, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
