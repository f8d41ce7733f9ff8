package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"thinkflow/agent"
)

// afterFinish is how long usage and [DONE] are waited for once the finish reason
// has come.
const afterFinish = 2 * time.Second

// stream is one answer being received. Recv is for one goroutine; Close may be
// called from any.
type stream struct {
	c     *Client
	model string
	x     *exchange
	inner *goopenai.ChatCompletionStream

	firstBy  time.Time // limit for the first piece of the answer
	calls    calls
	text     joiner
	thought  joiner
	begun    bool // a piece of the answer has come
	finish   string
	usage    *agent.TurnUsage
	field    string // where reasoning came
	ended    bool   // complete; the last delta was given
	err      error  // what every further Recv returns
	released atomic.Bool
}

var _ agent.Stream = (*stream)(nil)

// open sends the request and returns when the answer has begun.
func (c *Client) open(ctx context.Context, model string, body []byte) (*stream, error) {
	x := newExchange(ctx, body)
	first := c.opts.FirstTokenTimeout
	x.arm(first, &timeout{"no answer", first})
	// The model's name is in our body; the library checks this one.
	inner, err := c.api.CreateChatCompletionStream(x.ctx, goopenai.ChatCompletionRequest{Model: "thinkflow"})
	if err != nil {
		err = c.failure(model).of(x, err)
		x.close()
		return nil, err
	}
	s := &stream{c: c, model: model, x: x, inner: inner, firstBy: x.start.Add(first)}
	s.calls.newID = c.opts.NewID
	return s, nil
}

// Close implements agent.Stream.
func (s *stream) Close() error {
	if !s.released.Load() {
		s.x.close()
	}
	return nil
}

// Recv implements agent.Stream.
func (s *stream) Recv() (agent.Delta, error) {
	if s.err != nil {
		return agent.Delta{}, s.err
	}
	d, err := s.recv()
	if err == nil {
		return d, nil
	}
	s.err = err
	_ = s.Close()
	return agent.Delta{}, err
}

func (s *stream) recv() (agent.Delta, error) {
	for !s.ended {
		s.watch()
		raw, err := s.inner.RecvRaw()
		s.x.disarm()
		if err != nil {
			return s.end(err)
		}
		d, ok, err := s.event(raw)
		if err != nil {
			return agent.Delta{}, err
		}
		if ok {
			return d, nil
		}
	}
	return agent.Delta{}, io.EOF
}

// watch arms the limit that is in force now. Time in which nobody waits for the
// model does not count.
func (s *stream) watch() {
	idle := s.c.opts.IdleTimeout
	switch {
	case s.finish != "":
		s.x.arm(afterFinish, &timeout{"no end of the answer", afterFinish})
	case s.begun:
		s.x.arm(idle, &timeout{"no data", idle})
	case s.c.opts.FirstTokenTimeout < 0:
		s.x.disarm()
	default:
		// Events without content (a role, progress of the prompt) show that the
		// server works: they grant the idle time anew, but never end the time for
		// the first token.
		first := s.c.opts.FirstTokenTimeout
		left, cause := max(time.Until(s.firstBy), 0), &timeout{"no answer", first}
		if s.x.filter.events > 0 && idle > left {
			left, cause = idle, &timeout{"no data", idle}
		}
		s.x.arm(left, cause)
	}
}

// end settles the answer after the last event.
func (s *stream) end(err error) (agent.Delta, error) {
	complete := s.x.filter.done || s.finish != ""
	if !complete || s.x.parent.Err() != nil && !s.x.filter.done {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return agent.Delta{}, s.c.failure(s.model).of(s.x, err)
	}
	s.ended = true
	if s.x.filter.done {
		s.released.Store(true)
		s.x.release()
	} else {
		s.x.close()
	}
	d := agent.Delta{Calls: s.calls.finish(), Usage: s.usage}
	if s.calls.orphans > 0 {
		s.c.opts.Log.Warn("fragments of native calls without a name were dropped", "endpoint", s.c.where.name, "model", s.model, "fragments", s.calls.orphans)
	}
	if d.Calls == nil && d.Usage == nil {
		return d, io.EOF
	}
	return d, nil
}

// event decodes one event; ok is false when there is nothing in it for the
// caller.
func (s *stream) event(raw []byte) (d agent.Delta, ok bool, err error) {
	if len(raw) == 0 {
		return d, false, nil
	}
	mark, payload := raw[0], raw[1:]
	f := s.c.failure(s.model)
	if mark == markError {
		return d, false, f.inStream(payload)
	}
	if len(payload) == 0 || payload[0] != '{' {
		if json.Valid(payload) { // null, numbers: nothing in them
			return d, false, nil
		}
		return d, false, f.undecodable(payload, nil)
	}
	var c chunk
	if err := json.Unmarshal(payload, &c); err != nil {
		return d, false, f.undecodable(payload, err)
	}
	if c.failed() {
		return d, false, f.inStream(payload)
	}
	if u := c.usage(); u != nil {
		s.usage = u // servers that send it often send sums: the last one counts
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != "" && ch.Index != "0" {
			continue
		}
		if isFailure(ch.Error) {
			return d, false, f.inStream(bytes.Join([][]byte{[]byte(`{"error":`), ch.Error, []byte(`}`)}, nil))
		}
		dl := ch.Delta
		if dl == nil {
			dl = ch.Message
		}
		if dl != nil {
			s.take(&d, dl)
		}
		reason, failed := finishReason(string(ch.FinishReason))
		if failed {
			return d, false, f.finishedWith(reason)
		}
		if reason != "" && s.finish == "" {
			s.finish, d.Finish = reason, reason
		}
	}
	ok = d.Text != "" || d.Reasoning != "" || len(d.Calls) > 0 || d.Finish != ""
	s.begun = s.begun || ok
	return d, ok, nil
}

func (s *stream) take(d *agent.Delta, dl *delta) {
	d.Text += s.text.add(dl.Content.text + string(dl.Refusal))
	text, field := dl.reasoningText()
	d.Reasoning += s.thought.add(text)
	if field != "" && field != s.field {
		s.field = field
		s.c.learn(s.model, func(d *dialect) { d.reasoningField = field })
	}
	for i := range dl.ToolCalls {
		s.takeCall(d, dl.ToolCalls[i].fragment())
	}
	if dl.FunctionCall != nil {
		index := 0
		s.takeCall(d, fragment{index: &index, name: string(dl.FunctionCall.Name), args: string(dl.FunctionCall.Arguments)})
	}
}

func (s *stream) takeCall(d *agent.Delta, f fragment) {
	d.Calls = append(d.Calls, s.calls.add(f)...)
}
