package ledger

import (
	"database/sql"
	"errors"
)

// The write-ahead log is copied into the file here, and what makes the next
// opening fast is done: in the way of no command.

// tidy does what makes the next opening fast.
func (w *writer) tidy() {
	if err := w.tx.raiseMark(); err != nil {
		w.log.Debug("ledger: tidying", "path", w.path, "err", err)
	}
}

// awaitCopy waits for a checkpoint on the other connection, which would refuse
// what needs the whole file.
func (w *writer) awaitCopy() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.copying {
		w.room.Wait()
	}
}

// checkpoint moves the write-ahead log into the file as far as readers allow.
func (w *writer) checkpoint() {
	w.awaitCopy()
	w.unsaved = 0
	if _, err := w.tx.conn.ExecContext(bg, passive); err != nil {
		w.log.Warn("ledger: checkpoint", "path", w.path, "err", err)
	}
}

const passive = "PRAGMA wal_checkpoint(PASSIVE)"

// checkpointBeside is checkpoint on a connection of its own, while others write.
func (w *writer) checkpointBeside() {
	db, err := sql.Open("sqlite", dsn(w.path, ""))
	if err == nil {
		db.SetMaxOpenConns(1)
		if _, err = db.ExecContext(bg, pragmas); err == nil {
			_, err = db.ExecContext(bg, passive)
		}
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		w.log.Warn("ledger: checkpoint", "path", w.path, "err", err)
	}
	w.mu.Lock()
	w.copying, w.copied = false, true
	w.room.Broadcast()
	w.mu.Unlock()
}
