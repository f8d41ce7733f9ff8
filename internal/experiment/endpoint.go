package experiment

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Pace is how fast the simulated model is.
type Pace struct {
	First time.Duration // to the first token
	Rate  float64       // tokens a second, 4 characters a token
	Speed float64       // divides all times; 1 is real time
}

// tokenChars is the characters of a token.
const tokenChars = 4

// Call is one request as the endpoint saw it.
type Call struct {
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took"`           // from its arrival to its last byte
	Bytes  int           `json:"bytes"`          // of the body
	Side   bool          `json:"side,omitempty"` // not of the agent's loop: a title and the like
	Cut    bool          `json:"cut,omitempty"`  // the agent ended the answer
	Status int           `json:"status"`
	// Tokens; -1 is not reported.
	Input  int `json:"input"`
	Output int `json:"output"`
	Cached int `json:"cached"`
	// Prefix is the bytes of tools, system text and messages that an earlier
	// request had in the same place, Canon all of them.
	Prefix int `json:"prefix"`
	Canon  int `json:"canon"`

	// Late is the most by which a token came behind its time because this machine
	// did not wake the model up.
	Late time.Duration `json:"late,omitempty"`

	body []byte
	said string
	acts bool // the answer asked for something
}

// Endpoint is what the agents of one run talk to.
type Endpoint interface {
	// URL is the base without a version: agents add /v1 where they want it.
	URL() string
	// Calls are the requests so far. It waits, at most [settleTime], for answers
	// whose end is not recorded yet: an agent may be gone before that.
	Calls() []Call
	// Close ends it.
	Close()
}

// recorder keeps the calls of a run.
type recorder struct {
	mu     sync.Mutex // guards all below
	calls  []Call
	canons []string
	open   int           // calls that have not ended
	idle   chan struct{} // closed when open falls to 0; nil before the first call
}

// settleTime is how long Calls waits at most.
const settleTime = 2 * time.Second

func (r *recorder) Calls() []Call {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-time.After(settleTime):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Call(nil), r.calls...)
}

// begin notes a request and finds what of it was there before, prefix, in bytes.
// The call n is open until end.
func (r *recorder) begin(rq *request) (n, prefix int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open++; r.open == 1 {
		r.idle = make(chan struct{})
	}
	for _, c := range r.canons {
		prefix = max(prefix, commonPrefix(c, rq.canon))
	}
	r.canons = append(r.canons, rq.canon)
	r.calls = append(r.calls, Call{At: time.Now(), Bytes: len(rq.body), Side: rq.side(), Status: http.StatusOK,
		Input: -1, Output: -1, Cached: -1, Prefix: prefix, Canon: len(rq.canon), body: rq.body})
	return len(r.calls) - 1, prefix
}

// end records with f what became of the call n.
func (r *recorder) end(n int, f func(*Call)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.calls[n])
	if r.open--; r.open == 0 {
		close(r.idle)
	}
}

// simulated is the endpoint of a scripted run.
type simulated struct {
	recorder
	player *player
	pace   Pace
	server *http.Server
	url    string
}

var _ Endpoint = (*simulated)(nil)

// serve listens on a loopback port.
func serve(h http.Handler) (*http.Server, string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for the endpoint: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(ln) }() // until Close
	return s, "http://" + ln.Addr().String(), nil
}

func simulate(p *player, pace Pace) (*simulated, error) {
	s := &simulated{player: p, pace: pace}
	var err error
	s.server, s.url, err = serve(s)
	return s, err
}

func (s *simulated) URL() string { return s.url }
func (s *simulated) Close()      { _ = s.server.Close() }

func (s *simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form := wireFor(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"), strings.Contains(r.URL.Path, ":countTokens"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"input_tokens":%d,"totalTokens":%d}`, len(body)/tokenChars, len(body)/tokenChars)
		return
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1,"owned_by":"simulated","context_length":200000}]}`, ModelName)
		return
	case r.Method != http.MethodPost || form == nil:
		http.NotFound(w, r)
		return
	}
	rq, err := form.parse(body)
	if err != nil {
		http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	n, prefix := s.begin(rq)
	var pieces []piece
	if rq.side() {
		pieces = []piece{{text: "A task"}}
	} else {
		pieces = s.player.answer(rq)
	}
	u := counted{Input: rq.tokens(), Cached: prefix / tokenChars}
	out, cut, late := s.play(w, r, form, rq, pieces, u)
	s.end(n, func(c *Call) {
		c.Took, c.Input, c.Cached, c.Output, c.Cut, c.Late = time.Since(c.At), u.Input, u.Cached, tokens(len(out)), cut, late
		c.said, c.acts = out, strings.Contains(out, "<tf-") || slices.ContainsFunc(pieces, func(p piece) bool { return p.call != "" })
	})
}

// ModelName is the name of the simulated model.
const ModelName = "simulated"

func (rq *request) tokens() int { return tokens(len(rq.body)) }

func tokens(bytes int) int { return (bytes + tokenChars - 1) / tokenChars }

// play sends the pieces at the pace and returns what was sent, whether the agent
// went away before the end, and how late this machine was.
func (s *simulated) play(w http.ResponseWriter, r *http.Request, form wire, rq *request, pieces []piece, u counted) (said string, cut bool, late time.Duration) {
	began := time.Now()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	var out strings.Builder
	sentTokens := 0
	// wait keeps to the clock of the whole answer, so that delays do not add up.
	wait := func() bool {
		at := s.pace.First + time.Duration(float64(sentTokens)/s.pace.Rate*float64(time.Second))
		due := began.Add(time.Duration(float64(at) / s.pace.Speed))
		d := time.Until(due)
		if d <= 0 {
			return r.Context().Err() == nil
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			late = max(late, time.Since(due))
			return true
		case <-r.Context().Done():
			return false
		}
	}
	stream := func(text string, put func(string)) bool {
		for len(text) > 0 {
			n := 0
			for i := range text { // whole characters
				if n = i; i >= tokenChars {
					break
				}
			}
			if n < tokenChars {
				n = len(text)
			}
			if !wait() {
				return false
			}
			put(text[:n])
			out.WriteString(text[:n])
			text = text[n:]
			sentTokens++
		}
		return true
	}
	if !wait() {
		return "", true, late
	}
	a := form.open(w, rq)
	calls := 0
	for _, p := range pieces {
		if p.call == "" {
			if !stream(p.text, a.text) {
				return out.String(), true, late
			}
			continue
		}
		sentTokens += tokens(len(p.call))
		out.WriteString(p.call)
		if !wait() {
			return out.String(), true, late
		}
		a.call(calls, p)
		calls++
		if !stream(p.args, a.args) {
			return out.String(), true, late
		}
		a.callEnd()
	}
	if !wait() { // the last token takes its time as well
		return out.String(), true, late
	}
	u.Output = tokens(out.Len())
	a.end(calls, u)
	return out.String(), false, late
}

// staticFiles serves a folder.
func staticFiles(dir string) http.Handler { return http.FileServer(http.Dir(dir)) }
