package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// Verify walks the chain from its beginning, or from where it was pruned, and
// then compares what was derived from it (commands, runs, stored texts). The
// first row that does not fit is a *BrokenError. It returns the number of rows
// walked. What it cannot see is a chain whose last rows were cut off together
// with all that was derived from them.
func (l *Ledger) Verify(ctx context.Context) (rows int64, err error) {
	db, err := l.reader(ctx)
	if err != nil {
		return 0, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state of the file for all
	if err != nil {
		return 0, l.failed(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	v := verifier{ctx: ctx, tx: tx}
	for _, step := range []func() error{v.start, v.walk, v.anchored, v.derived, v.texts} {
		if err := step(); err != nil {
			var broken *BrokenError
			if errors.As(err, &broken) {
				return v.rows, err
			}
			return v.rows, l.failed(ctx, err)
		}
	}
	return v.rows, nil
}

type verifier struct {
	ctx  context.Context
	tx   *sql.Tx
	seq  int64
	hash [sha256.Size]byte
	rows int64

	anchorSeq  int64  // 0 = never pruned
	anchorHash string // as in meta
	lastPrune  string // body of the last prune row that is there
}

func broken(row int64, format string, args ...any) error {
	return &BrokenError{Row: row, Reason: fmt.Sprintf(format, args...)}
}

// start reads the ledger's id and anchor.
func (v *verifier) start() error {
	meta := map[string]string{}
	rows, err := v.tx.QueryContext(v.ctx, "SELECT key, value FROM meta")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k, val string
		if err := rows.Scan(&k, &val); err != nil {
			return err
		}
		meta[k] = val
	}
	if err := rows.Err(); err != nil {
		return err
	}
	v.hash = genesis(meta["id"])
	if num, ok := meta["anchor_seq"]; ok {
		v.anchorSeq, err = strconv.ParseInt(num, 10, 64)
		b, herr := hex.DecodeString(meta["anchor_hash"])
		if err != nil || herr != nil || len(b) != sha256.Size {
			return broken(1, "the anchor of the pruned rows is not readable")
		}
		v.anchorHash = meta["anchor_hash"]
		v.seq = v.anchorSeq
		copy(v.hash[:], b)
	}
	return nil
}

func (v *verifier) walk() error {
	rows, err := v.tx.QueryContext(v.ctx, "SELECT seq, at, run, run_seq, cmd, type, body, digest, hash FROM events ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		var seq int64
		var body, typ sql.RawBytes
		var digest, hash sql.RawBytes
		if err := rows.Scan(&seq, &r.at, &r.run, &r.runSeq, &r.cmd, &typ, &body, &digest, &hash); err != nil {
			return err
		}
		if seq != v.seq+1 {
			return broken(v.seq+1, "the row is missing (the next one is %d)", seq)
		}
		r.typ = string(typ)
		var sum [sha256.Size]byte
		if body == nil {
			if len(digest) != sha256.Size {
				return broken(seq, "its body and the digest of it are gone")
			}
			copy(sum[:], digest)
		} else {
			sum = sha256.Sum256(body)
		}
		if r.typ == EventPrune && body != nil {
			v.lastPrune = string(body)
		}
		want := chainHash(v.hash, seq, &r, sum)
		if string(want[:]) != string(hash) {
			return broken(seq, "it was changed, or the row before it was replaced (%s at %s)", r.typ, fromMicros(r.at).Format("2006-01-02 15:04:05"))
		}
		v.seq, v.hash = seq, want
		v.rows++
	}
	return rows.Err()
}

// anchored compares the anchor with what the last prune said in the chain.
func (v *verifier) anchored() error {
	if v.anchorSeq == 0 {
		return nil
	}
	p, err := decodePrune(v.lastPrune)
	if err != nil || p.Through != v.anchorSeq || p.Hash != v.anchorHash {
		return broken(v.anchorSeq+1, "the rows before it are gone, and no prune says so")
	}
	return nil
}

// derived compares the projections with the rows that they come from.
func (v *verifier) derived() error {
	for _, check := range []struct{ query, reason string }{
		{`SELECT c.status_row FROM commands c LEFT JOIN events e ON e.seq = c.status_row
			WHERE e.seq IS NULL OR e.cmd IS NOT c.n OR (e.body IS NOT NULL AND json_extract(e.body, '$.status') IS NOT c.status)
			ORDER BY c.n LIMIT 1`, "the status of its command is not the one that it set"},
		{`SELECT c.n FROM commands c LEFT JOIN events e ON e.seq = c.intent_row
			WHERE e.seq IS NULL OR e.cmd IS NOT c.n OR (e.body IS NOT NULL AND
			(json_extract(e.body, '$.tool') IS NOT c.tool OR coalesce(json_extract(e.body, '$.path'), '') IS NOT c.path
			OR json_extract(e.body, '$.id') IS NOT c.id OR json_extract(e.body, '$.turn') IS NOT c.turn))
			ORDER BY c.n LIMIT 1`, "its command is not the one that it announced"},
		{`SELECT r.n FROM runs r LEFT JOIN events e ON e.seq = r.n
			WHERE e.seq IS NULL OR (e.body IS NOT NULL AND json_extract(e.body, '$.id') IS NOT r.id)
			ORDER BY r.n LIMIT 1`, "its run is not the one that it began"},
	} {
		var row int64
		err := v.tx.QueryRowContext(v.ctx, check.query).Scan(&row)
		if err == nil {
			return broken(row, "%s", check.reason)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

// texts compares the stored texts with their hashes.
func (v *verifier) texts() error {
	rows, err := v.tx.QueryContext(v.ctx, "SELECT n, hash, data FROM blobs WHERE data IS NOT NULL")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number int64
		var hash, data sql.RawBytes
		if err := rows.Scan(&number, &hash, &data); err != nil {
			return err
		}
		if sum := sha256.Sum256(data); string(sum[:]) != string(hash) {
			bad := append([]byte(nil), hash...)
			_ = rows.Close()
			var n int64
			err := v.tx.QueryRowContext(v.ctx, "SELECT coalesce(min(n), 0) FROM commands WHERE undo = ?1 OR content = ?1", number).Scan(&n)
			if err != nil {
				return err
			}
			return broken(n, "the stored text %s of its command was changed", hex.EncodeToString(bad))
		}
	}
	return rows.Err()
}
