package openai

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"thinkflow/agent"
)

// failureBody is what servers call an error: OpenAI's object, a bare text, a
// FastAPI detail, vLLM's object "error".
type failureBody struct {
	Error   json.RawMessage `json:"error"`
	Object  lenient         `json:"object"`
	Type    lenient         `json:"type"`
	Message lenient         `json:"message"`
	Code    lenient         `json:"code"`
	Detail  json.RawMessage `json:"detail"`
}

// failed tells whether an event of the stream is an error, choices or not.
func (c *chunk) failed() bool {
	if isFailure(c.Error) || c.Object == "error" || c.Type == "error" {
		return true
	}
	return c.Choices == nil && len(c.Usage) == 0 && (isFailure(c.Detail) || c.Message != "" && c.Code != "")
}

// failureInfo is an error as far as it could be read.
type failureInfo struct {
	message string
	code    string // code, type and status words, joined by blanks
	status  int    // HTTP status, or a code that is one; 0 = none
	page    bool   // the message is text of a web page
}

// parseFailure reads the body of a failed request, or an error event.
func parseFailure(body []byte) failureInfo {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' { // Google wraps it in a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	var b failureBody
	if len(body) == 0 || body[0] != '{' || json.Unmarshal(body, &b) != nil {
		if len(body) > 0 && body[0] == '"' {
			var s string
			if json.Unmarshal(body, &s) == nil {
				body = []byte(s)
			}
		}
		return failureInfo{message: pageText(string(body)), page: bytes.HasPrefix(body, []byte("<"))}
	}
	info := failureInfo{message: string(b.Message)}
	info.addCode(b.Code, b.Type)
	if info.message == "" && isFailure(b.Detail) {
		info.message = jsonText(b.Detail)
	}
	if isFailure(b.Error) {
		info.addError(b.Error)
	}
	return info
}

func (i *failureInfo) addError(raw json.RawMessage) {
	var e struct {
		Message  lenient `json:"message"`
		Code     lenient `json:"code"`
		Type     lenient `json:"type"`
		Status   lenient `json:"status"`
		Metadata struct {
			Raw lenient `json:"raw"` // OpenRouter: what the provider behind it said
		} `json:"metadata"`
	}
	if raw[0] != '{' || json.Unmarshal(raw, &e) != nil {
		i.message = jsonText(raw)
		return
	}
	if e.Message != "" {
		i.message = string(e.Message)
	}
	if e.Metadata.Raw != "" {
		i.message = strings.TrimSpace(i.message + " (" + clip(string(e.Metadata.Raw), 300) + ")")
	}
	i.addCode(e.Code, e.Type, e.Status)
	if i.message == "" {
		i.message = i.code
	}
}

func (i *failureInfo) addCode(words ...lenient) {
	for _, w := range words {
		s := string(w)
		if n, err := strconv.Atoi(s); err == nil {
			if n >= 400 && n < 600 {
				i.status = n
			}
			continue
		}
		if s != "" && !strings.Contains(i.code, s) {
			i.code = strings.TrimSpace(i.code + " " + strings.ToLower(s))
		}
	}
}

func jsonText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// text is the message, bounded: 500 bytes, 200 of a web page.
func (i failureInfo) text() string {
	limit := 500
	if i.page {
		limit = 200
	}
	return clip(strings.Join(strings.Fields(i.message), " "), limit)
}

// overflowWords are what servers say, in lower case, when the conversation does
// not fit the context (LR-14): OpenAI, vLLM, llama.cpp, Ollama, LM Studio, Groq,
// xAI, Mistral, Moonshot, MiniMax, GLM, DashScope, Gemini, Bedrock, Anthropic,
// LiteLLM.
var overflowWords = []string{
	"context_length_exceeded", "context_window_exceeded", "contextwindowexceeded", "exceed_context_size",
	"maximum context length", "max context length", "context window exceed", "available context size", "greater than the context length",
	"exceeds the context", "exceed the context", "context length exceeded", "longer than the context", "longer than the model's context",
	"prompt is too long", "prompt too long", "prompt_too_long", "prompt exceeds max length", "prompt 超长", "input is too long", "input too long",
	"exceeds the maximum number of tokens", "maximum prompt length", "reduce the length of the messages",
	"exceeded model token limit", "token limit exceeded", "range of input length should be",
	"exceed context limit", "exceeds context limit", "input tokens exceed", "prompt tokens exceed", "tokens + `max_new_tokens`", "must have less than",
	"longer than the maximum model length", "must be at least 1, got -", "context the overflows", "context overflow",
	"input or output tokens must be reduced", "request_too_large", "too large for model with",
}

func (i failureInfo) overflow() bool {
	if i.status == http.StatusRequestEntityTooLarge {
		return true
	}
	said := strings.ToLower(i.message) + " " + i.code
	for _, w := range overflowWords {
		if strings.Contains(said, w) {
			return true
		}
	}
	return i.status != http.StatusTooManyRequests && strings.Contains(said, "too many tokens")
}

func (i failureInfo) says(words ...string) bool {
	said := strings.ToLower(i.message) + " " + i.code
	for _, w := range words {
		if strings.Contains(said, w) {
			return true
		}
	}
	return false
}

// outOfCredit: waiting does not help.
func (i failureInfo) outOfCredit() bool {
	return i.says("insufficient_quota", "insufficient balance", "billing", "exceeded your current quota", "credit balance")
}

func (i failureInfo) aboutModel() bool { return i.says("model") && !i.page }

// kind classifies the failure; retryable: the same request may work later.
func (i failureInfo) kind() (kind agent.ErrorKind, retryable bool) {
	switch s := i.status; {
	case i.overflow():
		return agent.ErrOverflow, false
	case i.says("content_filter", "content_policy", "content management policy", "responsibleaipolicy", "data_inspection_failed"):
		return agent.ErrContentFilter, false
	case s == http.StatusTooManyRequests:
		return agent.ErrRateLimited, !i.outOfCredit()
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return agent.ErrAuth, false
	case s == http.StatusNotFound, i.says("model_not_found"):
		return agent.ErrNotFound, false
	case s == http.StatusRequestTimeout:
		return agent.ErrTimeout, true
	case s == http.StatusConflict, s == http.StatusTooEarly, s == 498: // 498: Groq, over capacity
		return agent.ErrOverloaded, true
	case s == http.StatusNotImplemented, s == http.StatusHTTPVersionNotSupported:
		return agent.ErrBadRequest, false
	case s >= 500:
		return agent.ErrOverloaded, true
	case s >= 400:
		if i.says("model") && i.says("does not exist", "not exist", "not found", "unknown model", "invalid model") {
			return agent.ErrNotFound, false
		}
		return agent.ErrBadRequest, false
	}
	// An error inside the stream, without a status.
	switch {
	case i.says("rate_limit", "rate limit", "too many requests", "insufficient_quota"):
		return agent.ErrRateLimited, !i.outOfCredit()
	case i.says("authentication_error", "invalid_api_key", "permission_error"):
		return agent.ErrAuth, false
	case i.says("invalid_request_error", "badrequesterror", "bad_request"):
		return agent.ErrBadRequest, false
	}
	return agent.ErrOverloaded, true
}

// keyPattern finds what looks like a key in texts of others.
var keyPattern = regexp.MustCompile(`(?i)\b(?:bearer\s+|(?:sk|pk|rk|gsk|xai|hf|nvapi|AIza)[-_]?)[A-Za-z0-9][A-Za-z0-9_\-.*]{10,}`)

var (
	pageHidden = regexp.MustCompile(`(?is)<(script|style|head)\b.*?(</(script|style|head)\s*>|$)`)
	pageTags   = regexp.MustCompile(`(?s)<[^>]*>?`)
	pageTitle  = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title`)
)

// pageText makes a short text of a body that is not JSON: tags and control
// characters go, at most 200 bytes stay.
func pageText(s string) string {
	if strings.HasPrefix(strings.TrimSpace(s), "<") {
		title := pageTitle.FindStringSubmatch(s)
		s = pageTags.ReplaceAllString(pageHidden.ReplaceAllString(s, " "), " ")
		if strings.TrimSpace(s) == "" && title != nil {
			s = title[1]
		}
		s = html.UnescapeString(s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return clip(strings.Join(strings.Fields(s), " "), 200)
}

// clip bounds a text to n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
	}
	return s
}
