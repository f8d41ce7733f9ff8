package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"thinkflow/ledger"
	"thinkflow/workspace"
)

// undoRecorded takes back commands as the ledger has them, the last one first.
// It is worked out in memory before anything is done: per file all or nothing.
// Proposals among them are rejected.
func (e *Engine) undoRecorded(ctx context.Context, sel Selection) (Reviewed, error) {
	cmds, err := e.recorded(ctx, &sel)
	if err != nil {
		return Reviewed{}, err
	}
	var res Reviewed
	if !sel.Preview {
		staged := sel
		staged.Staged = true
		err := e.within(ctx, &staged, &res, func(g *group) error { return e.reject(g, sel.By) })
		if err != nil {
			return res, err
		}
	}
	more, err := e.undoCommands(ctx, cmds, sel.Preview, sel.By)
	more.Hunks += res.Hunks
	more.Files = append(res.Files, more.Files...)
	more.Commands = append(res.Commands, more.Commands...)
	more.Problems = append(res.Problems, more.Problems...)
	return more, err
}

// recorded lists the commands with an effect that a selection names.
func (e *Engine) recorded(ctx context.Context, sel *Selection) ([]ledger.Command, error) {
	led, err := e.openLedger()
	if err != nil {
		return nil, err
	}
	if sel.Command != "" {
		d, err := led.Show(ctx, sel.Command)
		if err != nil {
			return nil, err
		}
		sel.Command = d.Key.String()
		switch {
		case d.Status == ledger.StatusStaged:
			return nil, nil
		case d.Code == codeAccepted:
			return e.acceptedAs(ctx, led, d.Command)
		case d.Status != ledger.StatusApplied || d.UndoBlob == "":
			return nil, fmt.Errorf("command %s is %s: there is nothing to undo", d.Key, d.Status)
		}
		return []ledger.Command{d.Command}, nil
	}
	run, err := led.LookUpRun(ctx, sel.Run)
	if err != nil {
		return nil, err
	}
	sel.Run = run.ID
	all, err := led.List(ctx, ledger.Filter{Run: run.ID, Status: []ledger.Status{ledger.StatusApplied}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c ledger.Command) bool { return !effective(&c) || c.Tool == toolUndo || c.Tool == toolRollback }), nil
}

// toolRollback is how the ledger names what a rollback did.
const toolRollback = "rollback"

// effective reports whether the row stands for something that happened to files.
func effective(c *ledger.Command) bool {
	if c.UndoBlob == "" || c.Code == codeAccepted {
		return false
	}
	switch c.Status {
	case ledger.StatusApplied, ledger.StatusRolledBack, ledger.StatusUndone:
		return true
	}
	return false
}

// acceptedAs finds the records under which a proposal became real.
func (e *Engine) acceptedAs(ctx context.Context, led *ledger.Ledger, c ledger.Command) ([]ledger.Command, error) {
	rows, err := led.List(ctx, ledger.Filter{Run: c.Run, Tool: toolAccept, Status: []ledger.Status{ledger.StatusApplied}})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r ledger.Command) bool { return !slices.Contains(about(&r), c.Key.String()) }), nil
}

// about are the commands that an undo or accept is about, else the command.
func about(c *ledger.Command) []string {
	var a recordArgs
	if len(c.Args) > 0 && json.Unmarshal(c.Args, &a) == nil && len(a.Commands) > 0 {
		return a.Commands
	}
	return []string{c.Key.String()}
}

// undoCommands takes the commands back, newest first.
func (e *Engine) undoCommands(ctx context.Context, cmds []ledger.Command, preview bool, by string) (Reviewed, error) {
	res := Reviewed{}
	if len(cmds) == 0 {
		return res, nil
	}
	led, err := e.openLedger()
	if err != nil {
		return res, err
	}
	slices.SortFunc(cmds, func(a, b ledger.Command) int { return int(a.N - b.N) })
	var paths []string
	for i := range cmds {
		for _, p := range []string{cmds[i].Abs, cmds[i].AbsDest} {
			if p != "" {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	unlock := e.locks.lock(paths)
	defer unlock()
	for _, p := range paths {
		e.syncReview(p, false)
	}
	p := newUndoPlan(ctx, e, led, cmds)
	if err := p.work(); err != nil {
		return res, err
	}
	res.Problems = p.problems
	if preview {
		res.Effects, err = p.effects()
		return res, err
	}
	id := NewID()
	done := map[string]bool{} // paths
	for _, step := range p.steps() {
		key := ledger.Key{Run: cmds[len(cmds)-1].Run, Channel: "undo." + id, ID: len(res.Undo) + 1}
		commands := p.commandsOn(step.paths)
		ch, err := step.plan()
		if err == nil {
			err = e.perform(ctx, key, toolUndo, ch, commands)
		}
		if err != nil {
			res.Problems = append(res.Problems, Problem{Path: e.display(step.paths[0]), Reason: err.Error()})
			for _, path := range step.paths {
				p.fail(path)
			}
			continue
		}
		if ch.Kind != workspace.ChangeNone {
			res.Undo = append(res.Undo, key.String())
			e.trackApplied("", ch)
		}
		for _, path := range step.paths {
			done[path] = true
		}
	}
	for path := range done {
		res.Files = append(res.Files, e.display(path))
	}
	slices.Sort(res.Files)
	e.undone(led, p, &res, by)
	return res, nil
}

// undone marks the commands that were taken back, and brings those of which an
// undo was undone back to applied.
func (e *Engine) undone(led *ledger.Ledger, p *undoPlan, res *Reviewed, by string) {
	told := map[string][]string{}
	for i := range p.cmds {
		c := &p.cmds[i]
		if p.failed(c) {
			continue
		}
		status, action := ledger.StatusUndone, "undo"
		targets := about(c)
		if c.Tool == toolUndo {
			status, action = ledger.StatusApplied, "redo"
		}
		if c.Tool == toolUndo || c.Tool == toolAccept {
			e.noteLedger(led.Outcome(ledger.Outcome{Key: c.Key, Status: ledger.StatusUndone}))
		}
		for _, k := range targets {
			key, err := ParseKey(k)
			if err != nil || slices.Contains(res.Commands, k) {
				continue
			}
			now, err := led.Get(context.Background(), key)
			if err != nil || now.Status == status {
				continue
			}
			e.noteLedger(led.Review(key, ledger.Review{Action: action, Path: c.Path, By: by}))
			e.noteLedger(led.Outcome(ledger.Outcome{Key: key, Status: status, Code: now.Code}))
			res.Commands = append(res.Commands, k)
			told[key.Run] = append(told[key.Run], commandName(key, now.Tool)+" "+now.Path)
		}
		if c.Tool == toolUndo {
			continue
		}
	}
	e.review.mu.Lock()
	defer e.review.mu.Unlock()
	verb := "undid"
	if len(p.cmds) > 0 && p.cmds[0].Tool == toolUndo {
		verb = "brought back"
	}
	for run, list := range told {
		if s := e.review.sessions[run]; s != nil {
			s.addNote(bound(fmt.Sprintf("The user %s %s of yours: %s. Read the files before you change them again.\n", verb, plural(len(list), "command"), strings.Join(list, "; ")), decisionTotal))
		}
	}
}
