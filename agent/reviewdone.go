package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// Tools under which the ledger has what a person's decision did to files.
const (
	toolUndo   = "undo"
	toolAccept = "accept"
)

// codeAccepted marks a command whose effect stands under records of its own: it
// was proposed, and accepted hunk by hunk.
const codeAccepted = "accepted"

// recordArgs is what an undo or accept says about the commands that it is about.
type recordArgs struct {
	Commands []string `json:"commands"`
}

// perform does what a person asked for, the way every change goes: intent,
// effect (through the editor for open documents), outcome. The paths are locked.
func (e *Engine) perform(ctx context.Context, key ledger.Key, tool string, ch *workspace.Change, commands []string) error {
	if ch.Kind == workspace.ChangeNone {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return err
	}
	args, err := json.Marshal(recordArgs{commands})
	if err != nil {
		return err
	}
	via := ch.Open || e.throughEditor(ch)
	in := ledger.Intent{
		Key: key, Tool: tool, Path: ch.Target.Display, Abs: ch.Target.Abs, BeforeHash: ch.BeforeHash, AfterHash: ch.AfterHash,
		Flow: ledger.FlowBlocking, Via: ledger.ViaDisk, Risk: "review", Temp: ch.Temp, Undo: ch.Undo().Encode(),
		Secret: ch.Target.Secret, Args: args, Summary: strings.Join(commands[:min(len(commands), 5)], " "),
	}
	if via {
		in.Via = ledger.ViaEditor
	}
	if ch.Dest != nil {
		in.Dest, in.AbsDest = ch.Dest.Display, ch.Dest.Abs
	}
	if err := led.Intent(ctx, in); err != nil {
		return fmt.Errorf("the ledger could not record it, so it was not done: %w", err)
	}
	ctx = context.WithoutCancel(ctx) // what has begun comes to its end
	out := ledger.Outcome{Key: key, Status: ledger.StatusApplied, Added: ch.Added, Removed: ch.Removed, Notes: ch.Notes, Bytes: int64(len(ch.After()))}
	failed := e.carryOut(ctx, ch, via)
	var uncertain *uncertainError
	switch {
	case errors.As(failed, &uncertain):
		out.Status, out.Code, out.Error = ledger.StatusUncertain, codeUncertain, failed.Error()
	case failed != nil:
		out.Status, out.Code, out.Error = ledger.StatusFailed, codeWrite, failed.Error()
	}
	if err := led.Outcome(out); err != nil {
		e.log.Warn("ledger: outcome not recorded; it is settled when the ledger is next opened", "command", key.String(), "err", err)
	}
	return failed
}

// uncertainError: nobody knows whether the editor did it.
type uncertainError struct{ reason string }

func (u *uncertainError) Error() string { return u.reason }

// carryOut makes a planned change real.
func (e *Engine) carryOut(ctx context.Context, ch *workspace.Change, via bool) error {
	if !via {
		_, err := e.under.Commit(ctx, ch)
		return err
	}
	out := e.sendEdit(ctx, ch)
	switch out.Verdict {
	case EditApplied:
		return nil
	case EditUncertain:
		return &uncertainError{editReason(out)}
	case EditStale:
		return errors.New("the document changed while it was being edited; look at it and try again")
	}
	return errors.New(editReason(out))
}

// throughEditor says that everything goes through the editor (apply: editor).
func (e *Engine) throughEditor(ch *workspace.Change) bool {
	e.mu.Lock()
	all := e.cfg.Apply == config.ApplyEditor
	e.mu.Unlock()
	if !all || e.editor == nil {
		return false
	}
	return ch.Kind == workspace.ChangeCreate || ch.Kind == workspace.ChangeModify || ch.Kind == workspace.ChangeCopy
}

// ParseKey reads the form run/turn/channel/id.
func ParseKey(s string) (ledger.Key, error) {
	p := strings.Split(s, "/")
	if len(p) != 4 {
		return ledger.Key{}, fmt.Errorf("%q is not a command: write run/turn/channel/id", s)
	}
	turn, err1 := strconv.Atoi(p[1])
	id, err2 := strconv.Atoi(p[3])
	if err := errors.Join(err1, err2); err != nil || p[0] == "" {
		return ledger.Key{}, fmt.Errorf("%q is not a command: write run/turn/channel/id", s)
	}
	return ledger.Key{Run: p[0], Turn: turn, Channel: p[2], ID: id}, nil
}

// decided records what a person decided about hunks, marks commands of which
// nothing waits any more, and notes it for the model.
func (e *Engine) decided(g *group, action, by string) {
	waiting := waitingKeys(e.review.live)
	led, err := e.openLedger()
	for _, k := range g.keys() {
		all := e.review.decide(k, action == "keep", action == "undo")
		key, perr := ParseKey(k)
		if perr != nil || err != nil {
			continue
		}
		r := ledger.Review{Action: action, Path: e.display(g.abs), Hunks: g.names(), By: by}
		if !waiting[k] && action == "keep" && !all.undone {
			r.Hunks = nil // all of it
		}
		e.noteLedger(led.Review(key, r))
		if !waiting[k] && all.undone && !all.kept {
			e.noteLedger(led.Outcome(ledger.Outcome{Key: key, Status: ledger.StatusUndone}))
		}
	}
	e.tellDecision(g, action)
}

func (e *Engine) noteLedger(err error) {
	if err != nil {
		e.log.Warn("ledger: a decision was not recorded", "err", err)
	}
}

// Bounds of what the model is told about decisions, in bytes.
const (
	decisionDiff  = 600
	decisionTotal = 4 << 10
)

// tellDecision notes a decision for the next request of the sessions whose work
// it was.
func (e *Engine) tellDecision(g *group, action string) {
	verb := map[string]string{"keep": "kept", "undo": "undid", "accept": "accepted", "reject": "rejected"}[action]
	for s, changes := range e.bySession(g.changes) {
		var b strings.Builder
		fmt.Fprintf(&b, "The user %s %s in %s%s.", verb, plural(len(changes), "change"), e.display(g.abs), commandsOf(changes))
		if action == "undo" || action == "reject" {
			b.WriteString(" Do not make it again unless they ask.")
			for _, c := range changes {
				if c.Kind != review.KindEdit {
					fmt.Fprintf(&b, "\n    (%s of the file)", c.Kind)
					continue
				}
				b.WriteString("\n" + strings.TrimSuffix(indent(bound(signed("-", c.New)+signed("+", c.Old), decisionDiff), "    "), "\n"))
			}
		}
		s.addNote(bound(b.String()+"\n", decisionTotal))
	}
}

func (e *Engine) bySession(changes []review.Change) map[*session][]review.Change {
	v := e.review
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[*session][]review.Change{}
	for _, c := range changes {
		var seen []*session
		for _, k := range c.Keys {
			run, _, _ := strings.Cut(k, "/")
			if s := v.sessions[run]; s != nil && !slices.Contains(seen, s) {
				seen = append(seen, s)
				out[s] = append(out[s], c)
			}
		}
	}
	return out
}

// commandsOf names the commands as the model knows them: by their ids.
func commandsOf(changes []review.Change) string {
	var commands, calls []string
	for _, c := range changes {
		for _, k := range c.Keys {
			key, err := ParseKey(k)
			if err != nil {
				continue
			}
			list := &commands
			if cameNative(key) {
				list = &calls
			}
			if id := strconv.Itoa(key.ID); !slices.Contains(*list, id) && len(*list) < 8 {
				*list = append(*list, id)
			}
		}
	}
	var parts []string
	if len(commands) > 0 {
		parts = append(parts, "command "+strings.Join(commands, ", "))
	}
	if len(calls) > 0 {
		parts = append(parts, "call "+strings.Join(calls, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// signed puts a sign before each line.
func signed(sign, s string) string {
	if s == "" {
		return ""
	}
	return indent(s, sign)
}

// tellEdits notes what people changed inside of the session's own changes since
// the model was last told.
func (e *Engine) tellEdits(s *session) {
	v := e.review
	v.mu.Lock()
	mine := map[string]bool{}
	for run, have := range v.sessions {
		mine[run] = have == s
	}
	v.mu.Unlock()
	sel := Selection{All: true}
	for _, abs := range v.live.Paths() {
		if !slices.ContainsFunc(v.live.Changes(abs), func(c review.Change) bool { return mine[runOf(c.Keys)] }) {
			continue
		}
		f, ok := e.fileChanges(abs, false, &sel)
		if !ok {
			continue
		}
		for _, h := range f.Hunks {
			if !h.Edited || !mine[runOf(h.Commands)] {
				continue
			}
			v.mu.Lock()
			old, told := v.told[h.ID]
			v.told[h.ID] = workspace.HashText(h.New)
			v.mu.Unlock()
			if told && old == workspace.HashText(h.New) {
				continue
			}
			s.addNote(fmt.Sprintf("The user changed the text inside of your change in %s, lines %d-%d. It reads now:\n%s",
				f.Path, h.StartLine+1, max(h.StartLine+1, h.EndLine), bound(indent(bound(h.New, decisionDiff), "    "), decisionTotal)))
		}
	}
}

// ChangesEvent says that what waits in a file has changed; thinkflow/changes
// tells how.
type ChangesEvent struct {
	Path    string `json:"path"`
	Version int64  `json:"version"`
	Hunks   int    `json:"hunks"` // that wait in the file
	Staged  bool   `json:"staged,omitempty"`
}

// changesUpdated tells whoever watches the run.
func (r *run) changesUpdated(abs string, staged bool) {
	ev := r.e.changesIn(abs, staged)
	r.emit.emit(Event{Type: ChangesUpdated, Changes: &ev})
}

func (e *Engine) changesIn(abs string, staged bool) ChangesEvent {
	tr := e.review.tracker(staged)
	return ChangesEvent{Path: e.display(abs), Version: tr.Revision(abs), Hunks: len(tr.Changes(abs)), Staged: staged}
}

// ChangesIn is what waits in a file now, applied and proposed: for whoever shows
// it, after a decision that no run was part of.
func (e *Engine) ChangesIn(path string) []ChangesEvent {
	t, err := e.under.Resolve(path, workspace.AccessRead)
	if err != nil {
		return nil
	}
	return []ChangesEvent{e.changesIn(t.Abs, false), e.changesIn(t.Abs, true)}
}
