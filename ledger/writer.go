package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Everything that is written goes through one queue. Whoever puts in an op and
// wants it durable leads: it commits the whole queue, on its own goroutine,
// unless somebody is leading already; then its op is in the next commit,
// together with all that came while the one before it was being synced (group
// commit). Ops that nobody waits for go with such a commit, after a short time,
// or when there are many. Only the leader uses the connection.

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
	// A checkpoint copies the write-ahead log into the file; then the log is
	// written again from its beginning. It is done when nothing has happened for
	// idleAfter and at least idleBytes were written; when hotBytes were, without
	// a pause, on a connection of its own, in the way of no command, and what was
	// written meanwhile between two commits. hotBytes is small because a sync of
	// a log that does not grow costs a fifth less (ext4).
	idleAfter = time.Second
	idleBytes = 512 << 10
	hotBytes  = 4 << 20
	// commitBytes estimates the pages that any commit writes.
	commitBytes = 24 << 10
	// retryAfter is the time until ops that nobody waits for are tried again
	// after the disk refused them.
	retryAfter = time.Second
	// busyAfter is how long another process may hold the file.
	busyAfter = 5 * time.Second
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
	// renew replaces a damaged file by a new one; nil = there is no other.
	renew func() (*txn, error)

	mu      sync.Mutex // guards the fields below
	room    *sync.Cond // on mu: the queue shrank, or the leader is done, or closing, or failing
	timer   *time.Timer
	queue   []*op
	bytes   int
	urgent  bool      // someone waits for an op in the queue
	due     time.Time // when the queue must be committed; zero when empty
	armed   time.Time // when the timer fires; zero when it does not
	leading bool      // someone uses tx, unsaved and written
	last    time.Time // when the last leader ended
	failing error     // the last commit failed for a reason outside; nil after a good one
	closing bool
	lost    int   // ops that closing could not write
	commits int64 // durable commits so far
	unsaved int64 // estimated bytes since the last checkpoint
	copying bool  // a checkpoint is under way on its own connection
	copied  bool  // one has ended; the rest is to be copied
	written bool  // anything at all
}

func newWriter(path string, tx *txn, log *slog.Logger, wait time.Duration) *writer {
	w := &writer{path: path, tx: tx, log: log, wait: wait}
	w.room = sync.NewCond(&w.mu)
	w.timer = time.AfterFunc(time.Hour, w.fired)
	w.timer.Stop()
	return w
}

// put queues an op that nobody waits for.
func (w *writer) put(o *op) error {
	o.size += opOverhead
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes >= maxBytes && !w.closing && w.failing == nil {
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
	if w.leading {
		w.mu.Unlock()
	} else {
		w.leading = true
		ops := w.take()
		w.mu.Unlock()
		if w.commit(ops, w.tx.run, false) {
			w.next()
		} else { // another process holds the file: this caller may be cancelled meanwhile
			go func() {
				w.commit(ops, w.patiently, false)
				w.next()
			}()
		}
	}
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
		return // it leads, or a leader takes it
	}
	wait := w.wait
	if o.lazy {
		wait = max(wait, lazyFlushAfter)
	}
	due := time.Now().Add(wait)
	if w.bytes >= kickBytes && w.failing == nil {
		due = time.Now()
	}
	if w.due.IsZero() || due.Before(w.due) {
		w.due = due
		w.arm(due)
	}
}

// arm makes the timer fire at t, or earlier if it does so anyway; mu is held.
func (w *writer) arm(t time.Time) {
	if w.armed.IsZero() || t.Before(w.armed) {
		w.armed = t
		w.timer.Reset(time.Until(t))
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

// take empties the queue; mu is held.
func (w *writer) take() []*op {
	ops := w.queue
	w.queue, w.bytes, w.urgent, w.due = nil, 0, false, time.Time{}
	w.room.Broadcast()
	return ops
}

// next ends a leader's turn: a hot checkpoint if one is needed, then the next
// commit, by a goroutine of its own, if somebody waits for one.
func (w *writer) next() {
	if w.tx.purged {
		w.tx.purged = false
		w.awaitCopy()
		if err := emptyLog(w.tx); err != nil {
			w.log.Warn("ledger: purged texts stay in the write-ahead log until it is used again", "path", w.path, "err", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.copied {
		w.copied = false
		w.mu.Unlock()
		w.checkpoint()
		w.mu.Lock()
	}
	if w.unsaved >= hotBytes && !w.copying && !w.closing {
		w.unsaved, w.copying = 0, true
		go w.checkpointBeside()
	}
	if w.urgent {
		go w.lead()
		return
	}
	w.leading = false
	w.last = time.Now()
	w.room.Broadcast()
	switch {
	case len(w.queue) > 0:
		w.arm(w.due)
	case w.unsaved >= idleBytes:
		w.arm(w.last.Add(idleAfter))
	}
}

// lead commits as long as somebody waits. The caller has set leading.
func (w *writer) lead() {
	w.mu.Lock()
	ops, closing := w.take(), w.closing
	w.mu.Unlock()
	w.commit(ops, w.patiently, closing)
	w.next()
}

// fired runs when the timer does: it commits what is due, or tidies up.
func (w *writer) fired() {
	w.mu.Lock()
	w.armed = time.Time{}
	if w.leading || w.closing { // the leader looks at what is due when it ends
		w.mu.Unlock()
		return
	}
	if len(w.queue) > 0 && time.Until(w.due) > 0 {
		w.arm(w.due)
		w.mu.Unlock()
		return
	}
	if len(w.queue) > 0 {
		w.leading = true
		w.mu.Unlock()
		w.lead()
		return
	}
	if w.unsaved < idleBytes {
		w.mu.Unlock()
		return
	}
	if quiet := w.last.Add(idleAfter); time.Until(quiet) > 0 {
		w.arm(quiet)
		w.mu.Unlock()
		return
	}
	w.leading = true
	w.mu.Unlock()
	w.tidy()
	w.checkpoint()
	w.next()
}

// close commits what waits. It returns why something could not be written.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	w.room.Broadcast()
	for w.leading || w.copying {
		w.room.Wait()
	}
	w.timer.Stop()
	w.leading = true // for ever
	ops := w.take()
	w.mu.Unlock()
	w.commit(ops, w.patiently, true)
	if w.written {
		w.tidy()
	}
	w.mu.Lock()
	if w.lost == 0 {
		return nil
	}
	return fmt.Errorf("%d entries were lost: %w", w.lost, w.failing)
}

// commit writes ops in one transaction, which run does, and answers those who
// wait. It returns false, having done nothing, when another process holds the
// file and run is not a patient one.
func (w *writer) commit(ops []*op, run func(func(*txn) error) error, closing bool) bool {
	written, size := 0, 0
	for _, o := range ops {
		if o.apply != nil {
			written++
		}
		size += o.size
	}
	if written == 0 {
		w.answer(ops)
		return true
	}
	all := func(t *txn) error {
		for _, o := range ops {
			if o.apply == nil {
				continue
			}
			if err := o.apply(t); err != nil {
				return err
			}
		}
		return nil
	}
	err := run(all)
	if damaged(err) && w.renew != nil {
		if tx, rerr := w.renew(); rerr == nil {
			w.tx = tx
			err = w.patiently(all)
		} else {
			w.log.Error("ledger: the damaged file could not be replaced", "path", w.path, "err", rerr)
		}
	}
	w.unsaved += int64(size) + commitBytes
	w.written = true
	switch {
	case err == nil:
		w.succeeded()
		w.answer(ops)
	case sqliteCode(err) == sqlite3.SQLITE_BUSY && !closing && !outOfPatience(err):
		return false
	case environmental(err):
		w.refused(ops, storeError(w.path, "be written", err), closing)
	case len(ops) == 1:
		w.dropped(ops[0], err)
	default:
		w.commitEach(ops, closing)
	}
	return true
}

// commitEach writes ops one by one after one of them failed for a reason of its
// own: the others must not suffer for it.
func (w *writer) commitEach(ops []*op, closing bool) {
	for i, o := range ops {
		if o.apply == nil {
			w.answer(ops[i : i+1])
			continue
		}
		err := w.patiently(o.apply)
		switch {
		case err == nil:
			w.succeeded()
			w.answer(ops[i : i+1])
		case environmental(err):
			w.refused(ops[i:], storeError(w.path, "be written", err), closing)
			return
		default:
			w.dropped(o, err)
		}
	}
}

// errHeld ends the patience with another process.
type errHeld struct{ error }

func (e errHeld) Unwrap() error { return e.error }

func outOfPatience(err error) bool { return errors.As(err, new(errHeld)) }

// patiently runs a transaction, for up to busyAfter while another process holds
// the file.
func (w *writer) patiently(f func(*txn) error) error {
	for begun := time.Now(); ; {
		err := w.tx.run(f)
		if sqliteCode(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		if time.Since(begun) > busyAfter {
			return errHeld{err}
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
			w.awaitCopy()
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

func (w *writer) succeeded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	if w.failing != nil {
		w.log.Info("the ledger can be written again", "path", w.path)
		w.failing = nil
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
	if damaged(err) {
		markSuspect(w.path)
	}
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
		w.lost += len(keep)
		return
	}
	w.queue = append(keep, w.queue...)
	w.bytes += size
	if len(w.queue) > 0 {
		w.due = time.Now().Add(retryAfter)
	}
	w.room.Broadcast()
}
