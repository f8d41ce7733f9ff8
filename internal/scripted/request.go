package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Request is one request as it came.
type Request struct {
	N      int // number of the chat request, from 1
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte // raw
	Turn   int    // index of the turn that answered, from 0; -1 = none was left
}

type wireMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type wireRequest struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// Message is one message of a request, for looking at in tests.
type Message struct {
	Role string
	// Text is the content, parts joined, followed by names and arguments of
	// calls, each on a line.
	Text string
}

// Messages decodes the messages of the request; nil when the body is no chat
// request.
func (r Request) Messages() []Message {
	var w wireRequest
	if json.Unmarshal(r.Body, &w) != nil {
		return nil
	}
	out := make([]Message, 0, len(w.Messages))
	for _, raw := range w.Messages {
		out = append(out, decodeMessage(raw))
	}
	return out
}

// RawMessages returns the messages of the request byte for byte; nil when the
// body is no chat request.
func (r Request) RawMessages() []json.RawMessage {
	var w wireRequest
	if json.Unmarshal(r.Body, &w) != nil {
		return nil
	}
	return w.Messages
}

func decodeMessage(raw json.RawMessage) Message {
	var m wireMessage
	if json.Unmarshal(raw, &m) != nil {
		return Message{Text: string(raw)}
	}
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &parts) == nil {
			for _, p := range parts {
				text += p.Text
			}
		}
	}
	for _, c := range m.ToolCalls {
		text += "\n" + c.Function.Name + " " + c.Function.Arguments
	}
	return Message{Role: m.Role, Text: text}
}

// PrefixOf tells whether the message list of prev is, byte for byte, the
// beginning of that of next, as an append-only history must be. The error names
// the first message that differs.
func PrefixOf(prev, next Request) error {
	a, b := prev.RawMessages(), next.RawMessages()
	for i := range a {
		if i >= len(b) {
			return fmt.Errorf("request %d has %d messages, request %d only %d", prev.N, len(a), next.N, len(b))
		}
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Errorf("message %d differs between requests %d and %d:\n%s\n%s", i, prev.N, next.N, a[i], b[i])
		}
	}
	return nil
}

// check compares a request with the expectations of its turn.
func (t *Turn) check(r Request) error {
	if len(t.expect) == 0 {
		return nil
	}
	var w wireRequest
	if err := json.Unmarshal(r.Body, &w); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	msgs := r.Messages()
	for _, e := range t.expect {
		if got, ok := e.holds(r, w, msgs); !ok {
			return fmt.Errorf("line %d: expect %s %s does not hold: %s", e.line, e.kind, strconv.Quote(e.arg), got)
		}
	}
	return nil
}

func (e expectation) holds(r Request, w wireRequest, msgs []Message) (got string, ok bool) {
	var roles []string
	for _, m := range msgs {
		roles = append(roles, m.Role)
	}
	last := Message{}
	if len(msgs) > 0 {
		last = msgs[len(msgs)-1]
	}
	switch e.kind {
	case "contains", "not-contains":
		found := anyContains(msgs, e.arg)
		return show(msgs), found == (e.kind == "contains")
	case "last-contains":
		return show([]Message{last}), strings.Contains(last.Text, e.arg)
	case "body-contains":
		return string(r.Body), bytes.Contains(r.Body, []byte(e.arg))
	case "messages":
		return strings.Join(roles, " "), strconv.Itoa(len(msgs)) == strings.TrimSpace(e.arg)
	case "roles":
		got = strings.Join(roles, " ")
		return got, got == strings.Join(strings.Fields(e.arg), " ")
	case "last":
		return last.Role, last.Role == e.arg
	case "tool", "no-tools":
		var names []string
		for _, t := range w.Tools {
			names = append(names, t.Function.Name)
			ok = ok || t.Function.Name == e.arg
		}
		if e.kind == "no-tools" {
			ok = len(names) == 0
		}
		return strings.Join(names, " "), ok
	case "model":
		return w.Model, w.Model == e.arg
	case "header":
		k, v, _ := strings.Cut(e.arg, ":")
		got = r.Header.Get(strings.TrimSpace(k))
		return got, got == strings.TrimSpace(v)
	}
	return "", false
}

func anyContains(msgs []Message, text string) bool {
	for _, m := range msgs {
		if strings.Contains(m.Text, text) {
			return true
		}
	}
	return false
}

// show renders messages for a failure report, the last ones, bounded.
func show(msgs []Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "\n[%s] %s", m.Role, m.Text)
	}
	s := b.String()
	if const4k := 4096; len(s) > const4k {
		s = "…" + strings.ToValidUTF8(s[len(s)-const4k:], "")
	}
	return s
}
