package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func serve(t *testing.T, text string) (*Server, string) {
	t.Helper()
	s, err := Parse(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	sv := New(s, Options{Log: t.Logf})
	url, stop, err := sv.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return sv, url
}

const streamBody = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"do it"}]}`

func post(t *testing.T, ctx context.Context, url, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return http.DefaultClient.Do(req)
}

func ask(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	resp, err := post(t, testContext(t), url, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// shape reduces a stream to one line per event: what a reader of a test cares
// about.
func shape(stream string) string {
	var out []string
	for event := range strings.SplitSeq(stream, "\n\n") {
		event = strings.TrimPrefix(event, "data: ")
		var c struct {
			Choices []struct {
				Delta  json.RawMessage `json:"delta"`
				Finish *string         `json:"finish_reason"`
			} `json:"choices"`
			Usage json.RawMessage `json:"usage"`
		}
		if json.Unmarshal([]byte(event), &c) != nil || c.Choices == nil {
			if event != "" {
				out = append(out, event)
			}
			continue
		}
		for _, ch := range c.Choices {
			line := string(ch.Delta)
			if ch.Finish != nil {
				line = "finish " + *ch.Finish
			}
			out = append(out, line)
		}
		if c.Usage != nil {
			out = append(out, "usage "+string(c.Usage))
		}
	}
	return strings.Join(out, "\n")
}

func TestStream(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"text in chunks of characters", "turn\nchunk 3\ntext \"héllo\"\nusage none", `{"content":"hél"}
{"content":"lo"}
finish stop
[DONE]`},
		{"blocks keep their line breaks", "turn\nchunk 0\nusage none\ntext <<END\na\n  <b>\nEND\ntext <<END chomp\nc\nEND\ntext bare words", `{"content":"a\n  <b>\n"}
{"content":"c"}
{"content":"bare words"}
finish stop
[DONE]`},
		{"both reasoning fields", "turn\nreasoning \"a\"\nreasoning-alt \"b\"\nusage 7 1 cached=5 reasoning=2", `{"reasoning_content":"a"}
{"reasoning":"b"}
finish stop
usage {"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":2},"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":5},"total_tokens":8}
[DONE]`},
		{"usage in the finish chunk", "turn\ntext x\nusage 7 1 in-finish\nfinish length", `{"content":"x"}
finish length
usage {"completion_tokens":1,"prompt_tokens":7,"total_tokens":8}
[DONE]`},
		{"a call", "turn\nchunk 5\nusage none\ncall#c1 read_file {\"path\":\"a\"}", `{"tool_calls":[{"function":{"arguments":"","name":"read_file"},"id":"c1","index":0,"type":"function"}]}
{"tool_calls":[{"function":{"arguments":"{\"pat"},"index":0}]}
{"tool_calls":[{"function":{"arguments":"h\":\"a"},"index":0}]}
{"tool_calls":[{"function":{"arguments":"\"}"},"index":0}]}
finish tool_calls
[DONE]`},
		{"raw deltas", "turn\nusage none\ntool-delta {\"id\":\"c1\"}\ndelta {\"role\":\"assistant\"}\ndone none\nfinish none", `{"tool_calls":[{"id":"c1"}]}
{"role":"assistant"}`},
		{"errors in the stream", "turn\ncomment keep-alive\nerror {\"message\":\"full\",\"code\":502}\nerror-event broken\neof", `: keep-alive
{"error":{"message":"full","code":502}}
event: error
data: {"error":{"message":"broken"}}`},
		{"raw bytes and payload lines", "turn\nraw \"data:{\\r\\n\"\ndata <<END\n{\n}\nEND\neof", "data:{\r\ndata: {\ndata: }"},
		{"wire splits events", "wire 1\nturn\ntext ab\nusage none", "{\"content\":\"ab\"}\nfinish stop\n[DONE]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, url := serve(t, tt.script)
			if _, got := ask(t, url, streamBody); shape(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", shape(got), tt.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	_, url := serve(t, "turn\nstatus 429\nheader Retry-After: 7\nbody {\"error\":{\"message\":\"slow down\"}}\nturn\nstatus 502\nheader Content-Type: text/html\nbody <html>bad</html>\nturn\nstatus 413")
	resp, err := post(t, testContext(t), url, streamBody)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	if status, body := ask(t, url, streamBody); status != 502 || body != "<html>bad</html>" {
		t.Errorf("got %d %q", status, body)
	}
	if status, body := ask(t, url, streamBody); status != 413 || body != "" {
		t.Errorf("got %d %q", status, body)
	}
}

func TestWithoutStream(t *testing.T) {
	sv, url := serve(t, "model m1\ncontext 8192\nturn\nrate 100000\nreasoning r\ntext ok\ncall#c1 f {}\nusage 3 1")
	_, got := ask(t, url, `{"messages":[{"role":"user","content":"x"}]}`)
	want := `{"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":"ok","reasoning_content":"r","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"id":"c1","type":"function"}]}}],"created":0,"id":"chatcmpl-script-1","model":"m1","object":"chat.completion","usage":{"completion_tokens":1,"prompt_tokens":3,"total_tokens":4}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	resp, err := http.Get(url + "/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !bytes.Contains(b, []byte(`"context_length":8192,"id":"m1"`)) {
		t.Errorf("models: %s", b)
	}
	if r := sv.Remaining(); len(r) != 0 {
		t.Errorf("remaining turns %v", r)
	}
}

func TestExpectations(t *testing.T) {
	body := `{"model":"m","tools":[{"function":{"name":"grep"}}],"messages":[{"role":"system","content":"rules"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"user","content":[{"text":"do "},{"text":"it"}]}]}`
	tests := []struct {
		expect string
		ok     bool
	}{
		{`contains "do it"`, true}, {`contains "{\"a\":1}"`, true}, {`contains "no"`, false},
		{`not-contains "secret"`, true}, {`not-contains rules`, false},
		{`last-contains do`, true}, {`last-contains rules`, false}, {`body-contains "\"name\":\"grep\""`, true},
		{`messages 3`, true}, {`messages 2`, false},
		{`roles system assistant user`, true}, {`roles user`, false}, {`last user`, true}, {`last tool`, false},
		{`tool grep`, true}, {`tool bash`, false}, {`no-tools`, false}, {`model m`, true}, {`model n`, false},
		{`header X-Test: 1`, false},
	}
	for _, tt := range tests {
		t.Run(tt.expect, func(t *testing.T) {
			sv, url := serve(t, "turn greet\nexpect "+tt.expect+"\ntext hi")
			status, answer := ask(t, url, body)
			if ok := status == 200; ok != tt.ok {
				t.Fatalf("status %d: %s", status, answer)
			}
			if n := len(sv.Failures()); (n == 0) != tt.ok {
				t.Errorf("failures: %v", sv.Failures())
			}
			if !tt.ok && !strings.Contains(answer, "turn greet (line 1)") {
				t.Errorf("the answer does not name the turn: %s", answer)
			}
		})
	}
}

func TestOutrun(t *testing.T) {
	sv, url := serve(t, "turn\ntext a")
	ask(t, url, streamBody)
	status, answer := ask(t, url, streamBody)
	if status != 501 || !strings.Contains(answer, "request 2 came, but all of its 1 turns are used up") {
		t.Errorf("got %d %s", status, answer)
	}
	if len(sv.Failures()) != 1 || len(sv.Requests()) != 2 || sv.Requests()[1].Turn != -1 {
		t.Errorf("failures %v", sv.Failures())
	}
}

func TestWhenAndRepeat(t *testing.T) {
	_, url := serve(t, "turn\ntext plain\nusage none\nturn\nwhen needle\nrepeat\ntext found\nusage none")
	needle := strings.Replace(streamBody, "do it", "a needle", 1)
	for i, tt := range []struct{ body, want string }{{needle, "found"}, {streamBody, "plain"}, {needle, "found"}} {
		if _, got := ask(t, url, tt.body); !strings.Contains(got, tt.want) {
			t.Errorf("request %d: want %s, got %s", i, tt.want, got)
		}
	}
}

func TestAwaitReleasesAndTellsWhatWasSent(t *testing.T) {
	ctx := testContext(t)
	sv, url := serve(t, "turn\ntext before\nawait go\ntext after")
	done := make(chan string)
	go func() {
		_, got := ask(t, url, streamBody)
		done <- got
	}()
	if err := sv.Reached(ctx, "go"); err != nil {
		t.Fatal(err)
	}
	if got := sv.Sent(1); got != "before" {
		t.Errorf("sent %q", got)
	}
	sv.Release("go")
	if got := <-done; !strings.Contains(got, "after") {
		t.Errorf("got %s", got)
	}
	if o, err := sv.WaitEnd(ctx, 1); o != Complete || err != nil {
		t.Errorf("outcome %v %v", o, err)
	}
}

func TestHangUntilTheClientGoes(t *testing.T) {
	for _, script := range []string{"turn\nhang headers", "turn\ntext a\nhang", "turn\ntext a\nkeepalive 1ms\nhang"} {
		sv, url := serve(t, script)
		ctx, cancel := context.WithCancel(testContext(t))
		errs := make(chan error)
		go func() {
			resp, err := post(t, ctx, url, streamBody)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			errs <- err
		}()
		if err := sv.WaitRequests(ctx, 1); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%q: client got %v", script, err)
		}
		if o, err := sv.WaitEnd(testContext(t), 1); o != Gone {
			t.Errorf("%q: outcome %s %v", script, o, err)
		}
	}
}

func TestCut(t *testing.T) {
	for _, script := range []string{"turn\ntext a\ncut", "turn\ntext a\ncut reset"} {
		sv, url := serve(t, script)
		resp, err := post(t, testContext(t), url, streamBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("%q: the cut is invisible", script)
		}
		resp.Body.Close()
		if o, _ := sv.WaitEnd(testContext(t), 1); o != Cut {
			t.Errorf("%q: outcome %s", script, o)
		}
	}
}

func TestCloseEndsHangingAnswers(t *testing.T) {
	s, err := Parse("hang", []byte("turn\nhang"))
	if err != nil {
		t.Fatal(err)
	}
	url, stop := Start(s)
	resp, err := post(t, testContext(t), url, streamBody)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the answer ended as if complete")
	}
}

func TestPrefixOf(t *testing.T) {
	r := func(n int, messages string) Request {
		return Request{N: n, Body: []byte(`{"messages":[` + messages + `]}`)}
	}
	tests := []struct {
		name, a, b, want string
	}{
		{"same", `{"a":1}`, `{"a":1}`, ""},
		{"longer", `{"a":1}`, `{"a":1},{"b":2}`, ""},
		{"shorter", `{"a":1},{"b":2}`, `{"a":1}`, "request 1 has 2 messages, request 2 only 1"},
		{"one byte", `{"a":1}`, `{"a": 1}`, "message 0 differs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := PrefixOf(r(1, tt.a), r(2, tt.b))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ script, want string }{
		{"text a", `line 1: "text" before the first turn`},
		{"turn\n\nspeak up", `line 3: unknown directive "speak"`},
		{"turn\ntext <<END\na\n", "line 2: block is not closed by a line END"},
		{"turn\ntext <<END x\nEND", "a block begins with <<TOKEN"},
		{"turn\ntext \"a", "not a Go string"},
		{"turn\nchunk many", `"many" is not a number`},
		{"turn\nsleep 5", "missing unit"},
		{"turn\nusage 1", "usage needs two numbers"},
		{"turn\nexpect luck", `unknown expectation "luck"`},
		{"turn\ndelta {", "valid JSON"},
		{"turn\ncall", "call needs a name"},
		{"turn\nheader x", "header needs"},
	}
	for _, tt := range tests {
		if _, err := Parse("s", []byte(tt.script)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.script, err, tt.want)
		}
	}
}

func TestScriptsInTestdataParse(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scripts/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts found: %v", err)
	}
	for _, f := range files {
		if s, err := Load(f); err != nil || len(s.Turns) == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("model m\nturn\ntext <<END\na\nEND\nusage 1 2 cached=3\n")
	f.Add("turn\ncall#c f {}\nexpect last user\nstatus 429\nheader A: b\nbody \"x\\n\"\n")
	f.Fuzz(func(t *testing.T, s string) {
		if script, err := Parse("fuzz", []byte(s)); (script == nil) == (err == nil) {
			t.Errorf("script %v, error %v", script, err)
		}
	})
}

// TestPace: the text comes at the rate of the script, by the clock of a bubble.
func TestPace(t *testing.T) {
	tests := []struct {
		name, script string
		speed        float64
		want         time.Duration
	}{
		{"no pauses", "turn\ntext abcdefgh", 0, 0},
		{"100 tokens of 4 characters at 50 a second", "rate 50\nturn\ntext " + strings.Repeat("a", 400), 0, 2 * time.Second},
		{"chunks larger than a second's worth", "turn\nchunk 0\nrate 1\ntext " + strings.Repeat("a", 40), 0, 10 * time.Second},
		{"time to the first token and a pause", "turn\nttft 300ms\ntext a\nsleep 1s\ntext b", 0, 1300 * time.Millisecond},
		{"ten times as fast", "turn\nrate 50\nsleep 1s\ntext " + strings.Repeat("a", 400), 10, 300 * time.Millisecond},
		{"rate changed on the way", "turn\nrate 1\ntext aaaa\nrate 0\ntext bbbb", 0, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Parse("pace", []byte(tt.script))
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				w := httptest.NewRecorder()
				New(s, Options{Speed: tt.speed}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(streamBody)))
				if d := time.Since(start).Round(time.Millisecond); d != tt.want || !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
					t.Errorf("took %v, want %v", d, tt.want)
				}
			})
		})
	}
}

// TestKeepalive: comments go out while the answer waits.
func TestKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Parse("alive", []byte("turn\ntext a\nkeepalive 1s\nsleep 3500ms\ntext b"))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		New(s, Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(streamBody)))
		if n := strings.Count(w.Body.String(), ": keep-alive\n\n"); n != 3 {
			t.Errorf("%d comments, want 3", n)
		}
	})
}

func TestLoop(t *testing.T) {
	s, err := Parse("loop", []byte("turn\ntext one\nturn\ntext two"))
	if err != nil {
		t.Fatal(err)
	}
	sv := New(s, Options{Loop: true})
	for i, want := range []string{"one", "two", "one"} {
		w := httptest.NewRecorder()
		sv.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/chat/completions", strings.NewReader(streamBody)))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("request %d: %s", i+1, w.Body)
		}
	}
}

func TestUnknownPath(t *testing.T) {
	_, url := serve(t, "turn\ntext a")
	resp, err := http.Get(url + "/embeddings")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 404 || !bytes.Contains(b, []byte("has no GET /v1/embeddings")) {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}
