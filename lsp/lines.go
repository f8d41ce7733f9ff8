package lsp

import (
	"sort"
	"strings"
)

// markEvery is the distance in bytes between two entries of the sparse line
// index: a look-up scans at most about this much text.
const markEvery = 4096

// lineMark says that s[:off] holds line line breaks ('\n').
type lineMark struct{ off, line int }

// text is an immutable document text with a sparse line index. Offsets are
// bytes, lines count from 0. A line ends at '\n'; a '\r' right before it
// belongs to the ending. A lone '\r' is an ordinary character: that is how
// Neovim, Emacs and Helix count, and VS Code never has one in a document.
type text struct {
	s     string
	marks []lineMark // sorted by off; marks[0] = {0, 0}
}

// newText indexes s in one pass.
func newText(s string) text {
	return text{s: s, marks: appendMarks([]lineMark{{}}, s, len(s))}
}

// appendMarks adds marks after the last one of marks, up to the offset end.
func appendMarks(marks []lineMark, s string, end int) []lineMark {
	last := marks[len(marks)-1]
	for last.off+2*markEvery <= end {
		next := last.off + markEvery
		last = lineMark{next, last.line + strings.Count(s[last.off:next], "\n")}
		marks = append(marks, last)
	}
	return marks
}

// replace returns the text with the bytes [start, end) replaced by repl. Only
// the marks are recomputed, not the whole index.
func (t text) replace(start, end int, repl string) text {
	var b strings.Builder
	b.Grow(len(t.s) - (end - start) + len(repl))
	b.WriteString(t.s[:start])
	b.WriteString(repl)
	b.WriteString(t.s[end:])
	s := b.String()

	keep := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].off > start })
	tail := keep + sort.Search(len(t.marks)-keep, func(i int) bool { return t.marks[keep+i].off > end })
	bytes := len(repl) - (end - start)
	lines := strings.Count(repl, "\n") - strings.Count(t.s[start:end], "\n")

	marks := make([]lineMark, keep, len(t.marks)+len(repl)/markEvery+1)
	copy(marks, t.marks[:keep])
	gapEnd := len(s)
	if tail < len(t.marks) {
		gapEnd = t.marks[tail].off + bytes
	}
	marks = appendMarks(marks, s, gapEnd)
	for _, m := range t.marks[tail:] {
		marks = append(marks, lineMark{m.off + bytes, m.line + lines})
	}
	return text{s: s, marks: marks}
}

// lines is the number of lines; a text that ends with a line break has an
// empty last line.
func (t text) lines() int {
	last := t.marks[len(t.marks)-1]
	return last.line + strings.Count(t.s[last.off:], "\n") + 1
}

// lineStart is the byte offset at which the line begins; ok is false past the
// last line.
func (t text) lineStart(line int) (off int, ok bool) {
	if line <= 0 {
		return 0, line == 0
	}
	// The last mark with fewer line breaks before it than we need.
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].line >= line }) - 1
	off = t.marks[i].off
	for n := line - t.marks[i].line; n > 0; n-- {
		j := strings.IndexByte(t.s[off:], '\n')
		if j < 0 {
			return 0, false
		}
		off += j + 1
	}
	return off, true
}

// lineAt is the line that holds the byte offset, and where that line starts.
func (t text) lineAt(off int) (line, start int) {
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].off > off }) - 1
	m := t.marks[i]
	line = m.line + strings.Count(t.s[m.off:off], "\n")
	return line, strings.LastIndexByte(t.s[:off], '\n') + 1
}

// lineEnd is the offset of the end of the line's content: before its "\n" or
// "\r\n", or the end of the text.
func (t text) lineEnd(start int) int {
	j := strings.IndexByte(t.s[start:], '\n')
	if j < 0 {
		return len(t.s)
	}
	end := start + j
	if end > start && t.s[end-1] == '\r' {
		end--
	}
	return end
}
