package agent

import (
	"encoding/json"
	"log/slog"
	"sync"

	"thinkflow/ledger"
)

// journal writes the numbered events of a run into the ledger. The ledger opens
// in the background of the first request: what happens before is held, a few
// events, and written when it is there. A dry run never opens it.
type journal struct {
	run string

	mu    sync.Mutex // guards all below
	led   *ledger.Ledger
	log   *slog.Logger
	held  []Event
	saved []ledger.Checkpoint
}

// maxHeld bounds what is held while there is no ledger.
const maxHeld = 1000

func (j *journal) event(ev Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.led == nil {
		if len(j.held) < maxHeld {
			j.held = append(j.held, ev)
		}
		return
	}
	j.write(ev)
}

// open hands the ledger over and writes what was held.
func (j *journal) open(led *ledger.Ledger, log *slog.Logger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.led, j.log = led, log
	for _, ev := range j.held {
		j.write(ev)
	}
	j.held = nil
	for _, c := range j.saved {
		j.save(c)
	}
	j.saved = nil
}

// checkpoint stores a checkpoint, as soon as there is a ledger.
func (j *journal) checkpoint(c ledger.Checkpoint) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.led == nil {
		j.saved = append(j.saved, c)
		return
	}
	j.save(c)
}

func (j *journal) save(c ledger.Checkpoint) {
	if err := j.led.SaveCheckpoint(c); err != nil {
		j.log.Warn("ledger: the run's state was not stored", "run", j.run, "turn", c.Turn, "err", err)
	}
}

func (j *journal) write(ev Event) {
	if ev.Type == TurnStarted {
		if err := j.led.StartTurn(j.run, ev.Turn); err != nil {
			j.log.Warn("ledger: turn not recorded", "run", j.run, "err", err)
		}
	}
	body, err := json.Marshal(ev)
	if err == nil {
		err = j.led.Event(j.run, ev.Seq, string(ev.Type), body)
	}
	if err != nil {
		j.log.Warn("ledger: event not recorded", "run", j.run, "seq", ev.Seq, "err", err)
	}
}
