package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/scripted"
)

func TestStreamOverLoopback(t *testing.T) {
	sv, url := serve(t, `
turn
chunk 2
wire 3
expect header Authorization: Bearer sk-test-key-123456
expect header User-Agent: thinkflow/1
expect header X-Title: t
expect model gpt-5-pro
reasoning "let me see"
text "héllo <tf-read/>"
call#c1 read_file {"path":"a"}
usage 10 5 cached=4 reasoning=2
`)
	c := New(Options{BaseURL: url + "/chat/completions/", Key: testKey, UserAgent: "thinkflow/1", Headers: map[string]string{"X-Title": "t"}})
	temp := float32(0.3) // the library would refuse this, MaxTokens and the model's name
	s, err := c.Stream(testContext(t), &agent.Request{Model: "gpt-5-pro", MaxTokens: 5, Temperature: &temp, Messages: testRequest.Messages})
	if err != nil {
		t.Fatal(err)
	}
	got := asJSON(t, collect(t, s))
	want := asJSON(t, answer{Text: "héllo <tf-read/>", Reasoning: "let me see", Finish: "tool_calls",
		Calls: []agent.ToolCall{{ID: "c1", Name: "read_file", Arguments: `{"path":"a"}`}}, Usage: &agent.TurnUsage{Input: 10, Output: 5, Cached: 4, Reasoning: 2}})
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if f := sv.Failures(); len(f) > 0 {
		t.Error(f)
	}
}

// TestCancelEndsRecvAtOnce: by the context and by Close, before the headers and
// inside the stream; the server sees the disconnect.
func TestCancelEndsRecvAtOnce(t *testing.T) {
	for _, script := range []string{"turn\nhang headers", "turn\ntext a\nhang", "turn\ntext a\nkeepalive 1ms\nhang"} {
		for _, by := range []string{"context", "close"} {
			if by == "close" && strings.Contains(script, "headers") {
				continue // there is no stream to close yet
			}
			t.Run(by+" "+script, func(t *testing.T) {
				sv, url := serve(t, script)
				ctx, cancel := context.WithCancel(testContext(t))
				defer cancel()
				errs := make(chan error, 1)
				streams := make(chan agent.Stream, 1)
				go func() {
					s, err := New(Options{BaseURL: url}).Stream(ctx, testRequest)
					if err == nil {
						streams <- s
						for err == nil {
							_, err = s.Recv()
						}
					}
					errs <- err
				}()
				if strings.Contains(script, "headers") {
					if err := sv.WaitRequests(ctx, 1); err != nil {
						t.Fatal(err)
					}
				} else if err := sv.WaitSent(ctx, 1, "a"); err != nil {
					t.Fatal(err)
				}
				if by == "close" {
					(<-streams).Close()
				} else {
					cancel()
				}
				if err := <-errs; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				if o, err := sv.WaitEnd(testContext(t), 1); o != scripted.Gone {
					t.Errorf("the server saw %s %v", o, err)
				}
			})
		}
	}
}

func TestCutConnections(t *testing.T) {
	tests := []struct {
		script string
		text   string
		kind   agent.ErrorKind // "" = complete
	}{
		{"turn\ncut", "", agent.ErrTruncated},
		{"turn\ncut reset", "", agent.ErrTruncated},
		{"turn\ntext abc\ncut", "abc", agent.ErrTruncated},
		{"turn\ntext abc\ncut reset", "abc", agent.ErrTruncated},
		{"turn\ntext abc\neof", "abc", agent.ErrTruncated},
		{"turn\ntext abc\ndata {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\ncut", "abc", ""},
		{"turn\ntext abc\ndata {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\neof", "abc", ""},
		{"turn\ntext abc\nfinish none", "abc", ""},
		{"turn\ntext abc\ndone none", "abc", ""},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			_, url := serve(t, tt.script)
			s, err := New(Options{BaseURL: url}).Stream(testContext(t), testRequest)
			a := answer{}
			if err != nil {
				a.Error = failedOf(err)
			} else {
				a = collect(t, s)
			}
			if a.Text != tt.text && tt.text != "" && !strings.Contains(tt.script, "reset") { // a reset may overtake data
				t.Errorf("text %q", a.Text)
			}
			if tt.kind == "" {
				if a.Error != nil {
					t.Errorf("got %+v", *a.Error)
				}
			} else if a.Error == nil || a.Error.Kind != tt.kind && a.Error.Kind != agent.ErrUnreachable || !a.Error.Retryable {
				t.Errorf("got %s", asJSON(t, a))
			}
		})
	}
}

// timeline is a body that comes by the clock of a synctest bubble.
type timelineStep struct {
	after time.Duration
	data  string
}

func TestTimeouts(t *testing.T) {
	const (
		role  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
		text  = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
		stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		usage = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
		alive = ": keep-alive\n\n"
		never = time.Hour
		s     = time.Second
	)
	tests := []struct {
		name     string
		timeline []timelineStep
		want     string // part of the message; "" = complete
		at       time.Duration
	}{
		{"nothing ever comes", []timelineStep{{never, ""}}, "no answer for 60 s", 60 * s},
		{"only comments come", []timelineStep{{30 * s, alive}, {29 * s, alive}, {never, ""}}, "no answer for 60 s", 60 * s},
		{"a role, then silence", []timelineStep{{s, role}, {never, ""}}, "no answer for 60 s", 60 * s},
		{"progress of a long prompt", []timelineStep{{50 * s, role}, {8 * s, role}, {8 * s, role}, {8 * s, text}, {s, stop}, {0, "data: [DONE]\n\n"}}, "", 75 * s},
		{"progress, then silence", []timelineStep{{55 * s, role}, {never, ""}}, "no data for 10 s", 65 * s},
		{"silence inside", []timelineStep{{50 * s, text}, {9 * s, text}, {never, ""}}, "no data for 10 s", 69 * s},
		{"usage but no end", []timelineStep{{s, text}, {s, stop}, {s, usage}, {never, ""}}, "", 5 * s},
		{"no end after the finish reason", []timelineStep{{s, text}, {s, stop}, {never, ""}}, "", 4 * s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				done := make(chan struct{})
				defer func() { r.Close(); <-done }()
				go func() {
					defer close(done)
					for _, step := range tt.timeline {
						time.Sleep(step.after) // of the bubble's clock
						if _, err := io.WriteString(w, step.data); err != nil {
							return
						}
					}
				}()
				c := New(Options{BaseURL: testURL, FirstTokenTimeout: 60 * s, IdleTimeout: 10 * s, HTTPClient: &http.Client{Transport: pipeTransport{r}}})
				start := time.Now()
				st, err := c.Stream(context.Background(), testRequest)
				if err != nil {
					t.Fatal(err)
				}
				a := collect(t, st)
				if d := time.Since(start); d != tt.at {
					t.Errorf("ended after %v, want %v", d, tt.at)
				}
				switch {
				case tt.want == "" && a.Error != nil:
					t.Errorf("got %+v", *a.Error)
				case tt.want != "" && (a.Error == nil || a.Error.Kind != agent.ErrTimeout || !a.Error.Retryable || !strings.Contains(a.Error.Message, tt.want)):
					t.Errorf("got %s", asJSON(t, a))
				}
			})
		})
	}
}

// TestSlowReaderIsNoTimeout: the time that the caller takes does not count.
func TestSlowReaderIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := streamOf(nil, "x", "stop", 1)
		c := New(Options{BaseURL: testURL, FirstTokenTimeout: 2 * time.Second, IdleTimeout: time.Second, HTTPClient: &http.Client{Transport: bodyTransport{
			open: func() io.Reader { return strings.NewReader(string(body)) },
		}}})
		s, err := c.Stream(context.Background(), testRequest)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // of the bubble's clock: the user is asked something
		if a := collect(t, s); a.Error != nil {
			t.Errorf("got %+v", *a.Error)
		}
	})
}

func TestHeadersNeverCome(t *testing.T) {
	sv, url := serve(t, "turn\nhang headers")
	_, err := New(Options{BaseURL: url, FirstTokenTimeout: 20 * time.Millisecond}).Stream(testContext(t), testRequest)
	me, ok := err.(*agent.ModelError)
	if !ok || me.Kind != agent.ErrTimeout || !strings.Contains(me.Message, "no answer for 0.02 s to the request") || !strings.Contains(me.Hint, "first_token_timeout") {
		t.Errorf("got %v", err)
	}
	if o, _ := sv.WaitEnd(testContext(t), 1); o != scripted.Gone {
		t.Errorf("the server saw %s", o)
	}
}

// TestConnectionIsKept: after a complete answer the next request uses the same
// connection, also when the caller cancels its context right away.
func TestConnectionIsKept(t *testing.T) {
	_, url := serve(t, "turn\nrepeat\ntext a")
	c := New(Options{BaseURL: url})
	var mu sync.Mutex
	reused := 0
	for range 3 {
		idle := make(chan error, 1)
		ctx, cancel := context.WithCancel(httptrace.WithClientTrace(testContext(t), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) {
				mu.Lock()
				defer mu.Unlock()
				if i.Reused {
					reused++
				}
			},
			PutIdleConn: func(err error) { idle <- err },
		}))
		s, err := c.Stream(ctx, testRequest)
		if err != nil {
			t.Fatal(err)
		}
		if a := collect(t, s); a.Error != nil {
			t.Errorf("got %+v", a)
		}
		cancel()
		if err := <-idle; err != nil {
			t.Errorf("the connection is not kept: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if reused != 2 {
		t.Errorf("%d of 2 requests used the connection again", reused)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	_, url := serve(t, "turn\nrepeat\nreasoning r\ntext a")
	c := New(Options{BaseURL: url})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := c.Stream(testContext(t), testRequest)
			if err != nil {
				t.Error(err)
				return
			}
			go s.Close()
			for err == nil {
				_, err = s.Recv()
			}
		})
	}
	wg.Wait()
}
