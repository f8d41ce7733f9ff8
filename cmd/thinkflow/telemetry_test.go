package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/scripted"
)

// TestTracesAndLog: with an OTLP endpoint in the environment a run is traced, and
// the log file is one JSON object a line.
func TestTracesAndLog(t *testing.T) {
	var mu sync.Mutex
	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(body)
	}))
	defer collector.Close()
	s, err := scripted.Parse("s", []byte("turn\ntext \"<tf-write id=\\\"1\\\" path=\\\"a.txt\\\">\\nsecret text\\n</tf-write>\\n\"\n"))
	require.NoError(t, err)
	url, stop, err := scripted.New(s, scripted.Options{}).Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer stop()

	dir, state := t.TempDir(), t.TempDir()
	log := filepath.Join(state, "log.json")
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{
		"run", "--dir", dir, "--base-url", url, "--model", "m",
		"--set", "log_file=" + log, "--set", "log_level=info", "write the secret task",
	}, strings.NewReader(""), &stdout, &stderr, []string{
		"HOME=" + state, "THINKFLOW_STATE_DIR=" + state, "OPENAI_API_KEY=sk-test-key-of-this-test", "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "PATH=" + os.Getenv("PATH"),
	})
	require.Zero(t, code, stderr.String())

	mu.Lock()
	traces := sent.String()
	mu.Unlock()
	for _, want := range []string{`"invoke_agent thinkflow"`, `"chat m"`, `"execute_tool tf-write"`, `"gen_ai.usage.output_tokens"`} {
		require.Contains(t, traces, want)
	}
	require.NotContains(t, traces, "secret")

	data, err := os.ReadFile(log)
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		seen[entry["msg"].(string)] = true
	}
	require.True(t, seen["request"] && seen["run ended"], "%v", seen)
	require.NotContains(t, string(data), "secret")
}
