package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"
)

// pruneBody is the body of a prune's row. Through and Hash are the number and
// hash of the last row that was removed.
type pruneBody struct {
	Through  int64  `json:"through"`
	Hash     string `json:"hash"`
	Runs     int    `json:"runs"`
	Commands int    `json:"commands"`
	Events   int    `json:"events"`
	Blobs    int    `json:"blobs"`
}

func decodePrune(s string) (p pruneBody, err error) {
	err = json.Unmarshal([]byte(s), &p)
	return p, err
}

// Prune removes ended runs whose last word is older than age, then the oldest
// ended ones until the ledger is no larger than size bytes; 0 sets no bound.
// Runs that still run, wait for review or are uncertain are kept.
//
// Commands, turns and texts of a removed run go. Its rows in the chain go when
// no kept run began before them; else only their bodies go, and their digests
// keep the chain whole. The space is given back unless another process holds
// the file.
func (l *Ledger) Prune(ctx context.Context, age time.Duration, size int64) (PruneResult, error) {
	unlock, err := lockOpening(ctx, l.o.Dir)
	if err != nil {
		return PruneResult{}, err
	}
	defer unlock()
	var res PruneResult
	at := l.stamp(time.Time{})
	err = l.w.do(ctx, &op{apply: func(t *txn) error {
		res = PruneResult{BytesBefore: l.fileSize()}
		victims, err := t.victims(at, age, size)
		if err != nil || len(victims) == 0 {
			return err
		}
		return t.prune(victims, at, &res)
	}})
	if err != nil {
		return PruneResult{}, l.describe(err)
	}
	if res.Runs > 0 {
		if err := l.w.do(ctx, &op{outside: vacuum}); err != nil {
			l.log.Info("ledger: the space of pruned runs is given back later", "path", l.Path(), "err", err)
		}
	}
	res.BytesAfter = l.fileSize()
	return res, nil
}

func (l *Ledger) fileSize() (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if fi, err := os.Stat(l.Path() + suffix); err == nil {
			n += fi.Size()
		}
	}
	return n
}

// vacuum rewrites the file without its free pages and empties the log.
func vacuum(t *txn) error {
	if _, err := t.conn.ExecContext(bg, "VACUUM"); err != nil {
		return err
	}
	_, err := t.conn.ExecContext(bg, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// candidates are the runs that may go, oldest last word first: those that still
// run, wait or are uncertain are not among them. It reads all of the ledger.
const candidates = `SELECT r.n, max(r.ended, coalesce(e.last, 0)) AS last, coalesce(e.size, 0) + coalesce(c.size, 0) + coalesce(k.size, 0)
	FROM runs r
	LEFT JOIN (SELECT run, sum(length(data)) AS size FROM checkpoints GROUP BY run) k ON k.run = r.n
	LEFT JOIN (SELECT run, max(at) AS last, sum(length(type) + coalesce(length(body), 0) + 120) AS size FROM events GROUP BY run) e
		ON e.run = r.n
	LEFT JOIN (SELECT c.run, sum(200 + coalesce(u.size, 0) + coalesce(x.size, 0)) AS size,
			sum(c.status IN ('intent', 'staged', 'uncertain')) AS open
		FROM commands c LEFT JOIN blobs u ON u.n = c.undo LEFT JOIN blobs x ON x.n = c.content GROUP BY c.run) c
		ON c.run = r.n
	WHERE r.ended IS NOT NULL AND r.state <> 'suspended' AND coalesce(c.open, 0) = 0
	ORDER BY last, r.n`

// usedQuery is the size of the pages in use, in bytes.
const usedQuery = `SELECT (a.page_count - b.freelist_count) * c.page_size
	FROM pragma_page_count a, pragma_freelist_count b, pragma_page_size c`

// victims lists the runs to remove, oldest last word first.
func (t *txn) victims(at int64, age time.Duration, size int64) ([]int64, error) {
	var used int64
	if _, err := t.one(usedQuery, nil, &used); err != nil {
		return nil, err
	}
	rows, err := t.query(candidates)
	if err != nil {
		return nil, err
	}
	return chooseVictims(rows, used, at, age, size)
}

// chooseVictims takes rows of candidates as long as they are too old or there is
// too much.
func chooseVictims(rows *sql.Rows, used, at int64, age time.Duration, size int64) ([]int64, error) {
	defer rows.Close()
	type candidate struct{ n, last, size int64 }
	var all []candidate
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.n, &c.last, &c.size); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var victims []int64
	for _, c := range all {
		old := age > 0 && c.last < at-age.Microseconds()
		if !old && (size <= 0 || used <= size) {
			break // the later ones are younger, and there is room
		}
		victims = append(victims, c.n)
		used -= c.size
	}
	return victims, nil
}

func (t *txn) prune(victims []int64, at int64, res *PruneResult) error {
	t.forget()
	sessions := map[string]bool{}
	for _, run := range victims {
		session, err := t.pruneRun(run, res)
		if err != nil {
			return err
		}
		sessions[session] = true
	}
	for id := range sessions {
		if err := t.pruneSession(id); err != nil {
			return err
		}
	}
	n, err := t.exec(`DELETE FROM blobs WHERE n NOT IN
		(SELECT undo FROM commands WHERE undo IS NOT NULL UNION SELECT content FROM commands WHERE content IS NOT NULL)`)
	if err != nil {
		return err
	}
	res.Blobs = int(n)
	return t.pruneChain(at, res)
}

// pruneRun removes what is known of a run, but for its rows in the chain and its
// texts.
func (t *txn) pruneRun(run int64, res *PruneResult) (session string, err error) {
	if _, err := t.one("SELECT session FROM runs WHERE n = ?", []any{run}, &session); err != nil {
		return "", err
	}
	n, err := t.exec("DELETE FROM commands WHERE run = ?", run)
	if err != nil {
		return "", err
	}
	res.Commands += int(n)
	for _, q := range []string{"DELETE FROM turns WHERE run = ?", "DELETE FROM loose WHERE run = ?", "DELETE FROM checkpoints WHERE run = ?", "DELETE FROM runs WHERE n = ?"} {
		if _, err := t.exec(q, run); err != nil {
			return "", err
		}
	}
	res.Runs++
	return session, nil
}

func (t *txn) pruneSession(id string) error {
	_, err := t.exec("DELETE FROM sessions WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE session = ?1)", id)
	return err
}

// pruneChain removes the rows before the first one that a kept run needs, and
// the bodies of the removed runs' other rows.
func (t *txn) pruneChain(at int64, res *PruneResult) error {
	through, err := t.prunable()
	if err != nil {
		return err
	}
	n, err := t.dropBodies(through)
	if err != nil {
		return err
	}
	res.Events += n
	return t.cutChain(at, through, res)
}

// prunable is the number of the last row before the first one that a run needs.
func (t *txn) prunable() (int64, error) {
	var first *int64
	if _, err := t.one("SELECT min(n) FROM runs", nil, &first); err != nil || first == nil {
		return t.seq, err
	}
	return *first - 1, nil
}

// cutChain removes the rows up to through, and says so in the chain.
func (t *txn) cutChain(at, through int64, res *PruneResult) error {
	var hash []byte
	removed, err := t.one("SELECT hash FROM events WHERE seq = ?", []any{through}, &hash)
	if err != nil {
		return err
	}
	p := pruneBody{Through: through, Hash: hex.EncodeToString(hash), Runs: res.Runs, Commands: res.Commands, Blobs: res.Blobs}
	if removed {
		n, err := t.exec("DELETE FROM events WHERE seq <= ?", through)
		if err != nil {
			return err
		}
		res.Events += int(n)
		for k, v := range map[string]string{"anchor_seq": strconv.FormatInt(through, 10), "anchor_hash": p.Hash} {
			if _, err := t.exec("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", k, v); err != nil {
				return err
			}
		}
	} else if p.Through, p.Hash, err = t.oldAnchor(); err != nil {
		return err
	}
	p.Events = res.Events
	_, err = t.append(row{at: at, typ: EventPrune, body: body(p)})
	return err
}

// oldAnchor is the anchor of an earlier prune, to be said again by a prune that
// removes no row.
func (t *txn) oldAnchor() (int64, string, error) {
	seq, hash, err := t.anchor()
	if seq == 0 {
		return 0, "", err
	}
	return seq, hex.EncodeToString(hash[:]), err
}

// dropBodies replaces the bodies of removed runs' rows behind one by their
// digests.
func (t *txn) dropBodies(after int64) (int, error) {
	rows, err := t.query("SELECT seq, body FROM events WHERE seq > ? AND body IS NOT NULL AND run > 0 AND run NOT IN (SELECT n FROM runs)", after)
	if err != nil {
		return 0, err
	}
	type digest struct {
		seq int64
		sum [sha256.Size]byte
	}
	var digests []digest
	for rows.Next() {
		var seq int64
		var body string
		if err := rows.Scan(&seq, &body); err != nil {
			_ = rows.Close()
			return 0, err
		}
		digests = append(digests, digest{seq, sha256.Sum256([]byte(body))})
	}
	_ = rows.Close()
	if err := rows.Err(); err != nil {
		return 0, err
	}
	for _, d := range digests {
		if _, err := t.exec("UPDATE events SET body = NULL, digest = ? WHERE seq = ?", d.sum[:], d.seq); err != nil {
			return 0, err
		}
	}
	return len(digests), nil
}

// purgeBody is the body of a purge's row.
type purgeBody struct {
	Blobs []string `json:"blobs"`
}

// PurgeBlobs removes stored texts (of secret files) for good; their hashes stay.
// The pages that held them are overwritten and the write-ahead log is emptied.
func (l *Ledger) PurgeBlobs(ctx context.Context, hashes ...string) error {
	at := l.stamp(time.Time{})
	sums := make([][]byte, len(hashes))
	for i, h := range hashes {
		b, err := hex.DecodeString(h)
		if err != nil || len(b) != sha256.Size {
			return fmt.Errorf("text %q: %w", h, ErrNotFound)
		}
		sums[i] = b
	}
	err := l.w.do(ctx, &op{apply: func(t *txn) error { return t.purge(at, nil, sums) }})
	if err != nil {
		return l.describe(err)
	}
	return l.describe(l.w.do(ctx, &op{outside: emptyLog}))
}

// emptyLog makes the write-ahead log empty, so that it holds no old pages.
func emptyLog(t *txn) error {
	_, err := t.conn.ExecContext(bg, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

func (t *txn) purge(at int64, k *Key, sums [][]byte) error {
	var p purgeBody
	for _, sum := range sums {
		n, err := t.exec("UPDATE blobs SET data = NULL WHERE n >= ? AND n < ? + 16 AND hash = ? AND data IS NOT NULL", blobNumber(sum), blobNumber(sum), sum)
		if err != nil {
			return err
		}
		if n > 0 {
			p.Blobs = append(p.Blobs, hex.EncodeToString(sum))
		}
	}
	if len(p.Blobs) == 0 {
		return nil
	}
	t.purged = true
	r := row{at: at, typ: EventPurge, body: body(p)}
	if k != nil {
		where, err := t.find(*k)
		if err != nil {
			return err
		}
		return t.about(*k, &where, r)
	}
	_, err := t.append(r)
	return err
}

// purgeSecrets removes the texts of a command that touched a secret file.
func (t *txn) purgeSecrets(k Key, cmd, at int64) error {
	rows, err := t.query("SELECT b.hash FROM commands c JOIN blobs b ON b.n IN (c.undo, c.content) WHERE c.n = ? AND c.secret", cmd)
	if err != nil {
		return err
	}
	defer rows.Close()
	var sums [][]byte
	for rows.Next() {
		var sum []byte
		if err := rows.Scan(&sum); err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return t.purge(at, &k, sums)
}
