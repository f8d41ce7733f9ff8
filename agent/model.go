package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Role of a message in the conversation.
type Role string

// The roles of the chat protocol.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of the conversation as the model gets it.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content"`
	Reasoning  string     `json:"reasoning,omitempty"` // sent back only if the profile asks
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// ToolCall is one complete native call. Arguments is a JSON object as text.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Extra is JSON that belongs to the call and goes back with it unread: the
	// signature of a thought without which Gemini 3 refuses the next request.
	Extra string `json:"extra,omitempty"`
}

// Tool describes a native tool to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema
}

// Request is one API call.
type Request struct {
	Model    string
	Messages []Message
	Tools    []Tool
	// MaxTokens bounds the answer; 0 leaves it to the server.
	MaxTokens       int
	Temperature     *float32
	ReasoningEffort string
	// Extra fields are merged into the request body (profiles of providers).
	Extra map[string]any
}

// Model is a chat model. Stream opens one streaming answer; errors of the
// provider are *ModelError.
type Model interface {
	Stream(ctx context.Context, req *Request) (Stream, error)
}

// Stream is one answer being received. Recv returns io.EOF after a complete
// answer and only then; a truncated one is a *ModelError of kind Truncated.
// Close ends the request; the provider sees the disconnect.
type Stream interface {
	Recv() (Delta, error)
	Close() error
}

// Delta is one piece of an answer. Any field may be empty.
type Delta struct {
	Text      string
	Reasoning string
	Calls     []CallDelta
	Finish    string // stop, length, tool_calls, content_filter, …
	Usage     *TurnUsage
}

// CallDelta is a piece of a native tool call, already sorted out: Call is the
// dense number of the call in this answer (from 0), whatever index and ids the
// provider sent (cases TC-01 to TC-08, TC-11). ID and Name come once.
type CallDelta struct {
	Call int
	ID   string
	Name string
	Args string
	// Extra is what a provider wants to have back with the call: see ToolCall.
	Extra string
}

// TurnUsage is what the provider reported for one request; -1 = not reported.
type TurnUsage struct {
	Input, Output, Cached, Reasoning int
}

// ErrorKind classifies a provider's failure by what can be done about it.
type ErrorKind string

// The kinds.
const (
	ErrNoKey         ErrorKind = "no_key"         // no key configured
	ErrAuth          ErrorKind = "auth"           // 401, 403
	ErrUnreachable   ErrorKind = "unreachable"    // refused, DNS, TLS
	ErrTimeout       ErrorKind = "timeout"        // connect, first token, idle
	ErrRateLimited   ErrorKind = "rate_limited"   // 429
	ErrOverloaded    ErrorKind = "overloaded"     // 500, 502, 503, 529, error in the stream
	ErrOverflow      ErrorKind = "overflow"       // the context does not fit
	ErrNotFound      ErrorKind = "not_found"      // 404: model or endpoint
	ErrBadRequest    ErrorKind = "bad_request"    // other 4xx
	ErrTruncated     ErrorKind = "truncated"      // the stream ended before completion
	ErrBadResponse   ErrorKind = "bad_response"   // HTML, not SSE, undecodable
	ErrContentFilter ErrorKind = "content_filter" // refused by the provider's filter
)

// ModelError is a failure of the provider, worded for people: what happened at
// which endpoint, and what to do next.
type ModelError struct {
	Kind   ErrorKind
	Status int // HTTP status, 0 when there was none
	// Message says what happened, Hint what to do.
	Message, Hint string
	// Retryable: sending the same request again may help, provided that nothing
	// of the answer had been accepted (case LR-09).
	Retryable bool
	// RetryAfter is the server's wish; 0 = none, own backoff.
	RetryAfter time.Duration
	Err        error
}

func (e *ModelError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return fmt.Sprintf("%s; %s", e.Message, e.Hint)
}

func (e *ModelError) Unwrap() error { return e.Err }
