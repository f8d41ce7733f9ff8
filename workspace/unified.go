package workspace

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// maxDiffLine is where a bounded diff cuts a single line, in bytes.
const maxDiffLine = 1000

// block is a run of whole lines that edits rewrite: the bytes start to end of
// the text before, the first of them in the given line (0-based).
type block struct {
	start, end     int
	line           int
	removed, added []string
}

// lineBlocks widens edits to whole lines and joins those that share or touch one.
// Its cost is that of the changed lines, and counting line breaks before them.
func lineBlocks(text string, edits []Edit) []block {
	var out []block
	line, counted := 0, 0
	for i := 0; i < len(edits); {
		start, end := editLines(text, edits[i])
		j := i + 1
		for ; j < len(edits); j++ {
			if edits[j].End < end {
				continue // in lines that are in already
			}
			s, e := editLines(text, edits[j])
			if s > end {
				break
			}
			end = max(end, e)
		}
		inner := make([]Edit, j-i)
		for k, e := range edits[i:j] {
			inner[k] = Edit{Start: e.Start - start, End: e.End - start, New: e.New}
		}
		line += strings.Count(text[counted:start], "\n")
		counted = start
		b := block{start: start, end: end, line: line, removed: splitLines(text[start:end])}
		b.added = splitLines(mustApply(text[start:end], inner))
		b.trim()
		out = append(out, b)
		i = j
	}
	return out
}

// editLines are the whole lines that an edit rewrites, as offsets.
func editLines(text string, e Edit) (start, end int) {
	start = strings.LastIndexByte(text[:e.Start], '\n') + 1
	if atLineStart(text, e.End) && (endsLine(e.New) || e.New == "" && start == e.Start) {
		return start, e.End
	}
	i := strings.IndexByte(text[e.End:], '\n')
	if i < 0 {
		return start, len(text)
	}
	return start, e.End + i + 1
}

func endsLine(s string) bool { return strings.HasSuffix(s, "\n") }

func atLineStart(text string, off int) bool { return off == 0 || text[off-1] == '\n' }

// trim drops equal lines at the ends of a block.
func (b *block) trim() {
	for len(b.removed) > 0 && len(b.added) > 0 && b.removed[0] == b.added[0] {
		b.start += len(b.removed[0])
		b.line++
		b.removed, b.added = b.removed[1:], b.added[1:]
	}
	for n, m := len(b.removed), len(b.added); n > 0 && m > 0 && b.removed[n-1] == b.added[m-1]; n, m = n-1, m-1 {
		b.end -= len(b.removed[n-1])
		b.removed, b.added = b.removed[:n-1], b.added[:m-1]
	}
}

// linesBefore are at most n lines that end at the offset; linesAfter those that
// begin there.
func linesBefore(text string, off, n int) []string {
	start := off
	for ; n > 0 && start > 0; n-- {
		start = strings.LastIndexByte(text[:start-1], '\n') + 1
	}
	return splitLines(text[start:off])
}

func linesAfter(text string, off, n int) []string {
	return splitLines(text[off:lineOffset(text, off, n)])
}

// unified writes hunks with context lines. It is bounded by max bytes (0 = not).
func unified(text string, edits []Edit, max int) string {
	w := diffWriter{max: max}
	blocks := lineBlocks(text, edits)
	shift := 0
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && strings.Count(text[blocks[j-1].end:blocks[j].start], "\n") <= 2*diffContext {
			j++
		}
		w.hunk(text, blocks[i:j], shift)
		for ; i < j; i++ {
			shift += len(blocks[i].added) - len(blocks[i].removed)
		}
	}
	return w.String()
}

// diffWriter collects lines up to a bound and counts those left out.
type diffWriter struct {
	strings.Builder
	max  int
	left int
}

func (w *diffWriter) hunk(text string, blocks []block, shift int) {
	first, last := blocks[0], blocks[len(blocks)-1]
	lead := linesBefore(text, first.start, diffContext)
	tail := linesAfter(text, last.end, diffContext)
	from := first.line - len(lead)
	before := last.line + len(last.removed) + len(tail) - from
	after := before
	for _, b := range blocks {
		after += len(b.added) - len(b.removed)
	}
	w.line("", fmt.Sprintf("@@ -%s +%s @@\n", hunkRange(from, before), hunkRange(from+shift, after)))
	w.all(" ", lead)
	for i, b := range blocks {
		if i > 0 {
			w.all(" ", splitLines(text[blocks[i-1].end:b.start]))
		}
		w.all("-", b.removed)
		w.all("+", b.added)
	}
	w.all(" ", tail)
}

// hunkRange is "line,count" with the rules of the format: a count of 1 is left
// out, and an empty range names the line before it.
func hunkRange(from, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprintf("%d", from+1)
	}
	return fmt.Sprintf("%d,%d", from+1, n)
}

func (w *diffWriter) all(sign string, lines []string) {
	for _, l := range lines {
		w.line(sign, l)
	}
}

func (w *diffWriter) line(sign, l string) {
	if w.max > 0 {
		if w.left > 0 || w.Len()+len(sign)+min(len(l), maxDiffLine) > w.max {
			w.left++
			return
		}
		if len(l) > maxDiffLine {
			l = cutText(l, maxDiffLine) + fmt.Sprintf("… (%d bytes more)\n", len(l)-maxDiffLine)
		}
	}
	w.WriteString(sign)
	w.WriteString(l)
	if !endsLine(l) {
		w.WriteString("\n\\ No newline at end of file\n")
	}
}

func (w *diffWriter) String() string {
	if w.left > 0 {
		return w.Builder.String() + fmt.Sprintf("… (diff cut, %d lines more)\n", w.left)
	}
	return w.Builder.String()
}

// cutText cuts at most n bytes off the front, on a character boundary.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Diff renders the change as a unified diff with three context lines, from the
// edits and not by comparing again. maxBytes bounds it (0 = unbounded); what is
// left out is counted in a last line.
func (c *Change) Diff(maxBytes int) string {
	from, to := "a/"+c.Target.Display, "b/"+c.Target.Display
	switch c.Kind {
	case ChangeNone, ChangeMkdir, ChangeTouch:
		return ""
	case ChangeMove:
		return fmt.Sprintf("rename from %s\nrename to %s\n", c.Target.Display, c.Dest.Display)
	case ChangeCopy:
		return fmt.Sprintf("copy from %s\ncopy to %s\n", c.Target.Display, c.Dest.Display)
	case ChangeCreate:
		from = "/dev/null"
	case ChangeDelete:
		to = "/dev/null"
	}
	head := fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	if maxBytes > 0 {
		maxBytes = max(1, maxBytes-len(head))
	}
	if c.Kind == ChangeDelete {
		if c.link != "" || undecodable(c.Before.Text) != "" {
			return head
		}
		return head + unified(c.Before.Text, []Edit{{End: len(c.Before.Text)}}, maxBytes)
	}
	return head + unified(c.Before.Text, c.Edits, maxBytes)
}

// countChanged counts the lines that edits remove and add.
func countChanged(text string, edits []Edit) (added, removed int) {
	for _, b := range lineBlocks(text, edits) {
		added += len(b.added)
		removed += len(b.removed)
	}
	return added, removed
}

// UnifiedDiff compares two texts. A name of "" stands for a file that is not
// there; maxBytes bounds the result (0 = unbounded).
func UnifiedDiff(from, to, before, after string, maxBytes int) string {
	if before == after && from != "" && to != "" {
		return ""
	}
	name := func(side, n string) string {
		if n == "" {
			return "/dev/null"
		}
		return side + n
	}
	return fmt.Sprintf("--- %s\n+++ %s\n", name("a/", from), name("b/", to)) + unified(before, DiffText(before, after), maxBytes)
}
