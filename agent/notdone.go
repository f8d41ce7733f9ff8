package agent

import (
	"errors"

	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// refused is a plan that cannot be made: text not found, a guard, a path.
func (t *turn) refused(c *parser.Command, o outcome, flow ledger.Flow, err error) {
	o.status, o.code, o.message = string(ledger.StatusFailed), codeWrite, err.Error()
	var ref *workspace.Refusal
	if errors.As(err, &ref) {
		o.code, o.message, o.nearest = string(ref.Code), ref.Message, ref.Nearest
	}
	t.record(c, o, flow)
	t.completed(c, o)
	t.fail(o, signature(c))
}

// denied is a command that nobody allowed.
func (t *turn) denied(c *parser.Command, o outcome, flow ledger.Flow, d permit) {
	o.status, o.code, o.message = string(ledger.StatusRejected), d.code, d.message
	if d.cancelled {
		o.status, o.code = string(ledger.StatusCancelled), codeCancelled
	}
	if d.waiting != "" {
		t.stageHeld(c, &o, flow)
		t.r.hold(d.waiting, held{Turn: t.n, Flow: flow, Command: c})
	} else {
		t.record(c, o, flow)
	}
	t.completed(c, o)
	t.fail(o, signature(c))
}

// fail makes o the turn's failure and ends the stream.
func (t *turn) fail(o outcome, sig string) {
	t.keepOutcome(o)
	t.failWith(o, sig)
}

// failWith is fail for an outcome that is already among those to be told.
func (t *turn) failWith(o outcome, sig string) {
	if o.code == codeLedger {
		t.r.needsLedger.Store(true)
	}
	t.mu.Lock()
	if t.failed == nil {
		t.failed = &failure{o: o, signature: sig}
	}
	t.mu.Unlock()
	t.stopStream(stopFailure)
}

func (t *turn) hasFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed != nil
}

// skip records a command that came after a failure.
func (t *turn) skip(it item) {
	if it.cmd == nil {
		return
	}
	t.mu.Lock()
	t.skipped = append(t.skipped, it.cmd.ID)
	first := t.failed.o
	t.mu.Unlock()
	o := t.outcomeOf(it.cmd)
	o.status, o.code = string(ledger.StatusSkipped), "skipped"
	o.message = first.nth() + " failed before it"
	switch first.status {
	case string(ledger.StatusRolledBack):
		o.message = "it came after " + first.nth() + ", whose body was cut"
	case string(ledger.StatusStaged):
		o.message = "it came after " + first.nth() + ", which waits for the user; send it again if it is still wanted"
	}
	t.record(it.cmd, o, flowOf(it.cmd))
	t.keepOutcome(o)
	ev := commandEvent(it.cmd)
	ev.Status = o.status
	t.r.emit.emit(Event{Type: CommandSkipped, Command: ev, Reason: o.message})
}

func (t *turn) cancelled(it item) {
	if it.cmd == nil {
		return
	}
	o := t.outcomeOf(it.cmd)
	o.status, o.code, o.message = string(ledger.StatusCancelled), codeCancelled, "the run was cancelled before it began"
	t.record(it.cmd, o, flowOf(it.cmd))
	t.keepOutcome(o)
	ev := commandEvent(it.cmd)
	ev.Status = o.status
	t.r.emit.emit(Event{Type: CommandSkipped, Command: ev, Reason: o.message})
}

// refuseQuietly notes a command that does not run although the stream goes on:
// an echo, or one without the session's key.
func (t *turn) refuseQuietly(c *parser.Command, why string) {
	o := t.outcomeOf(c)
	o.status, o.code, o.message = string(ledger.StatusRejected), "echo", why
	t.record(c, o, ledger.FlowStreamed)
	ev := commandEvent(c)
	ev.Status, ev.Code = o.status, o.code
	t.r.emit.emit(Event{Type: CommandSkipped, Command: ev, Reason: why})
	t.r.s.addOutcome(o)
}

// parseError turns a tag that is not a command into a failed command.
func (t *turn) parseError(e *parser.Error) {
	c := &parser.Command{Name: parser.Name(e.Name), ID: e.ID, Channel: e.Channel, Path: e.Path}
	sig := "parse " + e.Name + " " + string(e.Code) + " " + e.Path
	if e.Code == parser.CodeOrphanClose {
		c.ID = e.Cut
		o := t.outcomeOf(c)
		o.status, o.code, o.message = string(ledger.StatusRolledBack), string(e.Code), t.rollBack(e)
		t.failWith(o, sig)
		return
	}
	o := t.outcomeOf(c)
	o.key = t.recordKey(c, string(e.Code))
	o.status, o.code, o.message = string(ledger.StatusFailed), string(e.Code), e.Message
	t.recordAs(o.key, c, o, ledger.FlowStreamed)
	t.completed(c, o)
	t.fail(o, sig)
}
