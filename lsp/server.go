package lsp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// Server is one connection with an editor.
type Server struct {
	protocol.UnimplementedServer

	opts  Options
	log   *slog.Logger
	clock Clock
	docs  *documents
	state lifecycle
	exit  chan struct{} // closed by the exit notification

	// Set before the first message arrives.
	ctx    context.Context // of the connection
	conn   jsonrpc2.Conn
	client protocol.Client

	mu       sync.Mutex    // guards what follows
	ready    chan struct{} // closed when the engine stands or could not be set up
	facts    clientFacts
	folders  []folder
	settings []byte // raw JSON
	backend  *Backend
	failed   error // why there is no engine
	starting bool
	runs     map[string]*activeRun
	gates    map[string]chan struct{} // by document key: one applyEdit at a time
	talks    talks
}

var (
	_ protocol.Server = (*Server)(nil)
	_ agent.Editor    = (*Server)(nil)
	_ agent.Approver  = (*Server)(nil)
)

func newServer(o Options) *Server {
	s := &Server{
		opts: o, log: o.Log, clock: o.Clock, docs: newDocuments(),
		exit: make(chan struct{}), ready: make(chan struct{}),
		runs: map[string]*activeRun{}, gates: map[string]chan struct{}{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = realClock{}
	}
	return s
}

// start builds the engine in the background, once. again: a former attempt that
// failed is repeated, since the configuration may have been put right.
func (s *Server) start(again bool) (ready <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again && s.failed != nil {
		s.failed, s.starting, s.ready = nil, false, make(chan struct{})
	}
	if !s.starting {
		s.starting = true
		go s.build(s.setup())
	}
	return s.ready
}

// setup is called with mu held.
func (s *Server) setup() Setup {
	client := s.facts.name
	if s.facts.version != "" {
		client += " " + s.facts.version
	}
	return Setup{
		Roots: rootsOf(s.folders), Settings: s.settings, Editor: s, Approver: s, Notice: s.notice,
		Log: s.log, Client: client, Version: s.opts.Version,
	}
}

func (s *Server) build(setup Setup) {
	backend, err := s.opts.New(s.ctx, setup)
	if err == nil && backend.Documents != nil {
		s.docs.feed(backend.Documents)
	}
	s.mu.Lock()
	s.backend, s.failed = backend, err
	roots, settings := rootsOf(s.folders), s.settings
	close(s.ready)
	s.mu.Unlock()
	if err == nil { // take in what changed meanwhile
		s.log.Debug("the engine stands")
		if !slices.Equal(roots, setup.Roots) && backend.Documents != nil {
			err = backend.Documents.SetRoots(roots)
		}
		if !bytes.Equal(settings, setup.Settings) && backend.Configure != nil {
			err = errors.Join(err, backend.Configure(settings))
		}
	}
	if err != nil {
		s.log.Error("the engine could not be set up", "error", err)
	}
}

// engine waits for the backend. It must not be called on the read loop.
func (s *Server) engine(ctx context.Context) (*Backend, error) {
	ready := s.start(true)
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backend, s.failed
}

// standing returns the backend if it is there already.
func (s *Server) standing() *Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backend
}

func (s *Server) clientFacts() clientFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// close waits for the runs, which have been told to stop by the end of the
// connection's context, and flushes the ledger; both within the grace time.
func (s *Server) close() {
	grace := s.opts.Grace
	if grace == 0 {
		grace = time.Second
	}
	s.mu.Lock()
	starting, ready := s.starting, s.ready
	var active []*activeRun
	for _, r := range s.runs {
		active = append(active, r)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range active {
			<-r.ended
		}
		if !starting {
			return
		}
		<-ready
		if b := s.standing(); b != nil && b.Close != nil {
			if err := b.Close(); err != nil {
				s.log.Error("closing failed", "error", err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(grace):
		s.log.Error("runs did not stop in time; the ledger settles what they left at the next start", "grace", grace)
	}
}

// lifecycle is where the connection stands.
type lifecycle struct {
	mu  sync.Mutex // guards now
	now phase
}

type phase uint8

const (
	stateNew phase = iota
	stateInitialized
	stateShutdown
)

var (
	errNotInitialized = jsonrpc2.NewError(jsonrpc2.ServerNotInitialized, "send initialize first")
	errInitialized    = jsonrpc2.NewError(jsonrpc2.InvalidRequest, "initialize has been sent already")
	errShutDown       = jsonrpc2.NewError(jsonrpc2.InvalidRequest, "the server has been shut down; only exit may follow")
)

func (l *lifecycle) is(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now == p
}

func (l *lifecycle) set(p phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = p
}

// admit says whether the method may come now (LSP 3.17, Lifecycle Messages).
func (l *lifecycle) admit(method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case method == protocol.MethodExit, method == protocol.MethodCancelRequest:
		return nil
	case l.now == stateShutdown:
		return errShutDown
	case l.now == stateNew && method != protocol.MethodInitialize:
		return errNotInitialized
	case l.now == stateInitialized && method == protocol.MethodInitialize:
		return errInitialized
	}
	return nil
}

var errGone = errors.New("the editor has hung up")
