package workspace

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// diffContext is how many unchanged lines stand around a change.
const diffContext = 3

// maxDiffLine is where a bounded diff cuts a single line, in bytes.
const maxDiffLine = 1000

// block is a run of whole lines that an edit touches: lines from..to (0-based,
// exclusive) of the text before, and what they become.
type block struct {
	from, to int
	removed  []string
	added    []string
}

// lineBlocks widens edits to whole lines and joins those that share or touch one.
func lineBlocks(text string, lines []string, offs []int, edits []Edit) []block {
	var out []block
	for i := 0; i < len(edits); {
		from, to := editLines(text, offs, edits[i])
		j := i + 1
		for ; j < len(edits); j++ {
			f, t := editLines(text, offs, edits[j])
			if f > to {
				break
			}
			to = max(to, t)
		}
		inner := make([]Edit, j-i)
		for k, e := range edits[i:j] {
			inner[k] = Edit{Start: e.Start - offs[from], End: e.End - offs[from], New: e.New}
		}
		b := block{from: from, to: to, removed: lines[from:to]}
		b.added = splitLines(mustApply(text[offs[from]:offs[to]], inner))
		b.trim()
		out = append(out, b)
		i = j
	}
	return out
}

// editLines are the lines that an edit rewrites, as 0-based half-open range.
func editLines(text string, offs []int, e Edit) (from, to int) {
	n := len(offs) - 1
	at := func(off int) int { // the line that holds the offset; n behind a final line break
		k := sort.SearchInts(offs, off+1) - 1
		if k == n && n > 0 && text[len(text)-1] != '\n' {
			k--
		}
		return k
	}
	from = at(e.Start)
	to = at(e.End)
	clean := offs[to] == e.End && (endsLine(e.New) || e.New == "" && atLineStart(text, e.Start))
	if !clean {
		to = min(to+1, n)
	}
	return from, to
}

func endsLine(s string) bool { return strings.HasSuffix(s, "\n") }

func atLineStart(text string, off int) bool { return off == 0 || text[off-1] == '\n' }

// trim drops equal lines at the ends of a block.
func (b *block) trim() {
	for len(b.removed) > 0 && len(b.added) > 0 && b.removed[0] == b.added[0] {
		b.removed, b.added = b.removed[1:], b.added[1:]
		b.from++
	}
	for n, m := len(b.removed), len(b.added); n > 0 && m > 0 && b.removed[n-1] == b.added[m-1]; n, m = n-1, m-1 {
		b.removed, b.added = b.removed[:n-1], b.added[:m-1]
		b.to--
	}
}

// unified writes hunks with context lines. It is bounded by max bytes (0 = not).
func unified(text string, edits []Edit, max int) string {
	lines := splitLines(text)
	w := diffWriter{max: max}
	blocks := lineBlocks(text, lines, lineOffsets(lines), edits)
	shift := 0
	for i := 0; i < len(blocks); {
		j := i + 1
		for j < len(blocks) && blocks[j].from-blocks[j-1].to <= 2*diffContext {
			j++
		}
		w.hunk(lines, blocks[i:j], shift)
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

func (w *diffWriter) hunk(lines []string, blocks []block, shift int) {
	first, last := blocks[0], blocks[len(blocks)-1]
	from := max(0, first.from-diffContext)
	to := min(len(lines), last.to+diffContext)
	before, after := to-from, to-from
	for _, b := range blocks {
		after += len(b.added) - len(b.removed)
	}
	w.line("", fmt.Sprintf("@@ -%s +%s @@\n", hunkRange(from, before), hunkRange(from+shift, after)))
	at := from
	for _, b := range blocks {
		w.all(" ", lines[at:b.from])
		w.all("-", b.removed)
		w.all("+", b.added)
		at = b.to
	}
	w.all(" ", lines[at:to])
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
	if len(edits) == 0 {
		return 0, 0
	}
	lines := splitLines(text)
	for _, b := range lineBlocks(text, lines, lineOffsets(lines), edits) {
		added += len(b.added)
		removed += len(b.removed)
	}
	return added, removed
}
