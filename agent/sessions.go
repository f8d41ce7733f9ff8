package agent

import (
	"context"
	"errors"
	"fmt"

	"thinkflow/ledger"
)

// SessionInfo is a session with what its runs add up to.
type SessionInfo = ledger.SessionInfo

// SessionDetail is a session with its runs, newest first.
type SessionDetail struct {
	ledger.SessionInfo
	Members []ledger.Run      `json:"members"`
	Waiting []WaitingApproval `json:"waiting,omitempty"`
}

// Ledger is the ledger that runs are recorded in; it is opened with the first
// call.
func (e *Engine) Ledger() (*ledger.Ledger, error) { return e.openLedger() }

// Sessions lists the sessions of this workspace, the newest first; limit 0 =
// all.
func (e *Engine) Sessions(ctx context.Context, limit int) ([]ledger.SessionInfo, error) {
	led, err := e.openLedger()
	if err != nil {
		return nil, err
	}
	return led.Sessions(ctx, limit)
}

// Session tells of one session.
func (e *Engine) Session(ctx context.Context, id string) (SessionDetail, error) {
	led, err := e.openLedger()
	if err != nil {
		return SessionDetail{}, err
	}
	all, err := led.Sessions(ctx, 0)
	if err != nil {
		return SessionDetail{}, err
	}
	for _, s := range all {
		if s.ID != id {
			continue
		}
		d := SessionDetail{SessionInfo: s}
		if d.Members, err = led.Runs(ctx, ledger.RunFilter{Session: id}); err != nil {
			return d, err
		}
		waiting, err := Waiting(ctx, led)
		for _, w := range waiting {
			for _, m := range d.Members {
				if m.ID == w.Run {
					d.Waiting = append(d.Waiting, w)
				}
			}
		}
		return d, err
	}
	return SessionDetail{}, fmt.Errorf("session %q: %w", id, ledger.ErrNotFound)
}

// loadSession takes up a session that another process began. One that the
// ledger does not know is a new one. While a run of it waits for an approval,
// no other may begin: it would go past the question.
func (e *Engine) loadSession(ctx context.Context, id string) error {
	if id == "" || !e.hasLedger {
		return nil
	}
	e.mu.Lock()
	s, opened := e.sessions[id], e.ledgerOpened
	e.mu.Unlock()
	if s != nil && (!opened || !s.suspended()) {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return nil //nolint:nilerr // told when the first command needs it
	}
	info, err := led.SessionRun(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil
	case err != nil:
		return err
	case info.State == string(StateSuspended):
		return fmt.Errorf("run %s of this session waits for an approval: answer it (thinkflow approve %s) or cancel it first", info.ID, info.ID)
	case s != nil:
		s.setSuspended(false) // answered by another process: its state counts
	}
	saved, err := led.Checkpoint(ctx, info.ID)
	if err != nil {
		return err
	}
	state, messages, err := loadCheckpoint(saved)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[id] == nil || s != nil {
		e.sessions[id] = state.Session.restore(&e.cfg, messages)
	}
	return nil
}

func (s *session) suspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

func (s *session) setSuspended(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = yes
}
