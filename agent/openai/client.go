package openai

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"thinkflow/agent"
)

// DefaultBaseURL is used when Options.BaseURL is empty.
const DefaultBaseURL = "https://api.openai.com/v1"

// Defaults of the options.
const (
	DefaultConnectTimeout    = 10 * time.Second
	DefaultFirstTokenTimeout = 2 * time.Minute
	DefaultIdleTimeout       = time.Minute
	DefaultMaxLine           = 16 << 20
)

// Options of a client. The zero value talks to OpenAI without a key.
type Options struct {
	// BaseURL goes up to and includes the version: https://host/v1. A trailing
	// /chat/completions is dropped.
	BaseURL string
	// Key is the API key; white space around it is dropped.
	Key string
	// KeyHint names what to set when there is no key: "OPENAI_API_KEY".
	KeyHint string
	// HTTPClient sends the requests; nil means one with ConnectTimeout and the
	// proxy of the environment. Redirects are never followed.
	HTTPClient *http.Client
	// ConnectTimeout bounds the connection, TLS included.
	ConnectTimeout time.Duration
	// FirstTokenTimeout bounds the time from the request to the first piece of
	// the answer. IdleTimeout bounds the time between data events after that;
	// comments do not count as data (LR-13). Negative: no bound.
	FirstTokenTimeout, IdleTimeout time.Duration
	// MaxLine bounds one event of the stream, in bytes.
	MaxLine int
	// UserAgent is sent as it stands; "" means thinkflow.
	UserAgent string
	// Headers are further request headers; their values count as secrets.
	Headers map[string]string
	// Extra fields are merged into every request body, those of the request
	// winning. A nil value removes a field.
	Extra map[string]any
	// Log gets what is tolerated silently otherwise; nil discards it.
	Log *slog.Logger
	// Now is the clock for Retry-After dates; nil means time.Now.
	Now func() time.Time
	// NewID makes ids for calls that came without one; nil means random ones.
	NewID func() string
}

// Client is an agent.Model. It is safe for concurrent use.
type Client struct {
	opts   Options
	where  endpoint
	http   *http.Client
	api    *goopenai.Client
	badURL error

	mu     sync.Mutex // guards below
	learnt map[string]dialect
}

var (
	_ agent.Model = (*Client)(nil)
	_ agent.Sizer = (*Client)(nil)
)

// dialect is what was learnt about one model of the endpoint.
type dialect struct {
	// reasoningField is the delta field in which reasoning came, and under which
	// it goes back (TC-21); "" = none seen.
	reasoningField string
	// Fields that the endpoint refused, and that are left out since.
	noStreamOptions, noTemperature bool
	// completionTokens: max_completion_tokens instead of max_tokens.
	completionTokens bool
}

// New returns a client. A base URL that cannot be used is reported by Stream.
func New(o Options) *Client {
	o.Key = strings.TrimSpace(o.Key)
	o.BaseURL = strings.TrimSpace(o.BaseURL)
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	o.BaseURL = strings.TrimRight(strings.TrimSuffix(o.BaseURL, "/chat/completions"), "/")
	if o.KeyHint == "" {
		o.KeyHint = "OPENAI_API_KEY"
	}
	o.ConnectTimeout = orDefault(o.ConnectTimeout, DefaultConnectTimeout)
	o.FirstTokenTimeout = orDefault(o.FirstTokenTimeout, DefaultFirstTokenTimeout)
	o.IdleTimeout = orDefault(o.IdleTimeout, DefaultIdleTimeout)
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.UserAgent == "" {
		o.UserAgent = "thinkflow"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return "call_" + strings.ToLower(rand.Text()[:20]) }
	}
	c := &Client{opts: o, learnt: map[string]dialect{}}
	c.where, c.badURL = newEndpoint(o)
	c.http = httpClient(o)
	cfg := goopenai.DefaultConfig(o.Key)
	cfg.BaseURL = o.BaseURL
	cfg.HTTPClient = doer{c}
	c.api = goopenai.NewClientWithConfig(cfg)
	return c
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

func httpClient(o Options) *http.Client {
	hc := http.Client{}
	if o.HTTPClient != nil {
		hc = *o.HTTPClient
	} else {
		t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		t.MaxIdleConnsPerHost, t.IdleConnTimeout = 4, 90*time.Second
		if o.ConnectTimeout > 0 {
			t.DialContext = (&net.Dialer{Timeout: o.ConnectTimeout}).DialContext
			t.TLSHandshakeTimeout = o.ConnectTimeout
		}
		t.DisableCompression = true // a compressed stream comes in lumps
		hc.Transport = t
	}
	// Following a redirect would send the task to a host that nobody named, or
	// turn the POST into a GET.
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &hc
}

// Stream opens a streaming answer. Errors are *agent.ModelError, or the
// context's error when it was cancelled. A request that the endpoint refuses for
// a field which can be left out is sent again without it, and so are later ones.
func (c *Client) Stream(ctx context.Context, req *agent.Request) (agent.Stream, error) {
	if err := c.usable(req.Model); err != nil {
		return nil, err
	}
	for {
		d := c.dialect(req.Model)
		body, err := c.encode(req, d)
		if err != nil {
			return nil, c.failure(req.Model).requestError(err)
		}
		s, err := c.open(ctx, req.Model, body)
		if err == nil {
			return s, nil
		}
		adapted, field := d.without(err, body)
		if field == "" {
			return nil, err
		}
		c.opts.Log.Warn("endpoint refuses a field; it is left out from now on", "endpoint", c.where.name, "model", req.Model, "field", field)
		c.learn(req.Model, func(d *dialect) {
			adapted.reasoningField = d.reasoningField
			*d = adapted
		})
	}
}

// usable reports what makes any request pointless.
func (c *Client) usable(model string) error {
	f := c.failure(model)
	switch {
	case c.badURL != nil:
		return f.badURL(c.opts.BaseURL, c.badURL)
	case c.opts.Key == "" && c.where.host == "api.openai.com":
		return f.noKey()
	case strings.TrimSpace(model) == "":
		return f.noModel()
	}
	return nil
}

func (c *Client) dialect(model string) dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.learnt[model]
}

func (c *Client) learn(model string, change func(*dialect)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.learnt[model]
	change(&d)
	c.learnt[model] = d
}

// endpoint is the base URL in a form that may be shown.
type endpoint struct {
	name  string // scheme, host and path; no user, no query
	host  string
	port  string
	path  string
	local bool
	https bool
}

func newEndpoint(o Options) (endpoint, error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil {
		return endpoint{name: "the base URL"}, errNotURL
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return endpoint{name: "the base URL"}, errNotURL
	}
	e := endpoint{
		name: u.Scheme + "://" + u.Host + u.Path, host: u.Hostname(), port: u.Port(), path: u.Path,
		https: u.Scheme == "https",
	}
	ip := net.ParseIP(e.host)
	e.local = e.host == "localhost" || strings.HasSuffix(e.host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	return e, nil
}
