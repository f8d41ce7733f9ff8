package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"thinkflow/agent"
)

// chunk is one data event. Fields are decoded leniently: a type that a server
// changed must not cost the answer.
type chunk struct {
	failureBody
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
}

type choice struct {
	Index        lenient         `json:"index"`
	Delta        *delta          `json:"delta"`
	Message      *delta          `json:"message"` // an answer that is no stream
	FinishReason lenient         `json:"finish_reason"`
	Error        json.RawMessage `json:"error"` // OpenRouter
}

type delta struct {
	Content          content         `json:"content"`
	ReasoningContent content         `json:"reasoning_content"`
	Reasoning        content         `json:"reasoning"`
	ReasoningText    content         `json:"reasoning_text"`
	Thinking         content         `json:"thinking"`
	ThinkingContent  content         `json:"thinking_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	Refusal          lenient         `json:"refusal"`
	ToolCalls        wireCalls       `json:"tool_calls"`
	FunctionCall     *wireFunction   `json:"function_call"` // the API before tools
}

// wireCalls is a list of calls, or a single one.
type wireCalls []wireCall

// UnmarshalJSON implements json.Unmarshaler.
func (w *wireCalls) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var one wireCall
		err := json.Unmarshal(b, &one)
		*w = wireCalls{one}
		return err
	}
	return json.Unmarshal(b, (*[]wireCall)(w))
}

type wireCall struct {
	Index        json.RawMessage `json:"index"`
	ID           lenient         `json:"id"`
	Function     *wireFunction   `json:"function"`
	wireFunction                 // some leave function out
	Extra        json.RawMessage `json:"extra_content"`
}

type wireFunction struct {
	ID        lenient `json:"id"` // llama.cpp in the first half of 2025
	Name      lenient `json:"name"`
	Arguments lenient `json:"arguments"` // an object is taken as its text
}

func (w *wireCall) fragment() fragment {
	fn := w.Function
	if fn == nil {
		fn = &w.wireFunction
	}
	f := fragment{id: string(w.ID), args: string(fn.Arguments)}
	if f.id == "" {
		f.id = string(fn.ID)
	}
	if strings.TrimSpace(string(fn.Name)) != "" {
		f.name = string(fn.Name)
	}
	if len(w.Extra) > 0 && w.Extra[0] == '{' {
		f.extra = string(w.Extra)
	}
	// A whole number however it is written; one that is beyond any list is none.
	if n, err := strconv.ParseFloat(strings.Trim(string(w.Index), `"`), 64); err == nil && n == float64(int(n)) {
		i := int(n)
		f.index = &i
	}
	return f
}

// lenient is a string; null is "", and any other value its JSON text.
type lenient string

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		*l = ""
	case len(b) > 0 && b[0] == '"':
		s, err := unquote(b)
		if err != nil {
			return err
		}
		*l = lenient(s)
	default:
		*l = lenient(b)
	}
	return nil
}

// content is a text, or a list of parts with text and thinking (Mistral).
type content struct {
	text, thinking string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	switch b[0] {
	case '"':
		var err error
		c.text, err = unquote(b)
		return err
	case '{':
		var part struct {
			Text    lenient `json:"text"`
			Content lenient `json:"content"`
		}
		if json.Unmarshal(b, &part) == nil {
			c.text = string(part.Text + part.Content)
		}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-':
		c.text = string(b) // a server that does not quote it
	case '[':
		var parts []struct {
			Text     lenient `json:"text"`
			Thinking content `json:"thinking"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return nil // parts of a kind that has no text
		}
		for _, p := range parts {
			c.text += string(p.Text)
			c.thinking += p.Thinking.text
		}
	}
	return nil
}

// reasoningText returns the delta's reasoning from one field only, since servers
// that fill both fill them with the same (TC-21), and that field's name.
func (d *delta) reasoningText() (text, field string) {
	switch {
	case d.ReasoningContent.text != "":
		return d.ReasoningContent.text, "reasoning_content"
	case d.Reasoning.text != "":
		return d.Reasoning.text, "reasoning"
	case d.ReasoningText.text != "":
		return d.ReasoningText.text, "reasoning_text"
	case d.Thinking.text != "":
		return d.Thinking.text, "thinking"
	case d.ThinkingContent.text != "":
		return d.ThinkingContent.text, "thinking_content"
	case d.Content.thinking != "":
		return d.Content.thinking, ""
	case len(d.ReasoningDetails) > 2:
		var details []struct {
			Text    lenient `json:"text"`
			Summary lenient `json:"summary"`
		}
		if json.Unmarshal(d.ReasoningDetails, &details) == nil {
			for _, p := range details {
				text += string(p.Text + p.Summary)
			}
		}
	}
	return text, ""
}

// usage decodes the token counts; nil when there are none. A prompt never has 0
// tokens, so 0 there means that the server does not count.
func (c *chunk) usage() *agent.TurnUsage {
	if len(c.Usage) == 0 || c.Usage[0] != '{' {
		return nil
	}
	var w struct {
		Prompt     *float64 `json:"prompt_tokens"`
		Completion *float64 `json:"completion_tokens"`
		Hit        *float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
		PromptMore *struct {
			Cached *float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionMore *struct {
			Reasoning *float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if json.Unmarshal(c.Usage, &w) != nil || w.Prompt == nil || *w.Prompt <= 0 {
		return nil
	}
	u := &agent.TurnUsage{Input: count(w.Prompt), Output: count(w.Completion), Cached: count(w.Hit), Reasoning: -1}
	if w.PromptMore != nil && w.PromptMore.Cached != nil {
		u.Cached = count(w.PromptMore.Cached)
	}
	if w.CompletionMore != nil {
		u.Reasoning = count(w.CompletionMore.Reasoning)
	}
	return u
}

func count(f *float64) int {
	if f == nil || *f < 0 {
		return -1
	}
	return int(*f)
}

// finishReason maps the servers' words to those of the API. failed tells that
// the word stands for a failure of the server.
func finishReason(s string) (reason string, failed bool) {
	switch l := strings.ToLower(strings.TrimSpace(s)); l {
	case "", "null":
		return "", false
	case "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed":
		return "stop", false
	case "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return "length", false
	case "tool_call", "tool_use", "function_call":
		return "tool_calls", false
	case "safety", "sensitive", "blocked", "refusal", "prohibited_content":
		return "content_filter", false
	case "malformed_function_call", "function_call_filter: malformed_function_call": // Gemini: it cannot read its own call
		return l, true
	case "error", "abort", "network_error", "insufficient_system_resource":
		return l, true
	default:
		return l, false
	}
}
