package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// StartSession records a session; a known id is left as it is.
func (l *Ledger) StartSession(s Session) error {
	if s.ID == "" {
		return errors.New("ledger: a session needs an id")
	}
	l.texts(&s.Title)
	at := l.stamp(s.Started)
	s.Started = fromMicros(at)
	b := body(s)
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		var n int64
		if found, err := t.one("SELECT n FROM sessions WHERE id = ?", []any{s.ID}, &n); err != nil || found {
			return err
		}
		n, err := t.append(row{at: at, typ: EventSession, body: b})
		if err != nil {
			return err
		}
		_, err = t.exec("INSERT INTO sessions (n, id, title, started) VALUES (?, ?, ?, ?)", n, s.ID, s.Title, at)
		return err
	}})
}

// EndSession records that a conversation is over: its background commands have
// ended. It can still be gone on with.
func (l *Ledger) EndSession(id string) error {
	at := l.stamp(time.Time{})
	b := body(struct {
		ID string `json:"id"`
	}{id})
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		var n int64
		if found, err := t.one("SELECT n FROM sessions WHERE id = ?", []any{id}, &n); err != nil || !found {
			return err
		}
		_, err := t.append(row{at: at, typ: EventSessionEnd, body: b})
		return err
	}})
}

// StartRun records the start of a run; a known id becomes running again, with
// this ledger as its owner.
func (l *Ledger) StartRun(r Run) error {
	if r.ID == "" {
		return errors.New("ledger: a run needs an id")
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	l.texts(&r.Task)
	at := l.stamp(r.Started)
	r.Started, r.Ended, r.State, r.Counts = fromMicros(at), nil, RunRunning, nil
	b := body(r)
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		known, err := t.findRun(r.ID)
		if err != nil {
			return err
		}
		if known == nil {
			_, err := t.newRun(r, own, at, b)
			return err
		}
		if _, err := t.append(row{at: at, run: known.n, typ: EventRunStart, body: b}); err != nil {
			return err
		}
		_, err = t.exec("UPDATE runs SET owner = ?, ended = NULL, state = ?, reason = '' WHERE n = ?", own, RunRunning, known.n)
		return err
	}})
}

func (t *txn) newRun(r Run, owner string, at int64, b []byte) (*runInfo, error) {
	n, err := t.append(row{at: at, run: t.next(), typ: EventRunStart, body: b})
	if err != nil {
		return nil, err
	}
	_, err = t.exec(`INSERT INTO runs (n, id, session, task, model, dir, owner, started, state, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')`, n, r.ID, r.Session, r.Task, r.Model, r.Dir, owner, at, RunRunning)
	if err != nil {
		return nil, err
	}
	info := &runInfo{n: n, loose: map[Key]int64{}}
	t.runs[r.ID] = info
	return info, nil
}

// ensureRun finds a run, or makes one that nobody started properly: what is
// said about it must not be lost.
func (t *txn) ensureRun(id, owner string, at int64) (*runInfo, error) {
	r, err := t.findRun(id)
	if err != nil || r != nil {
		return r, err
	}
	run := Run{ID: id, Started: fromMicros(at), State: RunRunning}
	return t.newRun(run, owner, at, body(run))
}

// turnBody is the body of the rows about turns.
type turnBody struct {
	Turn   int             `json:"turn"`
	Finish string          `json:"finish,omitempty"`
	Usage  json.RawMessage `json:"usage,omitempty"`
}

// StartTurn records the start of a turn, from 1.
func (l *Ledger) StartTurn(run string, turn int) error {
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(time.Time{})
	b := body(turnBody{Turn: turn})
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		r, err := t.ensureRun(run, own, at)
		if err != nil {
			return err
		}
		if _, err := t.append(row{at: at, run: r.n, typ: EventTurnStart, body: b}); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO turns (run, turn, started, finish) VALUES (?, ?, ?, '')
			ON CONFLICT (run, turn) DO UPDATE SET started = excluded.started, ended = NULL, finish = ''`, r.n, turn, at)
		return err
	}})
}

// EndTurn records how a turn ended; usage may be nil.
func (l *Ledger) EndTurn(run string, turn int, finish string, usage json.RawMessage) error {
	if err := checkJSON("usage", usage); err != nil {
		return err
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(time.Time{})
	b := body(turnBody{Turn: turn, Finish: finish, Usage: usage})
	u := nullText(usage)
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		r, err := t.ensureRun(run, own, at)
		if err != nil {
			return err
		}
		if _, err := t.append(row{at: at, run: r.n, typ: EventTurnEnd, body: b}); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO turns (run, turn, started, ended, finish, usage) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (run, turn) DO UPDATE SET ended = excluded.ended, finish = excluded.finish, usage = excluded.usage`,
			r.n, turn, at, at, finish, u)
		return err
	}})
}

// endBody is the body of the row about a run's end.
type endBody struct {
	State  string          `json:"state"`
	Reason string          `json:"reason,omitempty"`
	Usage  json.RawMessage `json:"usage,omitempty"`
}

// EndRun records how a run ended; usage may be nil.
func (l *Ledger) EndRun(run, state, reason string, usage json.RawMessage) error {
	if err := checkJSON("usage", usage); err != nil {
		return err
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(time.Time{})
	l.texts(&reason)
	b := body(endBody{State: state, Reason: reason, Usage: usage})
	u := nullText(usage)
	err = l.w.put(&op{size: len(b), apply: func(t *txn) error {
		r, err := t.ensureRun(run, own, at)
		if err != nil {
			return err
		}
		return t.endRun(r.n, at, state, reason, u, b)
	}})
	l.mu.Lock()
	delete(l.live, run)
	l.mu.Unlock()
	return err
}

func (t *txn) endRun(n, at int64, state, reason string, usage any, b []byte) error {
	if _, err := t.append(row{at: at, run: n, typ: EventRunEnd, body: b}); err != nil {
		return err
	}
	_, err := t.exec("UPDATE runs SET ended = ?, state = ?, reason = ?, usage = coalesce(?, usage) WHERE n = ?", at, state, reason, usage, n)
	return err
}

// Event appends one of the agent's run events, numbered from 1 per run, without
// a sync. body must be JSON.
func (l *Ledger) Event(run string, seq int64, typ string, body json.RawMessage) error {
	if seq < 1 {
		return fmt.Errorf("ledger: event %s of run %s has number %d; they count from 1", typ, run, seq)
	}
	if err := checkJSON("event "+typ, body); err != nil {
		return err
	}
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(time.Time{})
	b := bytes.Clone(l.raw(body))
	return l.w.put(&op{size: len(b), lazy: true, apply: func(t *txn) error {
		r, err := t.ensureRun(run, own, at)
		if err != nil {
			return err
		}
		_, err = t.append(row{at: at, run: r.n, runSeq: seq, typ: typ, body: b})
		return err
	}})
}

// Approval records a question to a person (no Decision) or its answer, without
// a sync. The key need not be in the ledger: ID 0 stands for the whole run.
func (l *Ledger) Approval(k Key, a Approval) error {
	l.texts(&a.Subject, &a.Target)
	return l.note(k, EventApproval, l.stamp(a.At), struct {
		Key
		Approval
	}{k, a}, nil)
}

// Request records what a person asked of a run that goes on, without a sync.
func (l *Ledger) Request(run string, r Request) error {
	l.texts(&r.Text)
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	at := l.stamp(r.At)
	b := body(r)
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		info, err := t.ensureRun(run, own, at)
		if err != nil {
			return err
		}
		_, err = t.append(row{at: at, run: info.n, typ: EventRequest, body: b})
		return err
	}})
}

// Review records a person's decision about a change, without a sync. Keeping
// the whole of a command that touched a secret file purges its texts.
func (l *Ledger) Review(k Key, r Review) error {
	at := l.stamp(r.At)
	return l.note(k, EventReview, at, struct {
		Key
		Review
	}{k, r}, func(t *txn, cmd int64) error {
		if r.Action != ReviewKeep || len(r.Hunks) > 0 || cmd == 0 {
			return nil
		}
		return t.purgeSecrets(k, cmd, at)
	})
}

// note appends a row about a command.
func (l *Ledger) note(k Key, typ string, at int64, v any, then func(*txn, int64) error) error {
	own, err := l.ownerID()
	if err != nil {
		return err
	}
	b := body(v)
	return l.w.put(&op{size: len(b), apply: func(t *txn) error {
		run, err := t.ensureRun(k.Run, own, at)
		if err != nil {
			return err
		}
		p, err := t.find(k)
		if err != nil {
			return err
		}
		if p.n == 0 { // linked when the command comes
			return t.addLoose(run, k, row{at: at, typ: typ, body: b})
		}
		if err := t.about(k, &p, row{at: at, typ: typ, body: b}); err != nil || then == nil {
			return err
		}
		return then(t, p.n)
	}})
}

// about appends a row about a command that is there.
func (t *txn) about(k Key, p *place, r row) error {
	r.run, r.cmd, r.prev = p.run, p.n, p.last
	seq, err := t.append(r)
	if err != nil {
		return err
	}
	p.last = seq
	t.cmds[k] = *p
	_, err = t.exec("UPDATE commands SET last_row = ? WHERE n = ?", seq, p.n)
	return err
}

// Injected marks the outcomes of these commands as told to the model, without
// a sync.
func (l *Ledger) Injected(keys ...Key) error {
	at := l.stamp(time.Time{})
	keys = append([]Key(nil), keys...)
	return l.w.put(&op{size: len(keys) * 128, apply: func(t *txn) error {
		for _, k := range keys {
			p, err := t.find(k)
			if err != nil {
				return err
			}
			if p.n == 0 {
				continue // pruned, or never recorded: nothing to mark
			}
			if err := t.about(k, &p, row{at: at, typ: EventInjected, body: body(k)}); err != nil {
				return err
			}
			if _, err = t.exec("UPDATE commands SET injected = ? WHERE n = ?", at, p.n); err != nil {
				return err
			}
		}
		return nil
	}})
}

// checkJSON refuses what could not be given back as JSON.
func checkJSON(what string, b json.RawMessage) error {
	if len(b) > 0 && !json.Valid(b) {
		return fmt.Errorf("ledger: %s is not JSON: %.80q", what, b)
	}
	return nil
}

// nullText is NULL for nothing, else the text.
func nullText(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return string(b)
}

// maxSummary bounds stored output summaries, in bytes.
const maxSummary = 64 << 10

// cut shortens a text in its middle.
func cut(s string) string {
	if len(s) <= maxSummary {
		return s
	}
	half := maxSummary/2 - 40
	return strings.ToValidUTF8(s[:half], "") + fmt.Sprintf("\n… %d bytes left out …\n", len(s)-2*half) + strings.ToValidUTF8(s[len(s)-half:], "")
}

// flushNow is Flush for readers, who want to see what was written before: a
// ledger that cannot be written can still be read.
func (l *Ledger) flushNow(ctx context.Context) error {
	err := l.Flush(ctx)
	if err == nil || errors.Is(err, ErrClosed) || ctx.Err() != nil {
		return err
	}
	l.log.Warn("ledger: reading without the latest entries", "path", l.Path(), "err", err)
	return nil
}
