package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

func (p *player) chunkJSON(delta any, finish any) []byte {
	return mustJSON(p.frame("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}))
}

func (p *player) frame(object string, choices []any) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-script-%d", p.req.N), "object": object, "created": 0,
		"model": p.sv.script.Model, "choices": choices,
	}
}

// end sends finish reason, usage and [DONE] as the script wants them.
func (p *player) end() error {
	finish := p.finishReason()
	u := p.usageJSON()
	if finish != "none" {
		chunk := p.frame("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}})
		if u != nil && p.usage != nil && p.usage.inFinish {
			chunk["usage"], u = u, nil
		}
		if err := p.event(mustJSON(chunk)); err != nil {
			return err
		}
	}
	if u != nil {
		chunk := p.frame("chat.completion.chunk", []any{})
		chunk["usage"] = u
		if err := p.event(mustJSON(chunk)); err != nil {
			return err
		}
	}
	if p.noDone {
		return p.begin()
	}
	return p.event([]byte("[DONE]"))
}

// completion answers a request that did not ask for a stream.
func (p *player) completion() error {
	msg := map[string]any{"role": "assistant", "content": p.text.String()}
	if p.reasoning.Len() > 0 {
		msg["reasoning_content"] = p.reasoning.String()
	}
	if len(p.fullCalls) > 0 {
		msg["tool_calls"] = p.fullCalls
	}
	p.wireReq.StreamOptions.IncludeUsage = true
	full := p.frame("chat.completion", []any{map[string]any{"index": 0, "message": msg, "finish_reason": p.finishReason()}})
	if u := p.usageJSON(); u != nil {
		full["usage"] = u
	}
	p.w.Header().Set("Content-Type", "application/json")
	return p.write(mustJSON(full))
}

func (p *player) finishReason() string {
	switch {
	case p.finish != "":
		return p.finish
	case p.calls > 0:
		return "tool_calls"
	}
	return "stop"
}

func (p *player) usageJSON() map[string]any {
	u := p.usage
	if u == nil {
		if !p.wireReq.StreamOptions.IncludeUsage {
			return nil
		}
		u = &usage{in: len(p.req.Body)/charsPerToken + 1, out: p.out/charsPerToken + 1, cached: -1, reasoning: -1}
	}
	if u.none {
		return nil
	}
	m := map[string]any{"prompt_tokens": u.in, "completion_tokens": u.out, "total_tokens": u.in + u.out}
	if u.cached >= 0 {
		m["prompt_tokens_details"] = map[string]any{"cached_tokens": u.cached}
	}
	if u.reasoning >= 0 {
		m["completion_tokens_details"] = map[string]any{"reasoning_tokens": u.reasoning}
	}
	return m
}

// event sends one SSE event. A payload of several lines gets a data: line each.
func (p *player) event(payload []byte) error {
	var b bytes.Buffer
	for line := range bytes.SplitSeq(bytes.TrimSuffix(payload, []byte("\n")), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return p.raw(b.Bytes())
}

// raw sends bytes of the stream; nothing when the answer is no stream.
func (p *player) raw(b []byte) error {
	if !p.wireReq.Stream {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	return p.write(b)
}

// begin sends the headers of the stream, once.
func (p *player) begin() error {
	if p.started || !p.wireReq.Stream {
		return nil
	}
	p.started = true
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	for k, vs := range p.turn.header {
		h[k] = vs
	}
	p.w.WriteHeader(http.StatusOK)
	return p.write(nil)
}

func (p *player) write(b []byte) error {
	for {
		n := len(b)
		if p.wire > 0 && n > p.wire {
			n = p.wire
		}
		if p.ctx.Err() != nil {
			return errGone
		}
		if _, err := p.w.Write(b[:n]); err != nil {
			return errGone
		}
		if f, ok := p.w.(http.Flusher); ok {
			f.Flush()
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
}

func mustJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only plain values of this package come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
