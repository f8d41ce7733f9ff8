package agent

import (
	"errors"
	"fmt"
	"time"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// ErrGone is the cause with which a caller ends the context of a run when
// whoever watched it is gone (the editor hung up): a run that waits for an
// answer is suspended then, any other is cancelled.
var ErrGone = errors.New("nobody is there any more")

// errSuspended: the question was not answered in time.
var errSuspended = errors.New("suspended")

// codeWaiting is the code of a command that waits for a person.
const codeWaiting = "waiting"

const waitingMessage = "it waits for the user's approval; what becomes of it is told later"

// held is a command that waits, and the question. What was asked for is bound
// to the exact command and its real targets by the hash: an answer that comes
// later lets exactly that run, and nothing else.
type held struct {
	Approval ApprovalEvent   `json:"approval"`
	Class    config.Class    `json:"class"` // what an answer "for this session" allows
	Turn     int             `json:"turn"`
	Flow     ledger.Flow     `json:"flow,omitempty"`
	Command  *parser.Command `json:"command,omitempty"`
	Call     *PreparedCall   `json:"call,omitempty"` // a native call instead
}

// key is the key of what waits.
func (h *held) key(run string) ledger.Key {
	switch {
	case h.Command != nil:
		return ledger.Key{Run: run, Turn: h.Turn, Channel: string(h.Command.Channel), ID: h.Command.ID}
	case h.Call != nil:
		return ledger.Key{Run: run, Turn: h.Turn, Channel: string(ChannelNative), ID: h.Call.N}
	}
	return ledger.Key{Run: run}
}

// staged: it stands in the ledger as staged. Reads do not: they change nothing.
func (h *held) staged() bool {
	return h.Command != nil && h.Command.Name != parser.Read || h.Call != nil && h.Call.Name == "bash"
}

// suspending is closed when the first question of a run stays unanswered: all
// others that are open then wait as well.
type suspending struct {
	asked map[string]held // by hash; without command
	over  chan struct{}
	done  bool
}

// waits notes that a question stays unanswered.
func (r *run) waits(a ApprovalEvent, class config.Class) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspension.asked == nil {
		r.suspension.asked = map[string]held{}
	}
	r.suspension.asked[a.Hash] = held{Approval: a, Class: class}
	if !r.suspension.done {
		r.suspension.done = true
		close(r.suspension.over)
	}
}

// hold keeps the command whose question has this hash for later.
func (r *run) hold(hash string, h held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, ok := r.suspension.asked[hash]
	if !ok {
		return
	}
	h.Approval, h.Class = q.Approval, q.Class
	r.held = append(r.held, h)
}

// isSuspended tells whether a command waits for a person: nothing further is
// begun.
func (r *run) isSuspended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspension.done
}

// suspend ends the run for now: what waits is stored with its state.
func (r *run) suspend(t *turn) *RunResult {
	if t != nil {
		r.closeEarly(t)
	}
	r.mu.Lock()
	first := r.held
	r.mu.Unlock()
	reason := "waits for an approval"
	if len(first) > 0 {
		a := first[0].Approval
		reason = fmt.Sprintf("waits for an approval (%s: %s); answer with: thinkflow approve %s %s once|session|no", a.Action, oneLine(a.Target, 120), r.id, a.ID)
	}
	r.s.setSuspended(true)
	res := r.end(StateSuspended, reason)
	return &res
}

// stageHeld records a command that waits, durably, under its own key: when it
// is allowed, it goes on under that.
func (t *turn) stageHeld(c *parser.Command, o *outcome, flow ledger.Flow) {
	o.status, o.code, o.message = string(ledger.StatusStaged), codeWaiting, waitingMessage
	led, err := t.r.ledger()
	if err == nil {
		err = led.Intent(t.r.effectCtx(), ledger.Intent{
			Key: t.key(c), Tool: string(c.Name), Path: c.Path, Dest: c.Dest, Cmd: c.Cmd, NeedResult: c.NeedResult, Flow: flow,
			ContentHash: contentHash(c, nil), Summary: summary(c), Content: t.r.keepable(c), Staged: true,
		})
	}
	if err != nil {
		t.r.e.log.Warn("ledger: a waiting command was not recorded", "command", t.key(c).String(), "err", err)
	}
}

// granted tells whether a person answered this very question before the run was
// resumed. An answer counts once.
func (r *run) granted(class config.Class, hash string) (ApprovalEvent, Decision, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, g := range r.grants {
		if g.Class == class && g.Approval.Hash == hash && hash != "" {
			r.grants = append(r.grants[:i:i], r.grants[i+1:]...)
			return g.Approval, g.decision, true
		}
	}
	return ApprovalEvent{}, "", false
}

// grant is an answer that was given while the run was suspended.
type grant struct {
	held
	decision Decision
}

// approvalWait is how long a question may stay unanswered.
func (r *run) approvalWait() time.Duration {
	if r.cfg.ApprovalWait > 0 {
		return r.cfg.ApprovalWait
	}
	return defaultApprovalWait
}

const defaultApprovalWait = 10 * time.Minute
