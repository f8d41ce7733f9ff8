package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"thinkflow/ledger"
	"thinkflow/workspace"
)

// permit is the answer to whether something may be done.
type permit struct {
	allowed   bool
	cancelled bool
	waiting   string // hash of the question that stays unanswered for now
	code      string
	message   string // for the model
}

// permit asks for what needs asking. While it waits, the stream goes on and the
// queue holds; the time does not count as wall time. Without anyone to ask, an
// ask is a no: the model is told once, a second try ends the run.
func (r *run) permit(a Action, subject, hash string, diff func() string, targets ...workspace.Target) permit {
	if why := r.barred(a); why != "" {
		return permit{code: codeMode, message: why}
	}
	needs := r.waive(r.s.perms.check(a, targets...))
	if len(needs) == 0 {
		return permit{allowed: true}
	}
	if r.dryRun && a != ActionRead {
		return permit{allowed: true}
	}
	for i, n := range needs {
		if _, d, ok := r.granted(n.class, hash); ok {
			if p := r.decided(n, d); !p.allowed {
				return p
			}
			continue
		}
		if r.e.approver == nil {
			return r.unattended(a, subject, needs[i:])
		}
		ev := ApprovalEvent{ID: NewID(), Action: string(a), Target: realTarget(subject, targets), Rule: n.rule, Hash: hash}
		if diff != nil {
			ev.Diff = diff()
		}
		d, err := r.ask(ev)
		if errors.Is(err, errSuspended) {
			r.waits(ev, n.class)
			d = ""
		}
		if led, lerr := r.ledger(); lerr == nil && !r.dryRun {
			_ = led.Approval(ledger.Key{Run: r.id}, ledger.Approval{ID: ev.ID, Action: string(n.class), Subject: subject, Target: ev.Target, Hash: hash, Decision: string(d)})
		}
		switch {
		case errors.Is(err, errSuspended):
			return permit{waiting: hash, code: codeWaiting, message: waitingMessage}
		case r.ctx.Err() != nil:
			return permit{cancelled: true, message: "the run was cancelled while it waited for a permission"}
		case err != nil:
			return permit{code: codePermission, message: "the permission could not be asked for: " + err.Error()}
		}
		if p := r.decided(n, d); !p.allowed {
			return p
		}
	}
	return permit{allowed: true}
}

// decided is what an answer means.
func (r *run) decided(n need, d Decision) permit {
	switch d {
	case AllowSession:
		r.s.perms.grant(n.class)
	case AllowOnce:
	default:
		return permit{code: codeRejected, message: "the user said no to this (" + n.rule + "); do not try it again in another way, go on without it or ask what they want"}
	}
	return permit{allowed: true}
}

// unattended answers when nobody can be asked.
func (r *run) unattended(a Action, subject string, needs []need) permit {
	var classes []string
	again := false
	for _, n := range needs {
		classes = append(classes, string(n.class))
		again = r.s.perms.toldBefore(n.class) || again
	}
	flag := "--allow " + strings.Join(classes, ",")
	r.refuse(fmt.Sprintf("%s needed a permission that nobody could give (%s): run it again with %s", subject, needs[0].rule, flag), again)
	return permit{code: codePermission, message: fmt.Sprintf("not permitted: %s, and nobody is there to ask. Go on without it; do not send it again", needs[0].rule)}
}

// ask puts one question to whoever answers first: the approver (an editor, the
// terminal) or [Engine.Approve].
func (r *run) ask(a ApprovalEvent) (Decision, error) {
	answer := make(chan Decision, 1)
	r.approvals.add(a.ID, answer)
	defer r.approvals.remove(a.ID)
	resume := r.wall.pause()
	defer resume()
	r.emit.emit(Event{Type: ApprovalRequested, Approval: &a})

	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	type reply struct {
		d   Decision
		err error
	}
	asked := make(chan reply, 1)
	late := time.NewTimer(r.approvalWait())
	defer late.Stop()
	go func() {
		d, err := r.e.approver.Ask(ctx, a)
		asked <- reply{d, err}
	}()
	select {
	case d := <-answer:
		return d, nil
	case got := <-asked:
		switch {
		case got.err == nil || context.Cause(r.ctx) != nil && !errors.Is(context.Cause(r.ctx), ErrGone):
			return got.d, got.err
		case errors.Is(got.err, ErrGone) || r.ctx.Err() != nil:
			return Deny, errSuspended
		}
		return got.d, got.err
	case <-late.C:
	case <-r.suspension.over:
	case <-r.ctx.Done():
		if !errors.Is(context.Cause(r.ctx), ErrGone) {
			return Deny, r.ctx.Err()
		}
	}
	return Deny, errSuspended
}

// approvals are the questions of a run that wait for an answer.
type approvals struct {
	mu   sync.Mutex // guards open
	open map[string]chan Decision
}

func (a *approvals) add(id string, c chan Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]chan Decision{}
	}
	a.open[id] = c
}

func (a *approvals) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

func (a *approvals) answer(id string, d Decision) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.open[id]
	if ok {
		delete(a.open, id)
		c <- d
	}
	return ok
}

func realTarget(subject string, targets []workspace.Target) string {
	if len(targets) == 0 {
		return subject
	}
	var s []string
	for _, t := range targets {
		s = append(s, t.Abs)
	}
	return strings.Join(s, " → ")
}
