package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"
)

// The bodies of intents, records and outcomes have the names of Command's
// fields, so that a Command is read back by decoding them one after the other
// (see scanCommand).

// intentBody is what the chain keeps of an intent: all but the texts, which it
// names by their hashes.
type intentBody struct {
	Key
	Status Status `json:"status"`
	Announced
	Owner string `json:"owner,omitempty"`
	rawPaths
}

// rawPaths keeps the bytes, as hex, of real paths that are not valid UTF-8 and
// that JSON would change.
type rawPaths struct {
	Abs     string `json:"abs_hex,omitempty"`
	AbsDest string `json:"abs_dest_hex,omitempty"`
	Temp    string `json:"temp_hex,omitempty"`
}

func rawHex(s string) string {
	if utf8.ValidString(s) {
		return ""
	}
	return hex.EncodeToString([]byte(s))
}

func (r *rawPaths) restore(c *Command) error {
	for _, p := range []struct {
		hex  string
		path *string
	}{{r.Abs, &c.Abs}, {r.AbsDest, &c.AbsDest}, {r.Temp, &c.Temp}} {
		if p.hex == "" {
			continue
		}
		b, err := hex.DecodeString(p.hex)
		if err != nil {
			return err
		}
		*p.path = string(b)
	}
	return nil
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
	Output    string   `json:"output,omitempty"`
	Stdout    string   `json:"stdout,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	ExitCode  *int     `json:"exit_code,omitempty"`
	Notes     []string `json:"notes,omitempty"`
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
	fault("before intent")
	o, err := l.intentOp(in)
	if err != nil {
		return err
	}
	faultWriting("writing the intent")
	if err := l.w.do(ctx, o); err != nil {
		return l.describe(err)
	}
	faultWriting("")
	fault("after intent")
	l.setLive(in.Key, in.status())
	return nil
}

func (in *Intent) status() Status {
	if in.Staged {
		return StatusStaged
	}
	return StatusIntent
}

// intentOp checks an intent and makes the op that records it.
func (l *Ledger) intentOp(in Intent) (*op, error) {
	if err := checkKey(in.Key); err != nil {
		return nil, err
	}
	if in.Tool == "" {
		return nil, fmt.Errorf("ledger: the intent %s names no tool", in.Key)
	}
	if err := checkJSON("args", in.Args); err != nil {
		return nil, err
	}
	own, err := l.ownerID()
	if err != nil {
		return nil, err
	}
	if in.Via == "" {
		in.Via = ViaDisk
	}
	l.texts(&in.Cmd, &in.Summary)
	in.Args = l.raw(in.Args)
	status := in.status()
	at := l.stamp(in.At)
	undo, content := newText(in.Undo), newText(in.Content)
	b := body(intentBody{
		Key: in.Key, Status: status, Owner: own,
		Announced: Announced{
			Tool: in.Tool, Path: in.Path, Dest: in.Dest, Cmd: in.Cmd, Abs: in.Abs, AbsDest: in.AbsDest,
			BeforeHash: in.BeforeHash, AfterHash: in.AfterHash, DestBefore: in.DestBefore, NeedResult: in.NeedResult, Flow: in.Flow,
			Via: in.Via, Risk: in.Risk, Rung: in.Rung, Temp: in.Temp, UndoBlob: undo.hex(), Content: content.hex(),
			Secret: in.Secret, ContentSum: in.ContentHash, Summary: in.Summary, Args: in.Args,
		},
		rawPaths: rawPaths{rawHex(in.Abs), rawHex(in.AbsDest), rawHex(in.Temp)},
	})
	o := &op{size: len(b) + undo.size() + content.size()}
	o.apply = func(t *txn) error {
		run, err := t.ensureRun(in.Run, own, at)
		if err != nil {
			return err
		}
		c := projection{n: t.next(), run: run.n, key: in.Key, status: status, owner: own, tool: in.Tool, path: in.Path, dest: in.Dest, secret: in.Secret}
		if c.undo, err = t.put(undo, in.Secret); err != nil {
			return err
		}
		if c.content, err = t.put(content, in.Secret); err != nil {
			return err
		}
		r := row{at: at, run: run.n, cmd: c.n, typ: EventIntent, body: b}
		if r.prev, err = t.takeLoose(run, in.Key); err != nil {
			return err
		}
		stored, err := t.store(&c, t.next())
		if err != nil {
			return err
		}
		if !stored {
			old, err := t.takeStaged(&in)
			if err != nil {
				return err
			}
			c.n, r.cmd, r.prev = old.n, old.n, old.last
			if _, err := t.store(&c, t.next()); err != nil {
				return err
			}
			if err := t.lowerMark(c.n); err != nil {
				return err
			}
		}
		seq, err := t.append(r)
		if err != nil {
			return err
		}
		t.cmds[in.Key] = place{n: c.n, run: run.n, last: seq, status: status}
		return nil
	}
	o.orphaned = func() *op {
		return l.outcomeOp(Outcome{Key: in.Key, Status: StatusCancelled, Error: "the run was cancelled before it began"})
	}
	return o, nil
}

// describe leaves answers as they are and words the rest.
func (l *Ledger) describe(err error) error {
	var dup *DuplicateError
	if err == nil || errors.As(err, &dup) || errors.Is(err, ErrClosed) || errors.Is(err, ErrNotFound) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if damaged(err) {
		markSuspect(l.Path())
	}
	return storeError(l.Path(), "be written", err)
}

// takeStaged makes room for an intent whose key is taken: by the same command,
// staged, which it continues under the same number; else it is a
// *DuplicateError.
func (t *txn) takeStaged(in *Intent) (place, error) {
	s, err := t.stmt(commandQuery + " WHERE r.id = ? AND c.turn = ? AND c.channel = ? AND c.id = ? AND c.extra = 0")
	if err != nil {
		return place{}, err
	}
	var old Command
	if err := scanCommand(s.QueryRowContext(bg, in.Run, in.Turn, in.Channel, in.ID), &old); err != nil {
		return place{}, fmt.Errorf("command %s can neither be recorded nor read: %w", in.Key, err)
	}
	same := old.Tool == in.Tool && old.Path == in.Path && old.Dest == in.Dest && old.Cmd == in.Cmd && old.ContentSum == in.ContentHash
	if !same || old.Status != StatusStaged || in.Staged {
		return place{}, &DuplicateError{Existing: old, Same: same}
	}
	p, err := t.find(in.Key)
	if err == nil {
		_, err = t.exec("DELETE FROM commands WHERE n = ?", p.n)
	}
	return p, err
}

// projection is a new row of commands.
type projection struct {
	n, run           int64
	key              Key
	extra            bool
	status           Status
	owner            string
	tool, path, dest string
	secret           bool
	undo, content    any // numbers in blobs, or nil
	final            bool
}

// store adds a row of commands, introduced by the row seq of the chain; stored
// is false when the key is taken.
func (t *txn) store(c *projection, seq int64) (stored bool, err error) {
	var extra, detail int64
	if c.extra {
		extra = c.n
	}
	if c.final {
		detail = seq
	}
	n, err := t.exec(`INSERT INTO commands (n, run, turn, channel, id, extra, status, intent_row, detail_row, status_row,
		last_row, owner, tool, path, dest, secret, undo, content)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8, ?8, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING`,
		c.n, c.run, c.key.Turn, c.key.Channel, c.key.ID, extra, string(c.status), seq, detail,
		c.owner, c.tool, c.path, c.dest, c.secret, c.undo, c.content)
	return n > 0, err
}

// Outcome says what became of an announced command. It shares the next commit,
// at the latest after Options.FlushAfter. A status that cannot follow the one
// that the command has is an error, and so is a key that is not there.
func (l *Ledger) Outcome(o Outcome) error {
	fault("before outcome")
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
	faultWriting("writing the outcome")
	err = l.w.put(l.outcomeOp(o))
	fault("outcome not yet written")
	return err
}

func (l *Ledger) outcomeOp(o Outcome) *op {
	at := l.stamp(o.At)
	l.texts(&o.Error, &o.Output, &o.Stdout, &o.Stderr)
	o.Notes = l.list(o.Notes)
	o.Stdout, o.Stderr = cut(o.Stdout), cut(o.Stderr)
	if o.ExitCode != nil {
		code := *o.ExitCode
		o.ExitCode = &code
	}
	ob := outcomeBody{Key: o.Key, Status: o.Status, Code: o.Code, Error: o.Error, Bytes: o.Bytes, Added: o.Added,
		Removed: o.Removed, Rung: o.Rung, Output: o.Output, Stdout: o.Stdout, Stderr: o.Stderr, ExitCode: o.ExitCode, Notes: o.Notes}
	b := body(ob)
	return &op{size: len(b) + len(o.Stdout) + len(o.Stderr), apply: func(t *txn) error {
		p, err := t.find(o.Key)
		switch {
		case err != nil:
			return err
		case p.n == 0:
			return fmt.Errorf("outcome %s of command %s: %w", o.Status, o.Key, ErrNotFound)
		case !p.status.mayBecome(o.Status): // another process was there first
			return transitionError(o.Key, p.status, o.Status)
		}
		return t.setStatus(o.Key, p, o.Status, row{at: at, typ: EventOutcome, body: b})
	}}
}

// setStatus appends the row that changes a command's status. The model has to
// be told about a change again.
func (t *txn) setStatus(k Key, p place, s Status, r row) error {
	r.run, r.cmd, r.prev = p.run, p.n, p.last
	seq, err := t.append(r)
	if err != nil {
		return err
	}
	if s.takesBack() {
		_, err = t.exec("UPDATE commands SET injected = CASE WHEN status = ?1 THEN injected END, status = ?1, status_row = ?2, last_row = ?2 WHERE n = ?3",
			string(s), seq, p.n)
	} else {
		_, err = t.exec(`UPDATE commands SET injected = CASE WHEN status = ?1 THEN injected END, status = ?1, status_row = ?2, last_row = ?2,
			detail_row = ?2 WHERE n = ?3`, string(s), seq, p.n)
	}
	p.status, p.last = s, seq
	t.cmds[k] = p
	return err
}

// Record stores a command that never had an intent (a read, skipped, failed
// before its effect, cancelled), without a sync. Key, Tool, Path, Dest, Cmd,
// Status, Code, Error and so on are stored as given. If the key is taken (a
// repeated or missing id), the command is stored beside the other one.
func (l *Ledger) Record(c Command) error { return l.RecordWith(c, nil) }

// RecordWith is Record for a command whose body (or pairs) is to be kept; nil =
// none. See Intent.Content.
func (l *Ledger) RecordWith(c Command, content []byte) error {
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
	l.texts(&c.Cmd, &c.Error, &c.Output, &c.Stdout, &c.Stderr, &c.Summary)
	c.Args, c.Notes = l.raw(c.Args), l.list(c.Notes)
	at := l.stamp(c.IntentAt)
	c.IntentAt = fromMicros(at)
	kept := newText(content)
	c.Injected, c.Recovered, c.UndoBlob, c.Content = nil, false, "", kept.hex()
	c.Stdout, c.Stderr = cut(c.Stdout), cut(c.Stderr)
	c.N, c.LastEvent, c.Extra = 0, 0, false
	b := body(c)
	return l.w.put(&op{size: 2*len(b) + kept.size(), apply: func(t *txn) error {
		run, err := t.ensureRun(c.Run, own, at)
		if err != nil {
			return err
		}
		other, err := t.find(c.Key)
		if err != nil {
			return err
		}
		p := projection{n: t.next(), run: run.n, key: c.Key, extra: other.n != 0 || c.ID <= 0, status: c.Status, owner: own,
			tool: c.Tool, path: c.Path, dest: c.Dest, secret: c.Secret, final: true}
		if p.content, err = t.put(kept, c.Secret); err != nil {
			return err
		}
		r := row{at: at, run: run.n, cmd: p.n, typ: EventRecord, body: b}
		if !p.extra {
			if r.prev, err = t.takeLoose(run, c.Key); err != nil {
				return err
			}
		}
		seq, err := t.append(r)
		if err != nil {
			return err
		}
		if !p.extra {
			t.cmds[c.Key] = place{n: p.n, run: run.n, last: seq, status: c.Status}
		}
		_, err = t.store(&p, seq)
		return err
	}})
}
