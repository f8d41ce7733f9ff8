package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"thinkflow/agent"
)

var errNotURL = errors.New("not a URL")

// failure words what went wrong with one model of the endpoint.
type failure struct {
	c     *Client
	model string
}

func (c *Client) failure(model string) failure { return failure{c, model} }

// new makes the error. what follows the name of the endpoint.
func (f failure) new(kind agent.ErrorKind, what, hint string) *agent.ModelError {
	name := f.c.where.name
	if f.model != "" {
		name += " (model " + clip(f.model, 100) + ")"
	}
	return &agent.ModelError{Kind: kind, Message: f.c.redact(name + ": " + what), Hint: f.c.redact(hint)}
}

func (f failure) retryable(e *agent.ModelError, cause error) *agent.ModelError {
	e.Retryable, e.Err = true, cause
	return e
}

func (f failure) badURL(string, error) error {
	return &agent.ModelError{
		Kind: agent.ErrUnreachable, Message: "the base URL of the model's API is not a URL",
		Hint: "it begins with http:// or https:// and a host, as in https://api.openai.com/v1 or http://localhost:11434/v1", Err: errNotURL,
	}
}

func (f failure) noKey() error {
	return f.new(agent.ErrNoKey, "there is no API key", "set "+f.c.opts.KeyHint+", or the base URL of a server that needs none (Ollama: http://localhost:11434/v1)")
}

func (f failure) noModel() error {
	return f.new(agent.ErrBadRequest, "no model is named", "name one as the endpoint spells it (THINKFLOW_MODEL or --model); `thinkflow doctor` lists what it offers")
}

func (f failure) requestError(err error) error {
	e := f.new(agent.ErrBadRequest, "the request cannot be written as JSON: "+err.Error(), "check the extra body fields and the tools' schemas")
	e.Err = err
	return e
}

// of words the error that ended an exchange. The caller's own cancellation is
// returned as it is.
func (f failure) of(x *exchange, err error) error {
	if perr := x.parent.Err(); perr != nil {
		return perr
	}
	if t := x.timedOut(); t != nil {
		return f.timeout(x, t)
	}
	if x.ctx.Err() != nil { // Close in another goroutine
		return context.Canceled
	}
	var status *statusFailure
	var notStream *errNotStream
	var tooLong *errTooLong
	switch {
	case errors.As(err, &status):
		return f.status(status)
	case errors.As(err, &notStream):
		return f.notStream(notStream)
	case errors.As(err, &tooLong):
		return f.new(agent.ErrBadResponse, tooLong.Error(), "the server is broken, or no chat model")
	case x.filter != nil:
		return f.truncated(x, err)
	}
	return f.transport(err)
}

func (f failure) timeout(x *exchange, t *timeout) error {
	hint := "the server or the network stalls: try again, or raise idle_timeout"
	if t.what == "no answer" {
		hint = "a model that is being loaded or reads a long prompt needs more: raise first_token_timeout"
	}
	what := t.Error()
	if x.filter == nil {
		what += " to the request"
	}
	return f.retryable(f.new(agent.ErrTimeout, what, hint), t)
}

func (f failure) truncated(x *exchange, err error) error {
	what := "stream ended before completion"
	if x.filter.events == 0 {
		what += ": not one event came"
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		what += " (" + plainNetError(err) + ")"
		err = errors.Join(io.ErrUnexpectedEOF, bare(err))
	}
	return f.retryable(f.new(agent.ErrTruncated, what, "the connection broke, or the server gave up: try again"), err)
}

func (f failure) notStream(e *errNotStream) error {
	text := pageText(e.excerpt)
	hint := "check the base URL"
	if !hasVersion(f.c.where.path) {
		hint += ": it probably has to end in /v1"
	}
	if strings.HasPrefix(strings.TrimSpace(e.excerpt), "<") {
		return f.new(agent.ErrBadResponse, fmt.Sprintf("a web page came instead of a model's answer: %q", text), hint)
	}
	return f.new(agent.ErrBadResponse, fmt.Sprintf("no model's answer came, but: %q", text), hint)
}

func (f failure) undecodable(payload []byte, err error) error {
	what := fmt.Sprintf("an event of the stream is not the JSON of a chat chunk: %q", clip(string(payload), 200))
	e := f.new(agent.ErrBadResponse, what, "the server is broken, or the base URL is not that of a chat completions API")
	e.Err = err
	return e
}

// hasVersion tells whether a path has an element like v1, v4, v1beta.
func hasVersion(path string) bool {
	for el := range strings.SplitSeq(path, "/") {
		if len(el) >= 2 && el[0] == 'v' && el[1] >= '0' && el[1] <= '9' {
			return true
		}
	}
	return false
}

// transport words the failure to get any answer.
func (f failure) transport(err error) error {
	w := f.c.where
	var dns *net.DNSError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var op *net.OpError
	said := err.Error()
	kind, hint := agent.ErrUnreachable, "check the base URL and the network"
	retry := true
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		hint = "the proxy of HTTPS_PROXY does not answer; check it, or name the host in NO_PROXY"
	case errors.As(err, &dns):
		hint = "the host's name is not known: check the base URL's spelling, the network and the proxy settings"
		retry = dns.Temporary()
	case errors.Is(err, syscall.ECONNREFUSED):
		hint = "nothing listens there: check the base URL"
		if w.local {
			hint = serverHint(w.port)
		}
	case strings.Contains(said, "server gave HTTP response to HTTPS client"), errors.As(err, &record):
		hint, retry = "the server does not speak TLS on that port: the base URL should begin with http://", false
	case strings.Contains(said, "malformed HTTP response"):
		hint, retry = "the server does not speak plain HTTP on that port: should the base URL begin with https://?", false
	case errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		hint, retry = "the server's certificate is not trusted: check the host, the clock, and a proxy that opens TLS (SSL_CERT_FILE names further authorities)", false
	case isTimeout(err):
		kind, hint = agent.ErrTimeout, "the host does not answer: check the base URL, the network and the proxy settings"
	}
	e := f.new(kind, "no connection: "+plainNetError(err), hint)
	e.Retryable, e.Err = retry, bare(err)
	return e
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func serverHint(port string) string {
	switch port {
	case "11434":
		return "is Ollama running? start it with `ollama serve`"
	case "8080":
		return "is llama.cpp running? start it with `llama-server -m MODEL.gguf`"
	case "8000":
		return "is vLLM running? start it with `vllm serve MODEL`"
	case "1234":
		return "is LM Studio's server running? start it with `lms server start`"
	}
	return "is the model's server (Ollama, llama.cpp, vLLM) running on that port?"
}

// bare takes the URL, which may hold a password, off an error.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func plainNetError(err error) string {
	err = bare(err)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	if errors.Is(err, syscall.ECONNRESET) {
		return "connection reset"
	}
	return clip(err.Error(), 200)
}

// status words an answer that is a failure by its status.
func (f failure) status(s *statusFailure) error {
	if s.status >= 300 && s.status < 400 {
		return f.redirect(s)
	}
	info := parseFailure(s.body)
	info.status = s.status
	e := f.classified(info, fmt.Sprintf("%d %s", s.status, http.StatusText(s.status)))
	e.Status = s.status
	if d, ok := retryAfter(s.header, f.c.opts.Now()); ok {
		e.RetryAfter = max(d, time.Millisecond) // 0 would mean none
	}
	return e
}

func (f failure) redirect(s *statusFailure) error {
	to := "elsewhere"
	if u, err := url.Parse(s.header.Get("Location")); err == nil && u.Host != "" {
		to = u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/chat/completions")
	}
	e := f.new(agent.ErrBadResponse, fmt.Sprintf("the server answers %d and points to %s", s.status, clip(to, 200)),
		"redirects are not followed with a task and a key; set the base URL to where it points if you trust it")
	e.Status = s.status
	return e
}

// inStream words an error object inside the stream (TC-15).
func (f failure) inStream(payload []byte) error {
	return f.classified(parseFailure(payload), "the server broke off with an error")
}

// finishedWith words a finish reason that stands for a failure.
func (f failure) finishedWith(reason string) error {
	e := f.new(agent.ErrOverloaded, "the server ended the answer with "+clip(reason, 60), "try again")
	return f.retryable(e, nil)
}

// classified words a failure that the server explained.
func (f failure) classified(info failureInfo, what string) *agent.ModelError {
	kind, retry := info.kind()
	if kind == agent.ErrAuth && f.c.opts.Key == "" && info.status == http.StatusUnauthorized {
		kind = agent.ErrNoKey
	}
	if text := info.text(); text != "" {
		what += ": " + text
	}
	e := f.new(kind, what, f.hint(kind, info))
	e.Retryable = retry
	return e
}

func (f failure) hint(kind agent.ErrorKind, info failureInfo) string {
	key := f.c.opts.KeyHint
	switch kind {
	case agent.ErrNoKey:
		return "the endpoint wants a key: set " + key
	case agent.ErrAuth:
		if info.status == http.StatusForbidden {
			return "the key may not use this model or this endpoint from here: check the account, the model's name and " + key
		}
		return "the key was refused: check " + key + " and that it belongs to this endpoint"
	case agent.ErrNotFound:
		if info.aboutModel() {
			return "check the model's name as the endpoint spells it (`thinkflow doctor` lists what it offers; with Ollama, `ollama pull NAME`)"
		}
		if !hasVersion(f.c.where.path) {
			return "check the base URL: it probably has to end in /v1"
		}
		return "check the base URL and the model's name"
	case agent.ErrOverflow:
		return "the conversation is too long for the model's context: shorten it, or choose a model with a larger one"
	case agent.ErrRateLimited:
		if info.outOfCredit() {
			return "the account has no credit left: check its plan and billing"
		}
		return "wait, or use less at a time"
	case agent.ErrOverloaded:
		return "the provider has trouble: try again later"
	case agent.ErrTimeout:
		return "try again"
	case agent.ErrContentFilter:
		return "the provider's filter refuses this content: word the task otherwise"
	}
	switch {
	case info.status == http.StatusPaymentRequired:
		return "the account has no credit left: check its plan and billing"
	case info.status == http.StatusMethodNotAllowed:
		return "check the base URL: it should end where /chat/completions follows"
	case info.status == http.StatusProxyAuthRequired:
		return "the proxy wants a login: check HTTPS_PROXY"
	}
	return "check the model's name and the settings that go into the request (temperature, reasoning_effort, extra_body)"
}

// redact takes keys and header values out of a text for people.
func (c *Client) redact(s string) string {
	secrets := []string{c.opts.Key}
	for _, v := range c.opts.Headers {
		secrets = append(secrets, v)
		if _, token, ok := strings.Cut(v, " "); ok { // Bearer TOKEN
			secrets = append(secrets, token)
		}
	}
	for _, secret := range secrets {
		if len(secret) >= 6 {
			s = strings.ReplaceAll(s, secret, "[secret]")
		}
	}
	return keyPattern.ReplaceAllString(s, "[secret]")
}

// isFailure tells whether the value of an error field is an error.
func isFailure(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "0", "[]":
		return false
	}
	return true
}
