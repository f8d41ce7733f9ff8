package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/agent/registry"
	"thinkflow/internal/config"
)

// post is a tool from outside of package agent, as a bridge to an MCP server would
// make it.
type post struct {
	handled, probed, checked atomic.Int32

	late    int // attempts that run into the time-out
	verdict registry.Verdict
	broken  error

	mu   sync.Mutex // guards seen
	seen []agent.ExtraCall
}

func (p *post) tool() agent.ExtraTool {
	return agent.ExtraTool{
		Name: "post", Description: "Post a message.", Effects: true, Timeout: 2 * time.Second,
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		Handle: func(ctx context.Context, c agent.ExtraCall) (string, error) {
			n := p.handled.Add(1)
			p.mu.Lock()
			p.seen = append(p.seen, c)
			p.mu.Unlock()
			if int(n) <= p.late {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "posted", p.broken
		},
		Probe: func(context.Context, agent.ExtraCall) (registry.Verdict, string) {
			p.probed.Add(1)
			return p.verdict, "found it"
		},
		Check: func(context.Context) error { p.checked.Add(1); return nil },
	}
}

// TestExtraTool: a tool that another package adds goes through the same steps as
// the built-in ones, permission and ledger included.
func TestExtraTool(t *testing.T) {
	tests := []struct {
		name     string
		settings string
		args     string
		post     *post
		says     string
		state    agent.State
		rows     []row
		handled  int32
		probed   int32
	}{
		{name: "normal", settings: "allow = [\"tool:post\"]\n", says: "posted", rows: []row{{"native", "applied", ""}}, handled: 1},
		{name: "nobody may allow it", says: "PERMISSION_DENIED", state: agent.StateRefused, rows: []row{{"native", "rejected", "PERMISSION_DENIED"}}},
		{name: "a person says yes", settings: "# approver\n", says: "posted", rows: []row{{"native", "applied", ""}}, handled: 1},
		{name: "a rule forbids it", settings: "allow = [\"tool:*\"]\ndeny = [\"tool:post\"]\n", says: "PERMISSION_DENIED", rows: []row{{"native", "rejected", "PERMISSION_DENIED"}}},
		{name: "not in mode ask", settings: "allow = [\"tool:post\"]\nmode = \"ask\"\n", says: "PERMISSION_DENIED: not in mode ask", rows: []row{{"native", "rejected", "PERMISSION_DENIED"}}},
		{name: "invalid", settings: "allow = [\"tool:post\"]\n", args: `{"txt":"x"}`, says: "INVALID_ARGUMENT", rows: []row{{"native", "failed", "INVALID_ARGUMENT"}}},
		{name: "time-out, but done", settings: "allow = [\"tool:post\"]\n", post: &post{late: 1, verdict: registry.Succeeded}, says: "found it",
			rows: []row{{"native", "applied", ""}}, handled: 1, probed: 1},
		{name: "time-out, not done", settings: "allow = [\"tool:post\"]\n", post: &post{late: 1, verdict: registry.NotExecuted}, says: "posted",
			rows: []row{{"native", "not_applied", "TIMEOUT"}, {"native.retry1", "applied", ""}}, handled: 2, probed: 1},
		{name: "time-out, nobody knows", settings: "allow = [\"tool:post\"]\n", post: &post{late: 1, verdict: registry.VerdictUnknown}, says: "unknown",
			rows: []row{{"native", "uncertain", "TIMEOUT"}}, handled: 1, probed: 1},
		{name: "in trouble", settings: "allow = [\"tool:post\"]\n", post: &post{broken: errors.New("server gone")}, says: "EXECUTION_ERROR: server gone",
			rows: []row{{"native", "failed", "EXECUTION_ERROR"}}, handled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := tt.post
			if p == nil {
				p = &post{}
			}
			if tt.args == "" {
				tt.args = `{"text":"hi"}`
			}
			r := newRig(t, t.TempDir(), tt.settings, "turn\ncall#c1 post "+tt.args+"\nturn\ntext ok\n")
			r.answers = []agent.Decision{agent.AllowOnce}
			o := r.options
			o.Tools = func(context.Context) []agent.ExtraTool { return []agent.ExtraTool{p.tool()} }
			r.engine = agent.New(o)
			t.Cleanup(func() { _ = r.engine.Close() })
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
			require.NoError(t, err)
			if tt.state == "" {
				tt.state = agent.StateDone
			}
			require.Equal(t, tt.state, res.State, res.Reason)
			require.Contains(t, toolResults(t, r), tt.says)
			require.Equal(t, tt.rows, rows(t, r, "run1"))
			require.Equal(t, tt.handled, p.handled.Load(), "handler")
			require.Equal(t, tt.probed, p.probed.Load(), "probe")
			if tt.handled > 0 {
				require.Equal(t, "c1", p.seen[0].ID)
				require.JSONEq(t, `{"text":"hi"}`, string(p.seen[0].Arguments))
			}
		})
	}
}

// TestExtraToolsChange: what is offered is asked for before every turn; what cannot
// be used is left out and told once; a breaker outlives the turns.
func TestExtraToolsChange(t *testing.T) {
	p := &post{broken: errors.New("server gone")}
	r := newRig(t, t.TempDir(), "allow = [\"tool:post\"]\n", "turn\nexpect tool post\ncall post {\"text\":\"a\"}\n"+
		"turn\nexpect tool late\ncall post {\"text\":\"b\"}\ncall post {\"text\":\"c\"}\n"+
		"turn\ncall post {\"text\":\"d\"}\ncall late {}\nturn\ntext ok\n")
	o := r.options
	turns := 0
	look := func(name string) agent.ExtraTool {
		return agent.ExtraTool{Name: name, Description: "Look.", Handle: func(context.Context, agent.ExtraCall) (string, error) { return "seen", nil }}
	}
	o.Tools = func(context.Context) []agent.ExtraTool {
		turns++
		list := []agent.ExtraTool{p.tool(), look("bash"), look("bad name"), {Name: "empty"}, {Name: "odd", Parameters: json.RawMessage(`{"type":7}`), Handle: look("").Handle},
			{Name: "nowhere", Mode: config.Mode("x"), Handle: look("").Handle}}
		if turns > 1 {
			list = append(list, look("late"))
		}
		return list
	}
	r.engine = agent.New(o)
	t.Cleanup(func() { _ = r.engine.Close() })
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "go"})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.EqualValues(t, 3, p.handled.Load(), "after three failures in a row, over two turns, it is left alone")
	last := r.server.Requests()[3].Messages()
	require.Contains(t, last[len(last)-2].Text, "TOOL_UNAVAILABLE")
	require.Contains(t, last[len(last)-1].Text, "seen")
	require.NoError(t, r.await(t.Context(), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.notices) == 5
	}), "each is told once")
}
