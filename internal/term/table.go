package term

import (
	"strings"
)

// flushTable writes the rows that were held back: in columns as wide as the
// width allows, cells wrapped; as "head: cell" lines where there is no room.
func (p *prose) flushTable(f *flow) {
	rows := p.table
	p.table = nil
	if len(rows) == 0 {
		return
	}
	var cellsOf [][]string
	for _, r := range rows {
		cellsOf = append(cellsOf, splitRow(r))
	}
	if len(rows) < 2 || !isDelimiter(cellsOf[1]) { // no table after all
		for _, r := range rows {
			p.direct(f, seg{r, nil})
		}
		return
	}
	head, body := cellsOf[0], cellsOf[2:]
	for i := range head {
		head[i] = p.plain(head[i])
	}
	for _, row := range body {
		for i := range row {
			row[i] = p.plain(row[i])
		}
	}
	f.breaks = max(f.breaks, 1)
	room := 1 << 20
	if p.width > 0 {
		room = p.width - f.margin
	}
	wide := columns(head, body, room)
	if wide == nil {
		for n, row := range body {
			if n > 0 {
				f.breaks = 2
			}
			for i, c := range row {
				name := ""
				if i < len(head) && head[i] != "" {
					name = head[i] + ": "
				}
				p.direct(f, seg{name, p.pal.bold}, seg{c, nil})
			}
		}
		f.breaks = 2
		return
	}
	p.row(f, head, wide, p.pal.bold)
	var rule []string
	for _, w := range wide {
		rule = append(rule, strings.Repeat("─", w))
	}
	p.direct(f, seg{strings.Join(rule, "─┼─"), p.pal.dim})
	for _, row := range body {
		p.row(f, row, wide, nil)
	}
	f.breaks = max(f.breaks, 2)
}

func (p *prose) row(f *flow, row []string, wide []int, st style) {
	lines, most := make([][]string, len(wide)), 1
	for i, w := range wide {
		if i < len(row) {
			lines[i] = wrapText(row[i], w)
			most = max(most, len(lines[i]))
		}
	}
	for n := range most {
		var segs []seg
		for i, w := range wide {
			if i > 0 {
				segs = append(segs, seg{" │ ", p.pal.dim})
			}
			c := ""
			if n < len(lines[i]) {
				c = lines[i][n]
			}
			if i < len(wide)-1 {
				c = pad(c, w)
			}
			segs = append(segs, seg{c, st})
		}
		for n := len(segs) - 1; n >= 0; n-- { // no blanks at the end of the line
			if segs[n].text = strings.TrimRight(segs[n].text, " "); segs[n].text != "" {
				break
			}
		}
		p.direct(f, segs...)
	}
}

// plain is a cell without the marks of its inline Markdown.
func (p *prose) plain(s string) string {
	last := p.last
	segs, _ := p.inline(s, true, nil)
	p.last = last
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.text)
	}
	return b.String()
}

// columns shares the room among the columns: each gets what it needs, the
// widest give way. nil: there is too little for any.
func columns(head []string, body [][]string, room int) []int {
	const least = 6
	var wide []int
	for _, row := range append([][]string{head}, body...) {
		for i, c := range row {
			if i == len(wide) {
				wide = append(wide, 1)
			}
			wide[i] = max(wide[i], cells(c))
		}
	}
	room -= 3 * (len(wide) - 1)
	sum := 0
	for _, w := range wide {
		sum += w
	}
	for sum > room {
		at := 0
		for i, w := range wide {
			if w > wide[at] {
				at = i
			}
		}
		if wide[at] <= least {
			return nil
		}
		wide[at]--
		sum--
	}
	return wide
}

// splitRow cuts a row at its bars; a bar in a code span or behind a backslash
// is text.
func splitRow(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var out []string
	var b strings.Builder
	code := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			i++
			b.WriteByte('|')
		case c == '`':
			code = !code
			b.WriteByte(c)
		case c == '|' && !code:
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	if rest := strings.TrimSpace(b.String()); rest != "" {
		out = append(out, rest)
	}
	return out
}

func isDelimiter(row []string) bool {
	for _, c := range row {
		if !strings.Contains(c, "-") || strings.Trim(c, ":-") != "" {
			return false
		}
	}
	return len(row) > 0
}
