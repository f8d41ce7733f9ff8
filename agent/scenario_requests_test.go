package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/scripted"
)

// requests renders what each request added to the one before, and checks that
// the one before is its prefix, byte for byte.
func (r *rig) requests(t *testing.T) string {
	var b strings.Builder
	for _, c := range conversations(r.server.Requests()) {
		r.conversation(t, &b, c)
	}
	return b.String()
}

// conversations sorts requests out: the user's own, then those of sub-agents by
// their task.
func conversations(all []scripted.Request) [][]scripted.Request {
	own := []scripted.Request{}
	subs := map[string][]scripted.Request{}
	for _, req := range all {
		msgs := req.Messages()
		task := ""
		if len(msgs) > 1 && strings.Contains(msgs[1].Text, "You are a sub-agent:") {
			task = msgs[1].Text
		}
		if task == "" {
			own = append(own, req)
		} else {
			subs[task] = append(subs[task], req)
		}
	}
	out := [][]scripted.Request{own}
	for _, task := range slices.Sorted(maps.Keys(subs)) {
		out = append(out, subs[task])
	}
	return out
}

func (r *rig) conversation(t *testing.T, b *strings.Builder, all []scripted.Request) {
	var prev scripted.Request
	for i, req := range all {
		msgs := req.RawMessages()
		from := 1
		why := ""
		if i > 0 {
			from, why = r.prefix(t, prev.RawMessages(), msgs, scripted.PrefixOf(prev, req))
		}
		fmt.Fprintf(b, "=== request %d%s\n", i+1, why)
		for _, raw := range msgs[from:] {
			var m struct {
				Role       string
				Content    string
				ToolCallID string `json:"tool_call_id"`
				ToolCalls  []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			require.NoError(t, json.Unmarshal(raw, &m))
			b.WriteString(strings.TrimRight("["+m.Role+"] "+m.ToolCallID, " ") + "\n")
			if m.Content != "" {
				sc := bufio.NewScanner(strings.NewReader(r.clean(m.Content)))
				for sc.Scan() {
					b.WriteString(strings.TrimRight("  "+sc.Text(), " ") + "\n")
				}
			}
			for _, c := range m.ToolCalls {
				fmt.Fprintf(b, "  call %s %s %s\n", c.ID, c.Function.Name, c.Function.Arguments)
			}
		}
		prev = req
	}
}

// prefix tells from where on a request is new. It is wholly an extension of the
// one before, but for two cases: the system message changes with the mode, the
// protocol or the model, and a compaction begins the history anew.
func (r *rig) prefix(t *testing.T, prev, msgs []json.RawMessage, broken error) (from int, why string) {
	if broken == nil {
		return len(prev), ""
	}
	r.mu.Lock()
	compacted := r.compacted
	r.mu.Unlock()
	same := len(msgs) >= len(prev)
	for i := 1; same && i < len(prev); i++ {
		same = string(prev[i]) == string(msgs[i])
	}
	switch {
	case same:
		return len(prev), " (another system message)"
	case compacted:
		return 1, " (compacted)"
	}
	require.NoError(t, broken)
	return 0, ""
}
