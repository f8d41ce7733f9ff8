package agent

import (
	"context"
	"errors"
	"strings"
	"sync"

	"thinkflow/ledger"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// reviewer knows what of the agent's work waits for a person.
type reviewer struct {
	live   *review.Tracker // applied
	staged *review.Tracker // proposed; the base is the real file

	mu       sync.Mutex // guards all below
	sessions map[string]*session
	fate     map[string]*fate // by command key
	told     map[string]string
	loaded   map[string]bool // runs that were looked up in the ledger
	shown    map[string]bool // paths that the overlay covers
	dirs     []stagedDir
	ready    bool // proposals of earlier processes were loaded
}

// fate is what people decided about the hunks of one command.
type fate struct{ kept, undone bool }

func newReviewer() *reviewer {
	return &reviewer{
		live: review.NewTracker(), staged: review.NewTracker(), sessions: map[string]*session{},
		fate: map[string]*fate{}, told: map[string]string{}, loaded: map[string]bool{}, shown: map[string]bool{},
	}
}

// decide adds a decision about hunks of a command to those before, and returns
// all of them.
func (v *reviewer) decide(key string, kept, undone bool) fate {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.fate[key]
	if f == nil {
		f = &fate{}
		v.fate[key] = f
	}
	f.kept = f.kept || kept
	f.undone = f.undone || undone
	return *f
}

// waitingKeys are the commands of which something still waits.
func waitingKeys(tr *review.Tracker) map[string]bool {
	out := map[string]bool{}
	for _, path := range tr.Paths() {
		for _, c := range tr.Changes(path) {
			for _, k := range c.Keys {
				out[k] = true
			}
		}
	}
	return out
}

// begin notes whose run it is.
func (v *reviewer) begin(run string, s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions[run] = s
}

func (v *reviewer) tracker(staged bool) *review.Tracker {
	if staged {
		return v.staged
	}
	return v.live
}

func (e *Engine) display(abs string) string {
	t, err := e.under.Resolve(abs, workspace.AccessDelete)
	if err != nil {
		return abs
	}
	return t.Display
}

// textNow is the file as it is: the buffer where there is one. ok is false for
// what is no text.
func (e *Engine) textNow(abs string) (text string, exists, ok bool) {
	t, err := e.under.Resolve(abs, workspace.AccessRead)
	if err != nil || t.IsDir {
		return "", false, false
	}
	s, err := e.under.Snapshot(t)
	if err != nil {
		return "", false, false
	}
	return s.Text, s.Exists, true
}

// syncReview takes in what people did to the file since. The path is locked.
func (e *Engine) syncReview(abs string, staged bool) {
	real := abs
	if staged {
		if origin := e.review.staged.Origin(abs); origin != "" {
			real = origin // where it is until the move is accepted
		}
	}
	text, exists, ok := e.textNow(real)
	if !ok {
		return
	}
	if staged {
		e.review.staged.SyncBase(abs, text, exists)
		e.showStaged()
		return
	}
	e.review.live.Sync(abs, text, exists)
}

// tracked is a planned change as the trackers take it.
func tracked(key string, ch *workspace.Change) review.Applied {
	a := review.Applied{
		Key: key, Kind: ch.Kind, Path: ch.Target.Abs, Before: ch.Before.Text, After: ch.After(), Edits: ch.Edits,
		Mode: ch.Before.Mode.Perm(), Link: ch.Link(),
	}
	if ch.Dest != nil {
		a.Dest = ch.Dest.Abs
	}
	return a
}

// trackApplied notes a change that a command (key "": nobody's) has made. The
// paths are locked.
func (e *Engine) trackApplied(key string, ch *workspace.Change) {
	a := tracked(key, ch)
	if ch.Kind == workspace.ChangeMove {
		if ch.AfterHash == workspace.HashDir {
			e.review.live.MoveFolder(a.Path, a.Dest, key)
			return
		}
		var known bool
		a.Before, _, known = e.textNow(a.Dest)
		a.Opaque = !known
	}
	e.review.live.Agent(a)
}

// Keep ends the wait of changes: they are the person's own from now on.
// Proposals are accepted: written to their files.
func (e *Engine) Keep(ctx context.Context, sel Selection) (Reviewed, error) {
	var res Reviewed
	err := e.within(ctx, &sel, &res, func(g *group) error {
		if g.staged {
			keys, err := e.accept(ctx, g, sel.By)
			res.Undo = append(res.Undo, keys...)
			return err
		}
		if err := e.review.live.Keep(g.abs, g.ids()...); err != nil {
			return err
		}
		e.decided(g, "keep", sel.By)
		return nil
	})
	if err == nil {
		err = e.acceptDirs(ctx, &sel, &res)
	}
	return res, errors.Join(err, e.flushDecision(ctx, &res))
}

// Undo takes changes back: by hunk or file as they stand, by command or run as
// the ledger has them, in whatever process they were made. Proposals are
// rejected. An undo is recorded like any change and can be undone.
func (e *Engine) Undo(ctx context.Context, sel Selection) (Reviewed, error) {
	if sel.Command != "" || sel.Run != "" {
		res, err := e.undoRecorded(ctx, sel)
		return res, errors.Join(err, e.flushDecision(ctx, &res))
	}
	var res Reviewed
	id := NewID()
	err := e.within(ctx, &sel, &res, func(g *group) error {
		if g.staged {
			return e.reject(g, sel.By)
		}
		keys, err := e.undoHunks(ctx, g, id, len(res.Undo))
		res.Undo = append(res.Undo, keys...)
		if err != nil {
			return err
		}
		e.decided(g, "undo", sel.By)
		return nil
	})
	return res, errors.Join(err, e.flushDecision(ctx, &res))
}

// undoHunks changes the file so that the hunks are gone.
func (e *Engine) undoHunks(ctx context.Context, g *group, id string, n int) (undo []string, err error) {
	actions, err := e.review.live.Undo(g.abs, g.ids()...)
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		ch, err := e.planAction(&a)
		if err != nil {
			return undo, err
		}
		key := ledger.Key{Run: runOf(g.keys()), Channel: "undo." + id, ID: n + len(undo) + 1}
		if err := e.perform(ctx, key, toolUndo, ch, g.keys()); err != nil {
			return undo, err
		}
		undo = append(undo, key.String())
		e.trackApplied("", ch)
	}
	return undo, nil
}

// planAction plans what an action of a tracker asks for.
func (e *Engine) planAction(a *review.Action) (*workspace.Change, error) {
	switch a.Kind {
	case review.KindMove:
		return e.under.Plan(workspace.Op{Kind: workspace.OpMove, Path: a.Path, Dest: a.Dest, AllowSecret: true})
	case review.KindDelete:
		return e.under.Plan(workspace.Op{Kind: workspace.OpDelete, Path: a.Path, AllowSecret: true})
	case review.KindCreate:
		return e.under.PlanCreate(a.Path, a.Text, a.Link, a.Mode)
	}
	text, _, _ := e.textNow(a.Path)
	return e.under.PlanEdits(a.Path, workspace.HashText(text), a.Edits)
}

// runOf is the run that the first key names.
func runOf(keys []string) string {
	if len(keys) == 0 {
		return "review"
	}
	run, _, _ := strings.Cut(keys[0], "/")
	return run
}
