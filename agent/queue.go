package agent

import (
	"context"
	"sync"

	"thinkflow/agent/registry"
	"thinkflow/parser"
)

// Bounds of the queue: beyond them the stream is read no further.
const (
	maxQueued      = 64
	maxQueuedBytes = 32 << 20
)

// item is one thing for the worker, in stream order.
type item struct {
	cmd   *parser.Command // run it
	err   *parser.Error   // or: report this tag as a failed command
	bad   *registry.Error // cmd came as a native call with arguments that cannot be used
	bytes int
}

// queue is the FIFO between the reader of the stream and the one worker.
type queue struct {
	mu     sync.Mutex // guards all below
	change sync.Cond
	items  []item
	bytes  int
	busy   bool
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.change.L = &q.mu
	return q
}

// push appends it, waiting while the queue is full. It gives up when ctx ends.
func (q *queue) push(ctx context.Context, it item) error {
	stop := context.AfterFunc(ctx, q.wake)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) > 0 && (len(q.items) >= maxQueued || q.bytes+it.bytes > maxQueuedBytes) {
		if err := ctx.Err(); err != nil {
			return err
		}
		q.change.Wait()
	}
	q.items = append(q.items, it)
	q.bytes += it.bytes
	q.change.Broadcast()
	return nil
}

// pop takes the first item, waiting for one. ok is false once the queue is
// closed and empty.
func (q *queue) pop() (it item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.change.Broadcast()
	for len(q.items) == 0 {
		if q.closed {
			return item{}, false
		}
		q.change.Wait()
	}
	it = q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.bytes -= it.bytes
	q.busy = true
	q.change.Broadcast()
	return it, true
}

// close lets pop end once the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.change.Broadcast()
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change.Broadcast()
}
