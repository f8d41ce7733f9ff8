package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// doer sends the requests of the library: it puts our body in place of its own
// and gives it an answer that it cannot misread.
type doer struct{ c *Client }

// maxErrorBody bounds, in bytes, what is read of the body of an error.
const maxErrorBody = 64 << 10

// Do implements the library's HTTPDoer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	c := d.c
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = newExchange(req.Context(), nil)
	}
	if x.body != nil {
		req.Body = io.NopCloser(bytes.NewReader(x.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		req.ContentLength = int64(len(x.body))
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", c.opts.UserAgent)
	for k, v := range c.opts.Headers {
		req.Header.Set(k, v)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.headers = time.Now()
	body := resp.Body
	x.answer = body
	// Closing the body ends a blocked Read whatever transport is below.
	context.AfterFunc(x.ctx, func() { _ = body.Close() })
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, readFailure(resp)
	}
	text, err := plain(resp)
	if err != nil {
		x.filter = newFilter(body, c.opts.MaxLine) // an answer has begun
		return nil, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		head, _ := io.ReadAll(io.LimitReader(text, maxJunk))
		return nil, &errNotStream{string(head)}
	}
	x.text = text
	x.filter = newFilter(text, c.opts.MaxLine)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{x.filter, body}
	return resp, nil
}

// statusFailure is an answer whose status is no success.
type statusFailure struct {
	status int
	header http.Header
	body   []byte
}

func (s *statusFailure) Error() string { return http.StatusText(s.status) }

func readFailure(resp *http.Response) *statusFailure {
	text, err := plain(resp)
	if err != nil {
		text = resp.Body
	}
	body, _ := io.ReadAll(io.LimitReader(text, maxErrorBody)) // what came counts
	return &statusFailure{resp.StatusCode, resp.Header, body}
}
