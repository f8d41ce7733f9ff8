package term

import (
	"fmt"
	"strings"
)

// diffLine is one line of a parsed unified diff.
type diffLine struct {
	kind byte // ' ' '+' '-' '@' (between hunks) '\\' (remark)
	num  int  // line number, from 1, in the new text; 0 for '-'
	text string
	// from and to bound the part that changed, in bytes; from == to: none.
	from, to int
}

// diff shows a unified diff: numbered lines, no headers, bounded.
func (r *Renderer) diff(lines []diffLine, created bool) {
	most := linesOfDiff
	if created {
		most = linesOfNewFile
	}
	markChanges(lines)
	digits, added, removed := 2, 0, 0
	for _, l := range lines {
		digits = max(digits, len(itoa(l.num)))
		switch l.kind {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	for i, l := range lines {
		if i == most-1 && len(lines) > most {
			rest := "… " + plural(len(lines)-i, "more line")
			if added > 0 && removed > 0 {
				rest += fmt.Sprintf(", +%d −%d in all", added, removed)
			}
			r.line(seg{spaces(4), nil}, seg{spaces(digits), nil}, seg{"   " + rest, r.pal.dim})
			return
		}
		r.diffLine(l, digits)
	}
}

func (r *Renderer) diffLine(l diffLine, digits int) {
	num := fmt.Sprintf("    %*d ", digits, l.num)
	if l.kind == '-' {
		num = spaces(5 + digits) // its number is gone with it
	}
	switch l.kind {
	case '@':
		r.line(seg{spaces(4+digits) + " ⋯", r.pal.dim})
		return
	case '\\':
		r.line(seg{spaces(4+digits) + "   " + expandTabs(Visible(l.text), 0), r.pal.dim})
		return
	}
	st, hi, sign := r.pal.dim, r.pal.dim, "  "
	switch l.kind {
	case '+':
		st, hi, sign = r.pal.add, r.pal.addHi, "+ "
	case '-':
		st, hi, sign = r.pal.del, r.pal.delHi, "- "
	}
	segs := []seg{{num, r.pal.dim}, {sign, st}}
	col := 0
	for i, part := range []string{l.text[:l.from], l.text[l.from:l.to], l.text[l.to:]} {
		if part == "" {
			continue
		}
		t := expandTabs(Visible(part), col)
		col += cells(t)
		s := st
		if i == 1 {
			s = hi
		}
		segs = append(segs, seg{t, s})
	}
	if r.width() == 0 {
		segs = cutSegs(segs, 300)
	}
	r.line(segs...)
}

// parseDiff reads a unified diff. Lines that belong to no hunk, but for the
// file headers, are remarks.
func parseDiff(d string) []diffLine {
	var out []diffLine
	newN := 0
	inHunk := false
	for line := range strings.SplitSeq(strings.TrimSuffix(d, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case strings.HasPrefix(line, "@@"):
			if inHunk {
				out = append(out, diffLine{kind: '@'})
			}
			_, rest, _ := strings.Cut(line, "+")
			newN, inHunk = 0, true
			_, _ = fmt.Sscanf(rest, "%d", &newN)
		case !inHunk && isDiffHeader(line):
		case inHunk && line == "":
			out = append(out, diffLine{kind: ' ', num: newN})
			newN++
		case inHunk && line[0] == '+':
			out = append(out, diffLine{kind: '+', num: newN, text: line[1:]})
			newN++
		case inHunk && line[0] == '-':
			out = append(out, diffLine{kind: '-', text: line[1:]})
		case inHunk && line[0] == ' ':
			out = append(out, diffLine{kind: ' ', num: newN, text: line[1:]})
			newN++
		case strings.HasPrefix(line, `\`):
			out = append(out, diffLine{kind: '\\', text: "(no line break at the end of the file)"})
		default:
			out = append(out, diffLine{kind: '\\', text: line})
		}
	}
	return out
}

// isDiffHeader reports whether a line before the hunks says only what the
// command's own line says already.
func isDiffHeader(line string) bool {
	for _, p := range []string{"--- ", "+++ ", "diff ", "index ", "new file", "deleted file", "copy ", "rename ", "similarity ", "old mode", "new mode"} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return line == ""
}

// markChanges finds, in removed lines followed by as many added ones, the part
// of each pair that differs. Pairs with little in common are left alone.
func markChanges(lines []diffLine) {
	for i := 0; i < len(lines); {
		if lines[i].kind != '-' {
			i++
			continue
		}
		j := i
		for j < len(lines) && lines[j].kind == '-' {
			j++
		}
		k := j
		for k < len(lines) && lines[k].kind == '+' {
			k++
		}
		if j-i == k-j {
			for n := range j - i {
				markPair(&lines[i+n], &lines[j+n])
			}
		}
		i = k
	}
}

func markPair(a, b *diffLine) {
	x, y := a.text, b.text
	pre := 0
	for pre < len(x) && pre < len(y) && x[pre] == y[pre] {
		pre++
	}
	for pre > 0 && (pre < len(x) && !wordStart(x, pre) || pre < len(y) && !wordStart(y, pre)) {
		pre--
	}
	suf := 0
	for suf < len(x)-pre && suf < len(y)-pre && x[len(x)-1-suf] == y[len(y)-1-suf] {
		suf++
	}
	for suf > 0 && (!wordStart(x, len(x)-suf) || !wordStart(y, len(y)-suf)) {
		suf--
	}
	if pre+suf == 0 || strings.TrimSpace(x[:pre]+x[len(x)-suf:]) == "" {
		return
	}
	a.from, a.to = pre, len(x)-suf
	b.from, b.to = pre, len(y)-suf
}

// wordStart reports whether a word may be cut before byte i: not inside a
// character, and not between two letters or digits.
func wordStart(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	if s[i] >= 0x80 || s[i-1] >= 0x80 {
		return s[i] < 0x80 || s[i] >= 0xc0 && s[i-1] < 0x80
	}
	return !(alnum(s[i]) && alnum(s[i-1]))
}

func alnum(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
