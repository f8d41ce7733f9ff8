package agent

import (
	"sync"
	"time"

	"thinkflow/internal/redact"
)

// textInterval is the least time between two text events of one run: at most
// 20 a second, coalesced before they are numbered.
const textInterval = 50 * time.Millisecond

// emitter numbers the events of one run and hands them to its sink, in order
// and never concurrently. Text and reasoning are coalesced; any other event
// first flushes what is held, so the order of the stream is kept.
type emitter struct {
	run  string
	sink func(Event)
	now  func() time.Time
	safe *redact.Redactor

	mu     sync.Mutex // guards all below, and serialises the sink
	seq    int64
	turn   int
	held   []byte // text not yet emitted
	kind   EventType
	last   time.Time // of the last text event
	timer  *time.Timer
	closed bool
}

func newEmitter(run string, sink func(Event), now func() time.Time) *emitter {
	if sink == nil {
		sink = func(Event) {}
	}
	return &emitter{run: run, sink: sink, now: now, safe: &redact.Redactor{}}
}

// emit numbers and delivers ev; after the final event nothing more is delivered.
func (e *emitter) emit(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushLocked(true)
	e.sendLocked(ev)
	switch ev.Type {
	case RunCompleted, RunFailed, RunCancelled, RunSuspended:
		e.closed = true
		if e.timer != nil {
			e.timer.Stop()
		}
	}
}

// text adds to the stream of text (or reasoning).
func (e *emitter) text(kind EventType, s string) {
	if s == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kind != kind {
		e.flushLocked(true)
		e.kind = kind
	}
	e.held = append(e.held, s...)
	wait := textInterval - e.now().Sub(e.last)
	if wait <= 0 {
		e.flushLocked(false)
		return
	}
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, e.flush)
	} else {
		e.timer.Reset(wait)
	}
}

func (e *emitter) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushLocked(false)
}

// flushLocked sends what is held. What may be the beginning of a key waits for
// more, unless all is to go.
func (e *emitter) flushLocked(all bool) {
	s := string(e.held)
	if !all {
		s = s[:len(s)-e.safe.Tail(s)]
	}
	if s == "" {
		return
	}
	e.held = append(e.held[:0], e.held[len(s):]...)
	e.last = e.now()
	e.sendLocked(Event{Type: e.kind, Text: s})
}

func (e *emitter) sendLocked(ev Event) {
	if e.closed {
		return
	}
	e.seq++
	ev.Seq, ev.Run, ev.Time = e.seq, e.run, e.now()
	if ev.Turn == 0 {
		ev.Turn = e.turn
	}
	e.sink(safeEvent(e.safe, ev))
}

func (e *emitter) setTurn(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushLocked(true)
	e.turn = n
}
