package telemetry

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// settings are what the environment says (OpenTelemetry's specification,
// "OTLP exporter configuration").
type settings struct {
	url     string // of the traces
	headers map[string]string
	timeout time.Duration
	service string
}

// lookup finds a variable of the environment.
type lookup func(name string) (string, bool)

// read returns the settings; ok is false when no endpoint is named or telemetry
// is switched off.
func read(env lookup) (s settings, ok bool, err error) {
	get := func(names ...string) string {
		for _, n := range names {
			if v, ok := env(n); ok && strings.TrimSpace(v) != "" {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(get("OTEL_TRACES_EXPORTER"), "none") {
		return s, false, nil
	}
	base, own := get("OTEL_EXPORTER_OTLP_ENDPOINT"), get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base == "" && own == "" {
		return s, false, nil
	}
	s.url = own
	if own == "" {
		s.url = strings.TrimRight(base, "/") + "/v1/traces"
	}
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return s, false, fmt.Errorf("the OTLP endpoint is no http URL; nothing is traced")
	}
	if get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		return s, false, fmt.Errorf("OTLP over gRPC is not supported; set OTEL_EXPORTER_OTLP_PROTOCOL to http/json and the endpoint to the collector's HTTP port (4318)")
	}
	s.headers = map[string]string{}
	for _, list := range []string{get("OTEL_EXPORTER_OTLP_HEADERS"), get("OTEL_EXPORTER_OTLP_TRACES_HEADERS")} {
		for pair := range strings.SplitSeq(list, ",") {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				continue
			}
			if v, err := url.PathUnescape(strings.TrimSpace(value)); err == nil {
				value = v
			}
			s.headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	s.timeout = 10 * time.Second
	if ms, err := time.ParseDuration(get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT") + "ms"); err == nil && ms > 0 {
		s.timeout = ms
	}
	s.service = get("OTEL_SERVICE_NAME")
	if s.service == "" {
		s.service = "thinkflow"
	}
	return s, true, nil
}
