package fakeeditor

import (
	"sort"
	"sync"
	"time"
)

// Clock is virtual time. Timers fire on the goroutine that moves the clock.
type Clock struct {
	mu     sync.Mutex // guards what follows
	now    time.Duration
	seq    int
	timers []*timer
}

type timer struct {
	at  time.Duration
	seq int // settles equal times: first set, first fired
	f   func()
}

// AfterFunc calls f once when d has passed; stop prevents that.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t := &timer{c.now + d, c.seq, f}
	c.timers = append(c.timers, t)
	sort.Slice(c.timers, func(i, j int) bool {
		a, b := c.timers[i], c.timers[j]
		return a.at < b.at || a.at == b.at && a.seq < b.seq
	})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, x := range c.timers {
			if x == t {
				c.timers = append(c.timers[:i], c.timers[i+1:]...)
				return
			}
		}
	}
}

// Now is the time that has passed since the clock was made.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Step moves to the next timer and fires it; false when there is none.
func (c *Clock) Step() bool { return c.stepTo(-1) }

// stepTo fires the next timer if it is due by limit; limit < 0 means any.
func (c *Clock) stepTo(limit time.Duration) bool {
	c.mu.Lock()
	if len(c.timers) == 0 || limit >= 0 && c.timers[0].at > limit {
		c.mu.Unlock()
		return false
	}
	t := c.timers[0]
	c.timers = c.timers[1:]
	c.now = t.at
	c.mu.Unlock()
	t.f()
	return true
}

// Advance moves the clock by d and fires all that becomes due, in order.
func (c *Clock) Advance(d time.Duration) {
	end := c.Now() + d
	for c.stepTo(end) {
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = end
}
