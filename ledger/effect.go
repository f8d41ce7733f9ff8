package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// intentBody is what the chain keeps of an intent: all but the texts, which it
// names by their hashes.
type intentBody struct {
	Key
	Status     Status          `json:"status"`
	Tool       string          `json:"tool"`
	Path       string          `json:"path,omitempty"`
	Dest       string          `json:"dest,omitempty"`
	Cmd        string          `json:"cmd,omitempty"`
	Abs        string          `json:"abs,omitempty"`
	AbsDest    string          `json:"abs_dest,omitempty"`
	BeforeHash string          `json:"before_hash,omitempty"`
	AfterHash  string          `json:"after_hash,omitempty"`
	DestBefore string          `json:"dest_before,omitempty"`
	NeedResult bool            `json:"need_result,omitempty"`
	Flow       Flow            `json:"flow,omitempty"`
	Via        Via             `json:"via,omitempty"`
	Risk       string          `json:"risk,omitempty"`
	Rung       string          `json:"rung,omitempty"`
	Temp       string          `json:"temp,omitempty"`
	Undo       string          `json:"undo,omitempty"`
	Content    string          `json:"content,omitempty"`
	ContentSum string          `json:"content_hash,omitempty"`
	Summary    string          `json:"summary,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Owner      string          `json:"owner,omitempty"`
}

// outcomeBody is what the chain keeps of an outcome.
type outcomeBody struct {
	Key
	Status    Status   `json:"status"`
	Recovered bool     `json:"recovered,omitempty"`
	Code      string   `json:"code,omitempty"`
	Error     string   `json:"error,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Added     int      `json:"added,omitempty"`
	Removed   int      `json:"removed,omitempty"`
	Rung      string   `json:"rung,omitempty"`
	Stdout    string   `json:"stdout,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	ExitCode  *int     `json:"exit_code,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

func checkKey(k Key) error {
	if k.Run == "" || k.Channel == "" || k.Turn < 0 {
		return fmt.Errorf("ledger: key %q is not complete", k)
	}
	return nil
}

// Intent records what is about to be done. It is durable when Intent returns
// nil: only then may the effect happen. A key that is already there is a
// *DuplicateError; a staged proposal with the same content becomes an intent.
// When ctx ends first, Intent returns its error and nothing stands in the
// ledger, or an intent that is recorded as cancelled.
func (l *Ledger) Intent(ctx context.Context, in Intent) error {
	if err := checkKey(in.Key); err != nil {
		return err
	}
	if in.Tool == "" {
		return fmt.Errorf("ledger: the intent %s names no tool", in.Key)
	}
	if err := checkJSON("args", in.Args); err != nil {
		return err
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	if in.Via == "" {
		in.Via = ViaDisk
	}
	status := StatusIntent
	if in.Staged {
		status = StatusStaged
	}
	at := l.stamp(in.At)
	undo, content := blobHash(in.Undo), blobHash(in.Content)
	b := body(intentBody{
		Key: in.Key, Status: status, Tool: in.Tool, Path: in.Path, Dest: in.Dest, Cmd: in.Cmd, Abs: in.Abs, AbsDest: in.AbsDest,
		BeforeHash: in.BeforeHash, AfterHash: in.AfterHash, DestBefore: in.DestBefore, NeedResult: in.NeedResult, Flow: in.Flow,
		Via: in.Via, Risk: in.Risk, Rung: in.Rung, Temp: in.Temp, Undo: hexOrEmpty(undo), Content: hexOrEmpty(content),
		ContentSum: in.ContentHash, Summary: in.Summary, Args: in.Args, Owner: own,
	})
	o := &op{size: len(b) + len(in.Undo) + len(in.Content)}
	o.apply = func(t *txn) error {
		run, err := t.ensureRun(in.Run, own, at)
		if err != nil {
			return err
		}
		old, found, err := t.load(in.Key)
		if err != nil {
			return err
		}
		same := found && old.Tool == in.Tool && old.Path == in.Path && old.Dest == in.Dest && old.Cmd == in.Cmd && old.ContentSum == in.ContentHash
		if found && !(same && old.Status == StatusStaged && status == StatusIntent) {
			return &DuplicateError{Existing: old, Same: same}
		}
		if err := t.putBlob(in.Undo, undo, in.Secret); err != nil {
			return err
		}
		if err := t.putBlob(in.Content, content, in.Secret); err != nil {
			return err
		}
		cmd := old.N
		if !found {
			cmd = t.next()
		}
		seq, err := t.append(row{at: at, run: run, cmd: cmd, typ: EventIntent, body: b})
		if err != nil {
			return err
		}
		c := Command{
			N: cmd, Key: in.Key, Tool: in.Tool, Path: in.Path, Dest: in.Dest, Cmd: in.Cmd, Abs: in.Abs, AbsDest: in.AbsDest,
			BeforeHash: in.BeforeHash, AfterHash: in.AfterHash, DestBefore: in.DestBefore, NeedResult: in.NeedResult, Flow: in.Flow,
			Via: in.Via, Risk: in.Risk, Rung: in.Rung, Temp: in.Temp, Secret: in.Secret, ContentSum: in.ContentHash,
			Summary: in.Summary, Args: in.Args, Status: status, IntentAt: fromMicros(at), LastEvent: seq,
		}
		return t.storeCommand(run, own, &c, undo, content)
	}
	o.orphaned = func() *op {
		return l.outcomeOp(Outcome{Key: in.Key, Status: StatusCancelled, Error: "the run was cancelled before it began"})
	}
	if err := l.w.do(ctx, o); err != nil {
		return l.describe(err)
	}
	l.setLive(in.Key, status)
	return nil
}

// describe leaves answers as they are and words the rest.
func (l *Ledger) describe(err error) error {
	var dup *DuplicateError
	if err == nil || errors.As(err, &dup) || errors.Is(err, ErrClosed) || errors.Is(err, ErrNotFound) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return storeError(l.path, "be written", err)
}

// storeCommand writes a whole row of commands, in the place of an older one.
func (t *txn) storeCommand(run int64, owner string, c *Command, undo, content []byte) error {
	var extra int64
	if c.Extra {
		extra = c.N
	}
	_, err := t.exec(`INSERT OR REPLACE INTO commands (n, run, turn, channel, id, extra, status, owner, last_event,
		intent_at, outcome_at, injected, recovered, tool, path, dest, cmd, abs, abs_dest, before_hash, after_hash,
		dest_before, need_result, flow, via, risk, rung, temp, undo, content, secret, content_sum, summary, args, code,
		error, bytes, added, removed, stdout, stderr, exit_code, notes)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,NULL,0,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		c.N, run, c.Turn, c.Channel, c.ID, extra, string(c.Status), owner, c.LastEvent,
		micros(c.IntentAt), nullTime(c.OutcomeAt), c.Tool, c.Path, c.Dest, c.Cmd, c.Abs, c.AbsDest, c.BeforeHash, c.AfterHash,
		c.DestBefore, c.NeedResult, string(c.Flow), string(c.Via), c.Risk, c.Rung, c.Temp, undo, content, c.Secret, c.ContentSum,
		c.Summary, nullText(c.Args), c.Code, c.Error, c.Bytes, c.Added, c.Removed, c.Stdout, c.Stderr, c.ExitCode, notesText(c.Notes))
	return err
}

func nullTime(t *time.Time) any {
	if t == nil {
		return nil
	}
	return micros(*t)
}

func notesText(notes []string) any {
	if len(notes) == 0 {
		return nil
	}
	return string(body(notes))
}

// Outcome says what became of an announced command. It shares the next commit,
// at the latest after Options.FlushAfter. A status that cannot follow the one
// that the command has is an error, and so is a key that is not there.
func (l *Ledger) Outcome(o Outcome) error {
	known, err := l.moveLive(o.Key, o.Status)
	if err != nil {
		return err
	}
	if !known {
		c, err := l.Get(bg, o.Key)
		if err != nil {
			return err
		}
		if !c.Status.mayBecome(o.Status) {
			return transitionError(o.Key, c.Status, o.Status)
		}
	}
	return l.w.put(l.outcomeOp(o))
}

func (l *Ledger) outcomeOp(o Outcome) *op {
	at := l.stamp(o.At)
	o.Stdout, o.Stderr = cut(o.Stdout), cut(o.Stderr)
	if o.ExitCode != nil {
		code := *o.ExitCode
		o.ExitCode = &code
	}
	ob := outcomeBody{Key: o.Key, Status: o.Status, Code: o.Code, Error: o.Error, Bytes: o.Bytes, Added: o.Added,
		Removed: o.Removed, Rung: o.Rung, Stdout: o.Stdout, Stderr: o.Stderr, ExitCode: o.ExitCode, Notes: o.Notes}
	b := body(ob)
	notes := notesText(o.Notes)
	return &op{size: len(b) + len(o.Stdout) + len(o.Stderr), apply: func(t *txn) error {
		var n, run int64
		var from Status
		found, err := t.one(`SELECT c.n, c.run, c.status FROM commands c JOIN runs r ON r.n = c.run
			WHERE r.id = ? AND c.turn = ? AND c.channel = ? AND c.id = ? AND c.extra = 0`,
			[]any{o.Run, o.Turn, o.Channel, o.ID}, &n, &run, &from)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("outcome %s of command %s: %w", o.Status, o.Key, ErrNotFound)
		case !from.mayBecome(o.Status): // another process was there first
			return transitionError(o.Key, from, o.Status)
		}
		seq, err := t.append(row{at: at, run: run, cmd: n, typ: EventOutcome, body: b})
		if err != nil {
			return err
		}
		if o.Status.takesBack() {
			_, err = t.exec(`UPDATE commands SET injected = CASE WHEN status = ?1 THEN injected END, status = ?1, last_event = ?2,
				outcome_at = ?3, code = ?4, error = ?5, notes = coalesce(?6, notes) WHERE n = ?7`,
				string(o.Status), seq, at, o.Code, o.Error, notes, n)
			return err
		}
		_, err = t.exec(`UPDATE commands SET injected = CASE WHEN status = ?1 THEN injected END, status = ?1, last_event = ?2,
			outcome_at = ?3, code = ?4, error = ?5, notes = ?6, bytes = ?8, added = ?9, removed = ?10, stdout = ?11, stderr = ?12,
			exit_code = ?13, rung = CASE WHEN ?14 = '' THEN rung ELSE ?14 END WHERE n = ?7`,
			string(o.Status), seq, at, o.Code, o.Error, notes, n, o.Bytes, o.Added, o.Removed, o.Stdout, o.Stderr, o.ExitCode, o.Rung)
		return err
	}}
}

// Record stores a command that never had an intent (a read, skipped, failed
// before its effect, cancelled), without a sync. Key, Tool, Path, Dest, Cmd,
// Status, Code, Error and so on are stored as given. If the key is taken (a
// repeated or missing id), the command is stored beside the other one.
func (l *Ledger) Record(c Command) error {
	if err := checkKey(c.Key); err != nil {
		return err
	}
	if !c.Status.known() || c.Status == StatusIntent || c.Status == StatusStaged {
		return fmt.Errorf("ledger: command %s cannot be recorded as %q: announce it with Intent", c.Key, c.Status)
	}
	if err := checkJSON("args", c.Args); err != nil {
		return err
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(c.IntentAt)
	c.IntentAt = fromMicros(at)
	out := c.IntentAt
	if c.OutcomeAt != nil {
		out = *c.OutcomeAt
	}
	c.OutcomeAt, c.Injected, c.Recovered, c.UndoBlob, c.Content = &out, nil, false, "", ""
	c.Stdout, c.Stderr = cut(c.Stdout), cut(c.Stderr)
	c.N, c.LastEvent, c.Extra = 0, 0, false
	b := body(c)
	return l.w.put(&op{size: 2 * len(b), apply: func(t *txn) error {
		run, err := t.ensureRun(c.Run, own, at)
		if err != nil {
			return err
		}
		c := c
		var other int64
		found, err := t.command(c.Key, &other)
		if err != nil {
			return err
		}
		c.Extra = found || c.ID <= 0
		c.N = t.next()
		c.LastEvent = c.N
		if _, err := t.append(row{at: at, run: run, cmd: c.N, typ: EventRecord, body: b}); err != nil {
			return err
		}
		return t.storeCommand(run, own, &c, nil, nil)
	}})
}

// load reads one command by its key.
func (t *txn) load(k Key) (c Command, found bool, err error) {
	s, err := t.stmt(commandQuery + " WHERE r.id = ? AND c.turn = ? AND c.channel = ? AND c.id = ? AND c.extra = 0")
	if err != nil {
		return Command{}, false, err
	}
	err = scanCommand(s.QueryRowContext(bg, k.Run, k.Turn, k.Channel, k.ID), &c)
	if errors.Is(err, sql.ErrNoRows) {
		return Command{}, false, nil
	}
	return c, err == nil, err
}
