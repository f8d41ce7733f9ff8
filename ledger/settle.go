package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// found is what a look at a path says: "" = absent, Dir, or a hash.
type found = string

// look asks the probe; a folder has the hash Dir.
func look(probe Probe, path string) (found, error) {
	hash, exists, err := probe(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot look at %s: %w", path, err)
	case !exists:
		return "", nil
	case hash == "":
		return Dir, nil
	}
	return hash, nil
}

// decide settles one intent from what stands at its two paths now. It is pure:
// same findings, same decision. at is what was found at Abs, dest at AbsDest.
func decide(c *Command, at, dest found) (Status, string) {
	if c.Tool == "tf-read" {
		return StatusCancelled, "a read changes nothing"
	}
	if c.Abs == "" || c.Tool == "tf-bash" {
		return StatusUncertain, "it was begun, and nothing shows what it did"
	}
	s, why := StatusUncertain, ""
	switch c.Tool {
	case "tf-move":
		s, why = decideMove(c, at, dest)
	case "tf-copy":
		s, why = decideText(dest, c.DestBefore, c.AfterHash, name(c.Dest, c.AbsDest))
	default:
		s, why = decideText(at, c.BeforeHash, c.AfterHash, name(c.Path, c.Abs))
	}
	if s == StatusNotApplied && c.Via == ViaEditor {
		// The disk says nothing about an unsaved buffer.
		return StatusUncertain, "it was sent to the editor, and the file on disk is as before: look at the editor's buffer"
	}
	return s, why
}

// name prefers the path as people see it.
func name(display, abs string) string {
	if display != "" {
		return display
	}
	return abs
}

func decideText(at found, before, after, path string) (Status, string) {
	switch at {
	case after:
		return StatusApplied, path + " " + describeFound(at, "after") + " it"
	case before:
		return StatusNotApplied, path + " " + describeFound(at, "before") + " it"
	}
	return StatusUncertain, path + " is neither as before it nor as after it"
}

func decideMove(c *Command, at, dest found) (Status, string) {
	from, to := name(c.Path, c.Abs), name(c.Dest, c.AbsDest)
	switch {
	case at == "" && dest != "" && dest == c.AfterHash:
		return StatusApplied, from + " is gone and " + to + " " + describeFound(dest, "after") + " it"
	case at == c.BeforeHash && dest == c.DestBefore:
		return StatusNotApplied, "both " + from + " and " + to + " are as before it"
	case at == c.BeforeHash && dest == c.AfterHash:
		return StatusUncertain, "both " + from + " and " + to + " have its text: it stopped half-way"
	}
	return StatusUncertain, from + " and " + to + " are neither as before it nor as after it"
}

func describeFound(at found, when string) string {
	switch at {
	case "":
		return "is not there, as " + when
	case Dir:
		return "is a folder, as " + when
	}
	return "has the text of " + when
}

// decideSeries settles several intents for the text of one path, in order, each
// of which begins with the text that the one before ends with: a batch that was
// sent together. What stands there now tells how far it got.
func decideSeries(cmds []*Command, at found) ([]Status, []string) {
	statuses, reasons := make([]Status, len(cmds)), make([]string, len(cmds))
	reached := -1 // index of the last one whose result was found; -1 = none
	known := at == cmds[0].BeforeHash
	for i, c := range cmds {
		if c.AfterHash == at {
			reached, known = i, true
		}
	}
	for i, c := range cmds {
		path := name(c.Path, c.Abs)
		switch {
		case !known:
			statuses[i], reasons[i] = StatusUncertain, path+" is neither as before it nor as after it"
		case i < reached:
			statuses[i], reasons[i] = StatusApplied, path+" has the text of after a later one that builds on it"
		case i == reached:
			statuses[i], reasons[i] = decide(c, at, "")
		default:
			// Judged from the first one that did not happen.
			statuses[i], reasons[i] = StatusNotApplied, path+" "+describeFound(at, "before")+" it"
			if i > reached+1 {
				reasons[i] = path + " has the text of before an earlier one that it builds on"
			}
			if c.Via == ViaEditor {
				statuses[i], reasons[i] = StatusUncertain, "it was sent to the editor, and the file on disk is as before: look at the editor's buffer"
			}
		}
	}
	return statuses, reasons
}

// textual tells whether an intent is about the text at Abs alone.
func textual(c *Command) bool {
	switch c.Tool {
	case "tf-read", "tf-bash", "tf-move", "tf-copy":
		return false
	}
	return c.Abs != ""
}

// settleDead settles what dead owners left open. The caller holds the opening
// lock; the writer has not begun.
func (l *Ledger) settleDead(ctx context.Context) ([]Settlement, error) {
	open, err := l.openOwners()
	if err != nil {
		return nil, err
	}
	// Files of owners that left nothing open are tidied up on the way.
	for _, id := range ownerFiles(l.o.Dir) {
		if _, ok := open[id]; !ok {
			open[id] = false
		}
	}
	var all []Settlement
	for id, intents := range open {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if intents && l.o.Probe == nil {
			continue // nobody can look
		}
		done, dead, err := buryOwner(l.o.Dir, id)
		if err != nil {
			l.log.Warn("ledger: cannot tell whether an owner lives; its intents stay", "owner", id, "err", err)
		}
		if !dead {
			continue
		}
		settled, err := l.settleOwner(ctx, id)
		done(err == nil)
		if err != nil {
			return nil, err
		}
		all = append(all, settled...)
	}
	slices.SortFunc(all, func(a, b Settlement) int { return cmp.Compare(a.N, b.N) })
	return all, nil
}

// openOwners lists the owners of open runs (false) and open intents (true).
func (l *Ledger) openOwners() (map[string]bool, error) {
	owners := map[string]bool{}
	for q, intents := range map[string]bool{
		"SELECT DISTINCT owner FROM runs WHERE ended IS NULL":                             false,
		"SELECT DISTINCT owner FROM commands WHERE status = 'intent' AND n > " + openMark: true,
	} {
		rows, err := l.tx.query(q)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				_ = rows.Close()
				return nil, err
			}
			owners[id] = owners[id] || intents
		}
		_ = rows.Close()
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// settleOwner settles one dead owner's intents and runs in one transaction.
// Temp files go first: if that is cut short, the next opening does it again.
func (l *Ledger) settleOwner(ctx context.Context, id string) ([]Settlement, error) {
	var settled []Settlement
	err := l.tx.run(func(t *txn) error {
		settled = nil
		cmds, err := t.openIntents(id)
		if err != nil {
			return err
		}
		at := micros(l.now())
		for _, s := range l.judge(t, cmds) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.Temp != "" && l.o.RemoveTemp != nil {
				if err := l.o.RemoveTemp(s.Temp); err != nil {
					s.Reason += fmt.Sprintf("; its temp file %s could not be removed: %v", s.Temp, err)
				}
			}
			if err := t.settle(&s, at); err != nil {
				return err
			}
			settled = append(settled, s)
		}
		return t.interruptRuns(id, at)
	})
	if err != nil {
		return nil, err
	}
	for i := range settled {
		s := &settled[i]
		l.log.Info("ledger: settled after a crash", "command", s.Key.String(), "tool", s.Tool, "path", s.Path, "status", string(s.Status), "reason", s.Reason)
	}
	return settled, nil
}

func (t *txn) openIntents(owner string) ([]*Command, error) {
	rows, err := t.query(commandQuery+" WHERE c.status = 'intent' AND c.owner = ? AND c.n > "+openMark+" ORDER BY c.n", owner)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cmds []*Command
	for rows.Next() {
		c := new(Command)
		if err := scanCommand(rows, c); err != nil {
			return nil, err
		}
		cmds = append(cmds, c)
	}
	return cmds, rows.Err()
}

// judge looks at the files and decides, in the order of the commands.
func (l *Ledger) judge(t *txn, cmds []*Command) []Settlement {
	out := make([]Settlement, len(cmds))
	for i, c := range cmds {
		out[i].Command = *c
		out[i].Recovered = true
	}
	for i, c := range cmds {
		if out[i].Reason != "" {
			continue // with an earlier one of its series
		}
		series := seriesFrom(cmds, i)
		if len(series) < 2 {
			out[i].Status, out[i].Reason = l.judgeOne(t, c)
			continue
		}
		linked := make([]*Command, len(series))
		for j, k := range series {
			linked[j] = cmds[k]
		}
		statuses, reasons := l.judgeSeries(linked)
		for j, k := range series {
			out[k].Status, out[k].Reason = statuses[j], reasons[j]
		}
	}
	return out
}

func (l *Ledger) judgeSeries(linked []*Command) ([]Status, []string) {
	at, err := look(l.o.Probe, linked[0].Abs)
	if err == nil {
		return decideSeries(linked, at)
	}
	statuses, reasons := make([]Status, len(linked)), make([]string, len(linked))
	for i := range linked {
		statuses[i], reasons[i] = StatusUncertain, err.Error()
	}
	return statuses, reasons
}

// seriesFrom lists the intents for the text of one path that link up, from i.
func seriesFrom(cmds []*Command, i int) []int {
	series := []int{i}
	last := cmds[i]
	if !textual(last) {
		return series
	}
	for j := i + 1; j < len(cmds); j++ {
		if c := cmds[j]; textual(c) && c.Abs == last.Abs && c.BeforeHash == last.AfterHash {
			series = append(series, j)
			last = c
		}
	}
	return series
}

func (l *Ledger) judgeOne(t *txn, c *Command) (Status, string) {
	var at, dest found
	var err error
	if c.Abs != "" && c.Tool != "tf-read" && c.Tool != "tf-bash" {
		at, err = look(l.o.Probe, c.Abs)
		if err == nil && c.AbsDest != "" {
			dest, err = look(l.o.Probe, c.AbsDest)
		}
	}
	if err != nil {
		return StatusUncertain, err.Error()
	}
	s, why := decide(c, at, dest)
	if s == StatusUncertain && textual(c) && c.AfterHash != c.BeforeHash {
		// A later command of another owner may have found its result.
		var ok bool
		if ok, err = t.laterFound(c, c.AfterHash); err == nil && ok {
			return StatusApplied, name(c.Path, c.Abs) + " had the text of after it when a later command changed it"
		}
	}
	if err != nil {
		l.log.Warn("ledger: settling", "err", err)
	}
	return s, why
}

// laterFound tells whether a later command that was applied began with hash.
func (t *txn) laterFound(c *Command, hash string) (bool, error) {
	var n int64
	return t.one(`SELECT c.n FROM commands c JOIN events i ON i.seq = c.intent_row
		WHERE c.n > ? AND c.path = ? AND c.status IN ('applied', 'undone', 'rolled_back')
		AND json_extract(i.body, '$.abs') = ? AND json_extract(i.body, '$.before_hash') = ? ORDER BY c.n LIMIT 1`,
		[]any{c.N, c.Path, c.Abs, hash}, &n)
}

// settle writes one decision.
func (t *txn) settle(s *Settlement, at int64) error {
	s.Error = s.Reason
	when := fromMicros(at)
	s.OutcomeAt = &when
	p, err := t.find(s.Key)
	if err != nil {
		return err
	}
	if p.n != s.N || p.status != StatusIntent {
		return errors.New("the intent changed meanwhile")
	}
	s.LastEvent = t.next()
	return t.setStatus(s.Key, p, s.Status, row{at: at, typ: EventSettled,
		body: body(outcomeBody{Key: s.Key, Status: s.Status, Recovered: true, Error: s.Reason})})
}

// openMark is the number up to which no command is an open intent. It spares
// an index that every command would have to keep up to date.
const openMark = "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'open_mark'), 0)"

// raiseMark brings the mark forward; it is done when nobody waits.
func (t *txn) raiseMark() error {
	_, err := t.exec(`INSERT OR REPLACE INTO meta (key, value) SELECT 'open_mark', coalesce(
		(SELECT min(n) - 1 FROM commands WHERE status = 'intent' AND n > ` + openMark + `),
		(SELECT max(n) FROM commands), 0)`)
	return err
}

// lowerMark makes sure that an old command that becomes an intent is found.
func (t *txn) lowerMark(n int64) error {
	_, err := t.exec("UPDATE meta SET value = ?1 - 1 WHERE key = 'open_mark' AND CAST(value AS INTEGER) >= ?1", n)
	return err
}

// interruptRuns ends the runs that a dead owner left running.
func (t *txn) interruptRuns(owner string, at int64) error {
	rows, err := t.query("SELECT n FROM runs WHERE ended IS NULL AND owner = ? ORDER BY n", owner)
	if err != nil {
		return err
	}
	var runs []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			_ = rows.Close()
			return err
		}
		runs = append(runs, n)
	}
	_ = rows.Close()
	if err := rows.Err(); err != nil {
		return err
	}
	const reason = "ThinkFlow ended before the run did"
	b := body(endBody{State: RunInterrupted, Reason: reason})
	for _, n := range runs {
		if err := t.endRun(n, at, RunInterrupted, reason, nil, b); err != nil {
			return err
		}
	}
	return nil
}
