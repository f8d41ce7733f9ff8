package agent

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/config"
	"thinkflow/workspace"
)

// loopRun is a run that never talks to a model, for tests of the history.
func loopRun(t *testing.T, cfg config.Config) *run {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.New([]workspace.Root{{Name: "demo", Dir: dir}}, workspace.Options{})
	require.NoError(t, err)
	e := New(Options{Config: cfg, Workspace: ws, Model: &answers{}})
	r := newRun(t.Context(), e, newSession("s", &cfg), RunRequest{Run: "r", Task: "x", DryRun: true})
	t.Cleanup(r.close)
	return r
}

// answers is a model in this process: one list of deltas per request.
type answers struct {
	turns [][]Delta
	asked []*Request
}

func (a *answers) Stream(_ context.Context, req *Request) (Stream, error) {
	a.asked = append(a.asked, req)
	if len(a.asked) > len(a.turns) {
		return &played{}, nil
	}
	return &played{a.turns[len(a.asked)-1]}, nil
}

type played struct{ left []Delta }

func (p *played) Recv() (Delta, error) {
	if len(p.left) == 0 {
		return Delta{}, io.EOF
	}
	d := p.left[0]
	p.left = p.left[1:]
	return d, nil
}

func (p *played) Close() error { return nil }

// TestCompactionKeepsTheForm: whatever the history, a shortened one begins with a
// message of the user, has every result behind its call, fits, and is the same
// each time.
func TestCompactionKeepsTheForm(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := loopRun(t, config.Config{ContextTokens: 6000 + rnd.IntN(4000), History: config.HistoryStrip})
		text := func(most int) string { return strings.Repeat("word ", 1+rnd.IntN(most)) }
		s := r.s
		s.rememberTask("the task")
		s.append(Message{Role: RoleUser, Content: "the task"})
		for i := range 2 + rnd.IntN(30) {
			m := Message{Role: RoleAssistant, Content: text(200)}
			s.rememberSaid(m)
			calls := rnd.IntN(4)
			for c := range calls {
				m.ToolCalls = append(m.ToolCalls, ToolCall{ID: fmt.Sprintf("c%d_%d", i, c), Name: "read_file", Arguments: `{"path":"` + text(3) + `"}`})
			}
			s.append(m)
			for c := range calls {
				s.append(Message{Role: RoleTool, ToolCallID: fmt.Sprintf("c%d_%d", i, c), Content: text(1500)})
			}
			if calls == 0 || rnd.IntN(3) == 0 {
				s.append(Message{Role: RoleUser, Content: text(800)})
			}
		}
		history := append([]Message(nil), s.history...)
		set := r.setup()
		req, err := r.fitting(set)
		if err != nil {
			var large *errTooLarge
			require.ErrorAs(t, err, &large, "seed %d", seed)
			continue
		}
		require.LessOrEqual(t, s.tokensFor(set.Model, req.bytes()), r.limit(set), "seed %d", seed)
		checkForm(t, req.Messages, seed)
		if len(req.Messages) == len(history)+1 {
			continue // it fitted as it was
		}
		require.Contains(t, req.Messages[1].Content, headSummary)
		require.Contains(t, req.Messages[1].Content, "1. the task")

		s.history = history
		again, err := r.fitting(set)
		require.NoError(t, err)
		require.Equal(t, req.Messages, again.Messages, "seed %d: not the same twice", seed)
		next, err := r.fitting(set)
		require.NoError(t, err)
		require.Equal(t, req.Messages, next.Messages, "seed %d: not at rest", seed)
	}
}

func checkForm(t *testing.T, msgs []Message, seed uint64) {
	t.Helper()
	require.Equal(t, RoleSystem, msgs[0].Role)
	require.Equal(t, RoleUser, msgs[1].Role, "seed %d", seed)
	open := map[string]bool{}
	for _, m := range msgs {
		if m.Role == RoleTool {
			require.True(t, open[m.ToolCallID], "seed %d: a result without its call", seed)
			delete(open, m.ToolCallID)
			continue
		}
		require.Empty(t, open, "seed %d: a call without its result", seed)
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	require.Empty(t, open)
}

func TestEstimateFollowsTheProvider(t *testing.T) {
	s := newSession("s", &config.Config{})
	require.Equal(t, 2501, s.tokensFor("m", 10_000))
	s.reported("m", 10_000, 5000)
	require.Equal(t, 5001, s.tokensFor("m", 10_000))
	s.reported("m", 10_000, 4000)
	require.Equal(t, 4501, s.tokensFor("m", 10_000), "half the way")
	s.reported("m", 100, 90)
	s.reported("m", 10_000, 0)
	require.Equal(t, 4501, s.tokensFor("m", 10_000), "small or missing reports say nothing")
	require.Equal(t, 2501, s.tokensFor("other", 10_000), "each model for itself")
}

func TestContextInErrors(t *testing.T) {
	for message, want := range map[string]int{
		"This model's maximum context length is 8192 tokens. However, you requested 9000": 8192,
		"the request exceeds the available context size (4096 tokens), try increasing it": 4096,
		"Input length 140000 exceeds maximum of 131,072 tokens":                           131072,
		"Your input exceeds the context window":                                           0,
		"413 Request Entity Too Large":                                                    0,
	} {
		require.Equal(t, want, contextIn(&ModelError{Kind: ErrOverflow, Message: message}), message)
	}
}

func TestShare(t *testing.T) {
	tests := []struct {
		name   string
		budget int
		sizes  []int
		want   []int
	}{
		{"all fit", 10_000, []int{4000, 6000}, []int{4000, 6000}},
		{"in proportion", 30_000, []int{20_000, 40_000}, []int{10_000, 20_000}},
		{"short ones stay whole", 20_000, []int{1000, 100_000, 1500, 100_000}, []int{1000, 8750, 1500, 8750}},
		{"nobody below the floor", 10_000, []int{2500, 1_000_000}, []int{2048, 7952}},
		{"a budget below all floors", 3000, []int{5000, 5000, 5000}, []int{1000, 1000, 1000}},
		{"one", 1000, []int{5000}, []int{1000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var outs []*toolOutput
			for _, n := range tt.sizes {
				outs = append(outs, &toolOutput{Text: strings.Repeat("x", n), Shrink: func(most int) string { return strings.Repeat("y", most) }})
			}
			share(tt.budget, outs)
			sum := 0
			for i, o := range outs {
				require.InDelta(t, tt.want[i], len(o.Text), 1, "result %d", i)
				sum += len(o.Text)
			}
			require.LessOrEqual(t, sum, max(tt.budget, 0))
		})
	}
	share(100, nil)
}

// TestPrefixIsReused: without a compaction or a switch, every request begins with
// the whole of the one before, and usage says so.
func TestPrefixIsReused(t *testing.T) {
	call := func(id, name, args string) []Delta {
		return []Delta{{Calls: []CallDelta{{ID: id, Name: name, Args: args}}}, {Finish: "tool_calls"}}
	}
	m := &answers{turns: [][]Delta{
		call("1", "list_files", `{}`),
		{{Text: "<tf-edit id=\"1\" path=\"nothing\"><old>a</old><new>b</new></tf-edit>"}, {Finish: "stop"}},
		call("2", "grep", `{"pattern":"x"}`),
		{{Text: "Done."}, {Finish: "stop"}},
		{{Text: "Again."}, {Finish: "stop"}},
	}}
	r := loopRun(t, config.Config{MaxTurns: 10})
	r.e.model = m
	last := 0
	var usage Usage
	for _, task := range []string{"one", "two"} {
		res, err := r.e.Run(t.Context(), RunRequest{Session: "s", Task: task, DryRun: true})
		require.NoError(t, err)
		require.Equal(t, StateDone, res.State, res.Reason)
		usage.RequestBytes += res.Usage.RequestBytes
		usage.ReusedBytes += res.Usage.ReusedBytes
	}
	require.Len(t, m.asked, 5)
	total := 0
	for _, q := range m.asked {
		total += q.bytes()
		last = q.bytes()
	}
	require.Equal(t, total, usage.RequestBytes)
	require.Equal(t, total-last, usage.ReusedBytes, "all but what was new each time")

	_, err := r.e.Switch("s", SessionSettings{Mode: config.ModeAsk})
	require.NoError(t, err)
	res, err := r.e.Run(t.Context(), RunRequest{Session: "s", Task: "three", DryRun: true})
	require.NoError(t, err)
	require.Zero(t, res.Usage.ReusedBytes, "another mode has other tools")
}
