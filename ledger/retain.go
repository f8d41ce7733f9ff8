package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"time"
)

// Retention by itself: what Options.KeepFor and KeepBytes no longer keep is
// removed in the background, once a day and ledger, some time after the opening,
// or at the closing of a process that ends before. It is what Prune does, in
// steps that are short for a command that comes meanwhile: what has to be looked
// for is read on another connection, and each step asks again whether what it
// removes may go. The pages that become free are used again; only Prune gives
// them back to the system.

const (
	// retainAfter is how long after its opening a ledger is left alone.
	retainAfter = 20 * time.Second
	// retainEvery is the time between two looks at one ledger.
	retainEvery = 24 * time.Hour
	// retainAtClose bounds what a process that ends waits for it.
	retainAtClose = 2 * time.Second
	// retainStep is how many rows one step removes.
	retainStep = 500
)

// startRetention arms the timer of the retention.
func (l *Ledger) startRetention() {
	if l.o.KeepFor <= 0 && l.o.KeepBytes <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	l.stopRetention = func(own bool) {
		cancel()
		if l.retainTimer.Stop() {
			if own { // nothing was done yet, and effects were recorded: now is the time
				ctx, cancel := context.WithTimeout(context.Background(), retainAtClose)
				defer cancel()
				l.retainLogged(ctx)
			}
			return
		}
		<-done
	}
	l.retainTimer = time.AfterFunc(retainAfter, func() {
		defer close(done)
		l.retainLogged(ctx)
	})
}

func (l *Ledger) retainLogged(ctx context.Context) {
	res, err := l.retain(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		l.log.Warn("ledger: old runs were not removed; thinkflow ledger prune does it", "path", l.Path(), "err", err)
	case res.Runs > 0:
		l.log.Info("ledger: old runs were removed", "path", l.Path(), "runs", res.Runs, "commands", res.Commands)
	}
}

// retain removes what is no longer to be kept, if that was not looked for within
// retainEvery. It ends early with ctx; the rest is done another time.
func (l *Ledger) retain(ctx context.Context) (res PruneResult, err error) {
	at := l.stamp(time.Time{})
	due := false
	err = l.w.do(ctx, &op{outside: func(t *txn) error {
		due, err = t.claimRetention(at)
		return err
	}})
	if err != nil || !due {
		return res, err
	}
	victims, err := l.findVictims(ctx, at)
	if err != nil {
		return res, err
	}
	defer func() {
		if ctx.Err() != nil && res.Runs > 0 { // cut short, and worth going on with
			_ = l.w.do(bg, &op{outside: func(t *txn) error {
				_, err := t.exec("DELETE FROM meta WHERE key = 'retained_at'")
				return err
			}})
		}
	}()
	for _, run := range victims {
		if err := l.step(ctx, &res, func(t *txn, done *PruneResult) error { return t.pruneIfOver(run, at, done) }); err != nil {
			return res, err
		}
	}
	// An earlier one may have been cut short: the rest is looked for anyway.
	for _, rest := range []func(context.Context, int64, *PruneResult) error{l.dropTexts, l.dropRows, l.dropOldBodies} {
		if err := rest(ctx, at, &res); err != nil {
			return res, err
		}
	}
	return res, nil
}

// step is one short transaction, which may be tried twice and counts once.
func (l *Ledger) step(ctx context.Context, res *PruneResult, f func(t *txn, done *PruneResult) error) error {
	var done PruneResult
	err := l.w.do(ctx, &op{apply: func(t *txn) error {
		done = PruneResult{}
		return f(t, &done)
	}})
	if err == nil {
		res.Runs += done.Runs
		res.Commands += done.Commands
		res.Events += done.Events
		res.Blobs += done.Blobs
	}
	return err
}

// claimRetention notes that old runs are looked for now; due is false when that
// was done not long ago.
func (t *txn) claimRetention(at int64) (due bool, err error) {
	var last string
	if _, err := t.one("SELECT value FROM meta WHERE key = 'retained_at'", nil, &last); err != nil {
		return false, err
	}
	if n, _ := strconv.ParseInt(last, 10, 64); n > 0 && n <= at && at-n < retainEvery.Microseconds() {
		return false, nil
	}
	_, err = t.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('retained_at', ?)", strconv.FormatInt(at, 10))
	return true, err
}

// findVictims lists the runs to remove, without holding up anybody. What tells
// that there are none is looked at first.
func (l *Ledger) findVictims(ctx context.Context, at int64) ([]int64, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	var used, old int64
	if err := db.QueryRowContext(ctx, usedQuery).Scan(&used); err != nil {
		return nil, l.failed(ctx, err)
	}
	if l.o.KeepFor > 0 {
		err := db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE ended < ?", at-l.o.KeepFor.Microseconds()).Scan(&old)
		if err != nil {
			return nil, l.failed(ctx, err)
		}
	}
	if old == 0 && (l.o.KeepBytes <= 0 || used <= l.o.KeepBytes) {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, candidates)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	victims, err := chooseVictims(rows, used, at, l.o.KeepFor, l.o.KeepBytes)
	return victims, l.failed(ctx, err)
}

// pruneIfOver removes a run unless it has been taken up again, and says so in
// the chain.
func (t *txn) pruneIfOver(run, at int64, res *PruneResult) error {
	var n int64
	over, err := t.one(`SELECT n FROM runs r WHERE n = ? AND ended IS NOT NULL AND state <> 'suspended' AND NOT EXISTS
		(SELECT 1 FROM commands WHERE run = r.n AND status IN ('intent', 'staged', 'uncertain'))`, []any{run}, &n)
	if err != nil || !over {
		return err
	}
	t.forget()
	session, err := t.pruneRun(run, res)
	if err != nil {
		return err
	}
	if err := t.pruneSession(session); err != nil {
		return err
	}
	return t.cutChain(at, 0, res) // other processes see that something changed
}

// dropTexts removes texts that no command has any more.
func (l *Ledger) dropTexts(ctx context.Context, _ int64, res *PruneResult) error {
	db, err := l.reader(ctx)
	if err != nil {
		return err
	}
	var newest int64
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(n), 0) FROM commands").Scan(&newest); err != nil {
		return l.failed(ctx, err)
	}
	orphans, err := l.numbers(ctx, `SELECT n FROM blobs WHERE n NOT IN
		(SELECT undo FROM commands WHERE undo IS NOT NULL UNION SELECT content FROM commands WHERE content IS NOT NULL)`)
	if err != nil {
		return err
	}
	return l.chunks(ctx, orphans, res, func(t *txn, part string, done *PruneResult) error {
		// A command that came since may have the same text.
		n, err := t.exec(`DELETE FROM blobs WHERE n IN (SELECT value FROM json_each(?1)) AND n NOT IN
			(SELECT undo FROM commands WHERE n > ?2 AND undo IS NOT NULL UNION SELECT content FROM commands WHERE n > ?2 AND content IS NOT NULL)`, part, newest)
		done.Blobs = int(n)
		return err
	})
}

// dropRows removes the rows of the chain that no run needs, the oldest first.
func (l *Ledger) dropRows(ctx context.Context, at int64, res *PruneResult) error {
	for more := true; more; {
		err := l.step(ctx, res, func(t *txn, done *PruneResult) error {
			through, err := t.prunable()
			if err != nil {
				return err
			}
			var first int64
			if _, err := t.one("SELECT coalesce(min(seq), 0) FROM events", nil, &first); err != nil {
				return err
			}
			more = through-first >= retainStep
			if !more && res.Runs == 0 || through < first {
				return nil // it is not worth a row that says so
			}
			return t.cutChain(at, min(through, first+retainStep-1), done)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropOldBodies drops the bodies of removed runs' other rows.
func (l *Ledger) dropOldBodies(ctx context.Context, _ int64, res *PruneResult) error {
	if res.Runs == 0 {
		return nil
	}
	rows, err := l.numbers(ctx, "SELECT seq FROM events WHERE body IS NOT NULL AND run > 0 AND run NOT IN (SELECT n FROM runs)")
	if err != nil {
		return err
	}
	return l.chunks(ctx, rows, res, func(t *txn, part string, done *PruneResult) error {
		n, err := t.dropBodiesOf(part)
		done.Events = n
		return err
	})
}

func (t *txn) dropBodiesOf(part string) (int, error) {
	found, err := t.query("SELECT seq, body FROM events WHERE seq IN (SELECT value FROM json_each(?)) AND body IS NOT NULL AND run NOT IN (SELECT n FROM runs)", part)
	if err != nil {
		return 0, err
	}
	defer found.Close()
	sums := map[int64][sha256.Size]byte{}
	for found.Next() {
		var seq int64
		var body string
		if err := found.Scan(&seq, &body); err != nil {
			return 0, err
		}
		sums[seq] = sha256.Sum256([]byte(body))
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return 0, err
	}
	for seq, sum := range sums {
		if _, err := t.exec("UPDATE events SET body = NULL, digest = ? WHERE seq = ?", sum[:], seq); err != nil {
			return 0, err
		}
	}
	return len(sums), nil
}

// numbers reads a column of numbers beside the writer.
func (l *Ledger) numbers(ctx context.Context, query string) ([]int64, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	defer rows.Close()
	var out []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, l.failed(ctx, err)
		}
		out = append(out, n)
	}
	return out, l.failed(ctx, rows.Err())
}

// chunks does f with retainStep of the numbers at a time, as a JSON list.
func (l *Ledger) chunks(ctx context.Context, numbers []int64, res *PruneResult, f func(t *txn, part string, done *PruneResult) error) error {
	for len(numbers) > 0 {
		part := numbers[:min(retainStep, len(numbers))]
		numbers = numbers[len(part):]
		if err := l.step(ctx, res, func(t *txn, done *PruneResult) error { return f(t, string(body(part)), done) }); err != nil {
			return err
		}
	}
	return nil
}
