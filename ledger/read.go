package ledger

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// commandQuery reads all of a command, for scanCommand.
const commandQuery = `SELECT c.n, r.id, c.turn, c.channel, c.id, c.extra, c.status, c.last_event, c.intent_at, c.outcome_at,
	c.injected, c.recovered, c.tool, c.path, c.dest, c.cmd, c.abs, c.abs_dest, c.before_hash, c.after_hash, c.dest_before,
	c.need_result, c.flow, c.via, c.risk, c.rung, c.temp, c.undo, c.content, c.secret, c.content_sum, c.summary, c.args, c.code,
	c.error, c.bytes, c.added, c.removed, c.stdout, c.stderr, c.exit_code, c.notes
	FROM commands c JOIN runs r ON r.n = c.run`

func scanCommand(row interface{ Scan(...any) error }, c *Command) error {
	var extra, intentAt int64
	var outcomeAt, injected, exitCode sql.NullInt64
	var args, notes sql.NullString
	var undo, content []byte
	err := row.Scan(&c.N, &c.Run, &c.Turn, &c.Channel, &c.ID, &extra, &c.Status, &c.LastEvent, &intentAt, &outcomeAt,
		&injected, &c.Recovered, &c.Tool, &c.Path, &c.Dest, &c.Cmd, &c.Abs, &c.AbsDest, &c.BeforeHash, &c.AfterHash, &c.DestBefore,
		&c.NeedResult, &c.Flow, &c.Via, &c.Risk, &c.Rung, &c.Temp, &undo, &content, &c.Secret, &c.ContentSum, &c.Summary, &args, &c.Code,
		&c.Error, &c.Bytes, &c.Added, &c.Removed, &c.Stdout, &c.Stderr, &exitCode, &notes)
	if err != nil {
		return err
	}
	c.Extra = extra != 0
	c.IntentAt, c.OutcomeAt, c.Injected = fromMicros(intentAt), timeOrNil(outcomeAt), timeOrNil(injected)
	c.UndoBlob, c.Content = hexOrEmpty(undo), hexOrEmpty(content)
	if exitCode.Valid {
		code := int(exitCode.Int64)
		c.ExitCode = &code
	}
	if args.Valid {
		c.Args = json.RawMessage(args.String)
	}
	if notes.Valid {
		return json.Unmarshal([]byte(notes.String), &c.Notes)
	}
	return nil
}

func timeOrNil(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := fromMicros(us.Int64)
	return &t
}

// reader opens the connections for reading with the first call, after all that
// was written before is in the file.
func (l *Ledger) reader(ctx context.Context) (*sql.DB, error) {
	if err := l.flushNow(ctx); err != nil {
		return nil, err
	}
	l.readOnce.Do(func() { l.readDB, l.readErr = openReader(l.path) })
	return l.readDB, l.readErr
}

// failed words an error of reading.
func (l *Ledger) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if damaged(err) {
		markSuspect(l.path)
	}
	if l.isClosed() {
		return ErrClosed
	}
	return storeError(l.path, "be read", err)
}

func (l *Ledger) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// conditions collects the parts of a WHERE.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts = append(c.parts, part)
	c.args = append(c.args, args...)
}

func (c *conditions) String() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// List returns commands, oldest first. A Run that is not there wraps
// ErrNotFound.
func (l *Ledger) List(ctx context.Context, f Filter) ([]Command, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	var w conditions
	if f.Run != "" {
		n, _, err := l.runRef(ctx, db, f.Run)
		if err != nil {
			return nil, err
		}
		w.add("c.run = ?", n)
	}
	if f.Session != "" {
		w.add("c.run IN (SELECT n FROM runs WHERE session = ?)", f.Session)
	}
	if f.Turn != 0 {
		w.add("c.turn = ?", f.Turn)
	}
	if f.Path != "" {
		w.add("(c.path = ? OR c.dest = ?)", f.Path, f.Path)
	}
	if f.Tool != "" {
		w.add("c.tool = ?", f.Tool)
	}
	if len(f.Status) > 0 {
		args := make([]any, len(f.Status))
		for i, s := range f.Status {
			args[i] = string(s)
		}
		w.add("c.status IN (?"+strings.Repeat(",?", len(args)-1)+")", args...)
	}
	if f.NotInjected {
		w.add("c.injected IS NULL")
	}
	if !f.Since.IsZero() {
		w.add("c.intent_at >= ?", micros(f.Since))
	}
	if f.After > 0 {
		w.add("c.n > ?", f.After)
	}
	// The numbers first, from an index where there is one; then the rows.
	order, limit := "ASC", f.Limit
	if f.Last > 0 {
		order, limit = "DESC", f.Last
	}
	if limit <= 0 {
		limit = -1
	}
	q := commandQuery + " WHERE c.n IN (SELECT c.n FROM commands c" + w.String() +
		" ORDER BY c.n " + order + " LIMIT ?) ORDER BY c.n"
	rows, err := db.QueryContext(ctx, q, append(w.args, limit)...)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	defer rows.Close()
	var cmds []Command
	for rows.Next() {
		var c Command
		if err := scanCommand(rows, &c); err != nil {
			return nil, l.failed(ctx, err)
		}
		cmds = append(cmds, c)
	}
	return cmds, l.failed(ctx, rows.Err())
}

// Get returns the command with that key; a missing one wraps ErrNotFound.
func (l *Ledger) Get(ctx context.Context, k Key) (Command, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return Command{}, err
	}
	var c Command
	err = scanCommand(db.QueryRowContext(ctx, commandQuery+
		" WHERE r.id = ? AND c.turn = ? AND c.channel = ? AND c.id = ? AND c.extra = 0", k.Run, k.Turn, k.Channel, k.ID), &c)
	if errors.Is(err, sql.ErrNoRows) {
		return Command{}, fmt.Errorf("command %s: %w", k, ErrNotFound)
	}
	return c, l.failed(ctx, err)
}

// Show returns one command with its texts and events. ref is its number N, the
// form of Key.String with the run abbreviated to a unique prefix or "last" and
// the channel left out when the id is unique without it (last/2/4), or "last"
// alone for the last command.
func (l *Ledger) Show(ctx context.Context, ref string) (Detail, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return Detail{}, err
	}
	n, err := l.commandRef(ctx, db, ref)
	if err != nil {
		return Detail{}, err
	}
	var d Detail
	if err := scanCommand(db.QueryRowContext(ctx, commandQuery+" WHERE c.n = ?", n), &d.Command); err != nil {
		return Detail{}, l.failed(ctx, err)
	}
	for _, b := range []struct {
		hash string
		text *Text
	}{{d.UndoBlob, &d.Undo}, {d.Content, &d.ContentText}} {
		if b.hash == "" {
			continue
		}
		data, err := l.blob(ctx, db, b.hash)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Detail{}, err
		}
		*b.text = data
	}
	d.Events, err = l.events(ctx, db, "WHERE e.cmd = ? AND e.cmd > 0 ORDER BY e.seq", n)
	return d, err
}

const runQuery = `SELECT n, id, session, task, model, dir, started, ended, state, reason, usage,
	(SELECT count(*) FROM turns t WHERE t.run = runs.n) FROM runs`

func scanRun(row interface{ Scan(...any) error }, n *int64, r *Run) error {
	var started int64
	var ended sql.NullInt64
	var usage sql.NullString
	err := row.Scan(n, &r.ID, &r.Session, &r.Task, &r.Model, &r.Dir, &started, &ended, &r.State, &r.Reason, &usage, &r.Turns)
	if err != nil {
		return err
	}
	r.Started, r.Ended = fromMicros(started), timeOrNil(ended)
	if usage.Valid {
		r.Usage = json.RawMessage(usage.String)
	}
	return nil
}

// Runs returns runs, newest first, with the counts of their commands.
func (l *Ledger) Runs(ctx context.Context, f RunFilter) ([]Run, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	var w conditions
	if f.Session != "" {
		w.add("session = ?", f.Session)
	}
	if f.State != "" {
		w.add("state = ?", f.State)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	rows, err := db.QueryContext(ctx, runQuery+w.String()+" ORDER BY n DESC LIMIT ?", append(w.args, limit)...)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	defer rows.Close()
	var runs []Run
	var first int64
	place := map[int64]int{}
	for rows.Next() {
		var r Run
		if err := scanRun(rows, &first, &r); err != nil {
			return nil, l.failed(ctx, err)
		}
		place[first] = len(runs)
		runs = append(runs, r)
	}
	if err := rows.Err(); err != nil || len(runs) == 0 {
		return nil, l.failed(ctx, err)
	}
	return runs, l.count(ctx, db, runs, place, first)
}

// count fills in the runs' counts; oldest is the number of the oldest of them.
func (l *Ledger) count(ctx context.Context, db *sql.DB, runs []Run, place map[int64]int, oldest int64) error {
	rows, err := db.QueryContext(ctx, "SELECT run, status, count(*) FROM commands WHERE run >= ? GROUP BY run, status", oldest)
	if err != nil {
		return l.failed(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var s Status
		var c int
		if err := rows.Scan(&n, &s, &c); err != nil {
			return l.failed(ctx, err)
		}
		if i, ok := place[n]; ok {
			if runs[i].Counts == nil {
				runs[i].Counts = map[Status]int{}
			}
			runs[i].Counts[s] = c
		}
	}
	return l.failed(ctx, rows.Err())
}

// FindRun returns the run with that id, unique prefix of one, or "last".
func (l *Ledger) FindRun(ctx context.Context, ref string) (Run, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return Run{}, err
	}
	n, _, err := l.runRef(ctx, db, ref)
	if err != nil {
		return Run{}, err
	}
	runs := make([]Run, 1)
	if err := scanRun(db.QueryRowContext(ctx, runQuery+" WHERE n = ?", n), &n, &runs[0]); err != nil {
		return Run{}, l.failed(ctx, err)
	}
	rows, err := db.QueryContext(ctx, "SELECT status, count(*) FROM commands WHERE run = ? GROUP BY status", n)
	if err != nil {
		return Run{}, l.failed(ctx, err)
	}
	defer rows.Close()
	runs[0].Counts = map[Status]int{}
	for rows.Next() {
		var s Status
		var c int
		if err := rows.Scan(&s, &c); err != nil {
			return Run{}, l.failed(ctx, err)
		}
		runs[0].Counts[s] = c
	}
	return runs[0], l.failed(ctx, rows.Err())
}

// Events returns rows of the chain, oldest first.
func (l *Ledger) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	var w conditions
	order := "e.seq"
	if f.Run != "" {
		n, _, err := l.runRef(ctx, db, f.Run)
		if err != nil {
			return nil, err
		}
		w.add("e.run = ?", n)
		if !f.Seq {
			w.add("e.seq >= ?", n) // a run's rows do not come before its first
		}
	}
	if f.Seq {
		w.add("e.run_seq > 0")
		if f.Run != "" {
			w.add("e.run_seq > ?", f.After)
			order = "e.run_seq, e.seq"
		}
	}
	if f.After > 0 && (f.Run == "" || !f.Seq) {
		w.add("e.seq > ?", f.After)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	return l.events(ctx, db, w.String()+" ORDER BY "+order+" LIMIT ?", append(w.args, limit)...)
}

// LastSeq is the number of the last numbered event of a run; 0 = none.
func (l *Ledger) LastSeq(ctx context.Context, run string) (int64, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return 0, err
	}
	var last int64
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(run_seq), 0) FROM events
		WHERE run = (SELECT n FROM runs WHERE id = ?) AND run_seq > 0`, run).Scan(&last)
	return last, l.failed(ctx, err)
}

func (l *Ledger) events(ctx context.Context, db *sql.DB, where string, args ...any) ([]Event, error) {
	rows, err := db.QueryContext(ctx, `SELECT e.seq, e.at, coalesce(r.id, ''), e.run_seq, e.type, e.body, e.hash
		FROM events e LEFT JOIN runs r ON r.n = e.run `+where, args...)
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		var e Event
		var at int64
		var body sql.NullString
		var hash []byte
		if err := rows.Scan(&e.Row, &at, &e.Run, &e.Seq, &e.Type, &body, &hash); err != nil {
			return nil, l.failed(ctx, err)
		}
		e.Time, e.Hash, e.Pruned = fromMicros(at), hex.EncodeToString(hash), !body.Valid
		if body.String != "" {
			e.Body = json.RawMessage(body.String)
		}
		events = append(events, e)
	}
	return events, l.failed(ctx, rows.Err())
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
	if err != nil || len(sum) == 0 {
		return nil, fmt.Errorf("text %q: %w", hash, ErrNotFound)
	}
	var data []byte
	var purged bool
	err = db.QueryRowContext(ctx, "SELECT data, data IS NULL FROM blobs WHERE hash = ?", sum).Scan(&data, &purged)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("text %s: %w", hash, ErrNotFound)
	case err != nil:
		return nil, l.failed(ctx, err)
	case purged:
		return nil, fmt.Errorf("text %s was purged: %w", hash, ErrNotFound)
	case data == nil:
		data = []byte{}
	}
	return slices.Clip(data), nil
}
