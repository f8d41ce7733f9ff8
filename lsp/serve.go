package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// Options configures a server. New is required.
type Options struct {
	// Version of the program, for serverInfo.
	Version string
	// New builds the engine. It is called once, off the read loop, after the
	// client has been initialized: initialize is answered without waiting.
	New func(ctx context.Context, s Setup) (*Backend, error)
	// Dir is the root when the client names none; "" = the working directory.
	Dir string
	Log *slog.Logger // nil = nothing is logged
	// Clock is for tests; nil = real time.
	Clock Clock
	// Grace is how long the end of a connection waits for runs to stop and the
	// ledger to be flushed; 0 = 1 s.
	Grace time.Duration
}

// Main serves one editor over stdin and stdout until it says exit or hangs up,
// and returns the exit code of the process: 0 after shutdown, 1 without. Logs go
// to stderr. Main does not wait for stdin to be closed: a read that is blocked
// there ends with the process.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, o Options) int {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	s := newServer(o)
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(agent.ErrGone) }
	defer cancel()
	hung := make(chan struct{})
	rwc := newFrames(stdin, stdout, s.log, func(err error) {
		if !errors.Is(err, io.EOF) {
			s.log.Warn("the connection broke", "error", err)
		}
		cancel() // everything of this connection hangs off ctx
		close(hung)
	})
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(rwc), jsonrpc2.WithCodec(codec{}))
	s.connect(ctx, conn) // before the first message can arrive
	conn.Go(ctx, s.handler())

	select {
	case <-s.exit:
	case <-hung:
	case <-ctx.Done():
	}
	cancel()
	s.close()
	if s.state.is(stateShutdown) {
		return 0
	}
	return 1
}

// connect gives the server its connection.
func (s *Server) connect(ctx context.Context, conn jsonrpc2.Conn) {
	s.ctx, s.conn, s.client = ctx, conn, protocol.ClientDispatcher(conn)
}

// handler is the chain that every message passes.
func (s *Server) handler() jsonrpc2.Handler {
	h := protocol.ServerHandler(s, jsonrpc2.MethodNotFoundHandler)
	h = s.ownMethods(h)
	h = s.recovering(h)
	h = s.cancelling(h)
	return s.guard(h)
}

// guard keeps the connection alive: a notification that fails must not return
// an error, because jsonrpc2 would end the connection. It also keeps the order
// of the life cycle and maps errors.
func (s *Server) guard(next jsonrpc2.Handler) jsonrpc2.Handler {
	return func(ctx context.Context, req *jsonrpc2.Request) (any, error) {
		if err := s.state.admit(req.Method()); err != nil {
			if req.IsCall() {
				return nil, err
			}
			s.log.Warn("dropped a notification", "method", req.Method(), "error", err)
			return nil, nil
		}
		result, err := next(ctx, req)
		if req.IsCall() {
			return result, wireError(err)
		}
		if err != nil {
			s.log.Warn("a notification failed", "method", req.Method(), "error", err)
		}
		return nil, nil
	}
}

// cancelling gives every call a context of its own and serves $/cancelRequest
// for both kinds of ids. A malformed one is an error like that of any other
// notification.
//
// The call's context hangs off the connection and not off jsonrpc2's request
// context, which is what jsonrpc2.CancelHandler does: that one is recycled when
// the handler returns, while the goroutine that context.WithCancel starts for it
// may still ask it for Done, and the process dies of a nil pointer (seen with
// jsonrpc2 v1.0.1 in the first run of our tests).
func (s *Server) cancelling(next jsonrpc2.Handler) jsonrpc2.Handler {
	calls := callTable{open: map[string]context.CancelFunc{}}
	return func(req context.Context, r *jsonrpc2.Request) (any, error) {
		if r.Method() == protocol.MethodCancelRequest {
			return nil, calls.cancel(r.Params())
		}
		if !r.IsCall() {
			return next(s.ctx, r)
		}
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		id := fmt.Sprintf("%q", r.ID())
		calls.add(id, cancel)
		defer calls.remove(id)
		return next(context.WithValue(ctx, releaseKey{}, func() { jsonrpc2.Async(req) }), r)
	}
}

// callTable knows how to cancel the calls that are being handled. Ids are
// spelled as jsonrpc2 does with %q: strings quoted, numbers with '#'.
type callTable struct {
	mu   sync.Mutex // guards open
	open map[string]context.CancelFunc
}

func (t *callTable) add(id string, cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[id] = cancel
}

func (t *callTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, id)
}

func (t *callTable) cancel(params []byte) error {
	var p protocol.CancelParams
	if err := protocol.Unmarshal(params, &p); err != nil {
		return err
	}
	var id jsonrpc2.ID
	switch v := p.ID.(type) {
	case protocol.Integer:
		id = jsonrpc2.NewNumberID(int64(v))
	case protocol.String:
		id = jsonrpc2.NewStringID(string(v))
	default:
		return fmt.Errorf("malformed id %v", p.ID)
	}
	t.mu.Lock()
	cancel, ok := t.open[fmt.Sprintf("%q", id)]
	t.mu.Unlock()
	if ok {
		cancel()
	}
	return nil
}

// releaseKey is where a call's context keeps the function that releases the
// read loop.
type releaseKey struct{}

// release lets the messages after this call be handled while its handler goes
// on. It is for calls that take long, after they have taken what they need of
// the documents; at most once per call.
func release(ctx context.Context) {
	if f, ok := ctx.Value(releaseKey{}).(func()); ok {
		f()
	}
}

// recovering turns a panic of a handler into the failure of its request alone.
func (s *Server) recovering(next jsonrpc2.Handler) jsonrpc2.Handler {
	return func(ctx context.Context, req *jsonrpc2.Request) (result any, err error) {
		defer func() {
			if r := recover(); r != nil {
				s.log.Error("a handler panicked", "method", req.Method(), "panic", r, "stack", string(debug.Stack()))
				result, err = nil, jsonrpc2.Errorf(jsonrpc2.InternalError, "internal error in %s: %v; the server goes on, please report this", req.Method(), r)
			}
		}()
		return next(ctx, req)
	}
}

// workingDir is the root of last resort.
func (s *Server) workingDir() string {
	if s.opts.Dir != "" {
		return s.opts.Dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}
