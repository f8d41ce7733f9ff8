package term

import (
	"fmt"
	"slices"

	"thinkflow/agent"
)

// tally adds up what the commands of a run did, per file in order.
type tally struct {
	files  []*fileTally
	staged bool // at least one change was only planned
}

type fileTally struct {
	path           string
	added, removed int
	created, gone  bool
}

func (t *tally) file(path string) *fileTally {
	for _, f := range t.files {
		if f.path == path {
			return f
		}
	}
	f := &fileTally{path: path}
	t.files = append(t.files, f)
	return f
}

func (t *tally) add(c *agent.CommandEvent) {
	sign := 1
	switch c.Status {
	case "applied", "":
	case "staged":
		t.staged = true
	case "rolled_back", "undone":
		sign = -1
	default:
		return
	}
	switch c.Name {
	case "tf-write", "tf-append", "tf-edit", "tf-touch":
		f := t.file(c.Path)
		f.added += sign * c.Added
		f.removed += sign * c.Removed
		if c.Created {
			f.created, f.gone = sign > 0, sign < 0
		}
	case "tf-copy":
		f := t.file(c.Dest)
		f.added += sign * c.Added
		f.created, f.gone = sign > 0, sign < 0
	case "tf-delete":
		f := t.file(c.Path)
		f.removed += sign * c.Removed
		f.gone = sign > 0
	case "tf-move":
		from, to := c.Path, c.Dest
		if sign < 0 {
			from, to = to, from
		}
		old := *t.file(from)
		t.file(from).gone = true
		n := t.file(to)
		n.added, n.removed, n.created, n.gone = old.added, old.removed, true, false
	}
}

// linesOfFiles bounds the list of changed files.
const linesOfFiles = 12

func (r *Renderer) runEnded(e agent.Event) {
	r.enter(blockEnd)
	res := e.Result
	if res == nil {
		res = &agent.RunResult{Reason: e.Reason}
	}
	usage := res.Usage
	if e.Usage != nil {
		usage = *e.Usage
	}
	mark, st, word := "✓", r.pal.good, "done"
	switch {
	case res.State == agent.StateStopped:
		mark, st, word = "■", r.pal.warn, "stopped"
	case res.State == agent.StateRefused:
		mark, st, word = "✗", r.pal.bad, "refused"
	case e.Type == agent.RunFailed:
		mark, st, word = "✗", r.pal.bad, "failed"
	case e.Type == agent.RunCancelled:
		mark, st, word = "■", r.pal.warn, "cancelled"
	case e.Type == agent.RunSuspended:
		mark, st, word = "■", r.pal.warn, "suspended"
	}
	facts := [][]seg{{{took(r.o.Now().Sub(r.state.start)), nil}}}
	if r.state.start.IsZero() {
		facts = nil
	}
	if usage.Requests > 0 {
		facts = append(facts, []seg{{plural(usage.Requests, "API call"), nil}})
	}
	if usage.InputTokens+usage.OutputTokens > 0 {
		est := ""
		if usage.Estimated {
			est = "about "
		}
		facts = append(facts, []seg{{est + tokens(usage.InputTokens) + " tokens in, " + tokens(usage.OutputTokens) + " out", nil}})
	}
	if usage.Cost > 0 {
		facts = append(facts, []seg{{fmt.Sprintf("cost %.4f", usage.Cost), nil}})
	}
	if res.Failed > 0 {
		facts = append(facts, []seg{{plural(res.Failed, "failed command"), r.pal.warn}})
	}
	head := []seg{{mark + " ", st}, {word, st}}
	n := len(facts) // as many as fit; the rest goes on a second line
	for w := r.width(); w > 0 && n > 1 && segsCells(r.join(slices.Clip(head), facts[:n])) > w; {
		n--
	}
	r.line(r.join(slices.Clip(head), facts[:n])...)
	if n < len(facts) {
		r.line(r.join(nil, facts[n:])...)
	}
	if reason := firstOf(res.Reason, e.Reason); reason != "" && word != "done" {
		r.para(2, nil, reason, linesOfError)
	}
	r.files()
	if !r.o.Inline { // where another run may follow, it is set apart
		r.block = blockNone
	}
}

func (r *Renderer) files() {
	var shown []*fileTally
	wide, added, removed := 0, 0, 0
	for _, f := range r.tally.files {
		if f.created && f.gone || f.gone && f.added+f.removed == 0 && !f.created {
			continue
		}
		shown = append(shown, f)
		added += f.added
		removed += f.removed
		wide = max(wide, cells(VisibleName(f.path)))
	}
	if len(shown) == 0 {
		return
	}
	if w := r.width(); w > 0 {
		wide = min(wide, max(12, w-24))
	}
	wide = min(wide, 60)
	what := " changed"
	if r.tally.staged {
		what = " would change"
	}
	head := []seg{{"  " + plural(len(shown), "file") + what, nil}}
	for _, s := range r.counts(added, removed) {
		head = append(head, seg{" ", nil}, s)
	}
	r.line(head...)
	for i, f := range shown {
		if i == linesOfFiles-1 && len(shown) > linesOfFiles {
			r.line(seg{"    … " + plural(len(shown)-i, "more file"), r.pal.dim})
			return
		}
		line := []seg{{"    " + pad(cutMiddle(VisibleName(f.path), wide), wide) + " ", nil}}
		switch {
		case f.gone:
			line = append(line, seg{" gone", r.pal.del})
		case f.created:
			line = append(line, seg{" new", r.pal.good})
		}
		for _, s := range r.counts(f.added, f.removed) {
			line = append(line, seg{" ", nil}, s)
		}
		r.line(line...)
	}
}

func firstOf(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
