package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans as OTLP/HTTP with JSON.
type exporter struct {
	s    settings
	http *http.Client
}

var _ sdk.SpanExporter = (*exporter)(nil)

// The OTLP messages, as far as they are used (opentelemetry-proto, JSON mapping:
// ids in hex, 64-bit numbers as text).
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		Parent     string     `json:"parentSpanId,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Status     status     `json:"status"`
	}
	status struct {
		Code    int    `json:"code,omitempty"` // 2 = error
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

// ExportSpans sends a batch. The SDK calls it on a goroutine of its own and
// reports errors to its handler.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range e.s.headers {
		req.Header.Set(name, value)
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("traces could not be sent: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector refused the traces: %s", resp.Status)
	}
	return nil
}

// Shutdown has nothing left to do: a batch is sent in one call.
func (e *exporter) Shutdown(context.Context) error { return nil }

func encode(spans []sdk.ReadOnlySpan) tracesData {
	first := spans[0]
	rs := resourceSpans{Resource: resource{attributes(first.Resource().Attributes())}}
	ss := scopeSpans{Scope: scope{first.InstrumentationScope().Name, first.InstrumentationScope().Version}}
	for _, s := range spans {
		id, traceID, parent := s.SpanContext().SpanID(), s.SpanContext().TraceID(), s.Parent().SpanID()
		out := span{
			TraceID: hex.EncodeToString(traceID[:]), SpanID: hex.EncodeToString(id[:]),
			Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
			Attributes: attributes(s.Attributes()),
		}
		if s.Parent().HasSpanID() {
			out.Parent = hex.EncodeToString(parent[:])
		}
		if s.Status().Code == codes.Error {
			out.Status = status{2, s.Status().Description}
		}
		ss.Spans = append(ss.Spans, out)
	}
	rs.ScopeSpans = []scopeSpans{ss}
	return tracesData{[]resourceSpans{rs}}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(list []attribute.KeyValue) []keyValue {
	out := make([]keyValue, 0, len(list))
	for _, kv := range list {
		out = append(out, keyValue{string(kv.Key), value(kv.Value)})
	}
	return out
}

func value(v attribute.Value) map[string]any {
	switch v.Type() {
	case attribute.BOOL:
		return map[string]any{"boolValue": v.AsBool()}
	case attribute.INT64:
		return map[string]any{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return map[string]any{"doubleValue": v.AsFloat64()}
	case attribute.STRINGSLICE:
		values := []any{}
		for _, s := range v.AsStringSlice() {
			values = append(values, map[string]any{"stringValue": s})
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{"stringValue": v.String()}
}
