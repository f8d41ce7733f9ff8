package term

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"thinkflow/internal/redact"
)

// tabWidth is the distance of tab stops, in cells.
const tabWidth = 4

// Visible makes everything visible that would steer a terminal or hide itself:
// see [redact.Visible].
func Visible(s string) string { return redact.Visible(s) }

// VisibleName is Visible for names and paths, on one line: line breaks, tabs
// and joiners are shown too.
func VisibleName(s string) string { return redact.VisibleLine(s) }

// visiblePiece is Visible for a piece of a stream: a joiner at its edge belongs
// to a neighbour that is not here.
func visiblePiece(s string) string {
	const joiners = "\u200c\u200d\ufe0e\ufe0f"
	mid := strings.TrimLeft(s, joiners)
	head := s[:len(s)-len(mid)]
	core := strings.TrimRight(mid, joiners)
	return head + Visible(core) + mid[len(core):]
}

// cells is the width of a string that Visible has treated.
func cells(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(s)
		}
		n++
	}
	return n
}

// expandTabs replaces tabs by blanks up to the next tab stop; col is the cell
// in which s begins.
func expandTabs(s string, col int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			n := tabWidth - col%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			col += n
		}
		b.WriteString(part)
		col += cells(part)
	}
	return b.String()
}

// cut shortens s to at most width cells, marking a cut with an ellipsis.
func cut(s string, width int) string {
	if cells(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	n, i, state := 0, 0, -1
	for rest := s; rest != ""; {
		var c string
		var w int
		c, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if n+w > width-1 {
			break
		}
		n += w
		i += len(c)
	}
	return s[:i] + "…"
}

// cutMiddle shortens a path to at most width cells, keeping its end, which says
// more than its beginning.
func cutMiddle(s string, width int) string {
	if cells(s) <= width {
		return s
	}
	if width < 2 {
		return cut(s, width)
	}
	for i := range s {
		if i > 0 && cells(s[i:]) <= width-1 {
			return "…" + s[i:]
		}
	}
	return "…"
}

// seg is a piece of one line with its style. Text holds no line breaks.
type seg struct {
	text string
	st   style
}

// segsCells is the width of a line.
func segsCells(line []seg) int {
	n := 0
	for _, s := range line {
		n += cells(s.text)
	}
	return n
}

// cutSegs shortens a line to width cells; 0 means no bound.
func cutSegs(line []seg, width int) []seg {
	if width <= 0 || segsCells(line) <= width {
		return line
	}
	var out []seg
	left := width
	for _, s := range line {
		w := cells(s.text)
		if w < left {
			out = append(out, s)
			left -= w
			continue
		}
		// Something follows or this piece is too long: cut here. A cell stays
		// for the ellipsis.
		t := cut(s.text+"…", left)
		out = append(out, seg{t, s.st})
		break
	}
	return out
}

// wrapText breaks plain text into lines of at most width cells at blanks;
// width 0 does not wrap. Line breaks in s are kept.
func wrapText(s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		line = expandTabs(line, 0)
		if width <= 0 || cells(line) <= width {
			out = append(out, line)
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if len(lead) > width/2 {
			lead = ""
		}
		cur, n := lead, len(lead)
		for _, word := range strings.Fields(line) {
			w := cells(word)
			if n > len(lead) && n+1+w > width {
				out = append(out, cur)
				cur, n = lead, len(lead)
			}
			if n > len(lead) {
				cur += " "
				n++
			}
			for n+w > width { // longer than a line: break it hard
				head := strings.TrimSuffix(cut(word, width-n+1), "…")
				if head == "" {
					break
				}
				out = append(out, cur+head)
				word = word[len(head):]
				cur, n, w = lead, len(lead), cells(word)
			}
			cur += word
			n += w
		}
		out = append(out, cur)
	}
	return out
}
