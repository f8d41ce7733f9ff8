package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// A text is stored once, whatever uses it. Its number is the first eight bytes
// of its SHA-256, so that it is found without an index; should two texts ever
// begin alike, the second one takes the next number.

// text is stored bytes with their hash; a nil one stands for no text.
type text struct {
	data []byte
	hash [sha256.Size]byte
}

// newText is nil for nil data; empty data is a text too.
func newText(data []byte) *text {
	if data == nil {
		return nil
	}
	return &text{data: data, hash: sha256.Sum256(data)}
}

func (x *text) hex() string {
	if x == nil {
		return ""
	}
	return hex.EncodeToString(x.hash[:])
}

func (x *text) size() int {
	if x == nil {
		return 0
	}
	return len(x.data)
}

// blobNumber is where the search for a hash begins.
func blobNumber(hash []byte) int64 { return int64(binary.BigEndian.Uint64(hash)) }

// put stores a text and returns its number, or nil for none.
func (t *txn) put(x *text, secret bool) (any, error) {
	if x == nil {
		return nil, nil
	}
	for n := blobNumber(x.hash[:]); ; n++ {
		added, err := t.exec("INSERT INTO blobs (n, hash, size, secret, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			n, x.hash[:], len(x.data), secret, x.data)
		if err != nil || added > 0 {
			return n, err
		}
		var hash []byte
		var there, marked bool
		_, err = t.one("SELECT hash, data IS NOT NULL, secret FROM blobs WHERE n = ?", []any{n}, &hash, &there, &marked)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(hash, x.hash[:]) {
			continue
		}
		if there && (marked || !secret) {
			return n, nil
		}
		// Purged once and wanted again, or a secret from now on.
		_, err = t.exec("UPDATE blobs SET data = ?, secret = ? WHERE n = ?", x.data, secret || marked, n)
		return n, err
	}
}

// Blob returns a stored text by its hash; a missing or purged one wraps
// ErrNotFound.
func (l *Ledger) Blob(ctx context.Context, hash string) ([]byte, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	return l.blob(ctx, db, hash)
}

func (l *Ledger) blob(ctx context.Context, db *sql.DB, hash string) ([]byte, error) {
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("text %q: %w", hash, ErrNotFound)
	}
	for n := blobNumber(sum); ; n++ {
		var stored, data []byte
		var purged bool
		err = db.QueryRowContext(ctx, "SELECT hash, data, data IS NULL FROM blobs WHERE n = ?", n).Scan(&stored, &data, &purged)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil, fmt.Errorf("text %s: %w", hash, ErrNotFound)
		case err != nil:
			return nil, l.failed(ctx, err)
		case !bytes.Equal(stored, sum):
			continue
		case purged:
			return nil, fmt.Errorf("text %s was purged: %w", hash, ErrNotFound)
		case data == nil:
			data = []byte{}
		}
		return data, nil
	}
}
