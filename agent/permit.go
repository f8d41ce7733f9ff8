package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"thinkflow/internal/config"
	"thinkflow/internal/redact"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// permit is the answer to whether something may be done.
type permit struct {
	allowed   bool
	cancelled bool
	waiting   string // hash of the question that stays unanswered for now
	code      string
	message   string         // for the model
	grants    sandbox.Grants // what a person opened for this one command
}

// permit asks for what needs asking. While it waits, the stream goes on and the
// queue holds; the time does not count as wall time. Without anyone to ask, an
// ask is a no: the model is told once, a second try ends the run.
//
// The answer is recorded with the command that it is about.
func (r *run) permit(at ledger.Key, a Action, subject, hash string, diff func() string, targets ...workspace.Target) permit {
	if why := r.barred(a); why != "" {
		return permit{code: codeMode, message: why}
	}
	return r.permitNeeds(at, a, subject, r.checkPaths(a, hash, targets...), diff, targets)
}

// permitNeeds puts the questions of a check.
func (r *run) permitNeeds(at ledger.Key, a Action, subject string, c checked, diff func() string, targets []workspace.Target) permit {
	if c.no != "" {
		return permit{code: codePermission, message: "not permitted: " + c.no + "; do not try it in another way"}
	}
	needs := r.waive(c.needs)
	if len(needs) == 0 {
		return permit{allowed: true}
	}
	if r.dryRun && a != ActionRead {
		return permit{allowed: true}
	}
	out := permit{allowed: true}
	for i, n := range needs {
		if _, d, ok := r.granted(n.class, c.hash); ok {
			p := r.decided(n, d)
			if !p.allowed {
				return p
			}
			out.grants = union(out.grants, p.grants)
			continue
		}
		if r.e.approver == nil {
			for _, n := range needs[i:] {
				r.recordApproval(at, ledger.Approval{Action: string(n.class), Subject: subject, Target: realTarget(subject, targets), Hash: c.hash, Decision: string(Deny), By: byNobody})
			}
			return r.unattended(a, subject, needs[i:])
		}
		ev := r.question(a, realTarget(subject, targets), n, c.hash, diff)
		d, err := r.ask(ev)
		if r.parent != nil && errors.Is(err, errSuspended) && r.ctx.Err() == nil {
			d, err = Deny, nil // its caller waits for it: no answer in time is a no
		}
		if errors.Is(err, errSuspended) {
			r.waits(ev, n.class)
			d = ""
		}
		r.recordAsked(at, ev, string(n.class), subject, d, err)
		switch {
		case errors.Is(err, errSuspended):
			return permit{waiting: c.hash, code: codeWaiting, message: waitingMessage}
		case r.ctx.Err() != nil:
			return permit{cancelled: true, message: "the run was cancelled while it waited for a permission"}
		case err != nil:
			return permit{code: codePermission, message: "the permission could not be asked for: " + err.Error()}
		}
		p := r.decided(n, d)
		if !p.allowed {
			return p
		}
		out.grants = union(out.grants, p.grants)
	}
	return out
}

// question words a need. What a person reads before they agree to something
// hides nothing; the hash is of the real thing.
func (r *run) question(a Action, target string, n need, hash string, diff func() string) ApprovalEvent {
	ev := ApprovalEvent{
		ID: NewID(), Action: string(a), Target: redact.Visible(target), Rule: redact.VisibleLine(n.rule), Hash: hash,
		Choices: []Decision{AllowOnce, AllowSession, Deny},
	}
	if n.sandboxed {
		ev.Choices = r.shellChoices()
	}
	if diff != nil {
		ev.Diff = redact.Visible(diff())
	}
	return safeApproval(r.e.redact, ev)
}

// decided is what an answer means.
func (r *run) decided(n need, d Decision) permit {
	switch {
	case d == AllowSession:
		for _, class := range append([]config.Class{n.class}, n.also...) {
			r.s.perms.grant(class)
		}
	case d == AllowOnce:
	case d.Allows() && n.sandboxed && slices.Contains(r.shellChoices(), d):
		return permit{allowed: true, grants: union(d.Grants(), n.wants)}
	default:
		return permit{code: codeRejected, message: "the user said no to this (" + n.rule + "); do not try it again in another way, go on without it or ask what they want"}
	}
	return permit{allowed: true, grants: n.wants}
}

// unattended answers when nobody can be asked.
func (r *run) unattended(a Action, subject string, needs []need) permit {
	var hint []string
	open, again := false, false
	for _, n := range needs {
		for _, c := range n.hint {
			if !slices.Contains(hint, string(c)) {
				hint = append(hint, string(c))
			}
		}
		open = open || n.unconfined
		again = r.s.perms.toldBefore(n.told()) || again
	}
	what := "a rule of yours asks: change it, or answer at a terminal"
	if len(hint) > 0 {
		what = "run it again with --allow " + strings.Join(hint, ",")
	}
	if open {
		what += ", and with --sandbox none if commands may run unconfined"
	}
	r.refuse(fmt.Sprintf("%s needed a permission that nobody could give (%s): %s", subject, needs[0].rule, what), again)
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
	defer r.persons.wait(r.e.now)()
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
