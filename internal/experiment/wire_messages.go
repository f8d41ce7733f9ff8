package experiment

import (
	"encoding/json"
	"io"
)

// messagesWire is the messages API of Anthropic.
type messagesWire struct{}

func (messagesWire) parse(body []byte) (*request, error) {
	var in struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		System   json.RawMessage   `json:"system"`
		Messages []json.RawMessage `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := newReading(body, in.Model, in.Stream)
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		InputSchema schema `json:"input_schema"`
	}
	offered(r, in.Tools, func(t tool) {
		r.tools = append(r.tools, toolDef{name: t.Name, about: t.Description, schema: t.InputSchema})
	})
	r.canon.Write(in.System)
	type message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	err := said(r, in.Messages, func(_ json.RawMessage, msg message) bool {
		var blocks []struct {
			Type      string          `json:"type"`
			ToolUseID string          `json:"tool_use_id"`
			Content   json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(msg.Content, &blocks) // a text is no list
		for _, b := range blocks {
			if b.Type == "tool_result" {
				r.results[b.ToolUseID] = flat(b.Content)
			}
		}
		if msg.Role == "user" {
			r.last = flat(msg.Content)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return r.done(flat(in.System)), nil
}

func (messagesWire) open(w io.Writer, rq *request) answerer {
	a := &messagesAnswer{w: w}
	event(w, "message_start", m{"type": "message_start", "message": m{"id": "msg_sim", "type": "message", "role": "assistant", "model": rq.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": m{"input_tokens": len(rq.body) / 4, "output_tokens": 1}}})
	return a
}

type messagesAnswer struct {
	w     io.Writer
	index int
	open  string
}

func (a *messagesAnswer) block(kind string, start m) {
	a.close()
	event(a.w, "content_block_start", m{"type": "content_block_start", "index": a.index, "content_block": start})
	a.open = kind
}

func (a *messagesAnswer) close() {
	if a.open == "" {
		return
	}
	event(a.w, "content_block_stop", m{"type": "content_block_stop", "index": a.index})
	a.index++
	a.open = ""
}

func (a *messagesAnswer) delta(d m) {
	event(a.w, "content_block_delta", m{"type": "content_block_delta", "index": a.index, "delta": d})
}

func (a *messagesAnswer) text(s string) {
	if a.open != "text" {
		a.block("text", m{"type": "text", "text": ""})
	}
	a.delta(m{"type": "text_delta", "text": s})
}

func (a *messagesAnswer) call(_ int, p piece) {
	a.block("tool", m{"type": "tool_use", "id": p.id, "name": p.call, "input": m{}})
}
func (a *messagesAnswer) args(s string) { a.delta(m{"type": "input_json_delta", "partial_json": s}) }
func (a *messagesAnswer) callEnd()      { a.close() }

func (a *messagesAnswer) end(calls int, u counted) {
	a.close()
	reason := "end_turn"
	if calls > 0 {
		reason = "tool_use"
	}
	event(a.w, "message_delta", m{"type": "message_delta", "delta": m{"stop_reason": reason, "stop_sequence": nil}, "usage": m{"output_tokens": u.Output}})
	event(a.w, "message_stop", m{"type": "message_stop"})
}
