package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What is found in the place of the ledger's file is kept, whatever it is, and
// work goes on: a damaged file, or what is no ledger at all, is renamed; the
// ledger of a newer version stays where that version looks for it, and this one
// has a file of its own beside it.

// openFile opens the file, or keeps what is there and begins a new one.
func (l *Ledger) openFile(ctx context.Context) (*sql.Conn, error) {
	path, aside, notice := l.file, "", ""
	if beside := clearBeside(path, l.now()); beside != "" {
		notice = "something that is no file was in the place of the ledger's log; it is kept as " + beside
		l.log.Error(notice, "path", path)
	}
	conn, err := l.openAndCheck(ctx, path)
	if errors.Is(err, errNewer) {
		path = filepath.Join(l.o.Dir, fmt.Sprintf("ledger-%d.db", len(migrations)))
		notice = fmt.Sprintf("the ledger %s was written by a newer version of ThinkFlow: it stays as it is, and this version goes on with %s; update ThinkFlow to go on with the newer one", l.file, path)
		l.log.Warn(notice)
		conn, err = l.openAndCheck(ctx, path)
	}
	if err != nil && damaged(err) {
		cause := err
		if aside, err = setAside(path, l.now()); err != nil {
			return nil, err
		}
		notice = "the ledger " + whatWasWrong(cause) + "; it is kept as " + aside + ", and a new one was begun"
		l.log.Error(notice, "path", path, "err", cause)
		conn, err = l.openAndCheck(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = path
	if notice != "" {
		l.aside, l.notice = aside, notice
	}
	return conn, nil
}

// openAndCheck opens a file, and looks through all of it when damage was met in
// it before.
func (l *Ledger) openAndCheck(ctx context.Context, path string) (conn *sql.Conn, err error) {
	l.db, conn, err = openWriter(ctx, path, l.o.Workspace, l.now())
	if err != nil || !suspected(path) {
		return conn, err
	}
	if err = check(ctx, conn); err != nil {
		_ = conn.Close()
		_ = l.db.Close()
	}
	_ = os.Remove(path + suspectSuffix)
	return conn, err
}

func whatWasWrong(err error) string {
	switch {
	case errors.Is(err, errForeign):
		return "was not one of ThinkFlow"
	case errors.Is(err, errNoFile):
		return "was not a file"
	}
	return "was damaged"
}

// renewWait bounds the wait for other processes that open the ledger.
const renewWait = 2 * time.Second

// renew replaces a file in which damage was met while it was in use by a new
// one, once, so that the work that goes on is recorded. The leader calls it.
func (l *Ledger) renew() (*txn, error) {
	l.mu.Lock()
	path, again := l.path, l.renewed
	l.renewed = true
	l.mu.Unlock()
	if again {
		return nil, errors.New("it was replaced once already")
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewWait)
	defer cancel()
	unlock, err := lockOpening(ctx, l.o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l.w.awaitCopy()
	markSuspect(path)
	l.closeConn()
	conn, err := l.openFile(ctx)
	if err == nil {
		err = writable(ctx, conn)
	}
	if err != nil {
		return nil, err
	}
	l.tx = newTxn(conn)
	l.w.path = l.Path()
	l.mu.Lock()
	if l.readDB != nil {
		l.oldRead = append(l.oldRead, l.readDB)
		l.readDB = nil
	}
	l.mu.Unlock()
	return l.tx, nil
}

// Aside is the path under which what was damaged is kept; "" when the ledger was
// sound. Notice says so.
func (l *Ledger) Aside() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.aside
}

// Notice is what people should be told of how the ledger was found, by Open or
// while it was in use; "" when all was well.
func (l *Ledger) Notice() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notice
}

// Path is the path of the ledger's file.
func (l *Ledger) Path() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.path
}
