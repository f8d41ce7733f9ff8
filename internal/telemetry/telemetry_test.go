package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/telemetry"
)

// collector keeps what it was sent.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	header http.Header
	path   string
}

func newCollector(t *testing.T, status int) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.bodies, c.header, c.path = append(c.bodies, string(body)), r.Header, r.URL.Path
		c.mu.Unlock()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// wireSpan is a span as it goes over the wire.
type wireSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct {
		Code    int
		Message string
	}
}

func (s wireSpan) attr(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

func TestSpans(t *testing.T) {
	c := newCollector(t, 200)
	tr, err := telemetry.New(telemetry.Options{
		Env: env(map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, x-other = c",
		}),
		Version: "1.2.3", Endpoint: "http://localhost:8080/v1",
	})
	require.NoError(t, err)
	start := time.Unix(1700000000, 5)
	ctx, end := tr.Run(t.Context(), agent.TracedRun{Run: "run1", Session: "s1", Model: "m"})
	subCtx, subEnd := tr.Run(ctx, agent.TracedRun{Run: "run1", Session: "s1", Model: "m", SubAgent: true})
	tr.Request(ctx, agent.TracedRequest{
		Model: "m", Turn: 1, MaxTokens: 100, Start: start, FirstToken: start.Add(time.Second), End: start.Add(2 * time.Second), Finish: "stop",
		Usage: &agent.TurnUsage{Input: 10, Output: 5, Cached: -1, Reasoning: -1},
	})
	tr.Request(subCtx, agent.TracedRequest{
		Model: "m", Turn: 2, Start: start, End: start.Add(time.Second),
		Err: &agent.ModelError{Kind: agent.ErrOverloaded, Message: "the secret task is too long"},
	})
	tr.Tool(ctx, agent.TracedTool{Name: "tf-write", Start: start, End: start.Add(time.Millisecond), Status: "applied"})
	tr.Tool(ctx, agent.TracedTool{Name: "read_file", CallID: "c1", Start: start, End: start, Status: "error", Code: "INVALID_ARGUMENT"})
	subEnd(agent.RunResult{State: agent.StateStopped})
	end(agent.RunResult{State: agent.StateDone, Turns: 2, Applied: 1, Text: "the secret answer", Usage: agent.Usage{InputTokens: 10, OutputTokens: 5}})
	require.NoError(t, tr.Close(t.Context()))

	require.Equal(t, "/v1/traces", c.path)
	require.Equal(t, "application/json", c.header.Get("Content-Type"))
	require.Equal(t, "a b", c.header.Get("x-key"))
	require.Equal(t, "c", c.header.Get("x-other"))
	spans := map[string]wireSpan{}
	for _, body := range c.bodies {
		require.NotContains(t, body, "secret")
		var data struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []any }
				ScopeSpans []struct {
					Scope struct{ Name, Version string }
					Spans []wireSpan
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &data))
		require.Contains(t, body, `{"key":"service.name","value":{"stringValue":"thinkflow"}}`)
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			key := s.Name
			if s.Status.Code == 2 {
				key += " failed"
			}
			spans[key] = s
		}
	}
	require.Len(t, spans, 6)
	run := spans["invoke_agent thinkflow"]
	require.Empty(t, run.ParentSpanID)
	require.Equal(t, "invoke_agent", run.attr("gen_ai.operation.name"))
	require.Equal(t, "s1", run.attr("gen_ai.conversation.id"))
	require.Equal(t, "done", run.attr("thinkflow.run.state"))
	sub := spans["invoke_agent thinkflow task failed"]
	require.Equal(t, run.SpanID, sub.ParentSpanID)
	chat := spans["chat m"]
	require.Equal(t, 3, chat.Kind, "client")
	require.Equal(t, run.SpanID, chat.ParentSpanID)
	require.Equal(t, run.TraceID, chat.TraceID)
	require.Len(t, chat.TraceID, 32)
	require.Len(t, chat.SpanID, 16)
	require.Equal(t, "1700000000000000005", chat.StartTimeUnixNano)
	require.Equal(t, "10", chat.attr("gen_ai.usage.input_tokens"))
	require.Equal(t, "openai", chat.attr("gen_ai.provider.name"))
	require.Equal(t, "localhost", chat.attr("server.address"))
	require.Equal(t, "8080", chat.attr("server.port"))
	require.InDelta(t, 1.0, chat.attr("gen_ai.response.time_to_first_chunk"), 0.001)
	require.Nil(t, chat.attr("gen_ai.usage.cache_read.input_tokens"), "not reported is not 0")
	require.Equal(t, "overloaded", spans["chat m failed"].attr("error.type"))
	require.Equal(t, sub.SpanID, spans["chat m failed"].ParentSpanID)
	require.Equal(t, "tf-write", spans["execute_tool tf-write"].attr("gen_ai.tool.name"))
	require.Equal(t, "INVALID_ARGUMENT", spans["execute_tool read_file failed"].attr("error.type"))
}

func TestOnlyWhenAsked(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		err  string
	}{
		{"nothing", nil, ""},
		{"disabled", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, ""},
		{"no exporter", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, ""},
		{"no URL", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "no http URL"},
		{"grpc", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "gRPC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := telemetry.New(telemetry.Options{Env: env(tt.env)})
			require.Nil(t, tr)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
			require.NoError(t, tr.Close(t.Context()), "of none too")
		})
	}
}

// TestCollectorInTrouble: a collector that refuses or hangs costs a run nothing.
func TestCollectorInTrouble(t *testing.T) {
	c := newCollector(t, 503)
	tr, err := telemetry.New(telemetry.Options{Env: env(map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/own"})})
	require.NoError(t, err)
	_, end := tr.Run(t.Context(), agent.TracedRun{Run: "r"})
	end(agent.RunResult{State: agent.StateFailed})
	_ = tr.Close(t.Context())
	require.Equal(t, "/own", c.path)

	free := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }))
	defer hanging.Close()
	defer close(free)
	tr, err = telemetry.New(telemetry.Options{Env: env(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": hanging.URL})})
	require.NoError(t, err)
	_, end = tr.Run(t.Context(), agent.TracedRun{Run: "r"})
	end(agent.RunResult{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = tr.Close(ctx)
	require.True(t, err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "deadline"), "%v", err)
}
