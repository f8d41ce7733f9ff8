package ledger

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// commandQuery reads all of a command, for scanCommand: its row, and the bodies
// of the rows that it is made from.
const commandQuery = `SELECT c.n, r.id, c.turn, c.channel, c.id, c.extra, c.status, c.injected, c.secret, c.tool, c.path, c.dest,
	c.status_row, i.at, i.body, d.at, d.body, s.at, s.body, c.detail_row = c.intent_row
	FROM commands c JOIN runs r ON r.n = c.run
	LEFT JOIN events i ON i.seq = c.intent_row
	LEFT JOIN events d ON d.seq = c.detail_row AND d.seq <> c.intent_row
	LEFT JOIN events s ON s.seq = c.status_row AND s.seq <> c.detail_row AND s.seq <> c.intent_row`

func scanCommand(r interface{ Scan(...any) error }, out *Command) error {
	var c, row Command // what the bodies say, what the row says
	var raw rawPaths
	var extra int64
	var injected, announced, detailed, decided sql.NullInt64
	var intent, detail, last []byte
	var recorded bool // one row announced and ended it
	err := r.Scan(&row.N, &row.Run, &row.Turn, &row.Channel, &row.ID, &extra, &row.Status, &injected, &row.Secret, &row.Tool, &row.Path, &row.Dest,
		&row.LastEvent, &announced, &intent, &detailed, &detail, &decided, &last, &recorded)
	if err != nil {
		return err
	}
	if err := errors.Join(decode(intent, &c), decode(detail, &c)); err != nil {
		return fmt.Errorf("command %d: %w", row.N, err)
	}
	if bytes.Contains(intent, []byte(`_hex":"`)) { // seldom: see rawPaths
		if err := errors.Join(decode(intent, &raw), raw.restore(&c)); err != nil {
			return fmt.Errorf("command %d: %w", row.N, err)
		}
	}
	if last != nil { // it was taken back: its sizes and output stay
		var o outcomeBody
		if err := decode(last, &o); err != nil {
			return fmt.Errorf("command %d: %w", row.N, err)
		}
		c.Code, c.Error = o.Code, o.Error
		if o.Notes != nil {
			c.Notes = o.Notes
		}
	}
	c.N, c.Key, c.Extra, c.Status, c.Secret = row.N, row.Key, extra != 0, row.Status, row.Secret
	c.Tool, c.Path, c.Dest, c.LastEvent = row.Tool, row.Path, row.Dest, row.LastEvent
	c.Injected, c.IntentAt = timeOrNil(injected), fromMicros(announced.Int64)
	switch {
	case decided.Valid:
		c.OutcomeAt = timeOrNil(decided)
	case detailed.Valid:
		c.OutcomeAt = timeOrNil(detailed)
	case recorded && c.OutcomeAt == nil:
		c.OutcomeAt = timeOrNil(announced)
	}
	*out = c
	return nil
}

// decode reads a row's body; a missing one says nothing.
func decode(body []byte, v any) error {
	if body == nil {
		return nil
	}
	return json.Unmarshal(body, v)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.readDB == nil {
		db, err := openReader(l.path)
		if err != nil {
			return nil, err
		}
		l.readDB = db
	}
	return l.readDB, nil
}

func (l *Ledger) closeReaders() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, db := range append(l.oldRead, l.readDB) {
		if db != nil {
			_ = db.Close()
		}
	}
	l.readDB, l.oldRead = nil, nil
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
		markSuspect(l.Path())
	}
	if l.isClosed() {
		return ErrClosed
	}
	return storeError(l.Path(), "be read", err)
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
	if f.AfterTurn > 0 {
		w.add("c.turn > ?", f.AfterTurn)
	}
	if f.Path != "" {
		w.add("(c.path = ? OR c.dest = ?)", f.Path, f.Path)
	}
	if len(f.Paths) > 0 {
		names := string(body(f.Paths)) // however many, it is one parameter
		w.add("(c.path IN (SELECT value FROM json_each(?)) OR c.dest IN (SELECT value FROM json_each(?)))", names, names)
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
		w.add("(SELECT at FROM events e WHERE e.seq = c.intent_row) >= ?", micros(f.Since))
	}
	if f.After > 0 {
		w.add("c.n > ?", f.After)
	}
	if f.Before > 0 {
		w.add("c.n < ?", f.Before)
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
	d.Events, err = l.events(ctx, db, `WHERE e.seq IN (WITH RECURSIVE about (seq) AS (
		SELECT last_row FROM commands WHERE n = ?
		UNION SELECT e.prev FROM about JOIN events e ON e.seq = about.seq WHERE e.prev > 0)
		SELECT seq FROM about) ORDER BY e.seq`, n)
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

// LookUpRun returns the run with that id, unique prefix of one, or "last",
// without its Counts, so that a run of many commands is found as fast as a short
// one.
func (l *Ledger) LookUpRun(ctx context.Context, ref string) (Run, error) {
	r, _, err := l.lookUpRun(ctx, ref)
	return r, err
}

func (l *Ledger) lookUpRun(ctx context.Context, ref string) (r Run, n int64, err error) {
	db, err := l.reader(ctx)
	if err != nil {
		return Run{}, 0, err
	}
	if n, _, err = l.runRef(ctx, db, ref); err != nil {
		return Run{}, 0, err
	}
	if err := scanRun(db.QueryRowContext(ctx, runQuery+" WHERE n = ?", n), &n, &r); err != nil {
		return Run{}, 0, l.failed(ctx, err)
	}
	return r, n, nil
}

// FindRun returns the run with that id, unique prefix of one, or "last".
func (l *Ledger) FindRun(ctx context.Context, ref string) (Run, error) {
	run, n, err := l.lookUpRun(ctx, ref)
	if err != nil {
		return Run{}, err
	}
	db, err := l.reader(ctx)
	if err != nil {
		return Run{}, err
	}
	rows, err := db.QueryContext(ctx, "SELECT status, count(*) FROM commands WHERE run = ? GROUP BY status", n)
	if err != nil {
		return Run{}, l.failed(ctx, err)
	}
	defer rows.Close()
	run.Counts = map[Status]int{}
	for rows.Next() {
		var s Status
		var c int
		if err := rows.Scan(&s, &c); err != nil {
			return Run{}, l.failed(ctx, err)
		}
		run.Counts[s] = c
	}
	return run, l.failed(ctx, rows.Err())
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
	if f.Type != "" {
		w.add("e.type = ?", f.Type)
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

// Reviews returns the rows about what persons decided of these commands, given
// by their N, oldest first. Only rows about them are read.
func (l *Ledger) Reviews(ctx context.Context, commands []int64) ([]Event, error) {
	db, err := l.reader(ctx)
	if err != nil {
		return nil, err
	}
	return l.events(ctx, db, `WHERE e.type = ? AND e.seq IN (WITH RECURSIVE about (seq) AS (
		SELECT last_row FROM commands WHERE n IN (SELECT value FROM json_each(?))
		UNION SELECT e.prev FROM about JOIN events e ON e.seq = about.seq WHERE e.prev > 0)
		SELECT seq FROM about) ORDER BY e.seq`, EventReview, string(body(commands)))
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
