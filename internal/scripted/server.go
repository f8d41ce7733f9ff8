package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options of a server. The zero value is good.
type Options struct {
	// Log gets one line per request and failure; nil logs nothing.
	Log func(format string, args ...any)
	// Speed divides every pause; 0 means 1.
	Speed float64
	// Loop starts the script anew when its turns are used up.
	Loop bool
}

// Outcome tells how the answer to a request ended.
type Outcome string

// The outcomes. Playing: not ended yet. Gone: the client went away before the
// turn was over.
const (
	Playing  Outcome = "playing"
	Complete Outcome = "complete"
	Cut      Outcome = "cut"
	Gone     Outcome = "gone"
)

// Server plays a script. It is an http.Handler.
type Server struct {
	script *Script
	opts   Options
	closed chan struct{} // closed by Close: ends every wait

	mu       sync.Mutex // guards all below
	changed  chan struct{}
	requests []Request
	outcomes []Outcome
	sent     []string // visible text sent so far, per request
	used     []bool
	failures []string
	released map[string]bool
	reached  map[string]bool
	isClosed bool
}

// New returns a server for the script.
func New(s *Script, o Options) *Server {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Server{
		script: s, opts: o, closed: make(chan struct{}), changed: make(chan struct{}),
		used: make([]bool, len(s.Turns)), released: map[string]bool{}, reached: map[string]bool{},
	}
}

// Start serves the script on a loopback port. The URL ends in /v1: it is a base
// URL for clients. It panics when no port can be had.
func Start(s *Script) (url string, stop func()) {
	url, stop, err := New(s, Options{}).Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return url, stop
}

// Listen serves on addr (host:port; port 0 takes a free one) until stop, which
// also ends the answers that are still playing. The URL ends in /v1.
func (sv *Server) Listen(addr string) (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, fmt.Errorf("listen for the scripted model: %w", err)
	}
	hs := &http.Server{Handler: sv, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(ln) // always ErrServerClosed: Close is the only way out
	}()
	return "http://" + ln.Addr().String() + "/v1", func() {
		sv.Close()
		_ = hs.Close()
		<-done
	}, nil
}

// Close ends every pause, await and hang of answers still playing.
func (sv *Server) Close() {
	sv.update(func() {
		if !sv.isClosed {
			sv.isClosed = true
			close(sv.closed)
		}
	})
}

// update is the only way in which the guarded fields change; it wakes waiters.
func (sv *Server) update(f func()) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	f()
	close(sv.changed)
	sv.changed = make(chan struct{})
}

// wait returns when cond, called under the lock, holds.
func (sv *Server) wait(ctx context.Context, cond func() bool) error {
	for {
		sv.mu.Lock()
		ok, changed := cond(), sv.changed
		sv.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-sv.closed:
			return fmt.Errorf("the scripted server was closed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Requests returns the chat requests that came so far.
func (sv *Server) Requests() []Request {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return append([]Request(nil), sv.requests...)
}

// Failures returns what went against the script: expectations that did not
// hold, requests for which no turn was left.
func (sv *Server) Failures() []string {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return append([]string(nil), sv.failures...)
}

// Remaining returns the names, or the lines, of turns never played.
func (sv *Server) Remaining() []string {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	var out []string
	for i, used := range sv.used {
		if t := &sv.script.Turns[i]; !used {
			out = append(out, t.label())
		}
	}
	return out
}

// Sent returns the visible text that was written to the answer of request n
// (from 1) so far.
func (sv *Server) Sent(n int) string {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if n < 1 || n > len(sv.sent) {
		return ""
	}
	return sv.sent[n-1]
}

// Release lets every `await name` go on, those to come included.
func (sv *Server) Release(name string) {
	sv.update(func() { sv.released[name] = true })
}

// Reached waits until an answer stands at `await name`, or has passed it: all
// that comes before it has been written.
func (sv *Server) Reached(ctx context.Context, name string) error {
	return sv.wait(ctx, func() bool { return sv.reached[name] })
}

// WaitRequests waits until n chat requests came.
func (sv *Server) WaitRequests(ctx context.Context, n int) error {
	return sv.wait(ctx, func() bool { return len(sv.requests) >= n })
}

// WaitSent waits until the visible text sent for request n (from 1) contains
// text.
func (sv *Server) WaitSent(ctx context.Context, n int, text string) error {
	return sv.wait(ctx, func() bool { return n <= len(sv.sent) && strings.Contains(sv.sent[n-1], text) })
}

// WaitEnd waits until the answer to request n (from 1) ended, and says how.
func (sv *Server) WaitEnd(ctx context.Context, n int) (Outcome, error) {
	var o Outcome
	err := sv.wait(ctx, func() bool {
		if n <= len(sv.outcomes) {
			o = sv.outcomes[n-1]
		}
		return o != "" && o != Playing
	})
	return o, err
}

// maxBody bounds the requests that are read, in bytes.
const maxBody = 256 << 20

// ServeHTTP answers …/chat/completions and …/models.
func (sv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		sv.chat(w, r)
	case strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet:
		sv.models(w)
	default:
		writeError(w, http.StatusNotFound, fmt.Sprintf("the scripted model has no %s %s", r.Method, r.URL.Path), "not_found")
	}
}

func (sv *Server) models(w http.ResponseWriter) {
	m := map[string]any{"id": sv.script.Model, "object": "model", "owned_by": "thinkflow"}
	if sv.script.Context > 0 {
		m["context_length"] = sv.script.Context
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": []any{m}})
}

func (sv *Server) chat(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error(), "invalid_request_error")
		return
	}
	req := Request{At: at, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	var turn *Turn
	var failure string
	sv.update(func() {
		req.Turn = sv.pick(req)
		req.N = len(sv.requests) + 1
		sv.requests = append(sv.requests, req)
		sv.outcomes = append(sv.outcomes, Playing)
		sv.sent = append(sv.sent, "")
		if req.Turn < 0 {
			failure = fmt.Sprintf("script %s: request %d came, but all of its %d turns are used up", sv.script.Name, req.N, len(sv.script.Turns))
		} else {
			sv.used[req.Turn] = true
			turn = &sv.script.Turns[req.Turn]
			if err := turn.check(req); err != nil {
				failure = fmt.Sprintf("script %s: request %d, %s: %v", sv.script.Name, req.N, turn.label(), err)
			}
		}
		if failure != "" {
			sv.failures = append(sv.failures, failure)
		}
	})
	outcome := Cut // stands when play panics with http.ErrAbortHandler
	defer func() {
		sv.update(func() { sv.outcomes[req.N-1] = outcome })
		sv.opts.Log("request %d: %s", req.N, outcome)
	}()
	if failure != "" {
		sv.opts.Log("%s", failure)
		writeError(w, http.StatusNotImplemented, failure, "script_error")
		outcome = Complete
		return
	}
	sv.opts.Log("request %d: %d bytes, plays %s", req.N, len(body), turn.label())
	p := &player{sv: sv, turn: turn, req: req, w: w, ctx: r.Context()}
	outcome = p.play()
	if outcome != Complete {
		panic(http.ErrAbortHandler) // or the body would end as if complete
	}
}

// pick chooses the turn for a request; -1 when none is left.
func (sv *Server) pick(r Request) int {
	msgs := r.Messages()
	for round := 0; round < 2; round++ {
		for _, conditional := range []bool{true, false} {
			for i := range sv.script.Turns {
				t := &sv.script.Turns[i]
				if sv.used[i] && !t.repeat || (len(t.when) > 0) != conditional {
					continue
				}
				fits := true
				for _, text := range t.when {
					fits = fits && anyContains(msgs, text)
				}
				if fits {
					return i
				}
			}
		}
		if !sv.opts.Loop {
			break
		}
		clear(sv.used)
	}
	return -1
}

func (t *Turn) label() string {
	if t.Name != "" {
		return fmt.Sprintf("turn %s (line %d)", t.Name, t.Line)
	}
	return fmt.Sprintf("turn of line %d", t.Line)
}

func writeError(w http.ResponseWriter, status int, message, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": status}})
}
