package lsp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// runParams are the params of thinkflow/run and the argument of the command
// thinkflow.server.run.
type runParams struct {
	Task    string `json:"task"`
	Session string `json:"session,omitempty"` // conversation to go on with
	Run     string `json:"runId,omitempty"`   // "" = a new id
	DryRun  bool   `json:"dryRun,omitempty"`

	Selection *selection `json:"selection,omitempty"`
	Files     []string   `json:"files,omitempty"` // URIs

	// WorkDoneToken: the client watches the progress of this token.
	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// selection is a range of a document, in client positions.
type selection struct {
	URI   string         `json:"uri"`
	Range protocol.Range `json:"range"`
}

// activeRun is a run that this connection started.
type activeRun struct {
	id       string
	cancel   context.CancelFunc
	gone     func() // cancel, because the editor goes away
	ended    chan struct{}
	progress *progress // nil = nobody watches
	token    string    // of the progress, "" = none
}

// run serves thinkflow/run: the request stays open until the run ends. Being
// cancelled is a result: Neovim never hears of an error -32800.
func (s *Server) run(ctx context.Context, p runParams) (agent.RunResult, error) {
	req, err := s.request(p)
	if err != nil {
		return agent.RunResult{}, err
	}
	release(ctx) // what we need of the documents we have
	a, runCtx, err := s.begin(ctx, req.Run)
	if err != nil {
		return agent.RunResult{}, err
	}
	return s.finish(a, runCtx, req, p.WorkDoneToken, true)
}

// request converts the params; it runs on the read loop, so that the documents
// are the ones that the client meant.
func (s *Server) request(p runParams) (agent.RunRequest, error) {
	if strings.TrimSpace(p.Task) == "" {
		return agent.RunRequest{}, badParams("task is empty: say what is to be done")
	}
	attached, err := s.attachments(p)
	if err != nil {
		return agent.RunRequest{}, err
	}
	if p.Run == "" {
		p.Run = agent.NewID()
	}
	return agent.RunRequest{Run: p.Run, Session: p.Session, Task: p.Task, DryRun: p.DryRun, Attachments: attached}, nil
}

// begin registers the run before anything of it can happen, so that it can be
// cancelled from now on. It ends with ctx.
func (s *Server) begin(ctx context.Context, id string) (*activeRun, context.Context, error) {
	runCtx, end := context.WithCancelCause(ctx)
	cancel := func() { end(context.Canceled) }
	a := &activeRun{id: id, cancel: cancel, gone: func() { end(agent.ErrGone) }, ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.runs[id]; ok {
		cancel()
		return nil, nil, badParams("run %s is going on already; leave runId out for a new one", id)
	}
	s.runs[id] = a
	return a, runCtx, nil
}

// ended takes the run off the list.
func (s *Server) ended(a *activeRun) {
	a.progress.end()
	a.cancel()
	s.mu.Lock()
	delete(s.runs, a.id)
	s.mu.Unlock()
	close(a.ended)
}

// finish carries the run out and answers it. withEvents: the caller asked for
// events by using thinkflow/run.
func (s *Server) finish(a *activeRun, ctx context.Context, req agent.RunRequest, token any, withEvents bool) (agent.RunResult, error) {
	defer s.ended(a)
	facts := s.clientFacts()
	s.startProgress(a, facts, req.Task, token)
	b, err := s.engine(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return agent.RunResult{Run: a.id, Session: req.Session, State: agent.StateCancelled, Reason: "cancelled before it began"}, nil
	case err != nil:
		return agent.RunResult{}, fmt.Errorf("the engine could not be set up: %w", err)
	}
	events := withEvents || facts.events
	if err := s.switched(b.Engine, &req); err != nil {
		return agent.RunResult{}, badParams("%v", err)
	}
	req.Events = func(ev agent.Event) {
		s.heard(ev)
		a.progress.event(ev)
		s.tellHook(b, ev)
		if events {
			s.notifyOwn(notifyEvent, ev)
		}
		if ev.Type == agent.ChangesUpdated {
			s.refreshLenses()
		}
	}
	if events {
		req.Preview = func(p agent.Preview) { s.notifyOwn(notifyPreview, p) }
	}
	return b.Engine.Run(ctx, req)
}

// notifyOwn sends one of our notifications, in order with all others.
func (s *Server) notifyOwn(method string, v any) {
	raw, err := ourJSON(v)
	if err == nil {
		err = s.conn.Notify(s.ctx, method, raw)
	}
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("a notification could not be sent", "method", method, "error", err)
	}
}
