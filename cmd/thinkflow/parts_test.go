package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/internal/scripted"
)

const oneWrite = `
turn
text <<END
Here it is.
<tf-write id="1" path="a.txt">
one
</tf-write>
END
`

// model serves a script until the test ends.
func model(t *testing.T, script string) (*scripted.Server, string) {
	t.Helper()
	s, err := scripted.Parse("script", []byte(script))
	require.NoError(t, err)
	server := scripted.New(s, scripted.Options{})
	url, stop, err := server.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)
	return server, url
}

func TestLedgerAfterARun(t *testing.T) {
	_, url := model(t, oneWrite)
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted")
	dir := t.TempDir()

	r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir)
	assert.Equal(t, exitOK, r.code)
	assert.Contains(t, r.stderr, "nothing was done")

	r = call(t.Context(), environ, "", "run", "write a.txt", "--dir", dir)
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)

	r = call(t.Context(), environ, "", "ledger", "list", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Regexp(t, `1/1 +applied +\+1 +write a.txt\n`, r.stdout)

	r = call(t.Context(), environ, "", "ledger", "list", "--dir", dir, "--json")
	var c map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &c))
	assert.Equal(t, "tf-write", c["tool"])

	r = call(t.Context(), environ, "", "ledger", "show", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Contains(t, r.stdout, "applied")
	assert.Regexp(t, `[0-9a-f]{12} +intent  intent\n`, r.stdout)

	r = call(t.Context(), environ, "", "ledger", "runs", "--dir", dir)
	assert.Contains(t, r.stdout, "write a.txt")

	r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)

	r = call(t.Context(), environ, "", "ledger", "show", "nothing", "--dir", dir)
	assert.Equal(t, exitFailed, r.code)
	assert.NotEmpty(t, r.stderr)
}

func TestConfigShowsSourcesAndNoSecret(t *testing.T) {
	environ := home(t, "THINKFLOW_MODEL=from-env", "OPENAI_API_KEY=sk-very-secret", `THINKFLOW_HEADERS={"X-Api-Key":"${OPENAI_API_KEY}"}`)
	r := call(t.Context(), environ, "", "config", "--set", "retries=9")
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Regexp(t, `model += "from-env" +# environment THINKFLOW_MODEL`, r.stdout)
	assert.Regexp(t, `retries += 9 +# flag --retries`, r.stdout)
	assert.Contains(t, r.stdout, "API key: set, from environment OPENAI_API_KEY")
	assert.NotContains(t, r.stdout+r.stderr, "very-secret")

	r = call(t.Context(), environ, "", "config", "--json")
	var v struct {
		Settings map[string]struct{ Value, Source string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &v))
	assert.Equal(t, "from-env", v.Settings["model"].Value)
	assert.NotContains(t, r.stdout, "very-secret")

	r = call(t.Context(), append(environ, "THINKFLOW_RETRIES=x"), "", "config")
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stdout, "from-env", "what is right is shown all the same")
}

func TestDoctor(t *testing.T) {
	_, url := model(t, "context 65536\nturn\ntext ready\nusage 12 1\n")
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted")
	r := call(t.Context(), environ, "", "doctor")
	assert.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	assert.Contains(t, r.stdout, `✓ test request "ready" after`)
	assert.Contains(t, r.stdout, "of 65536 tokens")

	r = call(t.Context(), home(t, "OPENAI_BASE_URL=http://127.0.0.1:9/v1", "THINKFLOW_MODEL=m"), "", "doctor")
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.stdout, "✗ test request")
	assert.Contains(t, r.stdout, "127.0.0.1:9")

	r = call(t.Context(), home(t), "", "doctor")
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.stdout, "✗ key")
	assert.Contains(t, r.stdout, "✗ model")
	assert.Contains(t, r.stdout, "OPENAI_API_KEY")
}

// lines is a writer on which a test can wait for a text.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
	at  chan struct{}
}

func newLines() *lines { return &lines{at: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	select {
	case l.at <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) wait(t *testing.T, re string) []string {
	t.Helper()
	r := regexp.MustCompile(re)
	for {
		l.mu.Lock()
		text := l.buf.String()
		l.mu.Unlock()
		if m := r.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-l.at:
		case <-t.Context().Done():
			t.Fatalf("%s never came; there is:\n%s", re, text)
		}
	}
}

func TestReplayServesAnyClient(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script.txt")
	require.NoError(t, os.WriteFile(script, []byte("model my-model\n"+oneWrite), 0o644))
	environ := home(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := newLines(), newLines()
	code := make(chan int)
	go func() { code <- run(ctx, []string{"replay", script}, strings.NewReader(""), out, errs, environ) }()
	url := out.wait(t, `(http://127\.0\.0\.1:\d+/v1) plays`)[1]

	work := t.TempDir()
	r := call(t.Context(), environ, "", "run", "x", "--dir", work, "--base-url", url, "--model", "my-model")
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	got, err := os.ReadFile(filepath.Join(work, "a.txt"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(got))
	cancel()
	assert.Equal(t, exitOK, <-code)
}

func TestCancelledRunSays130(t *testing.T) {
	server, url := model(t, "turn\ntext \"Working\\n\"\nhang\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = server.WaitSent(ctx, 1, "Working")
		cancel()
	}()
	r := call(ctx, home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m"), "", "run", "x", "--dir", t.TempDir())
	assert.Equal(t, exitCancelled, r.code, r.stderr)
	assert.Contains(t, r.stdout, "cancelled")
}

// TestNobodyReadsTheEvents: the run ends when its output is gone.
func TestNobodyReadsTheEvents(t *testing.T) {
	_, url := model(t, "turn\ntext \"Working\\n\"\nhang\n")
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"run", "x", "--json", "--dir", t.TempDir()}, strings.NewReader(""), broken{}, &stderr,
		home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m"))
	assert.Equal(t, exitCancelled, code)
	assert.Contains(t, stderr.String(), "nobody reads")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestLspStartsAndStops speaks the shortest conversation there is.
func TestLspStartsAndStops(t *testing.T) {
	message := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	in, w := io.Pipe()
	out := newLines()
	code := make(chan int)
	environ := home(t)
	go func() { code <- run(t.Context(), []string{"lsp", "--stdio"}, in, out, io.Discard, environ) }()
	send := func(s string) {
		_, err := io.WriteString(w, message(s))
		require.NoError(t, err)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}`)
	out.wait(t, `"id":1`)
	out.wait(t, `"capabilities"`)
	send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`)
	out.wait(t, `"id":2`)
	send(`{"jsonrpc":"2.0","method":"exit"}`)
	assert.Equal(t, exitOK, <-code)
}

// text is all that was written.
func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// times returns when the text was written so often, or the process has ended.
func (l *lines) times(text string, n int, ended <-chan struct{}) {
	for strings.Count(l.text(), text) < n {
		select {
		case <-l.at:
		case <-ended:
			return
		}
	}
}
