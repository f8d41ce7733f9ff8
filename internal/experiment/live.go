package experiment

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// Live is a real endpoint.
type Live struct {
	BaseURL string // as ThinkFlow takes it, with its version
	Key     string
}

// live is a proxy before a real endpoint: it counts and puts the key in, so that
// no agent sees it.
type live struct {
	recorder
	server *http.Server
	url    string
}

var _ Endpoint = (*live)(nil)

func (l *live) URL() string { return l.url }
func (l *live) Close()      { _ = l.server.Close() }

func (lv *Live) proxy() (Endpoint, error) {
	base, err := url.Parse(strings.TrimRight(lv.BaseURL, "/"))
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("the base URL %q is none", lv.BaseURL)
	}
	l := &live{}
	rp := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			path := strings.TrimPrefix(pr.In.URL.Path, "/v1")
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.URL.Path, pr.Out.Host = base.Scheme, base.Host, base.Path+path, base.Host
			pr.Out.Header.Set("Accept-Encoding", "identity")
			pr.Out.Header.Set("Authorization", "Bearer "+lv.Key)
			if pr.In.Header.Get("X-Api-Key") != "" {
				pr.Out.Header.Set("X-Api-Key", lv.Key)
			}
			if pr.In.Header.Get("X-Goog-Api-Key") != "" {
				pr.Out.Header.Set("X-Goog-Api-Key", lv.Key)
			}
		},
	}
	l.server, l.url, err = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form := wireFor(r.URL.Path)
		if r.Method != http.MethodPost || form == nil {
			rp.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		rq, err := form.parse(body)
		if err != nil {
			rq = &request{body: body, canon: string(body), teaches: true}
		}
		n, _ := l.begin(rq)
		t := &tee{ResponseWriter: w, status: http.StatusOK}
		func() {
			defer func() { // the proxy panics when the agent goes away
				if v := recover(); v != nil && v != http.ErrAbortHandler {
					panic(v)
				}
			}()
			rp.ServeHTTP(t, r)
		}()
		u := usageIn(t.got.Bytes())
		l.end(n, func(c *Call) {
			c.Took, c.Status, c.Cut = time.Since(c.At), t.status, r.Context().Err() != nil
			c.Input, c.Output, c.Cached = u.input, u.output, u.cached
			c.said = t.got.String()
		})
	}))
	return l, err
}

// tee keeps what goes through.
type tee struct {
	http.ResponseWriter
	got    bytes.Buffer
	status int
}

func (t *tee) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

func (t *tee) Write(p []byte) (int, error) {
	t.got.Write(p)
	return t.ResponseWriter.Write(p)
}

// Unwrap lets the proxy flush.
func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }
