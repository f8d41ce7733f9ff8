package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// Proposals (setting review: before). A command is planned against the overlay,
// which shows all proposals made so far, and goes into the tracker of proposals
// and into the ledger as staged, with its own text. Nothing reaches a file or a
// document before a person accepts it.

// stagedDir is a folder that was proposed.
type stagedDir struct{ abs, key string }

// stages says that the command becomes a proposal: reviews come before, or its
// file holds proposals already.
func (r *run) stages(targets []workspace.Target) bool {
	if r.dryRun {
		return false
	}
	return r.cfg.Review == config.ReviewBefore || slices.ContainsFunc(targets, func(t workspace.Target) bool { return r.e.ws.Staged(t.Abs) })
}

// prepareStage brings the proposals of earlier processes and what people did to
// the files meanwhile before the overlay. The paths are locked.
func (r *run) prepareStage(targets []workspace.Target) {
	if err := r.e.loadStaged(context.WithoutCancel(r.ctx)); err != nil {
		r.e.log.Warn("earlier proposals could not be loaded", "err", err)
	}
	for _, t := range targets {
		r.e.syncReview(t.Abs, true)
	}
}

// stageCommand records a planned change as a proposal.
func (t *turn) stageCommand(c *parser.Command, o outcome, key ledger.Key, ch *workspace.Change, flow ledger.Flow) error {
	led, err := t.r.ledger()
	if err != nil {
		return err
	}
	in := t.r.intentOf(key, c, ch, flow)
	in.Staged, in.Temp = true, ""
	if redo := ch.Redo(); t.r.e.redact.Holds(append(editTexts(redo.Edits), redo.Text)...) {
		in.Content = nil // a key is kept nowhere: this proposal ends with the process
	} else {
		in.Content = encodeStaged(in.Content, redo.Encode())
	}
	if err := led.Intent(t.r.effectCtx(), in); err != nil {
		return fmt.Errorf("the ledger could not record it, so it was not proposed: %w", err)
	}
	t.r.e.trackStaged(key.String(), ch)
	return nil
}

// trackStaged adds a planned change to the proposals.
func (e *Engine) trackStaged(key string, ch *workspace.Change) {
	v := e.review
	a := tracked(key, ch)
	switch ch.Kind {
	case workspace.ChangeMkdir:
		v.mu.Lock()
		v.dirs = append(v.dirs, stagedDir{ch.Target.Abs, key})
		v.mu.Unlock()
		return
	case workspace.ChangeMove:
		if text, exists, ok := v.staged.Text(a.Path); ok && exists {
			a.Before = text
		} else {
			var known bool
			a.Before, _, known = e.textNow(a.Path)
			a.Opaque = !known
		}
	case workspace.ChangeDelete:
		_, _, known := e.textNow(a.Path)
		_, _, proposed := v.staged.Text(a.Path)
		a.Opaque = !known && !proposed
	}
	v.staged.Agent(a)
	e.showStaged()
}

// showStaged makes the overlay show the proposals.
func (e *Engine) showStaged() {
	v := e.review
	v.mu.Lock()
	defer v.mu.Unlock()
	type state struct {
		text   string
		exists bool
	}
	now := map[string]state{}
	for _, path := range v.staged.Paths() {
		text, exists, _ := v.staged.Text(path)
		now[path] = state{text, exists}
		for _, c := range v.staged.Changes(path) {
			if _, taken := now[c.From]; c.From != "" && !taken {
				now[c.From] = state{}
			}
		}
	}
	for path := range v.shown {
		if _, ok := now[path]; !ok {
			e.ws.Unstage(path)
			delete(v.shown, path)
		}
	}
	for path, s := range now {
		e.ws.Stage(path, s.text, s.exists)
		v.shown[path] = true
	}
}

// accept writes proposals to their file. The path is locked.
func (e *Engine) accept(ctx context.Context, g *group, by string) (undo []string, err error) {
	actions, err := e.review.staged.Accept(g.abs, g.ids()...)
	if err != nil {
		return nil, err
	}
	// A move comes first: the lines are those of the file in its new place.
	slices.SortStableFunc(actions, func(a, b review.Action) int {
		switch {
		case a.Kind == b.Kind:
			return 0
		case a.Kind == review.KindMove:
			return -1
		case b.Kind == review.KindMove:
			return 1
		}
		return 0
	})
	id := NewID()
	for i := range actions {
		a := &actions[i]
		if a.Kind == review.KindEdit {
			if a.Path, err = e.realPath(g, actions); err != nil {
				return undo, err
			}
		}
		ch, err := e.planAction(a)
		if err != nil {
			return undo, err
		}
		key := ledger.Key{Run: runOf(g.keys()), Channel: "accept." + id, ID: i + 1}
		if err := e.perform(ctx, key, toolAccept, ch, g.keys()); err != nil {
			return undo, err
		}
		if ch.Kind != workspace.ChangeNone {
			undo = append(undo, key.String())
		}
	}
	if err := e.review.staged.Keep(g.abs, g.ids()...); err != nil {
		return undo, err
	}
	e.showStaged()
	e.settleProposals(g, "accept", by)
	return undo, nil
}

// realPath is where the lines of a proposal belong now: a move that was not
// accepted leaves the file where it was.
func (e *Engine) realPath(g *group, actions []review.Action) (string, error) {
	for _, c := range e.review.staged.Changes(g.abs) {
		if c.Kind == review.KindMove && !slices.ContainsFunc(actions, func(a review.Action) bool { return a.Kind == review.KindMove }) {
			return c.From, nil
		}
	}
	return g.abs, nil
}

// reject drops proposals. The path is locked.
func (e *Engine) reject(g *group, by string) error {
	tr := e.review.staged
	actions, err := tr.Undo(g.abs, g.ids()...)
	if err != nil {
		return err
	}
	if len(g.ids()) == len(tr.Changes(g.abs)) { // nothing of it stays: no matter what stands in its way
		tr.Forget(g.abs)
		actions = nil
	}
	for _, a := range actions {
		text, _, _ := tr.Text(a.Path)
		switch a.Kind {
		case review.KindEdit:
			after, err := workspace.ApplyEdits(text, a.Edits)
			if err != nil {
				return err
			}
			tr.Agent(review.Applied{Kind: workspace.ChangeModify, Path: a.Path, Before: text, After: after, Edits: a.Edits})
		case review.KindDelete:
			tr.Agent(review.Applied{Kind: workspace.ChangeDelete, Path: a.Path, Before: text})
		case review.KindCreate:
			tr.Agent(review.Applied{Kind: workspace.ChangeCreate, Path: a.Path, After: a.Text})
		case review.KindMove:
			tr.Agent(review.Applied{Kind: workspace.ChangeMove, Path: a.Path, Dest: a.Dest, Before: text})
		}
	}
	e.showStaged()
	e.settleProposals(g, "reject", by)
	return nil
}

// settleProposals records the decision, and the end of commands of which
// nothing is proposed any more.
func (e *Engine) settleProposals(g *group, action, by string) {
	waiting := waitingKeys(e.review.staged)
	led, err := e.openLedger()
	for _, k := range g.keys() {
		all := e.review.decide(k, action == "accept", action == "reject")
		key, perr := ParseKey(k)
		if perr != nil || err != nil {
			continue
		}
		e.noteLedger(led.Review(key, ledger.Review{Action: action, Path: e.display(g.abs), Hunks: g.names(), By: by}))
		if waiting[k] {
			continue
		}
		out := ledger.Outcome{Key: key, Status: ledger.StatusRejected, Code: codeRejected, Error: "the user rejected it"}
		if all.kept {
			out = ledger.Outcome{Key: key, Status: ledger.StatusApplied, Code: codeAccepted}
			if all.undone {
				out.Notes = []string{"accepted in part"}
			}
		}
		e.noteLedger(led.Outcome(out))
	}
	e.tellDecision(g, action)
}

// acceptDirs makes the proposed folders that a selection of commands means.
func (e *Engine) acceptDirs(ctx context.Context, sel *Selection, res *Reviewed) error {
	v := e.review
	v.mu.Lock()
	var mine, rest []stagedDir
	for _, d := range v.dirs {
		c := review.Change{Path: d.abs, Hunk: review.Hunk{Keys: []string{d.key}}}
		if len(sel.Hunks) == 0 && sel.takes(&c) {
			mine = append(mine, d)
		} else {
			rest = append(rest, d)
		}
	}
	v.dirs = rest
	v.mu.Unlock()
	for i, d := range mine {
		err := func() error {
			unlock := e.locks.lock([]string{d.abs})
			defer unlock()
			ch, err := e.under.Plan(workspace.Op{Kind: workspace.OpMkdir, Path: d.abs})
			if err != nil {
				return err
			}
			return e.perform(ctx, ledger.Key{Run: runOf([]string{d.key}), Channel: "accept." + NewID(), ID: i + 1}, toolAccept, ch, []string{d.key})
		}()
		if err != nil {
			res.Problems = append(res.Problems, Problem{Path: e.display(d.abs), Reason: err.Error()})
			continue
		}
		res.Files = append(res.Files, e.display(d.abs))
		if key, perr := ParseKey(d.key); perr == nil {
			if led, err := e.openLedger(); err == nil {
				e.noteLedger(led.Outcome(ledger.Outcome{Key: key, Status: ledger.StatusApplied, Code: codeAccepted}))
			}
		}
	}
	return nil
}

// proposed counts the files in which proposals wait.
func (e *Engine) proposed() int { return len(e.review.staged.Paths()) }

// acceptAndRun asks whether proposals may be accepted so that a shell command
// sees them.
func (r *run) acceptAndRun(at ledger.Key, n int, cmd, hash string) permit {
	rule := fmt.Sprintf("accept %s and run", plural(n, "changed file"))
	none := permit{code: codePermission, message: fmt.Sprintf("not run: %s wait for the user's review and are not on disk, so the command would not see them, and nobody is there to accept them. Go on without it", plural(n, "changed file"))}
	if r.e.approver == nil {
		r.refuse("a shell command needs the proposed changes: accept them (thinkflow review) and run it again, or use review = \"after\"", false)
		return none
	}
	ev := ApprovalEvent{ID: NewID(), Action: string(ActionBash), Target: cmd, Rule: rule, Hash: hash, Diff: r.e.proposalDiff()}
	d, err := r.ask(ev)
	r.recordAsked(at, ev, "accept", rule, d, err)
	switch {
	case r.ctx.Err() != nil:
		return permit{cancelled: true, message: "the run was cancelled while it waited for a permission"}
	case err != nil:
		return none
	case d != AllowOnce && d != AllowSession:
		return permit{code: codeRejected, message: "the user did not accept the changes that wait for review, so the command was not run; go on without it or ask what they want"}
	}
	res, err := r.e.Keep(r.effectCtx(), Selection{All: true, Staged: true, By: "bash"})
	if err == nil && len(res.Problems) > 0 {
		err = errors.New(res.Problems[0].Path + ": " + res.Problems[0].Reason)
	}
	if err != nil {
		return permit{code: codeWrite, message: "the changes could not be accepted, so the command was not run: " + err.Error()}
	}
	return permit{allowed: true}
}

// proposalDiff shows the proposals, bounded.
func (e *Engine) proposalDiff() string {
	var b strings.Builder
	for _, path := range e.review.staged.Paths() {
		base, _, _ := e.review.staged.Base(path)
		text, _, _ := e.review.staged.Text(path)
		b.WriteString(workspace.UnifiedDiff(e.display(path), e.display(path), base, text, eventDiff))
		if b.Len() > eventDiff {
			break
		}
	}
	return bound(b.String(), eventDiff)
}
