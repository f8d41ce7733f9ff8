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

// reading collects what a request holds, whatever its wire form.
type reading struct {
	*request
	canon, text strings.Builder
}

func newReading(body []byte, model string, stream bool) *reading {
	return &reading{request: &request{body: body, stream: stream, model: model, results: map[string]string{}}}
}

// offered goes through the tools, as raw JSON; what is none of a known form offers
// nothing.
func offered[T any](r *reading, tools []json.RawMessage, take func(T)) {
	for _, raw := range tools {
		r.canon.Write(raw)
		var t T
		if json.Unmarshal(raw, &t) == nil {
			take(t)
		}
	}
}

// said goes through the messages, as raw JSON, and collects their texts; take
// reports whether the model sees one as a part of the conversation.
func said[T any](r *reading, messages []json.RawMessage, take func(raw json.RawMessage, m T) bool) error {
	for _, raw := range messages {
		r.canon.Write(raw)
		var m T
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if take(raw, m) {
			r.text.WriteString(flat(raw))
		}
	}
	return nil
}

// done is the request, with what all wire forms have in common.
func (r *reading) done(system string) *request {
	r.request.canon, r.request.text = r.canon.String(), r.text.String()
	r.teaches = strings.Contains(system, "<tf-write") && strings.Contains(system, "</tf-write>")
	return r.request
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
