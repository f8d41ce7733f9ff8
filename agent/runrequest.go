package agent

import (
	"fmt"
	"time"
)

// oneTurn makes the request, again while nothing of an answer has been taken
// (case LR-09), and reads it.
func (r *run) oneTurn(n int) (*turn, error) {
	set := r.setup()
	r.askContext(set.Model)
	req, err := r.fitting(set)
	if err != nil {
		return nil, err
	}
	retry := newRetry(r.cfg.Retries, r.cfg.RetryCap)
	for {
		t := r.newTurn(n, set)
		start := r.e.now()
		stream, err := r.model.Stream(t.ctx, req)
		if err == nil {
			t.read(stream)
			err = t.err
		} else {
			t.err = err
			t.finishReading()
		}
		r.account(t, req)
		r.traceRequest(t, req, start)
		if r.ctx.Err() != nil {
			return t, nil // after() says what ran
		}
		if err == nil || t.accepted {
			r.shrunk = r.shrunk && err != nil
			return t, nil
		}
		if isOverflow(err) {
			if req, err = r.shrinkRefused(set, req, err); err != nil {
				return nil, err
			}
			r.emit.emit(Event{Type: TurnRestarted, Reason: "the request was too large for the model; trying again with a shorter conversation"})
			continue
		}
		wait, reason := retry.next(err)
		if reason != "" {
			return nil, fmt.Errorf("%s: %w", reason, err)
		}
		if wait < 0 {
			return nil, err
		}
		r.emit.emit(Event{Type: TurnRestarted, Reason: fmt.Sprintf("%v; trying again in %s", err, wait.Round(100*time.Millisecond))})
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return t, nil
		}
	}
}

// request is the next API call.
func (r *run) request(set *setup) *Request {
	return &Request{
		Model:           set.Model,
		Messages:        r.s.messages(r.systemPrompt(set)),
		Tools:           set.tools.offer(r, set),
		MaxTokens:       set.maxOutput,
		Temperature:     r.cfg.Temperature,
		ReasoningEffort: set.ReasoningEffort,
		Extra:           set.extra,
	}
}

func (r *run) account(t *turn, req *Request) {
	if t.outBytes == 0 && t.usage == nil && t.err != nil {
		return // the provider did nothing
	}
	in := req.bytes()
	r.usage.RequestBytes += in
	r.usage.ReusedBytes += req.reused(r.s.sent)
	r.s.sent = req
	if t.usage != nil {
		r.s.reported(req.Model, in, t.usage.Input)
	}
	r.usage.addTurn(t.usage, r.s.tokensFor(req.Model, in), t.outBytes, t.set.price)
	u := r.usage
	r.emit.emit(Event{Type: UsageReported, Usage: &u})
}
