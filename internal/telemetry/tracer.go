package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	res "go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"thinkflow/agent"
)

// Tracer is an agent.Tracer that sends spans to a collector.
type Tracer struct {
	s       settings
	o       Options
	address string // of the model's endpoint
	port    int
	begin   func() (trace.Tracer, *sdk.TracerProvider)

	mu    sync.Mutex // guards begun
	begun bool
}

var _ agent.Tracer = (*Tracer)(nil)

// Options say what is traced.
type Options struct {
	Env      func(name string) (string, bool)
	Version  string // of the program
	Endpoint string // base URL of the model
	Log      *slog.Logger
	HTTP     *http.Client // nil = http.DefaultClient
}

// New returns a tracer, or nil when the environment names no OTLP endpoint. The
// error says why a named one cannot be used. Nothing is set up yet.
func New(o Options) (*Tracer, error) {
	s, ok, err := read(o.Env)
	if !ok {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	t := &Tracer{s: s, o: o}
	if u, err := url.Parse(o.Endpoint); err == nil {
		t.address = u.Hostname()
		t.port, _ = strconv.Atoi(u.Port())
	}
	t.begin = sync.OnceValues(t.setUp)
	return t, nil
}

// setUp makes the SDK ready, at the first run.
func (t *Tracer) setUp() (trace.Tracer, *sdk.TracerProvider) {
	t.mu.Lock()
	t.begun = true
	t.mu.Unlock()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.o.Log.Warn("telemetry", "err", err) }))
	about := []attribute.KeyValue{attribute.String("service.name", t.s.service), attribute.String("service.version", t.o.Version)}
	r, err := res.New(context.Background(), res.WithFromEnv(), res.WithAttributes(about...))
	if err != nil {
		r = res.NewSchemaless(about...)
	}
	p := sdk.NewTracerProvider(sdk.WithResource(r), sdk.WithBatcher(&exporter{t.s, t.o.HTTP}, sdk.WithBatchTimeout(2*time.Second)))
	return p.Tracer("thinkflow", trace.WithInstrumentationVersion(t.o.Version)), p
}

func (t *Tracer) tracer() trace.Tracer {
	tr, _ := t.begin()
	return tr
}

// Close sends what is left, within ctx.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	begun := t.begun
	t.mu.Unlock()
	if !begun {
		return nil
	}
	_, p := t.begin()
	return p.Shutdown(ctx)
}

// Run begins the span of a run.
func (t *Tracer) Run(ctx context.Context, r agent.TracedRun) (context.Context, func(agent.RunResult)) {
	name := "thinkflow"
	if r.SubAgent {
		name = "thinkflow task"
	}
	ctx, span := t.tracer().Start(ctx, "invoke_agent "+name, trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.provider.name", t.provider()),
		attribute.String("gen_ai.agent.name", name),
		attribute.String("gen_ai.agent.id", r.Run),
		attribute.String("gen_ai.conversation.id", r.Session),
		attribute.String("gen_ai.request.model", r.Model),
	))
	return ctx, func(res agent.RunResult) {
		span.SetAttributes(
			attribute.Int("gen_ai.usage.input_tokens", res.Usage.InputTokens),
			attribute.Int("gen_ai.usage.output_tokens", res.Usage.OutputTokens),
			attribute.String("thinkflow.run.state", string(res.State)),
			attribute.Int("thinkflow.run.turns", res.Turns),
			attribute.Int("thinkflow.commands.applied", res.Applied),
			attribute.Int("thinkflow.commands.failed", res.Failed),
		)
		switch res.State {
		case agent.StateFailed, agent.StateStopped, agent.StateRefused:
			failed(span, string(res.State))
		}
		span.End()
	}
}

// Request is the span of one API call.
func (t *Tracer) Request(ctx context.Context, q agent.TracedRequest) {
	attrs := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", t.provider()),
		attribute.String("gen_ai.request.model", q.Model),
		attribute.Int("thinkflow.turn", q.Turn),
	}
	if t.address != "" {
		attrs = append(attrs, attribute.String("server.address", t.address))
	}
	if t.port != 0 {
		attrs = append(attrs, attribute.Int("server.port", t.port))
	}
	if q.MaxTokens > 0 {
		attrs = append(attrs, attribute.Int("gen_ai.request.max_tokens", q.MaxTokens))
	}
	if q.Temperature != nil {
		attrs = append(attrs, attribute.Float64("gen_ai.request.temperature", float64(*q.Temperature)))
	}
	if q.Finish != "" {
		attrs = append(attrs, attribute.StringSlice("gen_ai.response.finish_reasons", []string{q.Finish}))
	}
	if u := q.Usage; u != nil {
		for name, n := range map[string]int{
			"gen_ai.usage.input_tokens": u.Input, "gen_ai.usage.output_tokens": u.Output, "gen_ai.usage.cache_read.input_tokens": u.Cached,
		} {
			if n >= 0 {
				attrs = append(attrs, attribute.Int(name, n))
			}
		}
	}
	if !q.FirstToken.IsZero() {
		attrs = append(attrs, attribute.Float64("gen_ai.response.time_to_first_chunk", q.FirstToken.Sub(q.Start).Seconds()))
	}
	if q.Stopped {
		attrs = append(attrs, attribute.Bool("thinkflow.stream.stopped", true))
	}
	_, span := t.tracer().Start(ctx, "chat "+q.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(q.Start), trace.WithAttributes(attrs...))
	if q.Err != nil {
		failed(span, errorType(q.Err))
	}
	span.End(trace.WithTimestamp(q.End))
}

// Tool is the span of a native call or a command.
func (t *Tracer) Tool(ctx context.Context, c agent.TracedTool) {
	attrs := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", c.Name),
		attribute.String("gen_ai.tool.type", "function"),
		attribute.String("thinkflow.tool.status", c.Status),
	}
	if c.CallID != "" {
		attrs = append(attrs, attribute.String("gen_ai.tool.call.id", c.CallID))
	}
	_, span := t.tracer().Start(ctx, "execute_tool "+c.Name, trace.WithTimestamp(c.Start), trace.WithAttributes(attrs...))
	if c.Code != "" {
		failed(span, c.Code)
	}
	span.End(trace.WithTimestamp(c.End))
}

// failed marks a span. The type is of a closed set; messages stay out, they may
// quote what somebody wrote.
func failed(span trace.Span, typ string) {
	span.SetAttributes(attribute.String("error.type", typ))
	span.SetStatus(codes.Error, typ)
}

func errorType(err error) string {
	var me *agent.ModelError
	switch {
	case errors.As(err, &me):
		return string(me.Kind)
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "_OTHER"
}

// provider is the convention's name for the endpoint; one that nobody knows
// counts as what it speaks.
func (t *Tracer) provider() string {
	switch t.address {
	case "api.deepseek.com":
		return "deepseek"
	case "api.groq.com":
		return "groq"
	case "api.mistral.ai":
		return "mistral_ai"
	case "api.x.ai":
		return "x_ai"
	case "api.perplexity.ai":
		return "perplexity"
	}
	return "openai"
}
