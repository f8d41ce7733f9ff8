package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"thinkflow/ledger"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

func modeOf(m uint32) fs.FileMode { return fs.FileMode(m) }

// load brings into the trackers what the selection needs and this process does
// not know: proposals of earlier processes, and the run's changes, which are
// worked out from the ledger and the files as they are.
func (e *Engine) load(ctx context.Context, sel *Selection) ([]Problem, error) {
	if err := e.loadStaged(ctx); err != nil {
		return nil, err
	}
	if err := e.fullRun(ctx, sel); err != nil {
		return nil, err
	}
	run := sel.Run
	if sel.Command != "" {
		run, _, _ = strings.Cut(sel.Command, "/")
	}
	v := e.review
	v.mu.Lock()
	known := run == "" || v.loaded[run] || v.sessions[run] != nil
	v.loaded[run] = true
	v.mu.Unlock()
	if known {
		return nil, nil
	}
	led, err := e.openLedger()
	if err != nil {
		return nil, err
	}
	rows, err := led.List(ctx, ledger.Filter{Run: run})
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(c ledger.Command) bool { return !effective(&c) })
	if len(rows) == 0 {
		return nil, nil
	}
	p := newUndoPlan(ctx, e, led, rows)
	p.effectsOn("") // loads
	kept, err := keptCommands(p)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	seen := map[string]bool{}
	for i := range rows {
		path := rows[i].Abs
		if rows[i].AbsDest != "" {
			path = rows[i].AbsDest
		}
		if seen[path] {
			continue
		}
		seen[path] = true
		problems = append(problems, e.loadFile(p, path, kept)...)
	}
	return problems, nil
}

// fullRun makes the id of a run of the beginning of one, or of "last".
func (e *Engine) fullRun(ctx context.Context, sel *Selection) error {
	v := e.review
	v.mu.Lock()
	known := sel.Run == "" || v.sessions[sel.Run] != nil
	v.mu.Unlock()
	if known {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return err
	}
	run, err := led.FindRun(ctx, sel.Run)
	sel.Run = run.ID
	return err
}

// keptCommands are those effects of a plan's files of which a person kept all.
func keptCommands(p *undoPlan) (map[string]bool, error) {
	var numbers []int64
	for _, rows := range p.rows {
		for i := range rows {
			numbers = append(numbers, rows[i].N)
		}
	}
	events, err := p.led.Reviews(p.ctx, numbers)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, ev := range events {
		var r struct {
			ledger.Key
			ledger.Review
		}
		if json.Unmarshal(ev.Body, &r) == nil && r.Action == ledger.ReviewKeep && len(r.Hunks) == 0 {
			out[r.Key.String()] = true
		}
	}
	return out, nil
}

// loadFile works a file's history out backwards, from the text as it is, and
// tells it to the tracker forwards. What cannot be found again in the text is a
// problem; it counts as the person's.
func (e *Engine) loadFile(p *undoPlan, path string, kept map[string]bool) []Problem {
	unlock := e.locks.lock([]string{path})
	defer unlock()
	if e.review.live.Revision(path) != 0 {
		return nil // this process knows better
	}
	text, exists, ok := e.textNow(path)
	if !ok {
		return nil
	}
	var problems []Problem
	var steps []review.Applied
	rows := p.touching(path)
walk:
	for i := range slices.Backward(rows) {
		c := &rows[i]
		data, err := p.led.Blob(p.ctx, c.UndoBlob)
		if err != nil {
			break
		}
		u, err := workspace.DecodeUndo(data)
		if err != nil {
			break
		}
		key := c.Key.String()
		if c.Tool == toolUndo || c.Tool == toolRollback {
			key = ""
		}
		if c.Tool == toolAccept || kept[key] {
			key = keptKey
		}
		step := review.Applied{Key: key, Kind: u.Kind, Path: path, After: text}
		switch u.Kind {
		case workspace.ChangeModify:
			if c.Abs != path || !exists {
				continue
			}
			edits, found := u.Edits, workspace.HashText(text) == u.AfterHash
			if u.Whole && found {
				edits = workspace.DiffText(text, u.Text)
			} else if !found {
				edits, found = u.Locate(text)
			}
			before, err := workspace.ApplyEdits(text, edits)
			if !found || err != nil {
				if key != "" && key != keptKey {
					problems = append(problems, Problem{Path: e.display(path), Command: key, Reason: "the text has changed since; what this command put there is not found as it was"})
				}
				continue
			}
			step.Before, step.Edits = before, workspace.InvertEdits(text, edits)
			text = before
		case workspace.ChangeCreate, workspace.ChangeCopy:
			if !exists {
				continue
			}
			step.Dest = path
			steps = append(steps, step)
			break walk
		case workspace.ChangeDelete:
			if exists || c.Abs != path {
				continue
			}
			step.Before, step.Mode, step.Link = u.Text, u.Mode.Perm(), u.Link
			text, exists = u.Text, true
		case workspace.ChangeMove:
			if u.Dest != path || u.AfterHash == workspace.HashDir {
				continue
			}
			step.Path, step.Dest, step.Before = u.Path, u.Dest, text
			path = u.Path
			rows = nil
			steps = append(steps, step)
			more := p.touching(path)
			more = slices.DeleteFunc(more, func(r ledger.Command) bool { return r.N >= c.N })
			steps = append(steps, e.earlier(p, more, path, text, kept)...)
			break walk
		default:
			continue
		}
		steps = append(steps, step)
	}
	e.replay(steps)
	return problems
}

// keptKey stands for what waits no longer when a history is told again.
const keptKey = "\x00kept"

// earlier is the part of a history before a move.
func (e *Engine) earlier(p *undoPlan, rows []ledger.Command, path, text string, kept map[string]bool) []review.Applied {
	var steps []review.Applied
	for i := range slices.Backward(rows) {
		c := &rows[i]
		data, err := p.led.Blob(p.ctx, c.UndoBlob)
		if err != nil {
			return steps
		}
		u, err := workspace.DecodeUndo(data)
		key := c.Key.String()
		if c.Tool == toolUndo || c.Tool == toolRollback {
			key = ""
		}
		if c.Tool == toolAccept || kept[key] {
			key = keptKey
		}
		switch {
		case err != nil:
			return steps
		case u.Kind == workspace.ChangeModify && c.Abs == path:
			edits, found := u.Edits, workspace.HashText(text) == u.AfterHash
			if !found {
				edits, found = u.Locate(text)
			}
			before, err := workspace.ApplyEdits(text, edits)
			if !found || err != nil {
				continue
			}
			steps = append(steps, review.Applied{Key: key, Kind: u.Kind, Path: path, Before: before, After: text, Edits: workspace.InvertEdits(text, edits)})
			text = before
		case u.Kind == workspace.ChangeCreate || u.Kind == workspace.ChangeCopy:
			return append(steps, review.Applied{Key: key, Kind: u.Kind, Path: path, Dest: path, After: text})
		}
	}
	return steps
}

// replay tells a history, newest first, to the tracker. What was kept is told as
// a person's.
func (e *Engine) replay(steps []review.Applied) {
	tr := e.review.live
	for _, s := range slices.Backward(steps) {
		if s.Key != keptKey {
			tr.Agent(s)
			continue
		}
		path := s.Path
		if s.Dest != "" {
			path = s.Dest
		}
		switch s.Kind {
		case workspace.ChangeModify:
			tr.Sync(path, s.After, true)
		case workspace.ChangeDelete:
			tr.Sync(s.Path, "", false)
		}
	}
}

// touching lists all recorded effects that have to do with a path, from the
// first one on that the plan is about, oldest first.
func (p *undoPlan) touching(path string) []ledger.Command {
	p.effectsOn(path) // loads
	var out []ledger.Command
	for _, rows := range p.rows {
		for _, r := range rows {
			if r.Abs == path || r.AbsDest == path {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b ledger.Command) int { return int(a.N - b.N) })
	return out
}

// loadStaged brings back the proposals of earlier processes, once.
func (e *Engine) loadStaged(ctx context.Context) error {
	v := e.review
	v.mu.Lock()
	ready := v.ready
	v.ready = true
	v.mu.Unlock()
	if ready {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return err
	}
	rows, err := led.List(ctx, ledger.Filter{Status: []ledger.Status{ledger.StatusStaged}})
	if err != nil {
		return err
	}
	for i := range rows {
		c := &rows[i]
		if c.UndoBlob == "" {
			continue // it waits for an answer, not for review
		}
		if err := e.loadProposal(ctx, led, c); err != nil {
			e.notice(fmt.Sprintf("the proposal %s (%s %s) cannot be shown: %v", c.Key, c.Tool, c.Path, err))
		}
	}
	e.showStaged()
	return nil
}

// loadProposal adds one recorded proposal to the tracker.
func (e *Engine) loadProposal(ctx context.Context, led *ledger.Ledger, c *ledger.Command) error {
	if e.tracksKey(c.Key.String()) {
		return nil
	}
	if c.Content == "" && c.AfterHash != workspace.HashDir {
		return fmt.Errorf("its text was purged")
	}
	data, err := led.Blob(ctx, c.Content)
	if err != nil {
		return err
	}
	_, data, err = splitStaged(data)
	if err != nil {
		return err
	}
	u, err := workspace.DecodeUndo(data)
	if err != nil {
		return err
	}
	v := e.review
	now := func(path string) (text string, exists, known bool) {
		if text, exists, ok := v.staged.Text(path); ok {
			return text, exists, true
		}
		if v.staged.Claimed(path) {
			return "", false, true
		}
		return e.textNow(path)
	}
	text, exists, known := now(u.Path)
	a := review.Applied{Key: c.Key.String(), Kind: u.Kind, Path: u.Path, Dest: u.Dest, Before: text, Mode: u.Mode.Perm(), Link: u.Link, Opaque: !known}
	switch u.Kind {
	case workspace.ChangeModify:
		if !exists {
			return fmt.Errorf("the file is not there any more")
		}
		edits, ok := u.Edits, workspace.HashText(text) == u.AfterHash
		if !ok {
			edits, ok = u.Locate(text)
		}
		if !ok {
			return fmt.Errorf("the text has changed since, and its places are not found")
		}
		if a.After, err = workspace.ApplyEdits(text, edits); err != nil {
			return err
		}
		a.Edits = edits
	case workspace.ChangeCreate:
		a.After = u.Text
		if exists {
			a.Kind, a.Edits = workspace.ChangeModify, workspace.DiffText(text, u.Text)
		}
	case workspace.ChangeCopy:
		a.After = u.Text
	case workspace.ChangeDelete, workspace.ChangeMove:
		if !exists {
			return fmt.Errorf("the file is not there any more")
		}
	case workspace.ChangeMkdir:
		v.mu.Lock()
		v.dirs = append(v.dirs, stagedDir{u.Path, c.Key.String()})
		v.mu.Unlock()
		return nil
	default:
		return nil
	}
	v.staged.Agent(a)
	return nil
}

func (e *Engine) tracksKey(key string) bool {
	for _, path := range e.review.staged.Paths() {
		for _, c := range e.review.staged.Changes(path) {
			if slices.Contains(c.Keys, key) {
				return true
			}
		}
	}
	return false
}
