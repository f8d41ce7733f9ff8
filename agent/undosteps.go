package agent

import (
	"slices"

	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

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
