package term

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// flow writes streamed text word by word, wrapped to a limit. It holds back the
// word that is still growing, line breaks at the end (so that trailing empty
// lines never show) and the bytes of a character that is not complete.
type flow struct {
	s      *screen
	margin int // cells before every line
	limit  int // last usable cell of a line; 0 = no wrapping
	base   style
	code   style
	head   style

	torn    string // bytes of an incomplete character
	word    []cell
	wordW   int
	blanks  int  // blanks before the word
	breaks  int  // line breaks not yet written
	started bool // something of this block was written
	begun   bool // something stands on the current line
	hang    int  // further indent of wrapped lines
	lead    int  // leading blanks of the current line
	inCode  bool
	inFence bool
	heading bool
	first   string // beginning of the current line, to recognise fences and lists
}

type cell struct {
	text string
	w    int
	st   style
}

// write adds streamed text, raw.
func (f *flow) write(s string) {
	s = f.torn + s
	f.torn = ""
	if n := tornTail(s); n > 0 {
		s, f.torn = s[:len(s)-n], s[len(s)-n:]
	}
	if strings.HasSuffix(s, "\r") { // may be half of a line break
		s, f.torn = s[:len(s)-1], "\r"+f.torn
	}
	state := -1
	for rest := visiblePiece(s); rest != ""; {
		var c string
		var w int
		c, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		switch c {
		case "\n":
			f.endLine()
		case " ":
			f.endWord()
			f.blanks++
		case "\t":
			f.endWord()
			f.blanks += tabWidth - (f.lineCells()+f.blanks)%tabWidth
		default:
			f.add(c, w)
		}
	}
}

// lineCells is how far the text reaches on the current line, without margin.
func (f *flow) lineCells() int {
	if !f.begun {
		return 0
	}
	return max(0, f.s.col-f.margin)
}

func (f *flow) add(c string, w int) {
	st := f.base
	if len(f.first) < 8 {
		f.first += c
		if f.first == "#" || strings.HasPrefix(f.first, "# ") || strings.HasPrefix(f.first, "##") {
			f.heading = f.head != nil && !f.inFence
		}
	}
	tick := c == "`" && !f.inFence && !strings.HasPrefix(f.first, "```")
	if tick && !f.inCode {
		f.inCode = true
		st = f.code
	} else if f.inCode || f.inFence {
		st = f.code
		if tick {
			f.inCode = false
		}
	} else if f.heading {
		st = f.head
	}
	if f.code == nil {
		st = f.base
	}
	f.word = append(f.word, cell{c, w, st})
	f.wordW += w
}

func (f *flow) endWord() {
	if len(f.word) == 0 {
		return
	}
	f.open()
	f.s.lift()
	if f.begun && f.s.col == 0 { // the window was resized: the line goes on in a new one
		f.s.put(strings.Repeat(" ", f.margin), f.margin)
		f.blanks = 0
	}
	if f.limit > 0 && f.begun && f.s.col+f.blanks+f.wordW > f.limit {
		f.wrap()
	}
	if !f.begun {
		f.lead = f.blanks
		f.hang = f.lead
		if marker := strings.TrimRight(f.wordText(), "."); marker == "-" || marker == "*" || marker == "•" || marker == "│" || len(marker) < 3 && isDigits(marker) {
			f.hang += f.wordW + 1
		}
		if f.limit > 0 && f.margin+f.lead > f.limit/2 {
			f.blanks, f.lead, f.hang = 0, 0, 0
		}
		f.s.put(strings.Repeat(" ", f.margin), f.margin)
	}
	f.s.put(strings.Repeat(" ", f.blanks), f.blanks)
	f.blanks = 0
	f.begun = true
	f.putWord()
}

func (f *flow) wordText() string {
	var b strings.Builder
	for _, c := range f.word {
		b.WriteString(c.text)
	}
	return b.String()
}

// putWord writes the word in runs of one style, broken hard where it is longer
// than a line.
func (f *flow) putWord() {
	run, w := "", 0
	var st style
	flush := func() {
		f.s.put(paint(st, run), w)
		run, w = "", 0
	}
	for _, c := range f.word {
		if f.limit > 0 && f.s.col+w+c.w > f.limit {
			flush()
			f.wrap()
		}
		if c.st != st {
			flush()
			st = c.st
		}
		run += c.text
		w += c.w
	}
	flush()
	f.word, f.wordW = f.word[:0], 0
}

// wrap continues on the next line, under the text.
func (f *flow) wrap() {
	f.s.newline()
	in := f.margin + f.hang
	if in > f.limit/2 {
		in = f.margin
	}
	f.s.put(strings.Repeat(" ", in), in)
	f.blanks = 0
}

// open writes the line breaks that were held back.
func (f *flow) open() {
	if f.started {
		for range min(f.breaks, 2) {
			f.s.newline()
		}
	}
	f.breaks, f.started = 0, true
}

func (f *flow) endLine() {
	f.endWord()
	if strings.HasPrefix(f.first, "```") {
		f.inFence = !f.inFence
	}
	f.breaks++
	f.begun, f.blanks, f.lead, f.hang = false, 0, 0, 0
	f.inCode, f.heading, f.first = false, false, ""
}

// end finishes the block: what was held back is written, but for line breaks
// and blanks at its end.
func (f *flow) end() {
	if f.torn != "" {
		t := f.torn
		f.torn = ""
		for _, r := range VisibleName(t) {
			f.add(string(r), 1)
		}
	}
	f.endWord()
	f.s.fresh()
	fence := f.inFence
	*f = flow{s: f.s, margin: f.margin, limit: f.limit, base: f.base, code: f.code, head: f.head, inFence: fence, word: f.word[:0]}
}

// tornTail is the number of bytes at the end of s that begin a character whose
// rest has not come.
func tornTail(s string) int {
	for n := 1; n <= min(3, len(s)); n++ {
		c := s[len(s)-n]
		if utf8.RuneStart(c) {
			if c >= 0xc0 && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
