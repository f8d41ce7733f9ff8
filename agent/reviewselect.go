package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// errNothing: a selection that names nothing is a mistake, not everything.
var errNothing = errors.New("say what is meant: hunks, a path, a command, a run, or all")

// resolvePath makes the real path of one as people and editors spell it.
func (e *Engine) resolvePath(sel *Selection) {
	if sel.Path == "" {
		return
	}
	if t, err := e.under.Resolve(sel.Path, workspace.AccessRead); err == nil {
		sel.Path = t.Abs
	}
}

// takes reports whether the change is among those that are meant.
func (s *Selection) takes(c *review.Change) bool {
	switch {
	case len(s.Hunks) > 0:
		return slices.Contains(s.Hunks, c.ID.String())
	case s.Path != "":
		return s.Path == c.Path
	case s.Command != "":
		return slices.Contains(c.Keys, s.Command)
	case s.Run != "":
		return slices.ContainsFunc(c.Keys, func(k string) bool { return strings.HasPrefix(k, s.Run+"/") })
	}
	return true
}

// group is what is meant in one file.
type group struct {
	abs     string
	staged  bool
	changes []review.Change
}

func (g *group) ids() []review.ID {
	out := make([]review.ID, len(g.changes))
	for i, c := range g.changes {
		out[i] = c.ID
	}
	return out
}

func (g *group) names() []string {
	out := make([]string, len(g.changes))
	for i, c := range g.changes {
		out[i] = c.ID.String()
	}
	return out
}

func (g *group) keys() []string {
	var out []string
	for _, c := range g.changes {
		for _, k := range c.Keys {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// selected finds the files and changes that are meant. Hunks that are not there
// (any more) are an error: nothing is guessed.
func (e *Engine) selected(ctx context.Context, sel *Selection) ([]group, error) {
	if sel.empty() {
		return nil, errNothing
	}
	e.resolvePath(sel)
	if _, err := e.load(ctx, sel); err != nil {
		return nil, err
	}
	var out []group
	found := 0
	for _, staged := range []bool{true, false} {
		tr := e.review.tracker(staged)
		if sel.Staged && !staged {
			continue
		}
		for _, abs := range tr.Paths() {
			g := group{abs: abs, staged: staged}
			for _, c := range tr.Changes(abs) {
				if sel.takes(&c) {
					g.changes = append(g.changes, c)
				}
			}
			if len(g.changes) > 0 {
				found += len(g.changes)
				out = append(out, g)
			}
		}
	}
	if found < len(sel.Hunks) {
		for _, id := range sel.Hunks {
			_, err := e.review.live.Find(id)
			if _, serr := e.review.staged.Find(id); err != nil && serr != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// within runs do for each file that is meant, with its path locked, after what
// people did to it has been taken in. An error of one file is a problem; the
// others go on.
func (e *Engine) within(ctx context.Context, sel *Selection, res *Reviewed, do func(g *group) error) error {
	groups, err := e.selected(ctx, sel)
	if err != nil {
		return err
	}
	for _, g := range groups {
		err := func() error {
			paths := []string{g.abs}
			for _, c := range g.changes {
				if c.From != "" {
					paths = append(paths, c.From)
				}
			}
			slices.Sort(paths)
			unlock := e.locks.lock(slices.Compact(paths))
			defer unlock()
			tr := e.review.tracker(g.staged)
			e.syncReview(g.abs, g.staged)
			if rev := tr.Revision(g.abs); sel.Version != 0 && sel.Version != rev {
				return fmt.Errorf("%w: version %d was asked for, it is %d now; look again", review.ErrStale, sel.Version, rev)
			}
			now := tr.Changes(g.abs)
			var still []review.Change
			for _, c := range g.changes {
				i := slices.IndexFunc(now, func(n review.Change) bool { return n.ID == c.ID })
				if i >= 0 {
					still = append(still, now[i])
				}
			}
			if g.changes = still; len(still) == 0 {
				return nil // a person has done it already
			}
			if err := do(&g); err != nil {
				return err
			}
			res.Hunks += len(g.changes)
			res.Files = append(res.Files, e.display(g.abs))
			for _, k := range g.keys() {
				if !slices.Contains(res.Commands, k) {
					res.Commands = append(res.Commands, k)
				}
			}
			return nil
		}()
		switch {
		case err != nil && errors.Is(err, review.ErrStale) && len(groups) == 1:
			return err
		case err != nil:
			res.Problems = append(res.Problems, Problem{Path: e.display(g.abs), Reason: err.Error()})
		}
	}
	slices.Sort(res.Files)
	res.Files = slices.Compact(res.Files)
	return nil
}
