package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/chromium"
	"thinkflow/internal/config"
)

// TestPageFollowsInABrowser opens the page in Chromium: it follows a run live,
// what looks like markup is text, and nothing but our own script runs.
func TestPageFollowsInABrowser(t *testing.T) {
	browser := chromium.Find(t)
	r := newRig(t, strings.ReplaceAll(twoWrites, "Hello.", "Hello. <img src=x onerror=\"document.title='pwned'\">"), nil)
	run := r.begin("write <b>two</b> files")
	go func() { // while the page is open
		r.follow(run, "", func(e sse) bool { return e.event == "command.completed" && strings.Contains(e.data, "a.txt") })
		r.model.Release("middle")
	}()
	url := func() string { return r.url + "/?ticket=" + r.server.Ticket() }
	if shot := os.Getenv("THINKFLOW_SCREENSHOT"); shot != "" {
		r.follow(run, "", nil)
		for name, dark := range map[string]bool{"serve-light.png": false, "serve-dark.png": true} {
			require.NoError(t, browser.Screenshot(t.Context(), t.TempDir(), url(), filepath.Join(shot, name), 1100, 800, dark))
		}
	}
	dom, err := browser.DOM(t.Context(), t.TempDir(), url())
	require.NoError(t, err)
	for _, want := range []string{"write &lt;b&gt;two&lt;/b&gt; files", "Hello. &lt;img", "b.txt", "+two", "done", "ended"} {
		assert.Contains(t, dom, want)
	}
	assert.NotContains(t, dom, "pwned'</title>")
	assert.NotRegexp(t, `<img[ >]`, dom)
}

// TestStreamOnTheWire: the bytes of a stream, as a browser reads them.
func TestStreamOnTheWire(t *testing.T) {
	r := newRig(t, "turn\ntext \"One\\nline\"\n", nil)
	run := r.begin("x")
	r.follow(run, "", nil)
	code, body := r.do("GET", "/runs/"+run+"/events", nil)
	require.Equal(t, http.StatusOK, code)
	blocks := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	assert.Equal(t, "retry: 1000", blocks[0])
	for i, b := range blocks[1:] {
		lines := strings.Split(b, "\n")
		require.Len(t, lines, 3, b)
		assert.Equal(t, fmt.Sprintf("id: %d", i+1), lines[0])
		typ, ok := strings.CutPrefix(lines[1], "event: ")
		assert.True(t, ok)
		assert.Contains(t, agent.EventTypes, agent.EventType(typ))
		data, ok := strings.CutPrefix(lines[2], "data: ")
		assert.True(t, ok)
		assert.True(t, json.Valid([]byte(data)))
	}
	// ?after= is for programs that cannot send the header; the header counts more.
	_, after := r.do("GET", "/runs/"+run+"/events?after=2", nil)
	assert.True(t, strings.HasPrefix(after, "retry: 1000\n\nid: 3\n"), after)
	_, both := r.do("GET", "/runs/"+run+"/events?after=2", nil, header("Last-Event-ID", "4"))
	assert.True(t, strings.HasPrefix(both, "retry: 1000\n\nid: 5\n"), both)
	for _, bad := range []string{"-1", "1.5", "a", "99999999999999999999"} {
		code, body := r.do("GET", "/runs/"+run+"/events?after="+bad, nil)
		assert.Equal(t, http.StatusBadRequest, code, body)
	}
}

// TestEventsComeAtOnce: each event is flushed when it is there, not with the next
// one: the first piece of text arrives while the model still waits.
func TestEventsComeAtOnce(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	run := r.begin("x")
	all, _ := r.follow(run, "", func(e sse) bool { return strings.Contains(e.data, "a.txt") && e.event == "command.completed" })
	assert.NotEmpty(t, all, "the run stands still until it is released")
	r.model.Release("middle")
	r.follow(run, "", nil)
}

// TestTicketsAndTime: a ticket is too old after two minutes; POST /tickets makes
// further ones.
func TestTicketsAndTime(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().Unix())
	r := newRig(t, twoWrites, func(o *Options, _ *config.Config) {
		o.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	})
	none := header("Authorization", "")
	old := r.server.Ticket()
	code, body := r.do("POST", "/tickets", nil)
	require.Equal(t, http.StatusCreated, code)
	var view TicketView
	require.NoError(t, json.Unmarshal([]byte(body), &view))
	code, _ = r.do("GET", view.Path, nil, none)
	assert.Equal(t, http.StatusSeeOther, code)
	now.Add(int64(ticketLife/time.Second) + 1)
	code, body = r.do("GET", "/?ticket="+old, nil, none)
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.Contains(t, body, "too old")
	// Many tickets do not grow without bound: the oldest goes.
	first := r.server.Ticket()
	for range maxTickets {
		r.server.Ticket()
	}
	code, _ = r.do("GET", "/?ticket="+first, nil, none)
	assert.Equal(t, http.StatusUnauthorized, code)
}

// TestBodies: what is too large, unknown or no JSON is refused, and says so.
func TestBodies(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	post := func(path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+testToken)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(data)
	}
	for _, row := range []struct{ name, body, want string }{
		{"no JSON", "task=x", "not as it should be"},
		{"an array", "[]", "not as it should be"},
		{"an unknown member", `{"task":"x","rm":true}`, "rm"},
		{"too large", `{"task":"` + strings.Repeat("x", maxBody) + `"}`, "too large"},
		{"cut off", `{"task":"x"`, "not as it should be"},
		{"two values", `{"task":"x"}{"task":"y"}`, "not as it should be"},
	} {
		code, body := post("/runs", row.body)
		assert.Equal(t, http.StatusBadRequest, code, row.name)
		assert.Contains(t, body, row.want, row.name)
		var p Problem
		require.NoError(t, json.Unmarshal([]byte(body), &p), row.name)
		assert.NotEmpty(t, p.Code)
	}
	assert.Empty(t, r.engine.Runs(), "nothing was begun")
}

// TestHeaders: every answer says that it is not to be kept, guessed at or framed.
func TestHeaders(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	for _, path := range []string{"/", "/runs", "/openapi.json", "/nothing", "/page.js"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+testToken)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = res.Body.Close()
		assert.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "no-store", res.Header.Get("Cache-Control"), path)
		assert.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'", path)
		assert.Contains(t, res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
		assert.Empty(t, res.Header.Get("Access-Control-Allow-Origin"), path)
	}
}
