package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// The chain: each row of events holds
//
//	hash = SHA-256(hash of the row before ‖ seq ‖ at ‖ run ‖ run_seq ‖ cmd ‖
//	               len(type) ‖ type ‖ SHA-256(body))
//
// with integers as 8 bytes, big-endian. Because the body enters as its digest,
// a body can be dropped (pruning, secrets) with its digest kept, and the chain
// still holds. The row before the first one has a hash made from the ledger's
// id; after pruning it is the anchor: number and hash of the last row that was
// removed, which the prune's own row repeats.

// row is one row to append; run and cmd are the numbers of their projections,
// 0 for none.
type row struct {
	at     int64
	run    int64
	runSeq int64
	cmd    int64
	prev   int64 // the row about the same command before this one; not part of the hash
	typ    string
	body   []byte
}

func genesis(id string) [sha256.Size]byte {
	return sha256.Sum256([]byte("thinkflow ledger 1\n" + id))
}

func chainHash(prev [sha256.Size]byte, seq int64, r *row, digest [sha256.Size]byte) [sha256.Size]byte {
	buf := make([]byte, 0, 2*sha256.Size+7*8+len(r.typ))
	buf = append(buf, prev[:]...)
	for _, v := range [...]int64{seq, r.at, r.run, r.runSeq, r.cmd, int64(len(r.typ))} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(v))
	}
	buf = append(buf, r.typ...)
	buf = append(buf, digest[:]...)
	return sha256.Sum256(buf)
}

const headQuery = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"

// readHead finds the last row, which another process may have written.
func (t *txn) readHead() error {
	var stored []byte
	found, err := t.one(headQuery, nil, &t.seq, &stored)
	if err != nil {
		return err
	}
	if found {
		copy(t.hash[:], stored)
		return nil
	}
	t.seq, t.hash, err = t.anchor()
	return err
}

// anchor is what the first row of the chain follows.
func (t *txn) anchor() (seq int64, hash [sha256.Size]byte, err error) {
	var id, num, sum string
	if _, err := t.one("SELECT value FROM meta WHERE key = ?", []any{"id"}, &id); err != nil {
		return 0, hash, err
	}
	found, err := t.one("SELECT value FROM meta WHERE key = ?", []any{"anchor_seq"}, &num)
	if err != nil || !found {
		return 0, genesis(id), err
	}
	if _, err := t.one("SELECT value FROM meta WHERE key = ?", []any{"anchor_hash"}, &sum); err != nil {
		return 0, hash, err
	}
	if seq, err = strconv.ParseInt(num, 10, 64); err != nil {
		return 0, hash, err
	}
	b, err := hex.DecodeString(sum)
	copy(hash[:], b)
	return seq, hash, err
}

// next is the number that the next appended row will have.
func (t *txn) next() int64 { return t.seq + 1 }

// append adds a row to the chain and returns its number.
func (t *txn) append(r row) (int64, error) {
	seq := t.next()
	hash := chainHash(t.hash, seq, &r, sha256.Sum256(r.body))
	_, err := t.exec("INSERT INTO events (seq, at, run, run_seq, cmd, prev, type, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		seq, r.at, r.run, r.runSeq, r.cmd, r.prev, r.typ, string(r.body), hash[:])
	if err != nil {
		return 0, err
	}
	t.seq, t.hash = seq, hash
	return seq, nil
}

// body encodes the body of one of the ledger's own rows; they are built from
// plain structs and cannot fail to encode.
func body(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		b.Reset()
		_ = e.Encode(map[string]string{"encoding_error": err.Error()})
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (l *Ledger) stamp(t time.Time) int64 {
	if t.IsZero() {
		t = l.now()
	}
	return micros(t)
}
