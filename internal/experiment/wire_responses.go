package experiment

import (
	"encoding/json"
	"io"
	"strings"
)

// responsesWire is the responses API of OpenAI.
type responsesWire struct{}

func (responsesWire) parse(body []byte) (*request, error) {
	var in struct {
		Model        string            `json:"model"`
		Stream       bool              `json:"stream"`
		Instructions string            `json:"instructions"`
		Input        []json.RawMessage `json:"input"`
		Tools        []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := newReading(body, in.Model, in.Stream)
	type tool struct {
		Type        string `json:"type"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  schema `json:"parameters"`
	}
	offered(r, in.Tools, func(t tool) {
		if t.Name != "" {
			r.tools = append(r.tools, toolDef{name: t.Name, about: t.Description, schema: t.Parameters, custom: t.Type == "custom"})
		}
	})
	r.canon.WriteString(in.Instructions)
	type item struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		CallID  string          `json:"call_id"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
	}
	err := said(r, in.Input, func(_ json.RawMessage, it item) bool {
		switch {
		case strings.HasSuffix(it.Type, "_output"):
			r.results[it.CallID] = flat(it.Output)
		case it.Role == "user":
			r.last = flat(it.Content)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return r.done(in.Instructions), nil
}

func (responsesWire) open(w io.Writer, rq *request) answerer {
	a := &responsesAnswer{w: w, model: rq.model, input: len(rq.body) / 4}
	a.event("response.created", m{"response": a.response("in_progress", nil)})
	return a
}

type responsesAnswer struct {
	w      io.Writer
	model  string
	input  int
	seq    int
	items  []m
	said   strings.Builder
	argued strings.Builder
	now    piece
	open   bool // a message is being written
}

func (a *responsesAnswer) event(name string, v m) {
	v["type"], v["sequence_number"] = name, a.seq
	a.seq++
	event(a.w, name, v)
}

func (a *responsesAnswer) response(status string, usage any) m {
	return m{"id": "resp_sim", "object": "response", "status": status, "model": a.model, "output": a.items, "usage": usage}
}

func (a *responsesAnswer) add(item m) {
	a.event("response.output_item.added", m{"output_index": len(a.items), "item": item})
}

func (a *responsesAnswer) finish(item m) {
	a.event("response.output_item.done", m{"output_index": len(a.items), "item": item})
	a.items = append(a.items, item)
}

func (a *responsesAnswer) text(s string) {
	if !a.open {
		a.open = true
		a.said.Reset()
		a.add(m{"type": "message", "id": "msg_sim", "role": "assistant", "status": "in_progress", "content": []any{}})
	}
	a.said.WriteString(s)
	a.event("response.output_text.delta", m{"output_index": len(a.items), "content_index": 0, "item_id": "msg_sim", "delta": s})
}

func (a *responsesAnswer) closeText() {
	if !a.open {
		return
	}
	a.open = false
	a.finish(m{"type": "message", "id": "msg_sim", "role": "assistant", "status": "completed",
		"content": []m{{"type": "output_text", "text": a.said.String(), "annotations": []any{}}}})
}

func (a *responsesAnswer) item(status string) m {
	if a.now.custom {
		return m{"type": "custom_tool_call", "id": "ct_" + a.now.id, "call_id": a.now.id, "name": a.now.call, "input": a.argued.String(), "status": status}
	}
	return m{"type": "function_call", "id": "fc_" + a.now.id, "call_id": a.now.id, "name": a.now.call, "arguments": a.argued.String(), "status": status}
}

func (a *responsesAnswer) call(_ int, p piece) {
	a.closeText()
	a.now = p
	a.argued.Reset()
	a.add(a.item("in_progress"))
}

func (a *responsesAnswer) args(s string) {
	a.argued.WriteString(s)
	name, id := "response.function_call_arguments.delta", "fc_"
	if a.now.custom {
		name, id = "response.custom_tool_call_input.delta", "ct_"
	}
	a.event(name, m{"output_index": len(a.items), "item_id": id + a.now.id, "delta": s})
}

func (a *responsesAnswer) callEnd() { a.finish(a.item("completed")) }

func (a *responsesAnswer) end(_ int, u counted) {
	a.closeText()
	a.event("response.completed", m{"response": a.response("completed", m{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details": m{"cached_tokens": u.Cached}, "output_tokens_details": m{"reasoning_tokens": 0}})})
}
