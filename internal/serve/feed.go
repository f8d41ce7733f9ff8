package serve

import (
	"encoding/json"
	"sync"

	"thinkflow/agent"
)

// Bounds of the events of one run that are kept in memory.
const (
	maxFeedEvents = 2048
	maxFeedBytes  = 4 << 20
)

// item is one event, ready to be sent.
type item struct {
	seq  int64
	typ  agent.EventType
	data []byte // JSON, one line
}

// last says that no event follows, ever.
func (i *item) last() bool { return terminal(i.typ) }

func terminal(t agent.EventType) bool {
	return t == agent.RunCompleted || t == agent.RunFailed || t == agent.RunCancelled
}

// feed holds the newest events of one run.
type feed struct {
	max int // events

	mu    sync.Mutex // guards all below
	items []item
	bytes int
	grown chan struct{} // closed and replaced when something was added
}

func newFeed(most int) *feed { return &feed{max: most, grown: make(chan struct{})} }

// add takes an event; it never waits for a client.
func (f *feed) add(ev agent.Event) {
	data, err := json.Marshal(ev)
	if err != nil {
		return // plain structs cannot fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.items); n > 0 && ev.Seq != f.items[n-1].seq+1 {
		f.items, f.bytes = nil, 0 // another process went on in between: the ledger has it
	}
	f.items = append(f.items, item{ev.Seq, ev.Type, data})
	f.bytes += len(data)
	drop := 0
	for drop < len(f.items)-1 && (len(f.items)-drop > f.max || f.bytes > maxFeedBytes) {
		f.bytes -= len(f.items[drop].data)
		drop++
	}
	if drop > 0 {
		f.items = append([]item(nil), f.items[drop:]...)
	}
	close(f.grown)
	f.grown = make(chan struct{})
}

// after returns up to n events behind seq. ok is false when some between are no
// longer here. grown is closed when more come.
func (f *feed) after(seq int64, n int) (items []item, ok bool, grown <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) == 0 {
		return nil, seq == 0, f.grown
	}
	from := len(f.items)
	for from > 0 && f.items[from-1].seq > seq {
		from--
	}
	if from == 0 && f.items[0].seq > 1 && seq < f.items[0].seq-1 {
		return nil, false, f.grown
	}
	items = f.items[from:min(from+n, len(f.items))]
	return items, true, f.grown
}

// paused tells whether the run is suspended: another process may go on with it.
func (f *feed) paused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.items)
	return n > 0 && f.items[n-1].typ == agent.RunSuspended
}

// newest is the number of the newest event; 0 = none.
func (f *feed) newest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) == 0 {
		return 0
	}
	return f.items[len(f.items)-1].seq
}
