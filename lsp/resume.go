package lsp

import (
	"context"
	"errors"
	"fmt"

	"thinkflow/agent"
)

// Resumer is what an engine has besides if its runs can be gone on with;
// *agent.Engine has it.
type Resumer interface {
	// BeginResume claims the run; the function carries it out.
	BeginResume(ctx context.Context, req agent.ResumeRequest) (func() (agent.RunResult, error), error)
	Abandon(ctx context.Context, run string) error
	Waiting(ctx context.Context) ([]agent.WaitingApproval, error)
	Sessions(ctx context.Context, limit int) ([]agent.SessionInfo, error)
	Session(ctx context.Context, id string) (agent.SessionDetail, error)
}

var _ Resumer = (*agent.Engine)(nil)

// resumer waits for the engine and returns that side of it.
func (s *Server) resumer(ctx context.Context) (Resumer, error) {
	r, _, err := s.resumable(ctx)
	return r, err
}

func (s *Server) resumable(ctx context.Context) (Resumer, *Backend, error) {
	b, err := s.engine(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the engine could not be set up: %w", err)
	}
	if r, ok := b.Engine.(Resumer); ok {
		return r, b, nil
	}
	return nil, nil, errors.New("this engine keeps no sessions")
}

// resumeParams go on with a run.
type resumeParams struct {
	Run string `json:"runId"` // id, unique prefix of one, or "last"
	// Answers to what it waits for: approval id → decision.
	Answers map[string]agent.Decision `json:"answers,omitempty"`
	Message string                    `json:"message,omitempty"`

	WorkDoneToken any `json:"workDoneToken,omitempty"`
}

// resume serves thinkflow/resume: like thinkflow/run, it stays open until the
// run ends.
func (s *Server) resume(ctx context.Context, p resumeParams) (agent.RunResult, error) {
	release(ctx)
	start, err := s.beginResume(ctx, p, true)
	if err != nil {
		return agent.RunResult{}, err
	}
	return start()
}

// beginResume claims the run for this connection.
func (s *Server) beginResume(ctx context.Context, p resumeParams, withEvents bool) (func() (agent.RunResult, error), error) {
	r, b, err := s.resumable(ctx)
	if err != nil {
		return nil, err
	}
	if p.Run == "" {
		p.Run = agent.LastRun
	}
	a, runCtx, err := s.begin(ctx, p.Run)
	if err != nil {
		return nil, err
	}
	facts := s.clientFacts()
	events := withEvents || facts.events
	req := agent.ResumeRequest{Run: p.Run, Answers: p.Answers, Message: p.Message, By: "editor"}
	req.Events = func(ev agent.Event) {
		s.heard(ev)
		a.progress.event(ev)
		s.tellHook(b, ev)
		if events {
			s.notifyOwn(notifyEvent, ev)
		}
	}
	if events {
		req.Preview = func(p agent.Preview) { s.notifyOwn(notifyPreview, p) }
	}
	s.startProgress(a, facts, "resumed", p.WorkDoneToken)
	run, err := r.BeginResume(runCtx, req)
	if err != nil {
		s.ended(a)
		return nil, badParams("%v", err)
	}
	return func() (agent.RunResult, error) {
		defer s.ended(a)
		return run()
	}, nil
}

// resumeInBackground goes on with a run whose question has been answered.
func (s *Server) resumeInBackground(p approveParams) error {
	start, err := s.beginResume(s.ctx, resumeParams{Run: p.Run, Answers: map[string]agent.Decision{p.Approval: p.Decision}}, false)
	if err != nil {
		return err
	}
	go func() {
		res, err := start()
		if !s.clientFacts().events && s.ctx.Err() == nil {
			s.report(res, err)
		}
	}()
	return nil
}

type sessionsParams struct {
	Limit int `json:"limit,omitempty"` // 0 = all
}

type sessionsResult struct {
	Sessions []agent.SessionInfo     `json:"sessions"`
	Waiting  []agent.WaitingApproval `json:"waiting"` // what suspended runs wait for
}

// sessions serves thinkflow/sessions.
func (s *Server) sessions(ctx context.Context, p sessionsParams) (sessionsResult, error) {
	release(ctx)
	r, err := s.resumer(ctx)
	if err != nil {
		return sessionsResult{}, err
	}
	out := sessionsResult{Sessions: []agent.SessionInfo{}, Waiting: []agent.WaitingApproval{}}
	list, err := r.Sessions(ctx, p.Limit)
	if err != nil {
		return out, err
	}
	waiting, err := r.Waiting(ctx)
	out.Sessions, out.Waiting = append(out.Sessions, list...), append(out.Waiting, waiting...)
	return out, err
}

type sessionParams struct {
	Session string `json:"session"`
}

// session serves thinkflow/session.
func (s *Server) session(ctx context.Context, p sessionParams) (agent.SessionDetail, error) {
	release(ctx)
	r, err := s.resumer(ctx)
	if err != nil {
		return agent.SessionDetail{}, err
	}
	d, err := r.Session(ctx, p.Session)
	if err != nil {
		return d, badParams("%v", err)
	}
	return d, nil
}
