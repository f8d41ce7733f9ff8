package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"thinkflow/agent"
)

// requestBody is what goes over the wire. Field order is part of the format:
// the same messages give the same bytes, so that providers can cache the prefix.
type requestBody struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Temperature         *float32       `json:"temperature,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role string `json:"role"`
	// Content is always there: servers refuse messages without the key. It is
	// null beside calls, the form of the API for "no text", and never empty.
	Content          *string    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Reasoning        string     `json:"reasoning,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
	// Extra is what came with the call in the same field (Gemini's signatures).
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string         `json:"type"`
	Function toolDefinition `json:"function"`
}

type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Stand-ins for empty contents, which servers refuse or answer with nonsense.
const (
	noText   = "(no text)"
	noOutput = "(no output)"
)

// encode writes the request body.
func (c *Client) encode(req *agent.Request, d dialect) ([]byte, error) {
	b := requestBody{Model: req.Model, Stream: true, ReasoningEffort: req.ReasoningEffort}
	b.Messages = make([]message, len(req.Messages))
	for i := range req.Messages {
		b.Messages[i] = wireMessage(&req.Messages[i], d.reasoningField)
	}
	for _, t := range req.Tools {
		p := t.Parameters
		if len(bytes.TrimSpace(p)) == 0 {
			p = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		b.Tools = append(b.Tools, tool{Type: "function", Function: toolDefinition{t.Name, t.Description, p}})
	}
	if !d.noStreamOptions {
		b.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if d.completionTokens || c.where.host == "api.openai.com" {
		b.MaxCompletionTokens = req.MaxTokens
	} else {
		b.MaxTokens = req.MaxTokens
	}
	if !d.noTemperature {
		b.Temperature = req.Temperature
	}
	body, err := marshal(b)
	if err != nil {
		return nil, err
	}
	if len(c.opts.Extra)+len(req.Extra) == 0 {
		return body, nil
	}
	return mergeExtra(body, c.opts.Extra, req.Extra)
}

func wireMessage(m *agent.Message, reasoningField string) message {
	w := message{Role: string(m.Role), ToolCallID: m.ToolCallID}
	if m.Content != "" {
		w.Content = &m.Content
	} else {
		standIn := noText
		switch {
		case m.Role == agent.RoleTool:
			standIn = noOutput
			w.Content = &standIn
		case len(m.ToolCalls) == 0:
			w.Content = &standIn
		}
	}
	if reasoningField == "reasoning" {
		w.Reasoning = m.Reasoning
	} else {
		w.ReasoningContent = m.Reasoning
	}
	for _, tc := range m.ToolCalls {
		args := tc.Arguments
		if strings.TrimSpace(args) == "" {
			args = "{}"
		}
		w.ToolCalls = append(w.ToolCalls, toolCall{
			ID: tc.ID, Type: "function", Function: function{agent.HistoryToolName(tc.Name), args}, Extra: json.RawMessage(tc.Extra),
		})
	}
	return w
}

// mergeExtra adds fields to the body, the later ones winning; nil removes one.
// messages and stream are not to be touched: the answer could not be read.
func mergeExtra(body []byte, extras ...map[string]any) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, e := range extras {
		maps.Copy(all, e)
	}
	for k, v := range all {
		if k == "messages" || k == "stream" {
			continue
		}
		if v == nil {
			delete(fields, k)
			continue
		}
		raw, err := marshal(v)
		if err != nil {
			return nil, err
		}
		fields[k] = raw
	}
	return marshal(fields)
}

// marshal encodes without escaping < > and &: tags stay as short as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// without returns the dialect that avoids the field for which the endpoint
// refused the body, and the field's name; "" when there is none.
func (d dialect) without(err error, body []byte) (dialect, string) {
	var me *agent.ModelError
	if !errors.As(err, &me) || me.Kind != agent.ErrBadRequest {
		return d, ""
	}
	said := strings.ToLower(me.Message)
	has := func(field string) bool {
		return strings.Contains(said, field) && bytes.Contains(body, []byte(`"`+field+`":`))
	}
	switch {
	case !d.noStreamOptions && has("stream_options"):
		d.noStreamOptions = true
		return d, "stream_options"
	case !d.completionTokens && has("max_tokens") && strings.Contains(said, "max_completion_tokens"):
		d.completionTokens = true
		return d, "max_tokens"
	case !d.noTemperature && has("temperature") && (strings.Contains(said, "support") || strings.Contains(said, "deprecated")):
		d.noTemperature = true
		return d, "temperature"
	}
	return d, ""
}
