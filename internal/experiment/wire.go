package experiment

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// wire is one form of API.
type wire interface {
	// parse reads a request.
	parse(body []byte) (*request, error)
	// open begins the answer, and returns how its pieces are written.
	open(w io.Writer, rq *request) answerer
}

// answerer writes an answer piece by piece. Each of its events is written whole.
type answerer interface {
	text(s string)
	call(n int, p piece) // begins a call
	args(s string)
	callEnd()
	end(calls int, u counted)
}

// counted is the usage of one request, in tokens.
type counted struct{ Input, Output, Cached int }

// wireFor finds the form by the path of the request.
func wireFor(path string) wire {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chatWire{}
	case strings.HasSuffix(path, "/messages"):
		return messagesWire{}
	case strings.HasSuffix(path, "/responses"):
		return responsesWire{}
	case strings.Contains(path, ":streamGenerateContent"), strings.Contains(path, ":generateContent"):
		return geminiWire{}
	}
	return nil
}

// event writes one server-sent event.
func event(w io.Writer, name string, v any) {
	data, _ := json.Marshal(v) // of maps made here: cannot fail
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

type m = map[string]any

// chatWire is the chat completions of OpenAI.
type chatWire struct{}

func (chatWire) parse(body []byte) (*request, error) {
	var in struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Messages []json.RawMessage `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	r := newReading(body, in.Model, in.Stream)
	type tool struct {
		Function struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  schema `json:"parameters"`
		} `json:"function"`
	}
	offered(r, in.Tools, func(t tool) {
		r.tools = append(r.tools, toolDef{name: t.Function.Name, about: t.Function.Description, schema: t.Function.Parameters})
	})
	type message struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
	}
	var system strings.Builder
	err := said(r, in.Messages, func(_ json.RawMessage, msg message) bool {
		switch msg.Role {
		case "system", "developer":
			system.WriteString(flat(msg.Content))
			return false
		case "tool":
			r.results[msg.ToolCallID] = flat(msg.Content)
		case "user":
			r.last = flat(msg.Content)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return r.done(system.String()), nil
}

func (chatWire) open(w io.Writer, rq *request) answerer { return &chatAnswer{w: w, model: rq.model} }

type chatAnswer struct {
	w     io.Writer
	model string
	n     int
}

func (a *chatAnswer) chunk(delta m, finish any) {
	event(a.w, "", m{"id": "sim", "object": "chat.completion.chunk", "created": 1, "model": a.model,
		"choices": []m{{"index": 0, "delta": delta, "finish_reason": finish}}})
}
func (a *chatAnswer) text(s string) { a.chunk(m{"role": "assistant", "content": s}, nil) }
func (a *chatAnswer) call(n int, p piece) {
	a.n = n
	a.chunk(m{"tool_calls": []m{{"index": n, "id": p.id, "type": "function", "function": m{"name": p.call, "arguments": ""}}}}, nil)
}
func (a *chatAnswer) args(s string) {
	a.chunk(m{"tool_calls": []m{{"index": a.n, "function": m{"arguments": s}}}}, nil)
}
func (a *chatAnswer) callEnd() {}
func (a *chatAnswer) end(calls int, u counted) {
	reason := "stop"
	if calls > 0 {
		reason = "tool_calls"
	}
	a.chunk(m{}, reason)
	event(a.w, "", m{"id": "sim", "object": "chat.completion.chunk", "created": 1, "model": a.model, "choices": []m{},
		"usage": m{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output, "prompt_tokens_details": m{"cached_tokens": u.Cached}}})
	fmt.Fprint(a.w, "data: [DONE]\n\n")
}
