package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// cancelTime is how long a cancelled run may take to end, wherever it waits.
const cancelTime = 2 * time.Second

// stubborn is an editor that never answers.
type stubborn struct {
	asked chan struct{} // closed when it was asked
	once  sync.Once
}

func (s *stubborn) ApplyEdit(ctx context.Context, _ *workspace.Change) (agent.EditOutcome, error) {
	s.once.Do(func() { close(s.asked) })
	<-ctx.Done()
	return agent.EditOutcome{}, ctx.Err()
}

func (s *stubborn) CanDiagnose() bool { return true }

func (s *stubborn) Diagnostics(ctx context.Context, paths []string) ([]agent.Diagnostic, error) {
	if paths == nil {
		return nil, nil // before the first change
	}
	s.once.Do(func() { close(s.asked) })
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCancelAnywhere: a run ends soon after it is cancelled, wherever it waits at
// that moment; what it applied stays and stands in the ledger.
func TestCancelAnywhere(t *testing.T) {
	write := `text "<tf-write id=\"1\" path=\"a.txt\">\nx\n</tf-write>\n"` + "\n"
	tests := []struct {
		name     string
		settings string
		script   string
		files    map[string]string
		open     string // a document that is open in the editor
		until    func(*watched) bool
		applied  int
		before   func(*testing.T, *rig) // what else goes on
		slow     bool                   // the ledger never opens
	}{
		{name: "headers of the answer", script: "turn\nhang headers\n", until: requested},
		{name: "first token", script: "turn\nhang\n", until: requested},
		{name: "middle of the text", script: "turn\ntext Hello.\nhang\n", until: seen(agent.TextDelta)},
		{name: "middle of the reasoning", script: "turn\nreasoning Hm.\nhang\n", until: seen(agent.ReasoningDelta)},
		{name: "middle of a body", script: "turn\n" + write + "text \"<tf-write id=\\\"2\\\" path=\\\"b.txt\\\">\\nhalf\"\nhang\n", until: file("a.txt"), applied: 1},
		{name: "middle of a native call", settings: "protocol = \"native\"\n", until: seen(agent.CommandStarted),
			script: "turn\ntool-delta {\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"write_file\",\"arguments\":\"{\\\"path\\\":\\\"b.txt\\\",\\\"content\\\":\\\"half\"}}\nhang\n"},
		{name: "wait before another attempt", script: "turn\nstatus 429\nheader Retry-After: 60\n", until: seen(agent.TurnRestarted)},
		{name: "an approval", settings: "# approver\n", script: "turn\n" + write + "text \"<tf-delete id=\\\"2\\\" path=\\\"a.txt\\\"/>\"\n", until: seen(agent.ApprovalRequested), applied: 1},
		{name: "a full queue", settings: "# approver\n", until: seen(agent.ApprovalRequested),
			script: "turn\ntext <<END\n" + manyWrites(".vscode/settings.json", 100) + "END\n"},
		{name: "the settle window", settings: "allow = [\"bash\"]\n", script: "turn\n" + write + "text \"<tf-bash id=\\\"2\\\">touch never</tf-bash>\\n\"\nhang\n", until: file("a.txt"), applied: 1},
		{name: "a shell command", settings: "allow = [\"bash\"]\n", script: "turn\ntext \"<tf-bash id=\\\"1\\\">touch began; sleep 100; touch never</tf-bash>\"\n", until: file("began")},
		{name: "a shell command that ignores signals", settings: "allow = [\"bash\"]\n",
			script: "turn\ntext \"<tf-bash id=\\\"1\\\">trap '' TERM INT HUP; touch began; while :; do sleep 1; done</tf-bash>\"\n", until: file("began")},
		{name: "a native shell command", settings: "allow = [\"bash\"]\n", script: "turn\ncall bash {\"command\":\"touch began; sleep 100; touch never\"}\n", until: file("began")},
		{name: "a sub-agent", script: "turn\nwhen \"You are a sub-agent\"\n" + write + "hang\nturn\ncall task {\"task\":\"slow\"}\n", until: file("a.txt"), applied: 1},
		{name: "the editor", script: "turn\ntext \"<tf-edit id=\\\"1\\\" path=\\\"open.txt\\\"><old>one</old><new>two</new></tf-edit>\"\nhang\n",
			files: map[string]string{"open.txt": "one\n"}, open: "open.txt", until: editor},
		{name: "diagnostics as a tool", script: "turn\ncall diagnostics {\"path\":\"a.go\"}\n", files: map[string]string{"a.go": "x\n"}, open: "-", until: editor},
		{name: "diagnostics after the last edit", script: "turn\n" + write, open: "-", until: editor, applied: 1},
		{name: "the verify command", settings: "verify = \"command\"\nverify_command = \"touch began; sleep 100\"\n", script: "turn\n" + write, until: file("began"), applied: 1},
		{name: "a file that another run works on", open: "open.txt", files: map[string]string{"open.txt": "one\n"}, until: seen(agent.CommandStarted),
			script: "turn\nwhen \"other task\"\ntext \"<tf-edit id=\\\"1\\\" path=\\\"open.txt\\\"><old>one</old><new>two</new></tf-edit>\"\nhang\n" +
				"turn\ntext \"<tf-edit id=\\\"1\\\" path=\\\"open.txt\\\"><old>one</old><new>three</new></tf-edit>\"\nhang\n",
			before: func(t *testing.T, r *rig) {
				ctx, stop := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = r.engine.Run(ctx, agent.RunRequest{Task: "other task"})
				}()
				t.Cleanup(func() { stop(); <-ended })
				<-r.options.Editor.(*stubborn).asked
			}},
		{name: "a ledger that does not open", slow: true, script: "turn\n" + write + "hang\n", until: seen(agent.CommandStarted)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range tt.files {
				writeFile(t, filepath.Join(dir, name), text)
			}
			r := newRig(t, dir, tt.settings, tt.script)
			w := &watched{rig: r, ed: &stubborn{asked: make(chan struct{})}, seen: map[agent.EventType]bool{}}
			o := r.options
			if tt.open != "" {
				o.Editor = w.ed
				if tt.open != "-" {
					o.Workspace.OpenDocument(workspace.Document{Path: filepath.Join(dir, tt.open), Text: tt.files[tt.open], Version: 1})
				}
			}
			free := make(chan struct{})
			if tt.slow {
				o.Ledger = func(context.Context) (*ledger.Ledger, error) {
					<-free
					return nil, errors.New("locked")
				}
			}
			r.options, r.engine = o, agent.New(o)
			t.Cleanup(func() {
				close(free)
				_ = r.engine.Close()
			})
			if tt.before != nil {
				tt.before(t, r)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			results := make(chan agent.RunResult, 1)
			go func() {
				res, err := r.engine.Run(ctx, agent.RunRequest{Run: "run1", Task: "go", Events: w.event})
				assert.NoError(t, err)
				results <- res
			}()
			require.NoError(t, r.await(ctx, func() bool { return tt.until(w) }), "it never came there")
			require.True(t, r.engine.Cancel("run1"))
			select {
			case res := <-results:
				require.Equal(t, agent.StateCancelled, res.State, res.Reason)
				require.Equal(t, tt.applied, res.Applied)
			case <-time.After(cancelTime):
				t.Fatalf("it still runs %s after it was cancelled", cancelTime)
			}
			require.NoFileExists(t, filepath.Join(dir, "never"))
			if tt.slow {
				return
			}
			cmds, err := r.ledger.List(context.Background(), ledger.Filter{Run: "run1"})
			require.NoError(t, err)
			applied := 0
			for _, c := range cmds {
				require.NotEqual(t, ledger.StatusIntent, c.Status, "%s was left open", c.Key)
				if c.Status == ledger.StatusApplied && strings.HasPrefix(c.Tool, "tf-") {
					applied++
				}
			}
			require.Equal(t, tt.applied, applied, "the ledger says the same")
		})
	}
}

// watched is a rig whose events are noted.
type watched struct {
	*rig
	ed *stubborn

	mu   sync.Mutex
	seen map[agent.EventType]bool
}

func (w *watched) event(ev agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[ev.Type] = true
}

func seen(typ agent.EventType) func(*watched) bool {
	return func(w *watched) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.seen[typ]
	}
}

func requested(w *watched) bool { return len(w.server.Requests()) > 0 }

func file(name string) func(*watched) bool {
	return func(w *watched) bool {
		_, err := os.Stat(filepath.Join(w.dir, name))
		return err == nil
	}
}

func editor(w *watched) bool {
	select {
	case <-w.ed.asked:
		return true
	default:
		return false
	}
}

func manyWrites(first string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<tf-write id=\"1\" path=\"%s\">\n{}\n</tf-write>\n", first)
	for i := range n {
		fmt.Fprintf(&b, "<tf-write id=\"%d\" path=\"f%d.txt\">\nx\n</tf-write>\n", i+2, i)
	}
	return b.String()
}
