package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"thinkflow/agent"
)

const testKey = "sk-test-key-123456"

func TestStatuses(t *testing.T) {
	page := "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr>" + strings.Repeat("nginx ", 200) + "</body></html>"
	tests := []struct {
		name, base, body string
		status           int
		noKey            bool
		kind             agent.ErrorKind
		retryable        bool
		message, hint    string
	}{
		{name: "no key", status: 401, noKey: true, body: `{"error":{"message":"Missing bearer"}}`, kind: agent.ErrNoKey, message: "401 Unauthorized: Missing bearer", hint: "set MY_KEY"},
		{name: "wrong key", status: 401, body: `{"error":{"message":"Incorrect API key provided: ` + testKey + `. See https://x","code":"invalid_api_key"}}`, kind: agent.ErrAuth, message: "provided: [secret]", hint: "check MY_KEY"},
		{name: "forbidden", status: 403, body: `{"error":{"message":"Country not supported"}}`, kind: agent.ErrAuth, message: "403 Forbidden: Country not supported", hint: "may not use this model"},
		{name: "no credit", status: 402, body: `{"error":{"message":"Insufficient Balance"}}`, kind: agent.ErrBadRequest, message: "Insufficient Balance", hint: "billing"},
		{name: "model unknown, OpenAI", status: 404, body: `{"error":{"message":"The model 'm' does not exist","code":"model_not_found"}}`, kind: agent.ErrNotFound, message: "does not exist", hint: "model's name as the endpoint spells it"},
		{name: "model unknown, vLLM", status: 404, body: `{"object":"error","message":"The model m does not exist.","type":"NotFoundError","code":404}`, kind: agent.ErrNotFound, message: "The model m does not exist.", hint: "`thinkflow doctor` lists"},
		{name: "model unknown, Ollama", status: 404, body: `{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error"}}`, kind: agent.ErrNotFound, hint: "ollama pull"},
		{name: "model unknown, DeepSeek", status: 400, body: `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`, kind: agent.ErrNotFound, hint: "model's name"},
		{name: "wrong path", base: "https://model.test", status: 404, body: `{"detail":"Not Found"}`, kind: agent.ErrNotFound, message: "404 Not Found: Not Found", hint: "/v1"},
		{name: "wrong path, text", base: "https://model.test", status: 404, body: "404 page not found\n", kind: agent.ErrNotFound, message: "404 page not found", hint: "/v1"},
		{name: "wrong method", status: 405, body: `{"detail":"Method Not Allowed"}`, kind: agent.ErrBadRequest, hint: "base URL"},
		{name: "rate", status: 429, body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, kind: agent.ErrRateLimited, retryable: true, message: "429 Too Many Requests: slow down"},
		{name: "quota", status: 429, body: `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, kind: agent.ErrRateLimited, hint: "billing"},
		{name: "request larger than the rate", status: 429, body: `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced"}}`, kind: agent.ErrOverflow},
		{name: "overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, kind: agent.ErrOverloaded, retryable: true, message: "Overloaded"},
		{name: "a proxy's page", status: 502, body: page, kind: agent.ErrOverloaded, retryable: true, message: "502 Bad Gateway: 502 Bad Gateway nginx"},
		{name: "server error without a body", status: 500, kind: agent.ErrOverloaded, retryable: true, message: "500 Internal Server Error"},
		{name: "not implemented", status: 501, kind: agent.ErrBadRequest},
		{name: "overflow, no body", status: 413, kind: agent.ErrOverflow, hint: "too long for the model's context"},
		{name: "overflow, llama.cpp", status: 400, body: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, kind: agent.ErrOverflow},
		{name: "overflow, DashScope", status: 400, body: `{"error":{"message":"Range of input length should be [1, 98304]","code":"invalid_parameter_error"}}`, kind: agent.ErrOverflow},
		{name: "overflow, Gemini", status: 400, body: `[{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, kind: agent.ErrOverflow},
		{name: "overflow, OpenRouter", status: 400, body: `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"prompt is too long: 210000 tokens\"}"}}}`, kind: agent.ErrOverflow, message: "prompt is too long"},
		{name: "overflow, GLM", status: 400, body: `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, kind: agent.ErrOverflow},
		{name: "no overflow", status: 400, body: `{"error":{"message":"num_ctx: invalid context size"}}`, kind: agent.ErrBadRequest},
		{name: "overflow, LM Studio", status: 500, body: `{"error":"The number of tokens to keep from the initial prompt is greater than the context length"}`, kind: agent.ErrOverflow},
		{name: "bad schema", status: 400, body: `{"error":{"message":"invalid tool schema"}}`, kind: agent.ErrBadRequest, message: "invalid tool schema"},
		{name: "FastAPI", status: 422, body: `{"detail":[{"loc":["body"],"msg":"field required"}]}`, kind: agent.ErrBadRequest, message: "field required"},
		{name: "filter, Azure", status: 400, body: `{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, kind: agent.ErrContentFilter},
		{name: "timeout at the server", status: 408, kind: agent.ErrTimeout, retryable: true},
		{name: "a list of messages", status: 400, body: `{"error":{"message":["one","two"]}}`, kind: agent.ErrBadRequest, message: `["one","two"]`},
		{name: "proxy login", status: 407, body: "<html>auth</html>", kind: agent.ErrBadRequest, message: "auth", hint: "HTTPS_PROXY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{BaseURL: tt.base, KeyHint: "MY_KEY", HTTPClient: &http.Client{Transport: bodyTransport{
				open: func() io.Reader { return strings.NewReader(tt.body) }, status: tt.status, header: http.Header{},
			}}}
			if o.BaseURL == "" {
				o.BaseURL = testURL
			}
			if !tt.noKey {
				o.Key = testKey
			}
			_, err := New(o).Stream(context.Background(), testRequest)
			var me *agent.ModelError
			if !errors.As(err, &me) {
				t.Fatalf("got %v", err)
			}
			if me.Kind != tt.kind || me.Retryable != tt.retryable || me.Status != tt.status {
				t.Errorf("%s, retryable %v, status %d", me.Kind, me.Retryable, me.Status)
			}
			if !strings.Contains(me.Message, tt.message) || !strings.Contains(me.Hint, tt.hint) || me.Hint == "" {
				t.Errorf("message %q, hint %q", me.Message, me.Hint)
			}
			if !strings.HasPrefix(me.Message, o.BaseURL+" (model m): ") {
				t.Errorf("endpoint and model are not named: %q", me.Message)
			}
			if strings.Contains(err.Error(), testKey) || strings.Contains(me.Message, "<") || len(me.Message) > 300 {
				t.Errorf("message %q", me.Message)
			}
		})
	}
}

func TestSecretsStayOut(t *testing.T) {
	body := `{"error":{"message":"bad ` + testKey + ` tok-header-value Bearer abcdefghijklmnop hf_abcdefghijklmnopqrst sk-proj-AbC123***xyzw"}}`
	c := New(Options{
		BaseURL: "https://user:pa55word@model.test/v1?key=qq-secret", Key: " " + testKey + "\n", Headers: map[string]string{"X-Auth": "Token tok-header-value"},
		HTTPClient: &http.Client{Transport: bodyTransport{open: func() io.Reader { return strings.NewReader(body) }, status: 400, header: http.Header{}}},
	})
	_, err := c.Stream(context.Background(), testRequest)
	if err == nil {
		t.Fatal("no error")
	}
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	for _, secret := range []string{testKey, "tok-header-value", "abcdefghijklmnop", "pa55word", "qq-secret", "AbC123"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
}

func TestTransportFailures(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + gone.Addr().String() + "/v1"
	gone.Close()
	redirect := httptest.NewServer(http.RedirectHandler("https://elsewhere.test/v2/chat/completions?token=x", http.StatusMovedPermanently))
	defer redirect.Close()
	dns := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere.test", IsNotFound: true}}
	})}
	refusing := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	})}
	slow := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	})}
	proxy := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("broken")}
	})}
	tests := []struct {
		name, url     string
		client        *http.Client
		kind          agent.ErrorKind
		retryable     bool
		message, hint string
	}{
		{"refused", refused, nil, agent.ErrUnreachable, true, "connection refused", "is the model's server (Ollama, llama.cpp, vLLM) running"},
		{"refused by Ollama", "http://localhost:11434/v1", refusing, agent.ErrUnreachable, true, "connection refused", "ollama serve"},
		{"refused elsewhere", "http://10.1.2.3:11434/v1", refusing, agent.ErrUnreachable, true, "connection refused", "nothing listens there"},
		{"host does not answer", "https://10.1.2.3/v1", slow, agent.ErrTimeout, true, "i/o timeout", "does not answer"},
		{"proxy", "https://model.test/v1", proxy, agent.ErrUnreachable, true, "proxyconnect", "HTTPS_PROXY"},
		{"no such host", "https://nowhere.test/v1", dns, agent.ErrUnreachable, false, "no such host", "host's name is not known"},
		{"plain server, https URL", strings.Replace(plain.URL, "http:", "https:", 1), nil, agent.ErrUnreachable, false, "HTTP response to HTTPS client", "begin with http://"},
		{"TLS server, http URL", strings.Replace(secure.URL, "https:", "http:", 1) + "/v1", nil, agent.ErrBadRequest, false, "400 Bad Request: Client sent an HTTP request to an HTTPS server.", ""},
		{"unknown authority", secure.URL, nil, agent.ErrUnreachable, false, "certificate", "SSL_CERT_FILE"},
		{"redirect", redirect.URL, nil, agent.ErrBadResponse, false, "points to https://elsewhere.test/v2", "set the base URL"},
		{"no URL", "localhost:11434/v1", nil, agent.ErrUnreachable, false, "not a URL", "http://localhost:11434/v1"},
		{"not a URL at all", "http://[::1", nil, agent.ErrUnreachable, false, "not a URL", "begins with http://"},
		{"OpenAI without a key", "", nil, agent.ErrNoKey, false, "there is no API key", "set OPENAI_API_KEY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(Options{BaseURL: tt.url, HTTPClient: tt.client}).Stream(testContext(t), testRequest)
			var me *agent.ModelError
			if !errors.As(err, &me) {
				t.Fatalf("got %v", err)
			}
			if me.Kind != tt.kind || me.Retryable != tt.retryable || !strings.Contains(me.Message, tt.message) || !strings.Contains(me.Hint, tt.hint) {
				t.Errorf("%s, retryable %v\nmessage %q\nhint %q", me.Kind, me.Retryable, me.Message, me.Hint)
			}
		})
	}
	_, err = New(Options{BaseURL: testURL}).Stream(testContext(t), &agent.Request{})
	if me, ok := err.(*agent.ModelError); !ok || !strings.Contains(me.Message, "no model is named") {
		t.Errorf("no model: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWebPageWithStatus200(t *testing.T) {
	c := New(Options{BaseURL: "https://model.test", HTTPClient: &http.Client{Transport: bodyTransport{
		open: func() io.Reader {
			return strings.NewReader("<!doctype html><title>Console</title><script>x()</script>")
		},
		header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
	}}})
	_, err := c.Stream(context.Background(), testRequest)
	me, ok := err.(*agent.ModelError)
	if !ok || me.Kind != agent.ErrBadResponse || !strings.Contains(me.Message, `"Console"`) || !strings.Contains(me.Hint, "/v1") {
		t.Errorf("got %v", err)
	}
}
