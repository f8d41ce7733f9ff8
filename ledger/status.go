package ledger

import (
	"fmt"
	"slices"
)

// Statuses lists every status, for documentation and tests.
func Statuses() []Status {
	return []Status{StatusIntent, StatusStaged, StatusApplied, StatusNotApplied, StatusFailed, StatusSkipped,
		StatusRejected, StatusCancelled, StatusUncertain, StatusRolledBack, StatusUndone}
}

func (s Status) known() bool { return slices.Contains(Statuses(), s) }

// mayBecome tells whether an outcome may turn one status into another. Saying
// the same again is harmless. What is final stays: an effect that did not
// happen cannot have happened later under the same key.
func (s Status) mayBecome(to Status) bool {
	if !to.known() || to == StatusIntent {
		return false
	}
	if s == to {
		return true
	}
	switch s {
	case StatusIntent:
		return true
	case StatusStaged:
		return to != StatusNotApplied
	case StatusUncertain: // a late reply, or a person who looked
		return to != StatusStaged
	case StatusApplied:
		return to == StatusFailed || to == StatusUncertain || to == StatusRolledBack || to == StatusUndone
	case StatusUndone: // undoing is itself undoable
		return to == StatusApplied || to == StatusUncertain
	}
	return false
}

// takesBack tells whether a status is about an effect that was there: what the
// first outcome said of it (sizes, output) stays.
func (s Status) takesBack() bool { return s == StatusRolledBack || s == StatusUndone }

// setLive remembers the status of a command of a run that has not ended, so
// that Outcome can refuse a wrong one at once.
func (l *Ledger) setLive(k Key, s Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.live[k.Run]
	if m == nil {
		m = map[Key]Status{}
		l.live[k.Run] = m
	}
	m[k] = s
}

// moveLive checks a change of status and remembers the new one. known is false
// when the command is not among those remembered.
func (l *Ledger) moveLive(k Key, to Status) (known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, known := l.live[k.Run][k]
	if !known {
		return false, nil
	}
	if !from.mayBecome(to) {
		return true, transitionError(k, from, to)
	}
	l.live[k.Run][k] = to
	return true, nil
}

func transitionError(k Key, from, to Status) error {
	return fmt.Errorf("ledger: command %s is %s and cannot become %q", k, from, to)
}
