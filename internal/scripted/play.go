package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Values in force unless the script says otherwise.
const (
	defaultChunk  = 16 // characters per delta
	charsPerToken = 4
)

var (
	errGone = errors.New("the client went away")
	errCut  = errors.New("cut by the script")
	errEOF  = errors.New("ended by the script")
)

// player plays one turn to one client.
type player struct {
	sv   *Server
	turn *Turn
	req  Request
	w    http.ResponseWriter
	ctx  context.Context

	chunk, rate, wire int
	keepalive         time.Duration
	paceStart         time.Time
	paceChars         int

	wireReq wireRequest
	started bool
	calls   int
	out     int // characters sent, for the usage estimate
	finish  string
	usage   *usage
	noDone  bool

	// what a non-streaming answer is made of
	text, reasoning strings.Builder
	fullCalls       []map[string]any
}

func (p *player) play() Outcome {
	_ = json.Unmarshal(p.req.Body, &p.wireReq)
	p.chunk = defaultChunk
	if p.turn.status != 0 && p.turn.status != http.StatusOK || p.turn.body != nil {
		return p.outcome(p.plain())
	}
	err := p.steps()
	if err == nil {
		if p.wireReq.Stream {
			err = p.end()
		} else {
			err = p.completion()
		}
	}
	return p.outcome(err)
}

func (p *player) outcome(err error) Outcome {
	switch {
	case err == nil || errors.Is(err, errEOF):
		return Complete
	case errors.Is(err, errCut):
		return Cut
	}
	return Gone
}

// plain answers with a status and a body.
func (p *player) plain() error {
	for i := range p.turn.steps { // pauses and hangs come first
		switch st := &p.turn.steps[i]; st.verb {
		case "sleep", "ttft":
			if err := p.pause(st.dur); err != nil {
				return err
			}
		case "await":
			if err := p.await(st.name); err != nil {
				return err
			}
		}
	}
	h := p.w.Header()
	for k, vs := range p.turn.header {
		h[k] = vs
	}
	body := ""
	if p.turn.body != nil {
		body = *p.turn.body
	}
	if h.Get("Content-Type") == "" && strings.HasPrefix(strings.TrimSpace(body), "{") {
		h.Set("Content-Type", "application/json")
	}
	status := p.turn.status
	if status == 0 {
		status = http.StatusOK
	}
	p.w.WriteHeader(status)
	return p.write([]byte(body))
}

func (p *player) steps() error {
	for i := range p.turn.steps {
		if err := p.step(&p.turn.steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) step(st *step) error {
	switch st.verb {
	case "chunk":
		p.chunk = st.n
	case "wire":
		p.wire = st.n
	case "rate":
		p.rate, p.paceStart, p.paceChars = st.n, time.Time{}, 0
	case "keepalive":
		p.keepalive = st.dur
	case "text":
		return p.stream(st.text, func(s string) error { return p.delta(map[string]any{"content": s}, s) })
	case "reasoning":
		return p.stream(st.text, func(s string) error { return p.reasoningDelta("reasoning_content", s) })
	case "reasoning-alt":
		return p.stream(st.text, func(s string) error { return p.reasoningDelta("reasoning", s) })
	case "call":
		return p.call(st)
	case "tool-delta":
		p.calls++
		return p.delta(map[string]any{"tool_calls": []any{json.RawMessage(st.text)}}, "")
	case "delta":
		return p.event(p.chunkJSON(json.RawMessage(st.text), nil))
	case "data":
		return p.event([]byte(st.text))
	case "raw":
		return p.raw([]byte(st.text))
	case "comment":
		return p.raw([]byte(": " + strings.TrimSpace(st.text) + "\n\n"))
	case "error", "error-event":
		if st.verb == "error-event" {
			if err := p.raw([]byte("event: error\n")); err != nil {
				return err
			}
		}
		return p.event(errorJSON(st.text))
	case "ttft", "sleep":
		if err := p.begin(); err != nil {
			return err
		}
		return p.pause(st.dur)
	case "await":
		if err := p.begin(); err != nil {
			return err
		}
		return p.await(st.name)
	case "hang":
		if st.name != "headers" {
			if err := p.begin(); err != nil {
				return err
			}
		}
		return p.waitFor(nil, nil)
	case "cut":
		return p.cut(st.name == "reset")
	case "eof":
		if err := p.begin(); err != nil {
			return err
		}
		return errEOF
	case "finish":
		p.finish = st.name
	case "usage":
		p.usage = &st.usage
	case "done":
		p.noDone = st.name == "none"
	}
	return nil
}

func errorJSON(text string) []byte {
	if !json.Valid([]byte(text)) {
		text = string(mustJSON(map[string]string{"message": text}))
	}
	return []byte(`{"error":` + text + `}`)
}

// stream sends a text in pieces at the rate in force.
func (p *player) stream(text string, send func(string) error) error {
	if text == "" {
		return send("")
	}
	for text != "" {
		piece := text
		if p.chunk > 0 {
			piece = firstChars(text, p.chunk)
		}
		text = text[len(piece):]
		n := utf8.RuneCountInString(piece)
		p.out += n
		if err := p.pace(n); err != nil {
			return err
		}
		if err := send(piece); err != nil {
			return err
		}
	}
	return nil
}

func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// pace waits until the characters sent so far fit the rate; it keeps to the
// rate on average, whatever the granularity of timers.
func (p *player) pace(chars int) error {
	if p.rate <= 0 {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	now := time.Now()
	if p.paceStart.IsZero() {
		p.paceStart = now
	}
	p.paceChars += chars
	due := p.paceStart.Add(p.scaled(time.Duration(float64(p.paceChars) / charsPerToken / float64(p.rate) * float64(time.Second))))
	return p.waitTime(due.Sub(now))
}

func (p *player) reasoningDelta(field, s string) error {
	p.reasoning.WriteString(s)
	return p.delta(map[string]any{field: s}, "")
}

func (p *player) call(st *step) error {
	index := p.calls
	p.calls++
	id := st.id
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", p.req.N, index)
	}
	p.fullCalls = append(p.fullCalls, map[string]any{
		"id": id, "type": "function", "function": map[string]any{"name": st.name, "arguments": st.text},
	})
	if err := p.delta(map[string]any{"tool_calls": []any{map[string]any{
		"index": index, "id": id, "type": "function", "function": map[string]any{"name": st.name, "arguments": ""},
	}}}, ""); err != nil {
		return err
	}
	if st.text == "" {
		return nil
	}
	return p.stream(st.text, func(s string) error {
		return p.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": index, "function": map[string]any{"arguments": s},
		}}}, "")
	})
}

// delta sends one delta; visible is what it adds to the text.
func (p *player) delta(d map[string]any, visible string) error {
	p.text.WriteString(visible)
	if err := p.event(p.chunkJSON(d, nil)); err != nil {
		return err
	}
	if visible != "" {
		p.sv.update(func() { p.sv.sent[p.req.N-1] += visible })
	}
	return nil
}

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

func (p *player) cut(reset bool) error {
	if err := p.begin(); err != nil {
		return err
	}
	if !reset {
		return errCut
	}
	if hj, ok := p.w.(http.Hijacker); ok {
		if conn, _, err := hj.Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
		}
	}
	return errCut
}

func (p *player) await(name string) error {
	p.sv.update(func() { p.sv.reached[name] = true })
	return p.waitFor(func() bool { return p.sv.released[name] }, nil)
}

func (p *player) scaled(d time.Duration) time.Duration {
	if s := p.sv.opts.Speed; s > 0 {
		return time.Duration(float64(d) / s)
	}
	return d
}

func (p *player) pause(d time.Duration) error { return p.waitTime(p.scaled(d)) }

func (p *player) waitTime(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return p.waitFor(nil, t.C)
}

// waitFor waits for the condition (under the server's lock) or the timer; with
// neither it waits until the client goes. Keep-alive comments go out meanwhile.
func (p *player) waitFor(cond func() bool, timer <-chan time.Time) error {
	var tick <-chan time.Time
	if p.keepalive > 0 && p.started {
		t := time.NewTicker(p.scaled(p.keepalive))
		defer t.Stop()
		tick = t.C
	}
	for {
		p.sv.mu.Lock()
		ok, changed := cond != nil && cond(), p.sv.changed
		p.sv.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-timer:
			return nil
		case <-tick:
			if err := p.write([]byte(": keep-alive\n\n")); err != nil {
				return err
			}
		case <-p.ctx.Done():
			return errGone
		case <-p.sv.closed:
			return errGone
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
