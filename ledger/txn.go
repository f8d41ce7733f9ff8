package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
)

// txn is one write transaction: the connection, its prepared statements and the
// head of the chain. It is used by one goroutine at a time.
type txn struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by SQL text, prepared once

	seq  int64             // number of the last row of the chain
	hash [sha256.Size]byte // its hash
}

func newTxn(conn *sql.Conn) *txn {
	return &txn{conn: conn, stmts: map[string]*sql.Stmt{}}
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

// run does f in one transaction.
func (t *txn) run(f func(*txn) error) error {
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := t.readHead()
	if err == nil {
		err = f(t)
	}
	if err == nil {
		if _, err = t.exec("COMMIT"); err == nil {
			return nil
		}
	}
	// SQLite may have rolled back by itself; then this only reports that.
	_, _ = t.exec("ROLLBACK")
	return err
}

func (t *txn) close() {
	for _, s := range t.stmts {
		_ = s.Close()
	}
	t.stmts = nil
}

// interrupted reports a context's end in front of other errors.
func interrupted(ctx context.Context, err error) error {
	if cerr := ctx.Err(); err != nil && cerr != nil {
		return cerr
	}
	return err
}
