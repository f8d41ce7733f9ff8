package agent

import (
	"context"
	"errors"
	"time"
)

// Tracer hears of runs, requests and tool calls, for tracing. It gets no texts:
// no task, no answer, no arguments, no paths. It must not block.
type Tracer interface {
	// Run is called when a run begins (a sub-agent's too, with the context of its
	// caller). The context that it returns is that of everything in the run; the
	// function is called with the result.
	Run(ctx context.Context, r TracedRun) (context.Context, func(RunResult))
	// Request is called when an API call has ended.
	Request(ctx context.Context, q TracedRequest)
	// Tool is called when a native call or a command has ended.
	Tool(ctx context.Context, t TracedTool)
}

// TracedRun is a run that begins.
type TracedRun struct {
	Run, Session, Model string
	SubAgent            bool
}

// TracedRequest is an API call that has ended.
type TracedRequest struct {
	Model       string
	MaxTokens   int
	Temperature *float32
	Turn        int
	Start       time.Time
	FirstToken  time.Time // zero = nothing came
	End         time.Time
	Finish      string
	Usage       *TurnUsage // nil = not reported
	Stopped     bool       // we ended the stream: a failed command, or the model needed a result
	Err         error
}

// TracedTool is a native call or a command that has ended.
type TracedTool struct {
	Name       string // read_file, tf-write, …
	CallID     string
	Start, End time.Time
	Status     string // ok, error; of commands as in the ledger
	Code       string // "" = it went well
}

// noTracer hears nothing.
type noTracer struct{}

func (noTracer) Run(ctx context.Context, _ TracedRun) (context.Context, func(RunResult)) {
	return ctx, func(RunResult) {}
}
func (noTracer) Request(context.Context, TracedRequest) {}
func (noTracer) Tool(context.Context, TracedTool)       {}

// traceRequest tells of the request behind a turn.
func (r *run) traceRequest(t *turn, req *Request, start time.Time) {
	q := TracedRequest{
		Model: req.Model, MaxTokens: req.MaxTokens, Temperature: req.Temperature, Turn: t.n,
		Start: start, FirstToken: t.firstToken, End: r.e.now(), Finish: t.finish, Usage: t.usage, Err: t.err,
	}
	if why := t.stopped(); why == stopFailure || why == stopResult || why == stopSettled {
		q.Stopped = true
		if errors.Is(q.Err, context.Canceled) {
			q.Err = nil
		}
	}
	r.e.tracer.Request(r.ctx, q)
	attrs := []any{"run", r.id, "turn", t.n, "model", req.Model, "ms", q.End.Sub(start).Milliseconds(), "bytes", req.bytes(), "finish", q.Finish}
	if q.Usage != nil {
		attrs = append(attrs, "input", q.Usage.Input, "output", q.Usage.Output, "cached", q.Usage.Cached)
	}
	if q.Err != nil {
		r.e.log.Info("request failed", append(attrs, "err", q.Err)...)
		return
	}
	r.e.log.Info("request", attrs...)
}

// lastTraces bounds the time in which a tracer sends what is left at the end.
const lastTraces = 2 * time.Second

// endTraces lets a tracer that has something to close do so.
func (e *Engine) endTraces() {
	c, ok := e.tracer.(interface{ Close(context.Context) error })
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		e.log.Warn("not all traces were sent", "err", err)
	}
}

// traceCommand tells of a command.
func (t *turn) traceCommand(o outcome, start time.Time) {
	now := t.r.e.now()
	if start.IsZero() {
		start = now
	}
	t.r.e.tracer.Tool(t.r.ctx, TracedTool{Name: o.name, Start: start, End: now, Status: o.status, Code: o.code})
}
