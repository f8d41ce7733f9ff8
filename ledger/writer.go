package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Everything that is written goes through one queue and one goroutine, which
// owns the writing connection. An op that someone waits for is committed at
// once, together with all that stands before it in the queue and all that comes
// while the commit before it is being synced (group commit). Other ops wait for
// such a commit, for a short timer, or for the queue to grow.

const (
	defaultFlushAfter = 200 * time.Millisecond
	// lazyFlushAfter is the time that run events wait when no outcome does.
	lazyFlushAfter = time.Second
	// kickBytes of waiting ops start a commit; maxBytes of them make callers
	// wait (memory stays bounded), or fail while the disk refuses.
	kickBytes = 512 << 10
	maxBytes  = 8 << 20
	// opOverhead stands for the memory of an op beside its texts.
	opOverhead = 256
	// A checkpoint copies the write-ahead log into the file. It is done when
	// nothing has happened for idleAfter and at least idleBytes were written,
	// or, after a commit, when hotBytes were.
	idleAfter = time.Second
	idleBytes = 512 << 10
	hotBytes  = 32 << 20
	// commitBytes estimates the pages that any commit writes.
	commitBytes = 24 << 10
	// retryAfter is the time until ops that nobody waits for are tried again
	// after the disk refused them.
	retryAfter = time.Second
	// goneAfter is how long a cancelled caller still waits for a commit that
	// has begun.
	goneAfter = time.Second
)

// op is one thing to write. apply may run more than once (a transaction can be
// rolled back and tried again).
type op struct {
	apply func(*txn) error // nil: only a wait for what came before
	// outside runs after the commit, outside a transaction (VACUUM); with done.
	outside func(*txn) error
	size    int        // bytes, for the bounds
	lazy    bool       // a run event: may wait longer
	done    chan error // nil: nobody waits; else buffered

	// orphaned makes the op to add when this one was committed after its
	// caller had stopped waiting; gone says that it has.
	orphaned func() *op
	gone     atomic.Bool
}

type writer struct {
	path string
	tx   *txn
	log  *slog.Logger
	wait time.Duration

	wake    chan struct{} // buffered, 1
	stopped chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards the fields below
	room    *sync.Cond // on mu: queue shrank, or closing, or failing
	queue   []*op
	bytes   int
	urgent  bool      // someone waits for an op in the queue
	due     time.Time // when the queue must be committed; zero when empty
	failing error     // the last commit failed for a reason outside; nil after a good one
	closing bool
	lost    int   // ops that closing could not write
	commits int64 // durable commits so far

	// Only the goroutine uses these.
	unsaved int64 // estimated bytes since the last checkpoint
	written bool  // anything at all
}

func newWriter(path string, tx *txn, log *slog.Logger, wait time.Duration) *writer {
	w := &writer{path: path, tx: tx, log: log, wait: wait, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	go w.loop()
	return w
}

// put queues an op that nobody waits for.
func (w *writer) put(o *op) error {
	o.size += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes >= maxBytes && !w.closing && w.failing == nil {
		w.kick()
		w.room.Wait()
	}
	switch {
	case w.closing:
		return ErrClosed
	case w.failing != nil && w.bytes >= maxBytes:
		return w.failing
	}
	w.add(o)
	return nil
}

// do queues an op and waits until it is durable.
func (w *writer) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.size += opOverhead
	o.done = make(chan error, 1)
	w.mu.Lock()
	if w.closing {
		w.mu.Unlock()
		return ErrClosed
	}
	w.add(o)
	w.mu.Unlock()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	if w.withdraw(o) {
		return ctx.Err()
	}
	// It is being committed, which takes milliseconds unless another process
	// holds the file. A true answer is worth a moment.
	timer := time.NewTimer(goneAfter)
	defer timer.Stop()
	select {
	case err := <-o.done:
		return err
	case <-timer.C:
		o.gone.Store(true)
		return ctx.Err()
	}
}

// add appends to the queue; mu is held.
func (w *writer) add(o *op) {
	w.queue = append(w.queue, o)
	w.bytes += o.size
	if o.done != nil {
		w.urgent = true
	}
	wait := w.wait
	if o.lazy {
		wait = max(wait, lazyFlushAfter)
	}
	if due := time.Now().Add(wait); w.due.IsZero() || due.Before(w.due) {
		w.due = due
	}
	w.kick()
}

func (w *writer) kick() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// withdraw takes an op out of the queue again, if it is still there.
func (w *writer) withdraw(o *op) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.queue {
		if q == o {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			w.bytes -= o.size
			w.room.Broadcast()
			return true
		}
	}
	return false
}

// close commits what waits and ends the goroutine. It returns why something
// could not be written.
func (w *writer) close() error {
	w.mu.Lock()
	w.closing = true
	w.room.Broadcast()
	w.mu.Unlock()
	w.kick()
	<-w.stopped
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == 0 {
		return nil
	}
	return fmt.Errorf("%d entries were lost: %w", w.lost, w.failing)
}

func (w *writer) loop() {
	defer close(w.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		ops, sleep, closing := w.take()
		if len(ops) > 0 {
			w.commit(ops, closing)
			if w.unsaved >= hotBytes {
				w.checkpoint()
			}
			continue
		}
		if closing {
			if w.written {
				w.tidy()
			}
			return
		}
		if sleep < 0 && w.unsaved >= idleBytes {
			sleep = idleAfter
		}
		if sleep < 0 {
			<-w.wake
			continue
		}
		timer.Reset(sleep)
		select {
		case <-w.wake:
		case <-timer.C:
			if w.idle() && w.unsaved >= idleBytes {
				w.tidy()
				w.checkpoint()
			}
		}
	}
}

func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) == 0
}

// take returns the queue if it is to be committed now, else how long it may
// still wait (-1 = nothing is waiting).
func (w *writer) take() (ops []*op, sleep time.Duration, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, -1, w.closing
	}
	full := w.bytes >= kickBytes && w.failing == nil
	if !w.urgent && !w.closing && !full {
		if sleep = time.Until(w.due); sleep > 0 {
			return nil, sleep, false
		}
	}
	ops = w.queue
	w.queue, w.bytes, w.urgent, w.due = nil, 0, false, time.Time{}
	w.room.Broadcast()
	return ops, 0, w.closing
}

// commit writes ops in one transaction and answers those who wait.
func (w *writer) commit(ops []*op, closing bool) {
	written, size := 0, 0
	for _, o := range ops {
		if o.apply != nil {
			written++
		}
		size += o.size
	}
	var err error
	if written > 0 {
		err = w.tx.run(func(t *txn) error {
			for _, o := range ops {
				if o.apply == nil {
					continue
				}
				if err := o.apply(t); err != nil {
					return err
				}
			}
			return nil
		})
		w.unsaved += int64(size) + commitBytes
		w.written = true
	}
	switch {
	case err == nil:
		w.succeeded(written > 0)
		w.answer(ops)
	case environmental(err):
		w.refused(ops, storeError(w.path, "be written", err), closing)
	case len(ops) == 1:
		w.dropped(ops[0], err)
	default:
		// One of them is at fault: the others must not suffer for it.
		for i, o := range ops {
			if o.apply == nil {
				w.answer(ops[i : i+1])
				continue
			}
			err := w.tx.run(o.apply)
			switch {
			case err == nil:
				w.succeeded(true)
				w.answer(ops[i : i+1])
			case environmental(err):
				w.refused(ops[i:], storeError(w.path, "be written", err), closing)
				return
			default:
				w.dropped(o, err)
			}
		}
	}
}

// answer tells those who wait that their ops are durable.
func (w *writer) answer(ops []*op) {
	for _, o := range ops {
		if o.done == nil {
			continue
		}
		var err error
		if o.outside != nil {
			err = o.outside(w.tx)
		}
		o.done <- err
		if o.orphaned != nil && o.gone.Load() {
			w.mu.Lock()
			w.add(o.orphaned())
			w.mu.Unlock()
		}
	}
}

func (w *writer) succeeded(commit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if commit {
		w.commits++
		if w.failing != nil {
			w.log.Info("the ledger can be written again", "path", w.path)
			w.failing = nil
		}
	}
}

// dropped reports an op that cannot be written for a reason of its own. For
// those who wait this is an answer like any other (a duplicate key); else it is
// a mistake of the caller that must show.
func (w *writer) dropped(o *op, err error) {
	if o.done != nil {
		o.done <- err
		return
	}
	w.log.Error("ledger: an entry could not be recorded", "path", w.path, "err", err)
}

// refused keeps the ops that nobody waits for, to be tried again with the next
// commit or after a while; those who wait get the error.
func (w *writer) refused(ops []*op, err error, closing bool) {
	var keep []*op
	size := 0
	for _, o := range ops {
		if o.done != nil {
			o.done <- err
			continue
		}
		keep = append(keep, o)
		size += o.size
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing == nil || w.failing.Error() != err.Error() {
		w.log.Error("the ledger cannot be written", "path", w.path, "err", err, "waiting", len(keep))
	}
	w.failing = err
	if closing { // there is no later; close reports it
		w.lost += len(keep) + len(w.queue)
		w.queue, w.bytes = nil, 0
		return
	}
	w.queue = append(keep, w.queue...)
	w.bytes += size
	if due := time.Now().Add(retryAfter); len(w.queue) > 0 && !w.urgent {
		w.due = due
	}
	w.room.Broadcast()
}

// tidy does what makes the next opening fast.
func (w *writer) tidy() {
	if err := w.tx.raiseMark(); err != nil {
		w.log.Warn("ledger: tidying", "path", w.path, "err", err)
	}
}

// checkpoint moves the write-ahead log into the file as far as readers allow.
func (w *writer) checkpoint() {
	w.unsaved = 0
	if _, err := w.tx.conn.ExecContext(bg, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		w.log.Warn("ledger: checkpoint", "path", w.path, "err", err)
	}
}
