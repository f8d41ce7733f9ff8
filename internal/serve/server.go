package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// Engine is what the server needs of an agent; *agent.Engine has it.
type Engine interface {
	Run(ctx context.Context, req agent.RunRequest) (agent.RunResult, error)
	BeginResume(ctx context.Context, req agent.ResumeRequest) (func() (agent.RunResult, error), error)
	Abandon(ctx context.Context, run string) error
	Cancel(run string) bool
	Steer(run, text string) error
	Approve(run, approvalID string, d agent.Decision) error
	Runs() []agent.RunInfo
	Waiting(ctx context.Context) ([]agent.WaitingApproval, error)
	// Ledger is the ledger that the runs are recorded in.
	Ledger() (*ledger.Ledger, error)
}

var _ Engine = (*agent.Engine)(nil)

// Options configures a server. Engine and Token are required.
type Options struct {
	Engine Engine
	Token  string
	// Hosts are further values of the Host header that are accepted.
	Hosts []string
	// Remote: the address is not a loopback one, on the user's own account.
	Remote  bool
	Version string
	Log     *slog.Logger
	// Heartbeat is the time between comments that keep a stream open; 0 = 15 s.
	Heartbeat time.Duration
	// Stalled is how long a client may take nothing; 0 = 30 s.
	Stalled time.Duration
	// Poll is the time between looks at a run of another process; 0 = 500 ms.
	Poll time.Duration
	// Memory is how many events of a run are kept in memory; older ones are read
	// from the ledger; 0 = 2048.
	Memory int
	Now    func() time.Time
	// Notify hears every event of every run; nil = nobody.
	Notify func(agent.Event)
}

// Server serves runs over HTTP.
type Server struct {
	o     Options
	log   *slog.Logger
	guard *guard
	mux   *http.ServeMux
	ctx   context.Context // of all runs
	end   context.CancelCauseFunc
	work  sync.WaitGroup

	mu    sync.Mutex // guards feeds
	feeds map[string]*feed
	order []string // of feeds whose run has ended, oldest first
}

// maxFeeds bounds the ended runs whose events stay in memory; older ones are
// read from the ledger.
const maxFeeds = 32

// New makes a server.
func New(o Options) *Server {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Stalled <= 0 {
		o.Stalled = 30 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Memory <= 0 {
		o.Memory = maxFeedEvents
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, log: o.Log, feeds: map[string]*feed{}, mux: http.NewServeMux()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	hosts := map[string]bool{}
	for _, h := range o.Hosts {
		hosts[h] = true
	}
	s.guard = &guard{token: o.Token, hosts: hosts, remote: o.Remote, now: o.Now}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	for _, r := range routes() {
		s.mux.HandleFunc(r.Method+" "+r.Path, r.serve(s))
	}
	return s
}

// Close ends the runs, those that wait for an answer for now, and waits for
// them.
func (s *Server) Close() {
	s.end(agent.ErrGone)
	s.work.Wait()
}

// Ticket makes a one-time ticket for a browser: GET /?ticket=…
func (s *Server) Ticket() string { return s.guard.newTicket() }

// Ask implements agent.Approver: whoever follows the run answers with POST
// /runs/{id}/approve.
func (s *Server) Ask(ctx context.Context, _ agent.ApprovalEvent) (agent.Decision, error) {
	<-ctx.Done()
	return agent.Deny, ctx.Err()
}

// ServeHTTP checks where a request comes from, then serves it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'")
	switch {
	case !s.guard.host(r):
		s.fail(w, http.StatusForbidden, "host", "this host name is not served")
		return
	case !s.guard.origin(r):
		s.fail(w, http.StatusForbidden, "origin", "requests of other sites are not served")
		return
	}
	if t := r.URL.Query().Get("ticket"); t != "" && r.URL.Path == "/" && r.Method == http.MethodGet {
		s.enter(w, r, t)
		return
	}
	if !s.guard.allowed(r) {
		h.Set("WWW-Authenticate", `Bearer realm="thinkflow"`)
		s.fail(w, http.StatusUnauthorized, "token", "send Authorization: Bearer TOKEN, or open the address that `thinkflow serve` prints")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// enter changes a ticket into a cookie and leaves the ticket behind.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, ticket string) {
	cookie, ok := s.guard.redeem(ticket)
	if !ok {
		s.fail(w, http.StatusUnauthorized, "ticket", "this ticket was used or is too old; get another one with POST /tickets, or start thinkflow serve again")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	q := r.URL.Query()
	q.Del("ticket")
	to := "/"
	if e := q.Encode(); e != "" {
		to += "?" + e
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// Problem is the body of every answer that is not a success.
type Problem struct {
	Code  string `json:"code"`
	Error string `json:"error"`
}

func (s *Server) fail(w http.ResponseWriter, status int, code, message string) {
	s.answer(w, status, Problem{code, message})
}

func (s *Server) answer(w http.ResponseWriter, status int, v any) {
	if v == nil {
		w.WriteHeader(status)
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"code":"internal","error":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// maxBody bounds the body of a request, in bytes.
const maxBody = 8 << 20

// read decodes the body of a request; nothing is as good as {}.
func read(w http.ResponseWriter, r *http.Request, v any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind the object")
		}
	}
	if err != nil {
		return fmt.Errorf("the body is not as it should be: %w", err)
	}
	return nil
}

// feed is the list of a run's events in this process, nil when it has none.
func (s *Server) feed(run string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feeds[run]
}

// heard adds an event to the list of its run.
func (s *Server) heard(f *feed, ev agent.Event) {
	f.add(ev)
	if s.o.Notify != nil {
		s.o.Notify(ev)
	}
}

// follow begins, or goes on with, the list of a run.
func (s *Server) follow(run string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[run]
	if f == nil {
		f = newFeed(s.o.Memory)
		s.feeds[run] = f
	}
	return f
}

// ended lets the oldest ended runs go from memory.
func (s *Server) ended(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, run)
	for len(s.order) > maxFeeds {
		delete(s.feeds, s.order[0])
		s.order = s.order[1:]
	}
}
