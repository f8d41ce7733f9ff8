package agent

import (
	"fmt"
	"slices"
	"strings"

	"thinkflow/ledger"
	"thinkflow/parser"
)

// rollBack takes back the command whose body was cut, as an orphan closing tag
// shows, and all that ran after it in its channel: it came out of the body
// (cases TS-04, TS-36). Files that moved on since are left alone and named.
// The text returned is for the model.
func (t *turn) rollBack(e *parser.Error) string {
	from := -1
	for i, x := range t.ran {
		if x.key.ID == e.Cut && x.cmd.Channel == e.Channel {
			from = i
		}
	}
	if from < 0 {
		return e.Message
	}
	var back, left []string
	for _, x := range slices.Backward(t.ran[from:]) {
		if x.cmd.Channel != e.Channel {
			continue
		}
		if err := t.takeBack(x); err != nil {
			left = append(left, fmt.Sprintf("%d %s (%v)", x.cmd.ID, x.cmd.Path, err))
			continue
		}
		back = append(back, fmt.Sprintf("%d %s", x.cmd.ID, x.cmd.Path))
	}
	var b strings.Builder
	b.WriteString(e.Message)
	if len(back) > 0 {
		slices.Reverse(back)
		b.WriteString(". Taken back: " + strings.Join(back, ", "))
	}
	if len(left) > 0 {
		b.WriteString(". Could not be taken back, look at them: " + strings.Join(left, ", "))
	}
	return b.String()
}

// takeBack undoes one applied command of this turn, with an intent of its own.
func (t *turn) takeBack(x *executed) error {
	unlock := t.r.e.locks.lock(x.abs)
	defer unlock()
	change, err := t.r.e.ws.Revert(x.undo)
	if err != nil {
		return err
	}
	led, err := t.r.ledger()
	if err != nil {
		return err
	}
	if x.staged {
		t.r.e.trackStaged("", change)
		t.rolledBack(led, x, t.outcomeOf(x.cmd))
		t.r.changesUpdated(changedPath(change), true)
		return nil
	}
	key := x.key
	key.Channel += ".rollback"
	in := t.r.intentOf(key, x.cmd, change, ledger.FlowStreamed)
	in.Tool = "rollback"
	if err := led.Intent(t.r.effectCtx(), in); err != nil {
		return err
	}
	verdict, message, size := t.effect(change)
	o := t.outcomeOf(x.cmd)
	o.bytes = size
	switch verdict {
	case EditApplied:
		o.status = string(ledger.StatusApplied)
	case EditUncertain:
		o.status, o.code, o.message = string(ledger.StatusUncertain), codeUncertain, message
	default:
		o.status, o.code, o.message = string(ledger.StatusFailed), codeWrite, message
	}
	t.settleOutcome(led, key, o)
	if verdict != EditApplied {
		return fmt.Errorf("%s", message)
	}
	t.r.e.trackApplied("", change)
	t.r.changesUpdated(changedPath(change), false)
	t.r.s.forget(change.Target.Abs)
	t.rolledBack(led, x, o)
	return nil
}

// rolledBack records that a command was taken back, and tells it.
func (t *turn) rolledBack(led *ledger.Ledger, x *executed, o outcome) {
	t.r.unchanged(x)
	o.status, o.code, o.message = string(ledger.StatusRolledBack), string(parser.CodeOrphanClose), "its body was cut"
	t.settleOutcome(led, x.key, o)
	t.unapply(x.cmd.ID)
	t.completed(x.cmd, o)
}

// unapply removes a command from the applied ones, and from what is still to
// be told as applied.
func (t *turn) unapply(id int) {
	t.mu.Lock()
	t.applied = slices.DeleteFunc(t.applied, func(n int) bool { return n == id })
	t.mu.Unlock()
	s := t.r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pending {
		if o := &s.pending[i]; o.id == id && t.owns(o.key) {
			o.status, o.diff, o.message = string(ledger.StatusRolledBack), "", "its body was cut"
		}
	}
}
