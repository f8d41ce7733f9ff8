package workspace

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// maxListed is how many line numbers a refusal lists.
const maxListed = 10

// spot is one place of one pair with what is put there, on the LF view.
type spot struct {
	place
	pair int // from 0
	old  []string
	new  string
}

// planEdit resolves all pairs against one snapshot: all or nothing.
func (w *Workspace) planEdit(c *Change) error {
	op, path := c.Op, c.Target.Display
	if len(op.Pairs) == 0 {
		return refuse(CodeInvalid, path, "an edit needs at least one pair of old and new text")
	}
	if !c.Before.Exists {
		return w.missing(c.Target, "there is nothing to edit; tf-write creates it")
	}
	src := newSource(c.Before.Text)
	if c.Open {
		src.memo = &w.lastFind
	}
	var spots []spot
	for i, pair := range op.Pairs {
		label := ""
		if len(op.Pairs) > 1 {
			label = fmt.Sprintf("pair %d: ", i+1)
		}
		found, ref := src.locatePair(c, i, label, pair)
		if ref != nil {
			return ref
		}
		spots = append(spots, found...)
	}
	sort.SliceStable(spots, func(i, j int) bool { return spots[i].start < spots[j].start })
	for i := 1; i < len(spots); i++ {
		a, b := spots[i-1], spots[i]
		if b.start < a.end {
			first, second := min(a.pair, b.pair)+1, max(a.pair, b.pair)+1
			return guardOverlap.refuse(path, b.line, first, second, b.line)
		}
	}
	var edits []Edit
	ending := endingFor(c.Before.Text, "")
	for _, s := range spots {
		edits = append(edits, src.splice(s, ending)...)
	}
	c.Edits = mergeEdits(edits)
	if op.KnownEver && op.Known != "" && op.Known != c.Before.Hash {
		c.Notes = append(c.Notes, guardMoved.note())
	}
	return nil
}

// locatePair finds where one pair applies, and what exactly it puts there.
func (s *source) locatePair(c *Change, index int, label string, pair Pair) ([]spot, *Refusal) {
	path, op := c.Target.Display, c.Op
	labelled := func(r *Refusal) *Refusal {
		r.Message = label + r.Message
		return r
	}
	old, new := toLF(pair.Old), toLF(pair.New)
	if old == "" {
		return nil, labelled(guardEmptyOld.refuse(path, 0))
	}
	seam := endsLine(old) && new != "" && !endsLine(new)
	if seam {
		new += "\n"
	}
	if old == new {
		where := "the text is not in the file"
		line := 0
		if f := s.find(want{old: old}); len(f.places) > 0 {
			line = f.places[0].line
			where = "the text is present at line " + strconv.Itoa(line)
		}
		return nil, labelled(guardNoChange.refuse(path, line, where))
	}
	f := s.find(want{old: old, all: op.All, near: op.Line})
	if len(f.places) == 0 {
		// A byte order mark is not part of what a model can quote.
		if o, ok := strings.CutPrefix(old, bom); ok && o != "" {
			old, new = o, strings.TrimPrefix(new, bom)
			f = s.find(want{old: old, all: op.All, near: op.Line})
		}
	}
	if len(f.places) == 0 && !isMarkdown(c.Target.Rel) {
		inner, okOld := unwrapFence(old)
		newInner, okNew := unwrapFence(new)
		if okOld && inner != "" && (okNew || new == "") {
			if g := s.find(want{old: inner, all: op.All, near: op.Line}); len(g.places) > 0 {
				f, old, new, seam = g, inner, newInner, false
				c.Notes = append(c.Notes, guardFence.note())
			}
		}
	}
	if len(f.places) == 0 {
		return nil, s.explain(path, label, old, pair.New)
	}
	places, ref := settle(f, op)
	if ref != nil {
		ref.Path = path
		return nil, labelled(ref)
	}
	if line, what := newPlaceholder(new, old); line > 0 {
		return nil, labelled(guardPlaceholder.refuse(path, 0, line, "new", what))
	}
	if rungOrder[f.rung] > rungOrder[c.Rung] {
		c.Rung = f.rung
	}
	var spots []spot
	oldLines := splitLines(old)
	repaired := false
	for i, p := range places {
		text, ok := p.shiftText(new)
		if !ok {
			return nil, labelled(guardShiftNew.refuse(path, p.line, p.line))
		}
		if p.dropNL {
			text = strings.TrimSuffix(text, "\n")
		}
		if p.start == 0 && s.bom > 0 {
			text = strings.TrimPrefix(text, bom)
		}
		repaired = repaired || seam && !p.dropNL
		spots = append(spots, spot{place: p, pair: index, old: oldLines, new: text})
		if f.rung == RungExact && i < maxNotes {
			c.Notes = append(c.Notes, s.flags(p, old, new)...)
		}
	}
	if repaired {
		of := ""
		if label != "" {
			of = " of pair " + strconv.Itoa(index+1)
		}
		c.Notes = append(c.Notes, guardSeam.note(of))
	}
	return spots, nil
}

// settle decides among several places: all of them, or the one at the hint.
func settle(f found, op Op) ([]place, *Refusal) {
	if len(f.places) == 1 && !f.more {
		return f.places, nil
	}
	if op.All && !f.overlap {
		return f.places, nil
	}
	lines := make([]int, 0, len(f.places))
	var near []place
	for _, p := range f.places {
		lines = append(lines, p.line)
		if op.Line > 0 && p.line >= op.Line-nearLines && p.line <= op.Line+nearLines {
			near = append(near, p)
		}
	}
	if len(near) == 1 && !op.All {
		return near, nil
	}
	r := &Refusal{Code: CodeAmbiguous, Line: lines[0], Lines: lines}
	count := strconv.Itoa(len(f.places))
	if f.more {
		count = "more than " + strconv.Itoa(maxCandidates)
	}
	kind := ""
	if f.overlap {
		kind = " (overlapping)"
	}
	r.Message = fmt.Sprintf("old text matches %s places%s, at lines %s; nothing was changed. ", count, kind, listLines(lines))
	switch {
	case op.All:
		r.Message += "Overlapping places cannot all be replaced: quote more text."
	case op.Line > 0 && len(near) == 0:
		r.Message += fmt.Sprintf("None of them starts within %d lines of line %d. Quote more lines around the right place.", nearLines, op.Line)
	case op.Line > 0:
		r.Message += fmt.Sprintf("%d of them start within %d lines of line %d. Quote more lines around the right place.", len(near), nearLines, op.Line)
	default:
		r.Message += "Quote more lines around the right place, or add line=\"N\" or all=\"true\"."
	}
	return nil, r
}

func listLines(lines []int) string {
	var parts []string
	for i, l := range slices.Compact(slices.Clone(lines)) {
		if i == maxListed {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, strconv.Itoa(l))
	}
	return strings.Join(parts, ", ")
}

// flags are remarks about an exact match that may have hit more or less than
// was meant.
func (s *source) flags(p place, old, new string) []string {
	var notes []string
	lineStart := strings.LastIndexByte(s.lf[:p.start], '\n') + 1
	lead := s.lf[lineStart:p.start]
	if lead != "" && strings.TrimSpace(lead) == "" && strings.Contains(strings.TrimSuffix(new, "\n"), "\n") {
		lines := splitLines(new)
		for _, l := range lines[1:] {
			if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, lead) {
				notes = append(notes, guardMidIndent.note(p.line))
				break
			}
		}
	}
	if endsLine(old) && wordEndsAt(s.lf, p.start) && wordAt(old, 0) {
		notes = append(notes, guardMidWord.note(p.line))
	}
	if endsLine(new) && !endsLine(old) && p.end < len(s.lf) && s.lf[p.end] == '\n' {
		notes = append(notes, guardBlankLine.note(p.line))
	}
	return notes
}

// splice turns one spot into edits of the raw text. Lines that stand for a
// replaced line keep its line ending, further ones take the given ending; lines
// of a loose match that new leaves as old quoted them keep the file's letters.
func (s *source) splice(sp spot, ending string) []Edit {
	start, end := s.rawOffset(sp.start), s.rawOffset(sp.end)
	if len(s.crs) == 0 && s.lf[sp.start:sp.end] == strings.Join(sp.old, "") {
		return shifted(DiffText(s.raw[start:end], sp.new), start)
	}
	have := splitLines(s.lf[sp.start:sp.end])
	news := splitLines(sp.new)
	quoted := sp.old
	if sp.dropNL && len(quoted) > 0 {
		quoted = slices.Clone(quoted)
		quoted[len(quoted)-1] = strings.TrimSuffix(quoted[len(quoted)-1], "\n")
	}
	quotedAs := quoted
	if sp.prefix != "" { // compare what was quoted after the same shift
		if t, ok := sp.shiftText(strings.Join(quoted, "")); ok {
			quotedAs = splitLines(t)
		}
	}
	offs := lineOffsets(have)
	endingOf := func(i int) string {
		if !endsLine(have[i]) {
			return ""
		}
		if s.isCRLF(sp.start + offs[i+1] - 1) {
			return "\r\n"
		}
		return "\n"
	}
	var b strings.Builder
	put := func(line, end string) {
		text, had := strings.CutSuffix(line, "\n")
		b.WriteString(text)
		if had {
			if end == "" {
				end = ending
			}
			b.WriteString(end)
		}
	}
	keep := func(i, j int) { // line i stays, as new quotes it in line j
		if trailingKey(have[i]) != trailingKey(news[j]) {
			put(have[i], endingOf(i))
			return
		}
		put(news[j], endingOf(i))
	}
	i, j := 0, 0
	for _, h := range append(diffLines(quotedAs, news), lineHunk{len(quotedAs), len(quotedAs), len(news), len(news)}) {
		for ; i < h.a0; i, j = i+1, j+1 {
			keep(i, j)
		}
		for ; j < h.b1; j++ {
			end := ""
			if i < h.a1 {
				end = endingOf(i)
				i++
			}
			put(news[j], end)
		}
		i = h.a1
	}
	return shifted(DiffText(s.raw[start:end], b.String()), start)
}

func shifted(edits []Edit, by int) []Edit {
	for i := range edits {
		edits[i].Start += by
		edits[i].End += by
	}
	return edits
}

// missing is the refusal for a file that is not there, with names that are close.
func (w *Workspace) missing(t Target, what string) *Refusal {
	r := refuse(CodeNotFound, t.Display, "no such file; %s", what)
	if near := w.similarNames(t); len(near) > 0 {
		r.Message += ". Similar: " + strings.Join(near, ", ")
	}
	return r
}

func isSubPath(dir, path string) bool {
	return strings.HasPrefix(path, dir+string(filepath.Separator))
}
