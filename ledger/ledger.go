package ledger

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Probe looks at a file: the SHA-256 hex of its bytes; exists is false when
// nothing is there; a folder exists with an empty hash.
type Probe func(path string) (hash string, exists bool, err error)

// Options configures a ledger.
type Options struct {
	// Dir is the state folder of this workspace (see StateDir); it is created
	// with mode 0700.
	Dir string
	// Workspace is the identity of the workspace, e.g. its first root.
	Workspace string
	// Probe looks at files when settling; nil leaves intents of dead owners as
	// they are.
	Probe Probe
	// RemoveTemp removes a recorded temp file of a dead owner; a missing file
	// is no error. nil leaves them.
	RemoveTemp func(path string) error
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log gets what went wrong in the background; nil = discarded.
	Log *slog.Logger
	// Redact and RedactJSON take out what must not be written down, from texts
	// and from JSON; nil leaves all as it is. Texts that undo something are not
	// changed: the caller leaves them out.
	Redact     func(string) string
	RedactJSON func([]byte) []byte
	// KeepFor and KeepBytes bound what is kept, as Prune does, by itself and in
	// the background: see retain.go. 0 sets no bound.
	KeepFor   time.Duration
	KeepBytes int64
	// FlushAfter is how long outcomes may wait for a commit; 0 = 200 ms.
	FlushAfter time.Duration
}

// Ledger is one open ledger. It may be used by several goroutines, and several
// processes may have the same ledger open.
type Ledger struct {
	o    Options
	file string // where the ledger's file is looked for first
	log  *slog.Logger
	now  func() time.Time

	db      *sql.DB // the writing connection's; this and the next are the leader's
	tx      *txn
	w       *writer
	settled []Settlement

	retainTimer   *time.Timer
	stopRetention func(own bool) // nil = there is none

	mu      sync.Mutex // guards the fields below
	path    string     // of the file in use
	aside   string
	notice  string
	renewed bool
	readDB  *sql.DB   // nil until something is read
	oldRead []*sql.DB // of files that were replaced while they were in use
	owner   *owner    // nil until the first effect is announced
	live    map[string]map[Key]Status
	closed  bool
}

// Open opens or creates the ledger in o.Dir and settles the intents of dead
// owners. A damaged file is kept aside under another name (see Aside) and a
// new one is started.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	l := &Ledger{o: o, file: filepath.Join(o.Dir, fileName), path: filepath.Join(o.Dir, fileName), log: o.Log, now: o.Now, live: map[string]map[Key]Status{}}
	if o.Dir == "" {
		return nil, errors.New("ledger: no folder given")
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.o.Redact == nil {
		l.o.Redact = func(s string) string { return s }
	}
	if l.o.RedactJSON == nil {
		l.o.RedactJSON = func(b []byte) []byte { return b }
	}
	if o.FlushAfter <= 0 {
		o.FlushAfter = defaultFlushAfter
	}
	if err := makeDir(o.Dir); err != nil {
		return nil, err
	}
	unlock, err := lockOpening(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.openSettled(ctx); err != nil {
		return nil, err
	}
	l.tidyAfterCrash()
	l.w = newWriter(l.path, l.tx, l.log, o.FlushAfter)
	l.w.renew = l.renew
	l.w.unsaved = l.logSize()
	l.startRetention()
	return l, nil
}

// openSettled opens the file and settles what dead owners left open in it. When
// damage shows only there, the file is kept aside like one in which it shows at
// once.
func (l *Ledger) openSettled(ctx context.Context) error {
	for again := false; ; again = true {
		conn, err := l.openFile(ctx)
		if err != nil {
			return err
		}
		l.tx = newTxn(conn)
		l.settled, err = l.settleDead(ctx)
		if err == nil {
			err = writable(ctx, conn)
		}
		if err == nil {
			return nil
		}
		l.closeConn()
		if again || !damaged(err) {
			return storeError(l.path, "be settled", err)
		}
		markSuspect(l.path)
	}
}

// markLag is how many rows of the chain may stand behind the mark of open
// intents before an opening brings it forward.
const markLag = 2000

// tidyAfterCrash does what the processes before this one would have done at
// their end, had they been let: otherwise each opening after a crash would look
// through more commands than the one before it. The write-ahead log that they
// left is taken into account by the writer.
func (l *Ledger) tidyAfterCrash() {
	var lag int64
	if _, err := l.tx.one("SELECT coalesce((SELECT max(n) FROM commands), 0) - "+openMark, nil, &lag); err != nil || lag < markLag {
		return
	}
	if err := l.tx.raiseMark(); err != nil {
		l.log.Debug("ledger: tidying", "path", l.path, "err", err)
	}
}

// logSize is the size of the write-ahead log.
func (l *Ledger) logSize() int64 {
	fi, err := os.Stat(l.path + "-wal")
	if err != nil {
		return 0
	}
	return fi.Size()
}

// Settled lists what Open decided about intents of dead owners.
func (l *Ledger) Settled() []Settlement { return slices.Clone(l.settled) }

// Flush commits, durably, all that waits.
func (l *Ledger) Flush(ctx context.Context) error {
	return l.w.do(ctx, &op{})
}

// Close flushes and closes. Further calls return ErrClosed. Intents without an
// outcome are settled by the next Open.
func (l *Ledger) Close() error {
	l.mu.Lock()
	if stop := l.stopRetention; stop != nil {
		own := l.owner != nil
		l.stopRetention = nil
		l.mu.Unlock()
		stop(own)
		l.mu.Lock()
	}
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	own := l.owner
	l.owner = nil
	l.mu.Unlock()

	err := l.w.close()
	l.closeReaders()
	l.closeConn()
	if own != nil {
		own.release()
	}
	return err
}

func (l *Ledger) closeConn() {
	l.tx.close()
	_ = l.tx.conn.Close()
	_ = l.db.Close()
}

// ownerID is this ledger's owner id; the lock is taken with the first call.
func (l *Ledger) ownerID() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", ErrClosed
	}
	if l.owner == nil {
		o, err := acquireOwner(l.o.Dir)
		if err != nil {
			return "", err
		}
		l.owner = o
	}
	return l.owner.id, nil
}
