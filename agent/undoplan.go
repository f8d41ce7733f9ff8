package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"thinkflow/ledger"
	"thinkflow/workspace"
)

// pathState is one path in the plan of an undo.
type pathState struct {
	was, exists bool // before the undo; by now
	readable    bool // text is what is there
	text        string
	hash        string
	origin      string // path at which its content lies on disk; "" = made new
	before      string // text before the undo
	beforeHash  string
	mode        uint32
	link        string
	parents     []string // folders to remove with it
	order       int
}

// undoPlan works out what the files are without the commands.
type undoPlan struct {
	ctx      context.Context
	e        *Engine
	led      *ledger.Ledger
	cmds     []ledger.Command // oldest first
	undos    map[int64]workspace.Undo
	states   map[string]*pathState
	bad      map[string]bool // paths that could not be worked out
	dirs     []workspace.Undo
	problems []Problem
	rows     map[string][]ledger.Command // all effects, by path, once asked for
}

func newUndoPlan(ctx context.Context, e *Engine, led *ledger.Ledger, cmds []ledger.Command) *undoPlan {
	return &undoPlan{ctx: ctx, e: e, led: led, cmds: cmds, undos: map[int64]workspace.Undo{}, states: map[string]*pathState{}, bad: map[string]bool{}}
}

func (p *undoPlan) fail(path string) { p.bad[path] = true }

func (p *undoPlan) failed(c *ledger.Command) bool { return p.bad[c.Abs] || p.bad[c.AbsDest] }

// commandsOn are the commands, as people know them, that touched the paths.
func (p *undoPlan) commandsOn(paths []string) []string {
	var out []string
	for i := range p.cmds {
		c := &p.cmds[i]
		if slices.Contains(paths, c.Abs) || slices.Contains(paths, c.AbsDest) {
			for _, k := range about(c) {
				if !slices.Contains(out, k) {
					out = append(out, k)
				}
			}
		}
	}
	return out
}

func (p *undoPlan) problem(c *ledger.Command, format string, args ...any) {
	p.bad[c.Abs] = true
	if c.AbsDest != "" {
		p.bad[c.AbsDest] = true
	}
	p.problems = append(p.problems, Problem{Path: c.Path, Command: c.Key.String(), Reason: fmt.Sprintf(format, args...)})
}

// work goes through the commands, newest first.
func (p *undoPlan) work() error {
	for i := range slices.Backward(p.cmds) {
		c := &p.cmds[i]
		data, err := p.led.Blob(p.ctx, c.UndoBlob)
		if errors.Is(err, ledger.ErrNotFound) {
			p.problem(c, "what is needed to undo it was purged")
			continue
		} else if err != nil {
			return err
		}
		u, err := workspace.DecodeUndo(data)
		if err != nil {
			p.problem(c, "what is needed to undo it cannot be read: %v", err)
			continue
		}
		p.undos[c.N] = u
		if p.failed(c) {
			p.problem(c, "a later change of this file could not be undone")
			continue
		}
		p.back(c, &u)
	}
	return nil
}

func (p *undoPlan) back(c *ledger.Command, u *workspace.Undo) {
	switch u.Kind {
	case workspace.ChangeModify:
		p.backModify(c, u)
	case workspace.ChangeCreate:
		p.backCreate(c, u, u.Path)
	case workspace.ChangeCopy:
		p.backCreate(c, u, u.Dest)
	case workspace.ChangeDelete:
		p.backDelete(c, u)
	case workspace.ChangeMove:
		p.backMove(c, u)
	case workspace.ChangeMkdir:
		p.dirs = append(p.dirs, *u)
	}
}

func (p *undoPlan) backModify(c *ledger.Command, u *workspace.Undo) {
	s := p.state(u.Path)
	switch {
	case !s.exists:
		p.problem(c, "the file was removed since")
		return
	case !s.readable:
		p.problem(c, "the file is no text any more")
		return
	case s.hash == u.BeforeHash:
		return // it is as if it had never been
	case u.Whole && s.hash == u.AfterHash:
		s.set(u.Text)
		return
	}
	edits, ok := u.Edits, s.hash == u.AfterHash
	if !ok {
		var by string
		if edits, by, ok = p.through(c, u, s); by != "" {
			p.problem(c, "%s changed the same lines later; undo that first, or both together", by)
			return
		}
	}
	if !ok {
		edits, ok = u.Locate(s.text)
	}
	if !ok {
		p.problem(c, "the file has changed since, and what this command put there is not found as it was; undo it by hand")
		return
	}
	text, err := workspace.ApplyEdits(s.text, edits)
	if err != nil {
		p.problem(c, "%v", err)
		return
	}
	s.set(text)
}

func (s *pathState) set(text string) { s.text, s.hash = text, workspace.HashText(text) }

// through follows the command's places through later recorded changes of the
// file that stay. by names one that changed the same lines. ok is false when
// the record does not lead to the text.
func (p *undoPlan) through(c *ledger.Command, u *workspace.Undo, s *pathState) (edits []workspace.Edit, by string, ok bool) {
	type step struct {
		c       *ledger.Command
		forward []workspace.Edit
	}
	var steps []step
	text, hash := s.text, s.hash
	rows := p.later(c)
	for i := range slices.Backward(rows) {
		r := &rows[i]
		if hash == u.AfterHash {
			break
		}
		if r.AfterHash != hash {
			continue // one that was taken back in this plan, or that came to nothing
		}
		data, err := p.led.Blob(p.ctx, r.UndoBlob)
		if err != nil {
			return nil, "", false
		}
		ru, err := workspace.DecodeUndo(data)
		if err != nil || ru.Kind != workspace.ChangeModify || ru.AfterHash != hash || ru.Whole {
			continue // it is not text
		}
		before, err := workspace.ApplyEdits(text, ru.Edits)
		if err != nil {
			return nil, "", false
		}
		steps = append(steps, step{r, workspace.InvertEdits(text, ru.Edits)})
		text, hash = before, ru.BeforeHash
	}
	if hash != u.AfterHash {
		return nil, "", false
	}
	edits = u.Edits
	for _, st := range slices.Backward(steps) {
		var kept []workspace.Edit
		for _, e := range edits {
			one, fits := workspace.MapEdits([]workspace.Edit{e}, st.forward)
			switch {
			case fits:
				kept = append(kept, one...)
			case st.c.Tool == toolUndo && slices.Contains(about(st.c), c.Key.String()):
				// This part was undone already.
			default:
				return nil, st.c.Key.String(), false
			}
		}
		edits = kept
	}
	return edits, "", true
}

// later are the effects on the command's file that came after it.
func (p *undoPlan) later(c *ledger.Command) []ledger.Command {
	rows := p.effectsOn(c.Abs)
	i := slices.IndexFunc(rows, func(r ledger.Command) bool { return r.N > c.N })
	if i < 0 {
		return nil
	}
	return rows[i:]
}

// effectsOn lists the recorded effects on a path, oldest first, from the first
// command of the plan on. Only those are read whose paths, as they were given,
// are ones that the plan has or that people see: one that came by yet another
// name (a link) is missing, and then its places are looked for in the text.
func (p *undoPlan) effectsOn(abs string) []ledger.Command {
	if p.rows == nil {
		p.rows = map[string][]ledger.Command{}
		names := map[string]bool{}
		for i := range p.cmds {
			c := &p.cmds[i]
			for _, n := range []string{c.Path, c.Dest, c.Abs, p.e.display(c.Abs)} {
				names[n] = true
			}
		}
		delete(names, "")
		var all []ledger.Command
		for known := -1; known < len(names); { // a file that was moved has its past under another name
			known = len(names)
			var err error
			all, err = p.led.List(p.ctx, ledger.Filter{After: p.cmds[0].N - 1, Paths: slices.Collect(maps.Keys(names))})
			if err != nil {
				p.e.log.Warn("ledger: cannot be read", "err", err)
			}
			for i := range all {
				if all[i].Dest != "" {
					names[all[i].Path], names[all[i].Dest] = true, true
				}
			}
		}
		for _, r := range all {
			if effective(&r) && r.Abs != "" {
				p.rows[r.Abs] = append(p.rows[r.Abs], r)
			}
		}
	}
	return p.rows[abs]
}

func (p *undoPlan) backCreate(c *ledger.Command, u *workspace.Undo, path string) {
	s := p.state(path)
	switch {
	case !s.exists:
		return
	case s.hash != u.AfterHash:
		p.problem(c, "the file was changed after it was created; remove it by hand if it is not needed")
		return
	}
	s.exists, s.parents = false, u.Parents
}

func (p *undoPlan) backDelete(c *ledger.Command, u *workspace.Undo) {
	s := p.state(u.Path)
	switch {
	case s.exists && s.hash == u.BeforeHash:
		return
	case s.exists:
		p.problem(c, "a file of this name is there again")
		return
	}
	s.exists, s.readable, s.mode, s.link, s.origin = true, true, uint32(u.Mode.Perm()), u.Link, ""
	s.set(u.Text)
	if u.Link != "" {
		s.hash = u.BeforeHash
	}
}

func (p *undoPlan) backMove(c *ledger.Command, u *workspace.Undo) {
	from, to := p.state(u.Dest), p.state(u.Path)
	switch {
	case !from.exists:
		p.problem(c, "%s is not there any more", p.e.display(u.Dest))
		return
	case to.exists:
		p.problem(c, "a file of this name is there again")
		return
	}
	order, was, before, beforeHash := to.order, to.was, to.before, to.beforeHash
	*to = *from
	to.order, to.was, to.before, to.beforeHash = order, was, before, beforeHash
	from.exists, from.origin, from.parents = false, "", u.Parents
}

// state looks at a path once.
func (p *undoPlan) state(path string) *pathState {
	if s := p.states[path]; s != nil {
		return s
	}
	s := &pathState{order: len(p.states), origin: path}
	p.states[path] = s
	if text, exists, ok := p.e.textNow(path); ok {
		s.exists, s.readable, s.text = exists, true, text
		if exists {
			s.hash = workspace.HashText(text)
		}
	} else if hash, exists, err := workspace.ProbeFile(path); err == nil {
		s.exists, s.hash = exists, hash
	}
	s.was, s.before, s.beforeHash = s.exists, s.text, s.hash
	return s
}
