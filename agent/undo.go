package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thinkflow/ledger"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
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
	run, err := led.FindRun(ctx, sel.Run)
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
			told[key.Run] = append(told[key.Run], fmt.Sprintf("%d %s %s", key.ID, now.Tool, now.Path))
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
		data, err := p.led.Blob(p.ctx, r.UndoBlob)
		if err != nil {
			return nil, "", false
		}
		ru, err := workspace.DecodeUndo(data)
		if err != nil || ru.Kind != workspace.ChangeModify || ru.AfterHash != hash || ru.Whole {
			continue // one that was taken back in this plan, or is not text
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

// effectsOn lists all recorded effects on a path, oldest first.
func (p *undoPlan) effectsOn(abs string) []ledger.Command {
	if p.rows == nil {
		p.rows = map[string][]ledger.Command{}
		first := p.cmds[0].N
		all, err := p.led.List(p.ctx, ledger.Filter{After: first - 1})
		if err != nil {
			p.e.log.Warn("ledger: cannot be read", "err", err)
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

// undoStep is one change of the disk or of a document.
type undoStep struct {
	kind  review.Kind
	paths []string
	plan  func() (*workspace.Change, error)
	diff  string
}

// steps are what has to be done, moves first, then texts, then folders.
func (p *undoPlan) steps() []undoStep {
	ws := p.e.under
	var moves, rest []undoStep
	moved := map[string]bool{} // paths whose content goes elsewhere
	paths := make([]string, 0, len(p.states))
	for path := range p.states {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return p.states[a].order - p.states[b].order })
	for _, path := range paths {
		s := p.states[path]
		if s.exists && s.origin != "" && s.origin != path && !p.bad[path] {
			moved[s.origin] = true
			from := s.origin
			moves = append(moves, undoStep{review.KindMove, []string{from, path}, func() (*workspace.Change, error) {
				return ws.Plan(workspace.Op{Kind: workspace.OpMove, Path: from, Dest: path, AllowSecret: true})
			}, ""})
		}
	}
	for _, path := range paths {
		s := p.states[path]
		if p.bad[path] {
			continue
		}
		before := s.before
		if s.origin != "" && s.origin != path {
			before = p.states[s.origin].before
		}
		switch {
		case s.exists && s.origin == "" && !s.was:
			rest = append(rest, undoStep{review.KindCreate, []string{path}, func() (*workspace.Change, error) {
				return ws.PlanCreate(path, s.text, s.link, modeOf(s.mode))
			}, workspace.UnifiedDiff("", p.e.display(path), "", s.text, eventDiff)})
		case s.exists && s.readable && before != s.text:
			rest = append(rest, undoStep{review.KindEdit, []string{path}, func() (*workspace.Change, error) {
				return ws.PlanEdits(path, workspace.HashText(before), workspace.DiffText(before, s.text))
			}, workspace.UnifiedDiff(p.e.display(path), p.e.display(path), before, s.text, eventDiff)})
		case !s.exists && s.was && !moved[path]:
			rest = append(rest, undoStep{review.KindDelete, []string{path}, func() (*workspace.Change, error) {
				return ws.Revert(workspace.Undo{Kind: workspace.ChangeCreate, Path: path, AfterHash: s.beforeHash, Parents: s.parents})
			}, ""})
		}
	}
	steps := append(moves, rest...)
	for _, u := range p.dirs {
		if p.bad[u.Path] {
			continue
		}
		steps = append(steps, undoStep{review.KindDelete, []string{u.Path}, func() (*workspace.Change, error) { return ws.Revert(u) }, ""})
	}
	return steps
}

// effects describes the steps.
func (p *undoPlan) effects() ([]FileEffect, error) {
	var out []FileEffect
	for _, s := range p.steps() {
		f := FileEffect{Path: p.e.display(s.paths[0]), Kind: string(s.kind), Diff: s.diff}
		if len(s.paths) > 1 {
			f.Dest = p.e.display(s.paths[1])
		}
		out = append(out, f)
	}
	return out, nil
}
