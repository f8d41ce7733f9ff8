package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A checkpoint is what a run needs to be gone on with in another process, in
// the caller's encoding: a head, which each checkpoint replaces, and deltas,
// which grow by one. Their digests stand in the chain, so that a checkpoint that
// was changed behind the ledger's back is not believed.

// Checkpoint is the state of a run after a turn.
type Checkpoint struct {
	Run  string
	Turn int // from 0: before the first one
	Head []byte
	// Delta is appended to the deltas of the checkpoints before; nil = nothing.
	Delta []byte
	// Fresh drops the deltas before this one, and the checkpoints of earlier
	// runs of the same session, which nothing can go on from any more.
	Fresh bool
}

// SavedCheckpoint is the last checkpoint of a run.
type SavedCheckpoint struct {
	Turn   int
	Head   []byte
	Deltas [][]byte
}

// ErrRunning: the run is being worked on, here or in another process.
var ErrRunning = errors.New("the run is going on")

// checkpointBody is what the chain keeps of a checkpoint.
type checkpointBody struct {
	Turn  int    `json:"turn"`
	Head  string `json:"head"` // SHA-256
	Bytes int    `json:"bytes"`
	Part  int    `json:"part,omitempty"`  // number of the delta, from 1; 0 = none
	Delta string `json:"delta,omitempty"` // SHA-256
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SaveCheckpoint stores a checkpoint, without a sync of its own.
func (l *Ledger) SaveCheckpoint(c Checkpoint) error {
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(time.Time{})
	return l.w.put(&op{size: len(c.Head) + len(c.Delta), apply: func(t *txn) error {
		run, err := t.ensureRun(c.Run, own, at)
		if err != nil {
			return err
		}
		if c.Fresh {
			if err := t.dropCheckpoints(run.n); err != nil {
				return err
			}
		}
		b := checkpointBody{Turn: c.Turn, Head: digest(c.Head), Bytes: len(c.Head) + len(c.Delta)}
		if c.Delta != nil {
			if _, err := t.one("SELECT coalesce(max(part), 0) + 1 FROM checkpoints WHERE run = ?", []any{run.n}, &b.Part); err != nil {
				return err
			}
			b.Delta = digest(c.Delta)
		}
		seq, err := t.append(row{at: at, run: run.n, typ: EventCheckpoint, body: body(b)})
		if err != nil {
			return err
		}
		const put = "INSERT OR REPLACE INTO checkpoints (run, part, seq, data) VALUES (?, ?, ?, ?)"
		if c.Delta != nil {
			if _, err := t.exec(put, run.n, b.Part, seq, c.Delta); err != nil {
				return err
			}
		}
		_, err = t.exec(put, run.n, 0, seq, c.Head)
		return err
	}})
}

// dropCheckpoints removes the run's, and those of earlier runs of its session.
// A suspended run of the session keeps its own: it still waits.
func (t *txn) dropCheckpoints(run int64) error {
	_, err := t.exec(`DELETE FROM checkpoints WHERE run = ?1 OR run IN (SELECT o.n FROM runs o JOIN runs r ON r.n = ?1
		WHERE o.session = r.session AND o.session <> '' AND o.n < r.n AND o.state <> 'suspended')`, run)
	return err
}

// Checkpoint returns the last checkpoint of a run, given by its id. Without one
// the error wraps ErrNotFound; one that does not fit the chain is a
// *BrokenError.
func (l *Ledger) Checkpoint(ctx context.Context, run string) (SavedCheckpoint, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return SavedCheckpoint{}, err
	}
	rows, err := db.QueryContext(ctx, `SELECT c.part, c.seq, c.data, coalesce(e.body, '') FROM checkpoints c
		JOIN runs r ON r.n = c.run LEFT JOIN events e ON e.seq = c.seq AND e.run = c.run AND e.type = ?
		WHERE r.id = ? ORDER BY c.part`, EventCheckpoint, run)
	if err != nil {
		return SavedCheckpoint{}, l.failed(ctx, err)
	}
	defer rows.Close()
	var s SavedCheckpoint
	found := false
	for rows.Next() {
		var part int
		var seq int64
		var data []byte
		var said string
		if err := rows.Scan(&part, &seq, &data, &said); err != nil {
			return SavedCheckpoint{}, l.failed(ctx, err)
		}
		var b checkpointBody
		want := func() string {
			if part == 0 {
				return b.Head
			}
			return b.Delta
		}
		if err := json.Unmarshal([]byte(said), &b); err != nil || want() != digest(data) || part != 0 && b.Part != part {
			return SavedCheckpoint{}, broken(seq, "the checkpoint that it announced was changed")
		}
		if part == 0 {
			found, s.Turn, s.Head = true, b.Turn, data
			continue
		}
		s.Deltas = append(s.Deltas, data)
	}
	if err := rows.Err(); err != nil {
		return SavedCheckpoint{}, l.failed(ctx, err)
	}
	if !found {
		return SavedCheckpoint{}, fmt.Errorf("checkpoint of run %s: %w", run, ErrNotFound)
	}
	return s, nil
}

// SessionRun is the newest run of a session that has a checkpoint: what the
// session can be gone on from.
func (l *Ledger) SessionRun(ctx context.Context, session string) (Run, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return Run{}, err
	}
	var n int64
	var r Run
	err = scanRun(db.QueryRowContext(ctx, runQuery+` WHERE session = ? AND n IN (SELECT run FROM checkpoints) ORDER BY n DESC LIMIT 1`, session), &n, &r)
	if isNoRows(err) {
		return Run{}, fmt.Errorf("session %q: %w", session, ErrNotFound)
	}
	return r, l.failed(ctx, err)
}

// SessionInfo is a session with what its runs add up to.
type SessionInfo struct {
	Session
	Runs    int       `json:"runs"`
	Last    time.Time `json:"last"`    // start of the newest run
	LastRun string    `json:"lastRun"` // its id
	State   string    `json:"state"`   // of the newest run
	Task    string    `json:"task"`    // of the newest run
	// Resumable: the session can be gone on with.
	Resumable bool `json:"resumable"`
}

// Sessions lists sessions, the one with the newest run first; limit 0 = all.
func (l *Ledger) Sessions(ctx context.Context, limit int) ([]SessionInfo, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = -1
	}
	rows, err := db.QueryContext(ctx, `SELECT s.id, s.title, s.started, count(*), max(r.n), r.started, r.id, r.state, r.task,
		EXISTS (SELECT 1 FROM checkpoints c JOIN runs o ON o.n = c.run WHERE o.session = s.id)
		FROM sessions s JOIN runs r ON r.session = s.id GROUP BY s.n ORDER BY max(r.n) DESC LIMIT ?`, limit)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	defer rows.Close()
	var out []SessionInfo
	for rows.Next() {
		var s SessionInfo
		var started, n, last int64
		if err := rows.Scan(&s.ID, &s.Title, &started, &s.Runs, &n, &last, &s.LastRun, &s.State, &s.Task, &s.Resumable); err != nil {
			return nil, l.failed(ctx, err)
		}
		s.Started, s.Last = fromMicros(started), fromMicros(last)
		out = append(out, s)
	}
	return out, l.failed(ctx, rows.Err())
}

// ClaimRun makes an ended run (suspended, interrupted, …) run again, with this
// ledger as its owner, and returns it as it was before. It is durable when it
// returns, and of several processes that try only one succeeds: for the others,
// as for a run that has not ended, the error wraps ErrRunning.
func (l *Ledger) ClaimRun(ctx context.Context, run string) (Run, error) {
	own, err := l.ownerID()
	if err != nil {
		return Run{}, err
	}
	at := l.stamp(time.Time{})
	var was Run
	err = l.w.do(ctx, &op{apply: func(t *txn) error {
		var n int64
		s, err := t.stmt(runQuery + " WHERE id = ?")
		if err != nil {
			return err
		}
		switch err := scanRun(s.QueryRowContext(bg, run), &n, &was); {
		case isNoRows(err):
			return fmt.Errorf("run %q: %w", run, ErrNotFound)
		case err != nil:
			return err
		case was.Ended == nil:
			return fmt.Errorf("run %s: %w", run, ErrRunning)
		}
		now := was
		now.Ended, now.State, now.Reason, now.Usage = nil, RunRunning, "", nil
		if _, err := t.append(row{at: at, run: n, typ: EventRunStart, body: body(now)}); err != nil {
			return err
		}
		_, err = t.exec("UPDATE runs SET owner = ?, ended = NULL, state = ?, reason = '' WHERE n = ?", own, RunRunning, n)
		return err
	}})
	if err == nil || errors.Is(err, ErrRunning) || errors.Is(err, ErrNotFound) {
		return was, err
	}
	return Run{}, l.describe(err)
}

// SettleDead settles what owners that died since Open left behind, as Open does:
// for processes that keep the ledger open for long.
func (l *Ledger) SettleDead(ctx context.Context) ([]Settlement, error) {
	unlock, err := lockOpening(ctx, l.o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var settled []Settlement
	err = l.w.do(ctx, &op{outside: func(t *txn) error {
		var err error
		settled, err = l.settleDead(ctx)
		t.forget()
		return err
	}})
	return settled, l.describe(err)
}
