package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"thinkflow/agent"
)

// toolCase is one line of testdata/tool-stream/cases.jsonl. The cases were made
// after public reports about similar tools.
type toolCase struct {
	ID    string `json:"id"`
	Input struct {
		Deltas    []json.RawMessage `json:"tool_call_deltas"`
		Also      json.RawMessage   `json:"also"`
		Content   string            `json:"content"`
		Finish    string            `json:"finish_reason"`
		SSE       []string          `json:"sse"`
		Bytes     string            `json:"bytes"`
		Arguments []string          `json:"arguments"`
		Now       string            `json:"now"`
		Headers   []string          `json:"headers"`
		Idle      int               `json:"idle_timeout_s"`
		Errors    []string          `json:"errors"`
	} `json:"input"`
	Expected struct {
		Outcome json.RawMessage `json:"outcome"`
		Calls   []struct {
			ID, Name  string
			Arguments json.RawMessage
		} `json:"calls"`
		ToolResult  json.RawMessage `json:"tool_result"`
		HistoryArgs string          `json:"history_arguments"`
		HistoryName string          `json:"history_name"`
		DecodedQ    string          `json:"decoded_q"`
		Text        string          `json:"text"`
		TextLength  int             `json:"text_length"`
		Reasoning   string          `json:"reasoning"`
		Message     string          `json:"message"`
		Retryable   bool            `json:"retryable"`
		Usage       *struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
		Seconds []any `json:"seconds"`
	} `json:"expected"`
}

// Cases about the loop around the stream, not the stream.
var loopCases = map[string]bool{"TC-22": true, "TC-26": true, "LR-09": true}

func loadCases(t *testing.T) []toolCase {
	t.Helper()
	var out []toolCase
	for line := range bytes.Lines(readFile(t, "../../testdata/tool-stream/cases.jsonl")) {
		var c toolCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%.20s: %v", line, err)
		}
		out = append(out, c)
	}
	return out
}

// streamOf makes a body of the deltas; perEvent deltas share an event.
func streamOf(deltas []json.RawMessage, text, finish string, perEvent int) []byte {
	var b bytes.Buffer
	if text != "" {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
	}
	for i := 0; i < len(deltas); i += perEvent {
		part := bytes.Join(rawBytes(deltas[i:min(i+perEvent, len(deltas))]), []byte(","))
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[%s]}}]}\n\n", part)
	}
	fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
	return b.Bytes()
}

func rawBytes(in []json.RawMessage) (out [][]byte) {
	for _, r := range in {
		out = append(out, r)
	}
	return out
}

// everySplit runs a body whole, byte by byte and cut in two at many places.
func everySplit(t *testing.T, body []byte, check func(answer)) {
	t.Helper()
	check(replay(t, func() io.Reader { return bytes.NewReader(body) }))
	one := make(pieces, 0, len(body))
	for i := range body {
		one = append(one, body[i:i+1])
	}
	check(replay(t, func() io.Reader { return &one }))
	for i := 0; i < len(body); i += 1 + len(body)/100 {
		check(replay(t, func() io.Reader { return &pieces{body[:i], body[i:]} }))
		if t.Failed() {
			t.Fatalf("cut at byte %d", i)
		}
	}
}

func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			switch {
			case loopCases[c.ID]:
				t.Skip("about the loop, tested there")
			case c.ID == "TC-18":
				long := strings.Repeat("a", c.Expected.TextLength)
				a := replay(t, func() io.Reader { return bytes.NewReader(streamOf(nil, long, "stop", 1)) })
				if len(a.Text) != c.Expected.TextLength || a.Error != nil {
					t.Errorf("%d bytes, %v", len(a.Text), a.Error)
				}
			case c.Input.Arguments != nil:
				checkArguments(t, c)
			case c.Input.Headers != nil:
				checkRetryAfter(t, c)
			case c.Input.Idle != 0:
				checkIdle(t, c)
			case c.Input.Errors != nil:
				checkOverflow(t, c)
			case c.Input.SSE != nil || c.Input.Bytes != "":
				body := []byte(c.Input.Bytes)
				if c.Input.SSE != nil {
					body = []byte(strings.Join(c.Input.SSE, "\n\n") + "\n\n")
				}
				everySplit(t, body, func(a answer) { checkAnswer(t, c, a) })
			default:
				for perEvent := 1; perEvent <= max(1, len(c.Input.Deltas)); perEvent++ {
					everySplit(t, streamOf(c.Input.Deltas, c.Input.Content, c.Input.Finish, perEvent), func(a answer) { checkCalls(t, c, a) })
				}
			}
		})
	}
}

// checkCalls compares the calls of the answer, as they would be executed.
func checkCalls(t *testing.T, c toolCase, a answer) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("error %+v", *a.Error)
	}
	if a.Text != c.Input.Content || a.Finish != c.Input.Finish {
		t.Errorf("text %q, finish %q", a.Text, a.Finish)
	}
	if c.ID == "TC-23" {
		checkCutCall(t, c, a)
		return
	}
	if c.ID == "TC-25" {
		p := agent.PrepareCall(a.Calls[0], a.Finish)
		if p.History.Name != c.Expected.HistoryName || string(p.Arguments) != "{}" {
			t.Errorf("history name %q", p.History.Name)
		}
		return
	}
	if len(a.Calls) != len(c.Expected.Calls) {
		t.Fatalf("calls %+v, want %d", a.Calls, len(c.Expected.Calls))
	}
	for i, want := range c.Expected.Calls {
		got := a.Calls[i]
		p := agent.PrepareCall(got, a.Finish)
		if got.ID != want.ID || p.Name != want.Name {
			t.Errorf("call %d is %s %s, want %s %s", i, got.ID, p.Name, want.ID, want.Name)
		}
		if c.Expected.ToolResult != nil { // arguments that cannot be used
			var raw, result string
			if json.Unmarshal(want.Arguments, &raw) != nil || got.Arguments != raw {
				t.Errorf("arguments %q, want %s", got.Arguments, want.Arguments)
			}
			if json.Unmarshal(c.Expected.ToolResult, &result) != nil || !strings.Contains(p.Problem, result) || !strings.Contains(p.Problem, "character 14") {
				t.Errorf("problem %q, want %q with the position", p.Problem, result)
			}
			continue
		}
		if !sameJSON(p.Arguments, want.Arguments) {
			t.Errorf("call %d has arguments %s, want %s", i, p.Arguments, want.Arguments)
		}
		if c.Expected.HistoryArgs != "" && p.History.Arguments != c.Expected.HistoryArgs {
			t.Errorf("history arguments %q", p.History.Arguments)
		}
		if c.Expected.DecodedQ != "" {
			var args struct{ Q string }
			if err := json.Unmarshal(p.Arguments, &args); err != nil || args.Q != c.Expected.DecodedQ {
				t.Errorf("decoded %q, %v", args.Q, err)
			}
		}
	}
}

// checkCutCall: arguments cut by the output limit do not run, whole ones do.
func checkCutCall(t *testing.T, c toolCase, a answer) {
	t.Helper()
	var want string
	if err := json.Unmarshal(c.Expected.ToolResult, &want); err != nil {
		t.Fatal(err)
	}
	if p := agent.PrepareCall(a.Calls[0], a.Finish); p.Problem != want || p.Arguments != nil {
		t.Errorf("problem %q, want %q", p.Problem, want)
	}
	var whole []json.RawMessage
	if err := json.Unmarshal(c.Input.Also, &whole); err != nil {
		t.Fatal(err)
	}
	also := replay(t, func() io.Reader { return bytes.NewReader(streamOf(whole, "", c.Input.Finish, 1)) })
	if p := agent.PrepareCall(also.Calls[0], also.Finish); p.Problem != "" {
		t.Errorf("a whole call at the limit: %q", p.Problem)
	}
}

func checkAnswer(t *testing.T, c toolCase, a answer) {
	t.Helper()
	var outcome string
	if err := json.Unmarshal(c.Expected.Outcome, &outcome); err != nil {
		t.Fatal(err)
	}
	if (outcome == "error") != (a.Error != nil) {
		t.Fatalf("outcome %s, got %+v", outcome, a)
	}
	if a.Error != nil {
		if !strings.Contains(a.Error.Message, c.Expected.Message) || !a.Error.Retryable {
			t.Errorf("error %+v", *a.Error)
		}
		return
	}
	if a.Text != c.Expected.Text || a.Reasoning != c.Expected.Reasoning {
		t.Errorf("text %q, reasoning %q", a.Text, a.Reasoning)
	}
	if u := c.Expected.Usage; u != nil && (a.Usage == nil || a.Usage.Input != u.Prompt || a.Usage.Output != u.Completion) {
		t.Errorf("usage %+v, want %+v", a.Usage, u)
	}
}

// checkArguments: TC-24, values that are JSON but not an object.
func checkArguments(t *testing.T, c toolCase) {
	t.Helper()
	var outcomes []string
	if err := json.Unmarshal(c.Expected.Outcome, &outcomes); err != nil {
		t.Fatal(err)
	}
	for i, args := range c.Input.Arguments {
		p := agent.PrepareCall(agent.ToolCall{Name: "search", Arguments: args}, "tool_calls")
		if object, ok := strings.CutPrefix(outcomes[i], "execute with "); ok {
			if string(p.Arguments) != object {
				t.Errorf("%s: got %s", args, p.Arguments)
			}
		} else if want := strings.TrimPrefix(outcomes[i], "tool error: "); !strings.Contains(p.Problem, want) {
			t.Errorf("%s: problem %q, want %q", args, p.Problem, want)
		}
	}
}

// checkRetryAfter: LR-12, through a 429 answer.
func checkRetryAfter(t *testing.T, c toolCase) {
	t.Helper()
	now, err := http.ParseTime(c.Input.Now)
	if err != nil {
		t.Fatal(err)
	}
	wait := func(name, value string) time.Duration {
		h := http.Header{}
		h.Set(name, value)
		cl := New(Options{BaseURL: testURL, Now: func() time.Time { return now }, HTTPClient: &http.Client{Transport: bodyTransport{
			open: func() io.Reader { return strings.NewReader("") }, status: 429, header: h,
		}}})
		_, err := cl.Stream(context.Background(), testRequest)
		me, ok := err.(*agent.ModelError)
		if !ok || me.Kind != agent.ErrRateLimited || !me.Retryable {
			t.Fatalf("got %v", err)
		}
		return me.RetryAfter
	}
	for i, v := range c.Input.Headers {
		got := wait("Retry-After", v)
		switch want := c.Expected.Seconds[i].(type) {
		case float64:
			if d := max(time.Duration(want*float64(time.Second)), time.Millisecond); got != d {
				t.Errorf("%q: got %v, want %v", v, got, d)
			}
		case string:
			if over := strings.HasPrefix(want, "stop"); over && got <= 120*time.Second || !over && got != 0 {
				t.Errorf("%q: got %v, want %s", v, got, want)
			}
		}
	}
	if got := wait("retry-after-ms", "250"); got != 250*time.Millisecond {
		t.Errorf("retry-after-ms: %v", got)
	}
}

// checkIdle: LR-13, keep-alive comments for ever after one piece of data.
func checkIdle(t *testing.T, c toolCase) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		ended := make(chan struct{})
		defer func() { <-ended }()
		defer r.Close()
		go func() {
			defer close(ended)
			_, err := io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n")
			for err == nil {
				time.Sleep(time.Second) // of the bubble's clock
				_, err = io.WriteString(w, ": keep-alive\n\n")
			}
		}()
		idle := time.Duration(c.Input.Idle) * time.Second
		cl := New(Options{BaseURL: testURL, IdleTimeout: idle, HTTPClient: &http.Client{Transport: pipeTransport{r}}})
		start := time.Now()
		s, err := cl.Stream(context.Background(), testRequest)
		if err != nil {
			t.Fatal(err)
		}
		a := collect(t, s)
		if a.Text != "x" || a.Error == nil || a.Error.Kind != agent.ErrTimeout || !strings.Contains(a.Error.Message, c.Expected.Message) {
			t.Errorf("got %s", asJSON(t, a))
		}
		if d := time.Since(start); d != idle {
			t.Errorf("ended after %v, want %v", d, idle)
		}
	})
}

// pipeTransport answers with a body that the test writes; closing it ends a
// blocked Read.
type pipeTransport struct{ body io.ReadCloser }

func (p pipeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: p.body, Request: r}, nil
}

// checkOverflow: LR-14.
func checkOverflow(t *testing.T, c toolCase) {
	t.Helper()
	var outcomes []string
	if err := json.Unmarshal(c.Expected.Outcome, &outcomes); err != nil {
		t.Fatal(err)
	}
	for i, e := range c.Input.Errors {
		status, body := 200, strings.TrimPrefix(e, "SSE ")
		if n, err := strconv.Atoi(e[:3]); err == nil {
			status, body = n, strings.TrimPrefix(e[3:], " ")
		}
		body = strings.TrimSuffix(body, "(no body)")
		cl := New(Options{BaseURL: testURL, HTTPClient: &http.Client{Transport: bodyTransport{
			open: func() io.Reader { return strings.NewReader(body + "\n\n") }, status: status,
		}}})
		s, err := cl.Stream(context.Background(), testRequest)
		if err == nil {
			_, err = s.Recv()
			s.Close()
		}
		me, ok := err.(*agent.ModelError)
		if !ok {
			t.Fatalf("%s: %v", e, err)
		}
		if got := me.Kind == agent.ErrOverflow; got != (outcomes[i] == "overflow") || me.Retryable {
			t.Errorf("%s: %s, retryable %v; want %s", e, me.Kind, me.Retryable, outcomes[i])
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
