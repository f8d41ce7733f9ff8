package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/agent/openai"
	"thinkflow/internal/config"
	"thinkflow/internal/scripted"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

const testToken = "0123456789abcdef0123456789abcdef"

// rig is a server over a real engine with a scripted model.
type rig struct {
	t      testing.TB
	dir    string
	url    string
	server *Server
	model  *scripted.Server
	engine *agent.Engine
}

func newRig(t testing.TB, script string, change func(*Options, *config.Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	sc, err := scripted.Parse("script", []byte(script))
	require.NoError(t, err)
	r.model = scripted.New(sc, scripted.Options{})
	url, stop, err := r.model.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)
	ws, err := workspace.New([]workspace.Root{{Dir: r.dir}}, workspace.Options{})
	require.NoError(t, err)
	cfg := config.Defaults()
	cfg.Model = "scripted"
	o := Options{Token: testToken, Version: "test", Poll: 5 * time.Millisecond}
	if change != nil {
		change(&o, &cfg)
	}
	late := &approver{}
	state := t.TempDir()
	r.engine = agent.New(agent.Options{
		Config: cfg, Model: openai.New(openai.Options{BaseURL: url, Key: "k"}), Workspace: ws, Approver: late,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: r.dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
		},
	})
	o.Engine = r.engine
	r.server = New(o)
	late.Approver = r.server
	h := httptest.NewServer(r.server)
	r.url = h.URL
	t.Cleanup(func() {
		r.server.Close()
		h.CloseClientConnections()
		h.Close()
		_ = r.engine.Close()
	})
	return r
}

type approver struct{ agent.Approver }

func (r *rig) do(method, path string, body any, change ...func(*http.Request)) (int, string) {
	r.t.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		require.NoError(r.t, err)
		in = strings.NewReader(string(data))
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, in)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	for _, f := range change {
		f(req)
	}
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	return res.StatusCode, string(data)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func (r *rig) begin(task string) string {
	r.t.Helper()
	code, body := r.do("POST", "/runs", RunBody{Task: task})
	require.Equal(r.t, http.StatusAccepted, code, body)
	var b Begun
	require.NoError(r.t, json.Unmarshal([]byte(body), &b))
	return b.Run
}

// sse is one event as it arrived.
type sse struct {
	id, event, data string
}

// follow reads a run's events until stop says so, or the stream ends.
func (r *rig) follow(run, after string, stop func(sse) bool) (events []sse, status int) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", r.url+"/runs/"+run+"/events", nil)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, res.StatusCode
	}
	assert.Equal(r.t, "text/event-stream; charset=utf-8", res.Header.Get("Content-Type"))
	var e sse
	sc := bufio.NewScanner(res.Body)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		name, value, _ := strings.Cut(sc.Text(), ": ")
		switch {
		case sc.Text() == "" && e.event != "":
			events = append(events, e)
			if stop != nil && stop(e) {
				return events, res.StatusCode
			}
			e = sse{}
		case name == "id":
			e.id = value
		case name == "event":
			e.event = value
		case name == "data":
			e.data = value
		}
	}
	return events, res.StatusCode
}

const twoWrites = `
turn
text <<END
Hello.
<tf-write id="1" path="a.txt">
one
</tf-write>
END
await middle
text <<END
<tf-write id="2" path="b.txt">
two
</tf-write>
Bye.
END
`

// TestFollowReplayAndEnd: live events, a replay from any place, 204 when all was
// had, a stated answer to what is not there.
func TestFollowReplayAndEnd(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	run := r.begin("write")
	seen := make(chan []sse, 1)
	go func() {
		all, _ := r.follow(run, "", func(e sse) bool {
			if e.event == "command.completed" && strings.Contains(e.data, "a.txt") {
				r.model.Release("middle")
			}
			return false
		})
		seen <- all
	}()
	all := <-seen
	require.NotEmpty(t, all)
	for i, e := range all {
		assert.Equal(t, fmt.Sprint(i+1), e.id)
		var ev agent.Event
		require.NoError(t, json.Unmarshal([]byte(e.data), &ev))
		assert.Equal(t, string(ev.Type), e.event)
		assert.Equal(t, int64(i+1), ev.Seq)
	}
	last := all[len(all)-1]
	assert.Equal(t, "run.completed", last.event)
	fresh := New(Options{Engine: r.engine, Token: testToken}) // another process: nothing in memory
	for _, server := range []*Server{r.server, fresh} {
		h := httptest.NewServer(server)
		other := *r
		other.url = h.URL
		for i := range all {
			after := ""
			if i > 0 {
				after = all[i-1].id
			}
			rest, status := other.follow(run, after, nil)
			assert.Equal(t, 200, status)
			assert.Equal(t, all[i:], rest)
		}
		_, status := other.follow(run, last.id, nil)
		assert.Equal(t, http.StatusNoContent, status)
		_, status = other.follow(run, "9999", nil)
		assert.Equal(t, http.StatusGone, status)
		_, status = other.follow("nothing", "", nil)
		assert.Equal(t, http.StatusNotFound, status)
		_, status = other.follow("nothing", "3", nil)
		assert.Equal(t, http.StatusGone, status)
		_, status = other.follow(run, "x", nil)
		assert.Equal(t, http.StatusBadRequest, status)
		h.Close()
	}
}

// TestWhoMayAsk: tokens, tickets, cookies, hosts and origins.
func TestWhoMayAsk(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	none := header("Authorization", "")
	for _, row := range []struct {
		name, method, path string
		change             []func(*http.Request)
		want               int
	}{
		{"token", "GET", "/runs", nil, 200},
		{"no token", "GET", "/runs", []func(*http.Request){none}, 401},
		{"wrong token", "GET", "/runs", []func(*http.Request){header("Authorization", "Bearer "+testToken+"0")}, 401},
		{"page without a ticket", "GET", "/", []func(*http.Request){none}, 401},
		{"wrong ticket", "GET", "/?ticket=00", []func(*http.Request){none}, 401},
		{"own origin", "POST", "/tickets", []func(*http.Request){header("Origin", r.url)}, 201},
		{"another origin", "POST", "/tickets", []func(*http.Request){header("Origin", "http://evil.example")}, 403},
		{"null origin", "POST", "/tickets", []func(*http.Request){header("Origin", "null")}, 403},
		{"another port", "POST", "/tickets", []func(*http.Request){header("Origin", "http://127.0.0.1:1")}, 403},
		{"cross-site", "GET", "/runs", []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
		{"rebound name", "GET", "/runs", []func(*http.Request){func(q *http.Request) { q.Host = "evil.example:80" }}, 403},
		{"localhost", "GET", "/runs", []func(*http.Request){func(q *http.Request) { q.Host = "localhost:1234" }}, 200},
		{"another address", "GET", "/runs", []func(*http.Request){func(q *http.Request) { q.Host = "10.0.0.1" }}, 403},
		{"no such route", "GET", "/nothing", nil, 404},
		{"wrong method", "PUT", "/runs", nil, 405},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, body := r.do(row.method, row.path, nil, row.change...)
			assert.Equal(t, row.want, code, body)
		})
	}
	ticket := r.server.Ticket()
	req, err := http.NewRequest("GET", r.url+"/?ticket="+ticket+"&run=x", nil)
	require.NoError(t, err)
	noRedirect := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := noRedirect.Do(req)
	require.NoError(t, err)
	_ = res.Body.Close()
	assert.Equal(t, http.StatusSeeOther, res.StatusCode)
	assert.Equal(t, "/?run=x", res.Header.Get("Location"), "the ticket does not stay in the address")
	require.Len(t, res.Cookies(), 1)
	cookie := res.Cookies()[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	withCookie := func(q *http.Request) { q.Header.Del("Authorization"); q.AddCookie(cookie) }
	code, _ := r.do("GET", "/", nil, withCookie)
	assert.Equal(t, 200, code)
	code, _ = r.do("POST", "/tickets", nil, withCookie)
	assert.Equal(t, 401, code, "a cookie alone changes nothing")
	code, _ = r.do("POST", "/tickets", nil, withCookie, header("Origin", r.url))
	assert.Equal(t, 201, code)
	code, _ = r.do("GET", "/?ticket="+ticket, nil, none)
	assert.Equal(t, 401, code, "a ticket counts once")
}

const asks = `
turn
text <<END
<tf-bash id="1" cmd="echo ran > out.txt"/>
END
turn
text "Done."
`

// TestApprove: while it runs, and after it was suspended; the stream goes on.
func TestApprove(t *testing.T) {
	for _, wait := range []time.Duration{time.Hour, 20 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			r := newRig(t, asks, func(_ *Options, c *config.Config) { c.ApprovalWait = wait })
			run := r.begin("x")
			approval := ""
			until := "approval.requested"
			if wait < time.Hour {
				until = "run.suspended"
			}
			all, _ := r.follow(run, "", func(e sse) bool {
				var ev agent.Event
				require.NoError(t, json.Unmarshal([]byte(e.data), &ev))
				if ev.Approval != nil {
					approval = ev.Approval.ID
				}
				return e.event == until
			})
			code, body := r.do("POST", "/runs/"+run+"/approve", ApproveBody{"other", agent.AllowOnce})
			assert.Equal(t, http.StatusConflict, code, body)
			code, body = r.do("POST", "/runs/"+run+"/approve", ApproveBody{approval, "maybe"})
			assert.Equal(t, http.StatusBadRequest, code, body)
			code, body = r.do("POST", "/runs/"+run+"/approve", ApproveBody{approval, agent.AllowOnce})
			require.Equal(t, http.StatusNoContent, code, body)
			rest, _ := r.follow(run, all[len(all)-1].id, nil)
			require.NotEmpty(t, rest)
			assert.Equal(t, "run.completed", rest[len(rest)-1].event)
			assert.FileExists(t, filepath.Join(r.dir, "out.txt"))
			code, body = r.do("GET", "/runs/"+run, nil)
			require.Equal(t, 200, code)
			var v RunView
			require.NoError(t, json.Unmarshal([]byte(body), &v))
			assert.Equal(t, "done", v.State)
			assert.Empty(t, v.Waiting)
		})
	}
}

// TestCancelSteerAndMistakes: the other operations and what they refuse.
func TestCancelSteerAndMistakes(t *testing.T) {
	r := newRig(t, "turn\ntext \"Working\\n\"\nhang\n", nil)
	for _, row := range []struct {
		path string
		body any
		want int
	}{
		{"/runs", RunBody{}, 400},
		{"/runs", map[string]any{"tusk": "x"}, 400},
		{"/runs/none/steer", SteerBody{"x"}, 409},
		{"/runs/none/steer", SteerBody{}, 400},
		{"/runs/none/resume", nil, 409},
		{"/runs/none/cancel", nil, 200},
	} {
		code, body := r.do("POST", row.path, row.body)
		assert.Equal(t, row.want, code, row.path+body)
	}
	run := r.begin("x")
	code, body := r.do("POST", "/runs", RunBody{Task: "again", Run: run})
	assert.Equal(t, 409, code, body)
	r.follow(run, "", func(e sse) bool { return e.event == "text.delta" })
	code, _ = r.do("POST", "/runs/"+run+"/steer", SteerBody{"faster"})
	assert.Equal(t, 204, code)
	code, body = r.do("POST", "/runs/"+run+"/cancel", nil)
	assert.Equal(t, 200, code)
	assert.Contains(t, body, "true")
	all, _ := r.follow(run, "", nil)
	assert.Equal(t, "run.cancelled", all[len(all)-1].event)
}

// TestHeartbeat: comments keep a quiet stream open.
func TestHeartbeat(t *testing.T) {
	r := newRig(t, "turn\ntext \"Working\\n\"\nhang\n", func(o *Options, _ *config.Config) { o.Heartbeat = 5 * time.Millisecond })
	run := r.begin("x")
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/runs/"+run+"/events", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	sc := bufio.NewScanner(res.Body)
	require.True(t, sc.Scan())
	assert.Equal(t, "retry: 1000", sc.Text())
	for beats := 0; beats < 3 && sc.Scan(); {
		if strings.HasPrefix(sc.Text(), ":") {
			beats++
		}
	}
}

// TestSlowClientDelaysNobody: one client that reads nothing, while the run and
// another client go on; it is let go, and comes back to a replay without a gap.
func TestSlowClientDelaysNobody(t *testing.T) {
	script := "turn\n"
	for i := range 120 {
		script += fmt.Sprintf("text <<END\n<tf-write id=\"%d\" path=\"f%d.txt\">\n%s\n</tf-write>\nEND\n", i+2, i, strings.Repeat("y", 2000))
	}
	r := newRig(t, script, func(o *Options, _ *config.Config) { o.Stalled, o.Memory = 100*time.Millisecond, 16 })
	run := r.begin("x")
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	fmt.Fprintf(conn, "GET /runs/%s/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", run, testToken)
	all, _ := r.follow(run, "", nil)
	require.Greater(t, len(all), 240)
	assert.Equal(t, "run.completed", all[len(all)-1].event)
	for i, e := range all {
		require.Equal(t, fmt.Sprint(i+1), e.id)
	}
	again, _ := r.follow(run, "70", nil)
	assert.Equal(t, all[70:], again)
}

// TestDescription: the description names every route and no other, and its
// schemas are those of the bodies.
func TestDescription(t *testing.T) {
	r := newRig(t, twoWrites, nil)
	code, body := r.do("GET", "/openapi.json", nil)
	require.Equal(t, 200, code)
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]any
			RequestBody any `json:"requestBody"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	assert.Equal(t, "3.1.0", d.OpenAPI)
	n := 0
	for path, ops := range d.Paths {
		for method, op := range ops {
			n++
			assert.NotEmpty(t, op.OperationID)
			// What is described is served: anything but 404 by the router, 405.
			code, _ := r.do(strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "none"), nil)
			_, said := op.Responses[fmt.Sprint(code)]
			assert.True(t, said, "%s %s answers %d, which is not described", method, path, code)
		}
	}
	assert.Equal(t, len(routes()), n)
}

// BenchmarkClients: 200 clients on one run, and one that reads nothing.
func BenchmarkClients(b *testing.B) {
	const clients, events = 200, 500
	f := newFeed(maxFeedEvents)
	engine := &replayed{}
	s := New(Options{Engine: engine, Token: testToken, Stalled: 200 * time.Millisecond})
	defer s.Close()
	s.feeds["run"] = f
	h := httptest.NewServer(s)
	defer h.Close()
	r := &rig{t: b, url: h.URL}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	require.NoError(b, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET /runs/run/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", testToken)
	led, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir(), Workspace: "/"})
	require.NoError(b, err)
	defer led.Close()
	engine.led = led
	require.NoError(b, led.StartRun(ledger.Run{ID: "run"}))
	seq := int64(0)
	var add, all time.Duration
	for b.Loop() {
		from := seq
		done := make(chan int, clients)
		for range clients {
			go func() {
				got, _ := r.follow("run", fmt.Sprint(from), func(e sse) bool { return e.id == fmt.Sprint(from+events) })
				done <- len(got)
			}()
		}
		start := time.Now()
		for range events {
			seq++
			before := time.Now()
			f.add(agent.Event{Seq: seq, Run: "run", Type: agent.TextDelta, Text: strings.Repeat("word ", 20)})
			add = max(add, time.Since(before))
		}
		for range clients {
			require.Equal(b, events, <-done)
		}
		all += time.Since(start)
	}
	b.ReportMetric(float64(add.Microseconds()), "slowest-add-µs")
	b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "ms/500-events-to-200")
}

// replayed is an engine of which only the ledger is used.
type replayed struct {
	Engine
	led *ledger.Ledger
}

func (r *replayed) Ledger() (*ledger.Ledger, error) { return r.led, nil }
