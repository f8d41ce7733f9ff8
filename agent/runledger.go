package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"thinkflow/ledger"
)

// ledgerWait is the ledger being opened.
type ledgerWait struct {
	once   sync.Once
	opened chan struct{}
	led    *ledger.Ledger
	err    error
}

// awaitLedger opens the ledger at the first call and waits for it, as long as
// the run goes on: an opening that hangs (another process holds the file) does
// not hold up who cancels.
func (r *run) awaitLedger() func() (*ledger.Ledger, error) {
	w := &ledgerWait{opened: make(chan struct{})}
	r.lastLedger = w.within
	return func() (*ledger.Ledger, error) {
		w.once.Do(func() {
			go func() {
				defer close(w.opened)
				w.led, w.err = r.openLedger()
			}()
		})
		select {
		case <-w.opened:
			return w.led, w.err
		default:
		}
		select {
		case <-w.opened:
			return w.led, w.err
		case <-r.ctx.Done():
			return nil, fmt.Errorf("the run ended before the ledger was open: %w", context.Cause(r.ctx))
		}
	}
}

// within waits a moment longer, for what a cancelled run has to say at its end.
func (w *ledgerWait) within(d time.Duration) (*ledger.Ledger, error) {
	select {
	case <-w.opened:
		return w.led, w.err
	case <-time.After(d):
		return nil, errors.New("it does not open")
	}
}

// endLedger is the ledger at the end of the run.
func (r *run) endLedger() (*ledger.Ledger, error) {
	led, err := r.ledger()
	if err != nil && r.ctx.Err() != nil {
		return r.lastLedger(lastWait)
	}
	return led, err
}

// lastWait is how long the end of a run waits for a ledger that is being opened.
const lastWait = time.Second

func (r *run) openLedger() (*ledger.Ledger, error) {
	led, err := r.e.openLedger()
	if err != nil {
		return nil, err
	}
	if r.over.Load() {
		return nil, errors.New("the run is over")
	}
	if err := led.StartSession(ledger.Session{ID: r.s.id, Title: firstLine(r.task), Started: r.started}); err != nil {
		return nil, err
	}
	if r.claimed {
		r.journal.open(led, r.e.log)
		return led, nil
	}
	if known, ferr := led.FindRun(r.ctx, r.id); ferr == nil && known.ID == r.id {
		return nil, fmt.Errorf("a run with the id %q was there before; give another id, or none", r.id)
	}
	err = led.StartRun(ledger.Run{ID: r.id, Session: r.s.id, Task: r.task, Model: r.settings().Model, Dir: r.dir(), Started: r.started})
	if err != nil {
		return nil, err
	}
	r.journal.open(led, r.e.log)
	return led, nil
}

// recordEnd records the end before it is told: whoever hears of it may resume
// the run at once.
func (r *run) recordEnd(res *RunResult) (flush func()) {
	if r.dryRun || r.parent != nil {
		return func() {}
	}
	led, err := r.endLedger()
	if err != nil {
		r.e.log.Warn("ledger: not available", "err", err)
		return func() {}
	}
	if res.State == StateCancelled {
		if err := led.Request(r.id, ledger.Request{Action: "cancel"}); err != nil {
			r.e.log.Warn("ledger: the cancel was not recorded", "run", r.id, "err", err)
		}
	}
	usage, _ := json.Marshal(res.Usage)
	if err := led.EndRun(r.id, string(res.State), res.Reason, usage); err != nil {
		r.e.log.Warn("ledger: end of the run not recorded", "run", r.id, "err", err)
	}
	return func() {
		if err := led.Flush(r.effectCtx()); err != nil {
			r.e.log.Warn("ledger: not flushed", "err", err)
		}
	}
}
