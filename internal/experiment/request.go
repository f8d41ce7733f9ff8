package experiment

import (
	"encoding/json"
	"strings"
)

// request is one API call, whatever its wire form.
type request struct {
	body    []byte
	canon   string // tools, system text, messages: what a provider's cache goes by
	tools   []toolDef
	text    string            // all that the model can see but the tools, decoded
	last    string            // the last message of the user
	results map[string]string // of native calls, by id
	teaches bool              // the system prompt teaches tags
	stream  bool
	model   string
}

// side tells whether the request is none of the agent's loop (a title, a
// summary of the topic): it offers nothing to work with.
func (rq *request) side() bool { return !rq.teaches && len(rq.tools) == 0 }

// flat collects the strings of decoded JSON, arguments given as JSON text too.
func flat(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			var inner any
			if (strings.HasPrefix(v, "{") || strings.HasPrefix(v, "[{")) && json.Unmarshal([]byte(v), &inner) == nil {
				walk(inner)
				return
			}
			b.WriteString(v)
			b.WriteByte('\n')
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				if k != "id" && k != "type" && k != "role" && k != "tool_call_id" && k != "tool_use_id" && k != "call_id" {
					walk(x)
				}
			}
		}
	}
	walk(v)
	return b.String()
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// finish fills in what all wire forms have in common.
func (rq *request) finish(system string) {
	rq.teaches = strings.Contains(system, "<tf-write") && strings.Contains(system, "</tf-write>")
}
