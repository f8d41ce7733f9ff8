package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Link is one row of the chain with all that its hash is made of, so that it can
// be checked without the ledger: see [Link.Check]. Body may be left out, or be
// another text than the one that Digest is of, where secrets were taken out.
type Link struct {
	Row    int64           `json:"row"`
	At     int64           `json:"at"` // µs since 1970, UTC
	Time   time.Time       `json:"time"`
	Run    string          `json:"run,omitempty"`
	RunN   int64           `json:"run_n"` // number of the run's first row; 0 = none
	Seq    int64           `json:"seq"`
	Cmd    int64           `json:"cmd"` // number of the command's first row; 0 = none
	Type   string          `json:"type"`
	Body   json.RawMessage `json:"body,omitempty"`
	Digest string          `json:"digest"` // SHA-256 of the body as it is in the ledger
	Prev   string          `json:"prev"`   // hash of the row before
	Hash   string          `json:"hash"`
	Pruned bool            `json:"pruned,omitempty"` // the ledger itself has only the digest
}

// Check tells whether the row's hash is that of its fields, and, when body is
// what the ledger has, whether it is the text that the digest is of.
func (k *Link) Check(body []byte) error {
	var prev, digest [sha256.Size]byte
	for _, f := range []struct {
		hex  string
		into *[sha256.Size]byte
	}{{k.Prev, &prev}, {k.Digest, &digest}} {
		b, err := hex.DecodeString(f.hex)
		if err != nil || len(b) != sha256.Size {
			return broken(k.Row, "a hash in it cannot be read")
		}
		copy(f.into[:], b)
	}
	if body != nil && sha256.Sum256(body) != digest {
		return broken(k.Row, "its body was changed")
	}
	want := chainHash(prev, k.Row, &row{at: k.At, run: k.RunN, runSeq: k.Seq, cmd: k.Cmd, typ: k.Type}, digest)
	if hex.EncodeToString(want[:]) != k.Hash {
		return broken(k.Row, "it was changed (%s)", k.Type)
	}
	return nil
}

// Chain calls f with the rows of the chain in order; run = "" means all of them,
// else those of one run (its id).
func (l *Ledger) Chain(ctx context.Context, run string, f func(*Link) error) error {
	db, err := l.reader(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state of the file
	if err != nil {
		return l.failed(ctx, err)
	}
	defer func() { _ = tx.Rollback() }()
	v := verifier{ctx: ctx, tx: tx}
	if err := v.start(); err != nil {
		return l.failed(ctx, err)
	}
	var n int64
	if run != "" {
		if n, _, err = l.runRef(ctx, db, run); err != nil {
			return err
		}
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.seq, e.at, coalesce(r.id, ''), e.run, e.run_seq, e.cmd, e.type, e.body, e.digest, e.hash, p.hash
		FROM events e LEFT JOIN runs r ON r.n = e.run LEFT JOIN events p ON p.seq = e.seq - 1
		WHERE ?1 = 0 OR e.run = ?1 ORDER BY e.seq`, n)
	if err != nil {
		return l.failed(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		var k Link
		var body sql.NullString
		var digest, hash, prev []byte
		if err := rows.Scan(&k.Row, &k.At, &k.Run, &k.RunN, &k.Seq, &k.Cmd, &k.Type, &body, &digest, &hash, &prev); err != nil {
			return l.failed(ctx, err)
		}
		if prev == nil { // the first row that is there
			prev = v.hash[:]
		}
		if body.Valid {
			sum := sha256.Sum256([]byte(body.String))
			digest = sum[:]
			k.Body = json.RawMessage(body.String)
		}
		k.Pruned = !body.Valid
		k.Time, k.Digest, k.Hash, k.Prev = fromMicros(k.At), hex.EncodeToString(digest), hex.EncodeToString(hash), hex.EncodeToString(prev)
		if err := f(&k); err != nil {
			return err
		}
	}
	return l.failed(ctx, rows.Err())
}

// Identity says which ledger this is and where its chain begins.
type Identity struct {
	ID      string `json:"id"`
	Genesis string `json:"genesis"` // hash that the first row follows
	// Pruned is the number of the last row that was removed, and Genesis its
	// hash; 0 = none was.
	Pruned int64 `json:"pruned,omitempty"`
	// Rows is the number of the last row, and Head its hash.
	Rows int64  `json:"rows"`
	Head string `json:"head"`
}

// Identity reads it.
func (l *Ledger) Identity(ctx context.Context) (Identity, error) {
	var out Identity
	db, err := l.reader(ctx)
	if err != nil {
		return out, err
	}
	rows, err := db.QueryContext(ctx, "SELECT key, value FROM meta WHERE key IN ('id', 'anchor_seq', 'anchor_hash')")
	if err != nil {
		return out, l.failed(ctx, err)
	}
	defer rows.Close()
	meta := map[string]string{}
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return out, l.failed(ctx, err)
		}
		meta[k] = v
	}
	if err := rows.Err(); err != nil {
		return out, l.failed(ctx, err)
	}
	out.ID = meta["id"]
	first := genesis(out.ID)
	out.Genesis = hex.EncodeToString(first[:])
	if meta["anchor_seq"] != "" {
		out.Genesis = meta["anchor_hash"]
		if out.Pruned, err = strconv.ParseInt(meta["anchor_seq"], 10, 64); err != nil {
			return out, fmt.Errorf("ledger %s: the anchor of the pruned rows is not readable: %w", l.path, err)
		}
	}
	out.Rows, out.Head = out.Pruned, out.Genesis
	var head []byte
	err = db.QueryRowContext(ctx, headQuery).Scan(&out.Rows, &head)
	if err == nil {
		out.Head = hex.EncodeToString(head)
	} else if isNoRows(err) {
		err = nil
	}
	return out, l.failed(ctx, err)
}
