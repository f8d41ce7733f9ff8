package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/scripted"
)

var update = flag.Bool("update", false, "rewrite the expected values in testdata/sse")

// answer is all that came of a stream.
type answer struct {
	Text      string           `json:"text,omitempty"`
	Reasoning string           `json:"reasoning,omitempty"`
	Calls     []agent.ToolCall `json:"calls,omitempty"`
	Finish    string           `json:"finish,omitempty"`
	Usage     *agent.TurnUsage `json:"usage,omitempty"`
	Error     *failed          `json:"error,omitempty"`
}

type failed struct {
	Kind      agent.ErrorKind `json:"kind"`
	Message   string          `json:"message"`
	Hint      string          `json:"hint,omitempty"`
	Status    int             `json:"status,omitempty"`
	Retryable bool            `json:"retryable"`
}

func failedOf(err error) *failed {
	var me *agent.ModelError
	if errors.As(err, &me) {
		return &failed{me.Kind, me.Message, me.Hint, me.Status, me.Retryable}
	}
	return &failed{Kind: "not a ModelError", Message: err.Error()}
}

// collect reads a stream to its end. Pieces of calls are joined as the numbers
// in them say; the order of numbers and the once-only rule are checked.
func collect(t testing.TB, s agent.Stream) answer {
	t.Helper()
	defer s.Close()
	var a answer
	for {
		d, err := s.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				a.Error = failedOf(err)
			}
			if _, again := s.Recv(); again == nil || again.Error() != err.Error() {
				t.Errorf("after %v Recv says %v", err, again)
			}
			return a
		}
		a.Text += d.Text
		a.Reasoning += d.Reasoning
		if d.Finish != "" {
			a.Finish = d.Finish
		}
		if d.Usage != nil {
			a.Usage = d.Usage
		}
		for _, c := range d.Calls {
			if c.Call > len(a.Calls) {
				t.Errorf("call %d comes before call %d", c.Call, len(a.Calls))
				return a
			}
			if c.Call == len(a.Calls) {
				a.Calls = append(a.Calls, agent.ToolCall{})
			}
			tc := &a.Calls[c.Call]
			if c.ID != "" && tc.ID != "" || c.Name != "" && tc.Name != "" {
				t.Errorf("id or name of call %d come twice", c.Call)
			}
			tc.ID += c.ID
			tc.Name += c.Name
			tc.Arguments += c.Args
		}
	}
}

// bodyTransport answers every request with the body read from open, without a
// network.
type bodyTransport struct {
	open   func() io.Reader
	status int
	header http.Header
}

func (b bodyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h := b.header
	if h == nil {
		h = http.Header{"Content-Type": {"text/event-stream"}}
	}
	status := b.status
	if status == 0 {
		status = 200
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h, Body: io.NopCloser(b.open()), Request: r}, nil
}

const testURL = "https://model.test/v1"

var testRequest = &agent.Request{Model: "m", Messages: []agent.Message{{Role: agent.RoleUser, Content: "hi"}}}

func ids() func() string {
	n := 0
	return func() string { n++; return "made-" + string(rune('0'+n)) }
}

// replay runs a body through the whole client.
func replay(t testing.TB, open func() io.Reader) answer {
	t.Helper()
	c := New(Options{BaseURL: testURL, Key: "sk-test-key-123456", NewID: ids(), HTTPClient: &http.Client{Transport: bodyTransport{open: open}}})
	s, err := c.Stream(context.Background(), testRequest)
	if err != nil {
		return answer{Error: failedOf(err)}
	}
	return collect(t, s)
}

// pieces is a reader that returns the parts one by one.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serve plays a script over loopback.
func serve(t testing.TB, script string) (*scripted.Server, string) {
	t.Helper()
	s, err := scripted.Parse("test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	sv := scripted.New(s, scripted.Options{})
	url, stop, err := sv.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return sv, url
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
