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
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	Refusal          lenient         `json:"refusal"`
	ToolCalls        []wireCall      `json:"tool_calls"`
	FunctionCall     *wireFunction   `json:"function_call"` // the API before tools
}

type wireCall struct {
	Index    json.RawMessage `json:"index"`
	ID       lenient         `json:"id"`
	Function wireFunction    `json:"function"`
}

type wireFunction struct {
	Name      lenient `json:"name"`
	Arguments lenient `json:"arguments"` // an object is taken as its text
}

func (w *wireCall) fragment() fragment {
	f := fragment{id: string(w.ID), args: string(w.Function.Arguments)}
	if strings.TrimSpace(string(w.Function.Name)) != "" {
		f.name = string(w.Function.Name)
	}
	if n, err := strconv.Atoi(strings.Trim(string(w.Index), `"`)); err == nil {
		f.index = &n
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
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
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
		return json.Unmarshal(b, &c.text)
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
	case d.Content.thinking != "":
		return d.Content.thinking, ""
	case len(d.ReasoningDetails) > 2:
		var details []struct {
			Text lenient `json:"text"`
		}
		if json.Unmarshal(d.ReasoningDetails, &details) == nil {
			for _, p := range details {
				text += string(p.Text)
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
	case "error", "abort", "network_error", "insufficient_system_resource":
		return l, true
	default:
		return l, false
	}
}
