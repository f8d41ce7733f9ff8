package scripted

import (
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
