package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// Changes lists what waits. A run that another process worked on is looked up
// in the ledger.
func (e *Engine) Changes(ctx context.Context, sel Selection) (Changes, error) {
	e.resolvePath(&sel)
	problems, err := e.load(ctx, &sel)
	if err != nil {
		return Changes{}, err
	}
	out := Changes{Files: []FileChanges{}, Problems: problems}
	for _, staged := range []bool{true, false} {
		if sel.Staged && !staged {
			continue
		}
		for _, abs := range e.review.tracker(staged).Paths() {
			if sel.Path != "" && sel.Path != abs {
				continue
			}
			f, ok := e.fileChanges(abs, staged, &sel)
			if ok {
				out.Files = append(out.Files, f)
			}
		}
	}
	slices.SortStableFunc(out.Files, func(a, b FileChanges) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// fileChanges describes one file, as it is now.
func (e *Engine) fileChanges(abs string, staged bool, sel *Selection) (FileChanges, bool) {
	unlock := e.locks.lock([]string{abs})
	defer unlock()
	e.syncReview(abs, staged)
	tr := e.review.tracker(staged)
	f := FileChanges{Path: e.display(abs), Abs: abs, Staged: staged, Version: tr.Revision(abs)}
	changes := slices.DeleteFunc(tr.Changes(abs), func(c review.Change) bool { return !sel.takes(&c) })
	if len(changes) == 0 {
		return f, false
	}
	text, _, _ := tr.Text(abs)
	base, _, _ := tr.Base(abs)
	if doc, ok := e.under.Document(abs); ok && !staged {
		f.DocumentVersion = &doc.Version
	}
	now, was := lineCounter{s: text}, lineCounter{s: base}
	for _, c := range changes {
		h := Hunk{ID: c.ID.String(), Kind: c.Kind, Old: c.Old, New: c.New, Commands: c.Keys, Edited: c.Edited}
		if c.From != "" {
			h.From = e.display(c.From)
		}
		h.StartLine, h.EndLine = now.line(c.Start), now.line(c.End)
		h.BaseStartLine, h.BaseEndLine = was.line(c.BaseStart), was.line(c.BaseEnd)
		f.Added += countLines(c.New)
		f.Removed += countLines(c.Old)
		f.Hunks = append(f.Hunks, h)
	}
	return f, true
}

// lineCounter turns growing offsets into lines, from 0; an end inside of a last
// line without line break is the line behind it.
type lineCounter struct {
	s         string
	at, line0 int
}

func (l *lineCounter) line(off int) int {
	if off < l.at {
		l.at, l.line0 = 0, 0
	}
	l.line0 += strings.Count(l.s[l.at:off], "\n")
	l.at = off
	if off == len(l.s) && off > 0 && l.s[off-1] != '\n' {
		return l.line0 + 1
	}
	return l.line0
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// Content is the text of a file: as it is ("text"), without what waits ("base"),
// or as it is proposed ("staged"). exists is false when it is not there.
func (e *Engine) Content(ctx context.Context, path, side string) (text string, exists bool, err error) {
	t, err := e.under.Resolve(path, workspace.AccessRead)
	if err != nil {
		return "", false, err
	}
	unlock := e.locks.lock([]string{t.Abs})
	defer unlock()
	e.syncReview(t.Abs, false)
	e.syncReview(t.Abs, true)
	ok := false
	switch side {
	case "", "text":
	case "base":
		text, exists, ok = e.review.live.Base(t.Abs)
	case "staged":
		text, exists, ok = e.review.staged.Text(t.Abs)
	default:
		return "", false, fmt.Errorf("side %q: there are text, base and staged", side)
	}
	if ok {
		return text, exists, nil
	}
	s, err := e.under.Snapshot(t)
	if err != nil {
		return "", false, err
	}
	return s.Text, s.Exists, nil
}
