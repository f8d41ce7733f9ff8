package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/lsp"
	"thinkflow/workspace"
)

const (
	capsDir     = "../testdata/capabilities"
	testdataDir = "../testdata/lsp"
)

// session is a fake editor connected with a server over a fake engine.
type session struct {
	*fakeeditor.Editor
	t      *testing.T
	root   string
	clock  *fakeeditor.Clock
	engine *fakeEngine
	ws     *workspace.Workspace
	log    *answers
	setup  lsp.Setup // valid once the engine stands
	code   chan int  // exit code of Main
	closed chan struct{}
	server *serverClock
}

// serverClock is the clock as the server has it: it knows whether the verdict on
// an edit waits for time to pass. A verdict that is there already may still be on
// its way to the caller; time must not pass before it has arrived.
type serverClock struct {
	*fakeeditor.Clock
	mu    sync.Mutex // guards waits
	waits int        // deadlines of verdicts that are running
}

// watchAfterwards is how long the server watches an edit whose verdict is there,
// but uncertain: that is no wait for a verdict.
const watchAfterwards = time.Minute

func (c *serverClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	if d >= watchAfterwards {
		return c.Clock.AfterFunc(d, f)
	}
	over := sync.OnceFunc(func() { c.count(-1) })
	c.count(1)
	cancel := c.Clock.AfterFunc(d, func() { over(); f() })
	return func() { over(); cancel() }
}

func (c *serverClock) count(by int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits += by
	return c.waits
}

// config changes what a session is made of.
type config struct {
	profile string
	editor  fakeeditor.Options
	run     func(context.Context, agent.RunRequest) (agent.RunResult, error)
	build   func() error // runs before the engine stands; an error means it never will
	root    string
	raw     bool // do not initialize
	// backend makes another engine than the fake one.
	backend func(setup lsp.Setup, ws *workspace.Workspace) *lsp.Backend
}

func start(t *testing.T, c config) *session {
	t.Helper()
	if c.profile == "" {
		c.profile = "vscode"
	}
	p, err := fakeeditor.ProfileNamed(c.profile)
	if err != nil {
		t.Fatal(err)
	}
	if c.root == "" {
		c.root = t.TempDir()
		if c.root, err = filepath.EvalSymlinks(c.root); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.New([]workspace.Root{{Dir: c.root}}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{
		t: t, ws: ws, root: c.root, clock: new(fakeeditor.Clock), engine: &fakeEngine{run: c.run, steered: map[string]string{}},
		log:  newAnswers(),
		code: make(chan int, 1), closed: make(chan struct{}),
	}
	s.server = &serverClock{Clock: s.clock}
	c.editor.Profile, c.editor.Clock, c.editor.Root, c.editor.Capabilities = p, s.clock, c.root, capsDir
	o := lsp.Options{
		Version: "1.2.3-test", Clock: s.server, Log: slog.New(s.log),
		New: func(_ context.Context, setup lsp.Setup) (*lsp.Backend, error) {
			if c.build != nil {
				if err := c.build(); err != nil {
					return nil, err
				}
			}
			s.setup = setup
			if c.backend != nil {
				return c.backend(setup, ws), nil
			}
			return &lsp.Backend{
				Engine: s.engine, Documents: ws,
				Configure: s.engine.configure,
				Settled:   s.engine.settled,
				Close:     func() error { close(s.closed); return nil },
			}, nil
		},
	}
	serve := func(r io.Reader, w io.WriteCloser) {
		s.code <- lsp.Main(context.Background(), r, w, io.Discard, o)
		_ = w.Close()
	}
	if c.raw {
		s.Editor = fakeeditor.Connect(t, c.editor, serve)
		return s
	}
	s.Editor = fakeeditor.Start(t, c.editor, serve)
	return s
}

// editorSide waits for the engine and returns what it was given.
func (s *session) editorSide() lsp.Setup {
	s.t.Helper()
	select {
	case <-s.log.ready:
		return s.setup
	case <-s.t.Context().Done():
		s.t.Fatal("the engine never stood")
		return lsp.Setup{}
	}
}

// fakeEngine is an engine whose runs the test writes.
type fakeEngine struct {
	run func(context.Context, agent.RunRequest) (agent.RunResult, error)

	mu       sync.Mutex // guards what follows
	steered  map[string]string
	approved []string
	settings []string
	late     []agent.EditVerdict
}

func (e *fakeEngine) Run(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
	if e.run == nil {
		return agent.RunResult{Run: req.Run, State: agent.StateDone}, nil
	}
	return e.run(ctx, req)
}

func (e *fakeEngine) Cancel(string) bool { return false }

func (e *fakeEngine) Steer(run, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if run == "gone" {
		return fmt.Errorf("run %q: no such run, or it has ended", run)
	}
	e.steered[run] = text
	return nil
}

func (e *fakeEngine) Approve(run, id string, d agent.Decision) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.approved = append(e.approved, fmt.Sprint(run, " ", id, " ", d))
	return nil
}

func (e *fakeEngine) configure(raw json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settings = append(e.settings, string(raw))
	return nil
}

func (e *fakeEngine) settled(_ *workspace.Change, o agent.EditOutcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = append(e.late, o.Verdict)
}

func (e *fakeEngine) lateVerdicts() []agent.EditVerdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]agent.EditVerdict(nil), e.late...)
}

// document waits until the server has the document of that name and returns it.
func (s *session) document(name string) workspace.Document {
	s.t.Helper()
	s.editorSide()
	s.Sync()
	doc, ok := s.ws.Document(filepath.Join(s.root, name))
	if !ok {
		s.t.Fatalf("the server does not have %s open", name)
	}
	return doc
}

// answers is a log handler that counts the replies to applyEdit that the server
// has taken in, and keeps all lines.
type answers struct {
	ready chan struct{} // closed when the engine stands
	mu    sync.Mutex    // guards what follows
	count int
	more  chan struct{} // closed and replaced with each line
	lines []string
}

func newAnswers() *answers { return &answers{ready: make(chan struct{}), more: make(chan struct{})} }

func (a *answers) Enabled(context.Context, slog.Level) bool { return true }
func (a *answers) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a *answers) WithGroup(string) slog.Handler            { return a }

func (a *answers) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(at slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", at.Key, at.Value); return true })
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.Message {
	case "the engine stands":
		close(a.ready)
	case "applyEdit answered":
		a.count++
	}
	a.lines = append(a.lines, b.String())
	close(a.more)
	a.more = make(chan struct{})
	return nil
}

// logged reports whether a line that holds all the words was logged.
func (a *answers) logged(words ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		ok := true
		for _, w := range words {
			ok = ok && strings.Contains(l, w)
		}
		if ok {
			return true
		}
	}
	return false
}

// await waits until n replies have been taken in.
func (a *answers) await(ctx context.Context, n int) bool {
	return a.until(ctx, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.count >= n
	})
}

// awaitLine waits for a line that holds all the words.
func (a *answers) awaitLine(ctx context.Context, words ...string) bool {
	return a.until(ctx, func() bool { return a.logged(words...) })
}

func (a *answers) until(ctx context.Context, cond func() bool) bool {
	for {
		a.mu.Lock()
		more := a.more
		a.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// change plans an edit of an open document: pairs of old and new texts.
func (s *session) change(name string, pairs ...string) *workspace.Change {
	s.t.Helper()
	op := workspace.Op{Kind: workspace.OpEdit, Path: name}
	for i := 0; i < len(pairs); i += 2 {
		op.Pairs = append(op.Pairs, workspace.Pair{Old: pairs[i], New: pairs[i+1]})
	}
	return s.plan(op)
}

// plan has the workspace plan an operation against what is open now.
func (s *session) plan(op workspace.Op) *workspace.Change {
	s.t.Helper()
	s.editorSide()
	s.Sync()
	c, err := s.ws.Plan(op)
	if err != nil {
		s.t.Fatalf("plan %+v: %v", op, err)
	}
	return c
}

// apply has the server apply a change, and moves the clock whenever all is
// waiting for it.
func (s *session) apply(c *workspace.Change) (agent.EditOutcome, error) {
	s.t.Helper()
	return s.applyCtx(s.t.Context(), c)
}

func (s *session) applyCtx(ctx context.Context, c *workspace.Change) (agent.EditOutcome, error) {
	s.t.Helper()
	type result struct {
		out agent.EditOutcome
		err error
	}
	done := make(chan result, 1)
	before := len(s.Edits())
	setup := s.editorSide()
	go func() {
		out, err := setup.Editor.ApplyEdit(ctx, c)
		done <- result{out, err}
	}()
	for {
		seen := s.Seen()
		select {
		case r := <-done:
			return r.out, r.err
		default:
		}
		if len(s.Edits()) == before { // not arrived yet
			select {
			case r := <-done:
				return r.out, r.err
			case <-seen:
			}
			continue
		}
		if !s.log.await(s.t.Context(), s.Replies()) {
			s.t.Fatal("a reply was never taken in")
		}
		s.Sync()
		select {
		case r := <-done:
			return r.out, r.err
		default:
		}
		if s.server.count(0) == 0 || !s.clock.Step() { // the verdict is there
			r := <-done
			return r.out, r.err
		}
	}
}

// drain lets all waiting time pass.
func (s *session) drain() {
	for s.clock.Step() {
		s.Sync()
	}
	s.Sync()
}
