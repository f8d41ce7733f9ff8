package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// prose writes streamed Markdown into a flow, for renderers that are inline. A
// library that parses documents would have to be given the text again and again
// as it grows; this one decides as soon as a decision cannot change any more,
// and nothing that was written is ever written anew. What it does not know
// stays as the model wrote it.
//
// Held back are: the beginning of a line until its kind is clear, an emphasis,
// a code span and a link until their end (at most maxHeld bytes), a line of
// code until it is whole, and a table until its last row.
type prose struct {
	pal   *palette
	width int // of a line of code or a table, in cells

	torn  string // bytes of an incomplete character
	line  string // rest of the current line, treated, not yet written
	begun bool   // the kind of the current line is known
	st    style  // of the current line
	quote bool
	last  rune // written last on this line
	fence string
	diff  bool // the code is a diff
	table []string
}

// maxHeld bounds what waits for a closing mark, in bytes.
const maxHeld = 300

// write adds streamed text, raw.
func (p *prose) write(f *flow, s string) {
	s = p.torn + s
	p.torn = ""
	if n := tornTail(s); n > 0 {
		s, p.torn = s[:len(s)-n], s[len(s)-n:]
	}
	if strings.HasSuffix(s, "\r") { // may be half of a line break
		s, p.torn = s[:len(s)-1], "\r"+p.torn
	}
	p.line += visiblePiece(s)
	for {
		line, rest, ok := strings.Cut(p.line, "\n")
		if !ok {
			break
		}
		p.feed(f, line, true)
		p.line = rest
	}
	p.line = p.feed(f, p.line, false)
}

// end writes all that is held back.
func (p *prose) end(f *flow) {
	if p.torn != "" {
		p.line += VisibleName(p.torn)
	}
	if p.line != "" || p.begun {
		p.feed(f, p.line, true)
	}
	p.flushTable(f)
	*p = prose{pal: p.pal, width: p.width, fence: p.fence, diff: p.diff}
}

// held is what the current line has that is not written yet.
func (p *prose) held() string { return p.line }

// feed takes the rest of a line, which is whole or may go on, and returns what
// it could not yet decide on.
func (p *prose) feed(f *flow, text string, whole bool) (rest string) {
	if p.fence != "" {
		if whole {
			p.codeLine(f, text)
			return ""
		}
		return text
	}
	if !p.begun {
		var ok bool
		if text, ok = p.begin(f, text, whole); !ok {
			return text
		}
	}
	segs, rest := p.inline(text, whole, p.st)
	for _, s := range segs {
		p.emit(f, s)
	}
	if whole {
		f.endLine()
		p.begun, p.st, p.quote, p.last = false, nil, false, 0
	}
	return rest
}

// begin finds out what kind of line this is and writes its mark. It reports
// whether the line goes on as running text; if not, what is returned waits.
func (p *prose) begin(f *flow, text string, whole bool) (rest string, ok bool) {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	if body == "" {
		if whole {
			p.flushTable(f)
			f.endLine()
			return "", false
		}
		return text, false
	}
	if body[0] == '|' || len(p.table) > 0 && strings.Count(body, "|") > 0 {
		if !whole {
			return text, false
		}
		p.table = append(p.table, body)
		return "", false
	}
	if len(p.table) > 0 {
		if !whole { // may be a row without its outer bars
			return text, false
		}
		p.flushTable(f)
	}
	if mark := body[:len(body)-len(strings.TrimLeft(body, body[:1]))]; body[0] == '`' || body[0] == '~' {
		switch {
		case len(mark) >= 3 && (body[0] == '~' || !strings.Contains(body[len(mark):], "`")):
			if !whole {
				return text, false
			}
			lang := strings.TrimSpace(body[len(mark):])
			p.fence, p.diff = mark, strings.HasPrefix(lang, "diff") || strings.HasPrefix(lang, "patch")
			f.breaks = max(f.breaks, 2)
			return "", false
		case len(mark) == len(body) && len(mark) < 3 && !whole:
			return text, false
		}
	}
	if isRule(body) {
		if !whole {
			return text, false
		}
		if n := strings.Count(body, body[:1]); n >= 3 {
			p.direct(f, seg{strings.Repeat("─", max(3, min(p.width, f.limit)-f.margin)), p.pal.dim})
			return "", false
		}
	}
	if !whole && strings.Trim(body, "#>-*+.)0123456789 ") == "" && len(body) < 12 {
		return text, false // a mark, or the beginning of one
	}
	p.begun = true
	level := len(body) - len(strings.TrimLeft(body, "#"))
	switch c := body[0]; {
	case c == '#' && level <= 6:
		if level < len(body) && body[level] != ' ' {
			return text, true // a hash tag
		}
		p.st = p.pal.heading
		if level == 1 {
			p.st = p.pal.title
		}
		return strings.TrimLeft(body[level:], " "), true
	case c == '>':
		p.st = p.pal.think
		f.blanks = indent
		p.emit(f, seg{"│ ", p.pal.dim})
		return strings.TrimPrefix(body[1:], " "), true
	case c == '-' || c == '*' || c == '+':
		if len(body) > 1 && body[1] == ' ' {
			f.blanks = indent
			p.emit(f, seg{"• ", p.pal.info})
			return strings.TrimLeft(body[2:], " "), true
		}
	case c >= '0' && c <= '9':
		n := len(body) - len(strings.TrimLeft(body, "0123456789"))
		if n <= 3 && len(body) > n+1 && (body[n] == '.' || body[n] == ')') && body[n+1] == ' ' {
			f.blanks = indent
			p.emit(f, seg{body[:n] + ". ", p.pal.info})
			return strings.TrimLeft(body[n+2:], " "), true
		}
	}
	return text, true
}

// isRule reports whether the line is, or may become, a thematic break.
func isRule(body string) bool {
	return strings.Contains("-*_", body[:1]) && strings.Trim(body, body[:1]+" ") == "" && (len(body) > 2 || strings.Trim(body, body[:1]) == "") && !strings.HasPrefix(body, "- -")
}

// codeLine writes a line of a code block, or ends the block.
func (p *prose) codeLine(f *flow, text string) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, p.fence) && strings.Trim(trimmed, p.fence[:1]) == "" {
		p.fence = ""
		f.breaks = max(f.breaks, 2)
		return
	}
	text = expandTabs(text, 0)
	if strings.TrimSpace(text) == "" {
		f.endLine()
		return
	}
	st := p.pal.code
	if p.diff {
		switch text[0] {
		case '+':
			st = p.pal.add
		case '-':
			st = p.pal.del
		case '@':
			st = p.pal.dim
		default:
			st = nil
		}
	}
	p.direct(f, seg{"  ", nil}, seg{text, st})
}

// direct writes one line of its own, broken hard where it is too long.
func (p *prose) direct(f *flow, segs ...seg) {
	f.endWord()
	f.open()
	f.s.fresh()
	f.s.put(spaces(f.margin), f.margin)
	for _, s := range segs {
		for rest := s.text; rest != ""; {
			head := rest
			if p.width > 0 {
				head = clip(rest, max(2, p.width-f.s.col))
			}
			f.s.put(paint(s.st, head), cells(head))
			if rest = rest[len(head):]; rest != "" {
				f.s.newline()
				f.s.put(spaces(f.margin+2), f.margin+2)
			}
		}
	}
	f.breaks, f.begun = 1, false
}

// clip is the beginning of s that fits, at least one character.
func clip(s string, width int) string {
	n, i, state := 0, 0, -1
	for rest := s; rest != ""; {
		var c string
		var w int
		c, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if n+w > width && i > 0 {
			break
		}
		n += w
		i += len(c)
	}
	return s[:i]
}

// emit writes a piece of running text.
func (p *prose) emit(f *flow, s seg) {
	state := -1
	for rest := s.text; rest != ""; {
		var c string
		var w int
		c, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		switch c {
		case " ":
			f.endWord()
			f.blanks++
		case "\t":
			f.endWord()
			f.blanks += tabWidth - (f.lineCells()+f.blanks)%tabWidth
		default:
			f.word = append(f.word, cell{c, w, s.st})
			f.wordW += w
		}
	}
}

// inline splits running text into pieces of one style. A mark whose end has not
// come stops it, unless the line is whole or the text held back gets long; then
// the mark is text.
func (p *prose) inline(text string, whole bool, st style) (out []seg, rest string) {
	plain := 0 // where the text that is not yet in out begins
	i := 0
	put := func(to int) {
		if to > plain {
			out = append(out, seg{text[plain:to], st})
			p.last, _ = utf8.DecodeLastRuneInString(text[:to])
		}
	}
	for i < len(text) {
		n, piece, style, found := 0, "", st, false
		switch c := text[i]; c {
		case '\\':
			if i+1 == len(text) && !whole {
				put(i)
				return out, text[i:]
			}
			if i+1 < len(text) && text[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(text[i+1])) {
				put(i)
				plain = i + 1
				i += 2
				continue
			}
		case '`':
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
			if end := strings.Index(text[i+run:], text[i:i+run]); end > 0 {
				n, piece, style, found = end+2*run, text[i:i+run+end+run], p.pal.code, true
				if p.pal.code != nil { // the colour says it
					piece = text[i+run : i+run+end]
				}
			} else {
				n = run
			}
		case '*', '_', '~':
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], string(c)))
			before := p.last
			if i > plain {
				before, _ = utf8.DecodeLastRuneInString(text[:i])
			}
			n, piece, found = p.emphasis(text[i:], run, before, whole)
			if found {
				put(i)
				style = p.pal.italic
				if c == '~' {
					style = p.pal.strike
				} else if run >= 2 {
					style = p.pal.bold
				}
				inner, _ := p.inline(piece, true, style)
				out = append(out, inner...)
				i += n
				plain = i
				continue
			}
		case '[':
			n, piece, found = link(text[i:])
			style = p.pal.link
		default:
			i++
			continue
		}
		switch {
		case found:
			put(i)
			out = append(out, seg{piece, style})
			p.last = ')'
			i += n
			plain = i
		case n == 0 || whole || len(text)-i > maxHeld: // text
			i += max(1, n)
		default:
			put(i)
			return out, text[i:]
		}
	}
	put(i)
	return out, ""
}

// emphasis reads a span that begins with a run of the same mark. It returns the
// length of the span and the text in it; not found with a length means that the
// end may still come.
func (p *prose) emphasis(text string, run int, before rune, whole bool) (n int, inner string, found bool) {
	c := text[0]
	if run == len(text) { // what it stands before is not known
		return run, "", false
	}
	if run > 3 || c == '~' && run != 2 {
		return 0, "", false
	}
	next, _ := utf8.DecodeRuneInString(text[run:])
	switch {
	case unicode.IsSpace(next), strings.ContainsRune("/.,)", next), // a pattern of file names, a mark of its own
		word(before) && (c == '_' || c == '*' && (run == 1 || !word(next))):
		return 0, "", false
	}
	for from := run; ; {
		at := strings.IndexByte(text[from:], c)
		if at < 0 {
			return run, "", false
		}
		at += from
		marks := len(text[at:]) - len(strings.TrimLeft(text[at:], string(c)))
		end := at + marks
		if end == len(text) && !whole { // may get longer
			return run, "", false
		}
		prev, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[end:])
		closes := marks == run || marks == 3 && run < 3
		if closes && !unicode.IsSpace(prev) && (c != '_' || !word(after)) && strings.Count(text[run:at], "`")%2 == 0 {
			return end, text[run : end-run], true
		}
		from = end
	}
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// link reads [text](target).
func link(text string) (n int, shown string, found bool) {
	mid := strings.IndexByte(text, ']')
	if mid < 0 || mid+1 == len(text) {
		return 1, "", false
	}
	if text[mid+1] != '(' || strings.Contains(text[1:mid], "[") {
		return 0, "", false
	}
	end := strings.IndexByte(text[mid:], ')')
	if end < 0 {
		return 1, "", false
	}
	target := text[mid+2 : mid+end]
	if name := text[1:mid]; name != target && name != "" {
		target = name + " (" + target + ")"
	}
	return mid + end + 1, target, true
}
