package agent

import (
	"sync"
	"time"
)

// personClock adds up the time in which a run waited for an answer of a person,
// so that it can be left out of what a command took. Questions that are open at
// the same time count once. The zero value is ready.
type personClock struct {
	mu    sync.Mutex // guards all below
	open  int
	since time.Time
	sum   time.Duration
}

// wait begins a question at now; done ends it.
func (p *personClock) wait(now func() time.Time) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open++; p.open == 1 {
		p.since = now()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open--; p.open == 0 {
			p.sum += now().Sub(p.since)
		}
	}
}

// total is the time waited until now.
func (p *personClock) total(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open > 0 {
		return p.sum + now.Sub(p.since)
	}
	return p.sum
}
