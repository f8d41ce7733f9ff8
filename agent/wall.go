package agent

import (
	"sync"
	"time"
)

// wallClock bounds the time of a run, without the time that it waits for a
// person.
type wallClock struct {
	over  func()
	outer *wallClock // stands still whenever this one does; nil = none

	mu     sync.Mutex // guards all below
	left   time.Duration
	since  time.Time
	timer  *time.Timer
	paused int
}

// newWallClock starts one; limit 0 means no bound.
func newWallClock(limit time.Duration, over func()) *wallClock {
	w := &wallClock{over: over, left: limit}
	if limit > 0 {
		w.since = time.Now()
		w.timer = time.AfterFunc(limit, over)
	}
	return w
}

// pause stops the clock until resume is called; pauses nest.
func (w *wallClock) pause() (resume func()) {
	also := func() {}
	if w.outer != nil {
		also = w.outer.pause()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return also
	}
	if w.paused++; w.paused == 1 && w.timer.Stop() {
		w.left -= time.Since(w.since)
	}
	return func() {
		also()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.paused--; w.paused == 0 {
			w.since = time.Now()
			w.timer.Reset(max(w.left, 0))
		}
	}
}

func (w *wallClock) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}
