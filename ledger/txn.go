package ledger

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// txn is one write transaction: the connection, its prepared statements and the
// head of the chain. It is used by one goroutine at a time.
type txn struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by SQL text, prepared once

	seq  int64             // number of the last row of the chain
	hash [sha256.Size]byte // its hash

	// What the last transactions found or made, so that it need not be looked
	// up again; it holds only as long as nobody else writes. sure says that seq
	// and hash are those after our last commit: the next transaction begins
	// from them, and if another process has written since then, the number of
	// its first row is taken, which shows.
	sure bool
	// purged says that texts were purged since the log was emptied.
	purged bool
	runs   map[string]*runInfo
	cmds   map[Key]place
}

// runInfo is what is remembered of a run.
type runInfo struct {
	n int64
	// loose are the newest rows about commands that were not there yet (an
	// approval comes before the intent).
	loose map[Key]int64
}

// place is where a command stands.
type place struct {
	n, run, last int64
	status       Status
}

// maxKnown bounds the remembered places.
const maxKnown = 4096

func newTxn(conn *sql.Conn) *txn {
	t := &txn{conn: conn, stmts: map[string]*sql.Stmt{}}
	t.forget()
	return t
}

// forget drops what is remembered.
func (t *txn) forget() {
	t.runs, t.cmds, t.sure = map[string]*runInfo{}, map[Key]place{}, false
}

func (t *txn) stmt(q string) (*sql.Stmt, error) {
	if s := t.stmts[q]; s != nil {
		return s, nil
	}
	s, err := t.conn.PrepareContext(bg, q)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", q, err)
	}
	t.stmts[q] = s
	return s, nil
}

// exec runs a constant statement and returns the number of rows it changed.
func (t *txn) exec(q string, args ...any) (int64, error) {
	s, err := t.stmt(q)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(bg, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// one reads one row; found is false when there is none.
func (t *txn) one(q string, args []any, dest ...any) (found bool, err error) {
	s, err := t.stmt(q)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(bg, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// query runs a constant query.
func (t *txn) query(q string, args ...any) (*sql.Rows, error) {
	s, err := t.stmt(q)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(bg, args...)
}

// run does f in one transaction. f must append to the chain whatever it writes.
func (t *txn) run(f func(*txn) error) error {
	if len(t.cmds) > maxKnown || len(t.runs) > maxKnown {
		t.forget()
	}
	assumed := t.sure
	err := t.try(f)
	if err != nil && assumed && sqliteCode(err) == sqlite3.SQLITE_CONSTRAINT {
		err = t.try(f) // with the head that is there now
	}
	return err
}

func (t *txn) try(f func(*txn) error) error {
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var err error
	if !t.sure {
		err = t.readHead()
	}
	if err == nil {
		err = f(t)
	}
	if err == nil {
		committed := t.faultCommit()
		if _, err = t.exec("COMMIT"); err == nil {
			committed()
			t.sure = true
			return nil
		}
	}
	// SQLite may have rolled back by itself; then this only reports that.
	_, _ = t.exec("ROLLBACK")
	t.forget()
	return err
}

func (t *txn) close() {
	for _, s := range t.stmts {
		_ = s.Close()
	}
	t.stmts = nil
}

// findRun finds a run by its id; nil = unknown.
func (t *txn) findRun(id string) (*runInfo, error) {
	if r := t.runs[id]; r != nil {
		return r, nil
	}
	r := &runInfo{loose: map[Key]int64{}}
	found, err := t.one("SELECT n FROM runs WHERE id = ?", []any{id}, &r.n)
	if err != nil || !found {
		return nil, err
	}
	if err := t.readLoose(id, r); err != nil {
		return nil, err
	}
	t.runs[id] = r
	return r, nil
}

func (t *txn) readLoose(id string, r *runInfo) error {
	rows, err := t.query("SELECT turn, channel, id, seq FROM loose WHERE run = ?", r.n)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		k := Key{Run: id}
		var seq int64
		if err := rows.Scan(&k.Turn, &k.Channel, &k.ID, &seq); err != nil {
			return err
		}
		r.loose[k] = seq
	}
	return rows.Err()
}

// addLoose appends a row about a command that is not there (yet).
func (t *txn) addLoose(run *runInfo, k Key, r row) error {
	r.run, r.prev = run.n, run.loose[k]
	seq, err := t.append(r)
	if err != nil {
		return err
	}
	run.loose[k] = seq
	_, err = t.exec("INSERT OR REPLACE INTO loose (run, turn, channel, id, seq) VALUES (?, ?, ?, ?, ?)", run.n, k.Turn, k.Channel, k.ID, seq)
	return err
}

// takeLoose gives the newest row about a command that comes now; 0 = none.
func (t *txn) takeLoose(run *runInfo, k Key) (int64, error) {
	seq := run.loose[k]
	if seq == 0 {
		return 0, nil
	}
	delete(run.loose, k)
	_, err := t.exec("DELETE FROM loose WHERE run = ? AND turn = ? AND channel = ? AND id = ?", run.n, k.Turn, k.Channel, k.ID)
	return seq, err
}

// find tells where a command stands; n is 0 when it is not there.
func (t *txn) find(k Key) (p place, err error) {
	if p, ok := t.cmds[k]; ok {
		return p, nil
	}
	found, err := t.one(`SELECT c.n, c.run, c.last_row, c.status FROM commands c JOIN runs r ON r.n = c.run
		WHERE r.id = ? AND c.turn = ? AND c.channel = ? AND c.id = ? AND c.extra = 0`,
		[]any{k.Run, k.Turn, k.Channel, k.ID}, &p.n, &p.run, &p.last, &p.status)
	if found {
		t.cmds[k] = p
	}
	return p, err
}
