package parser

// markdown follows the little of CommonMark that decides whether a tag is live:
// fences and inline code, with the list items and quotes that fences stand in.
// It sees every byte of the visible text but those of executed tags.
type markdown struct {
	plain bool // no fences and code: only line starts are followed

	phase mdPhase
	col   int  // column of the next byte, counted inside quotes
	clean bool // only blanks so far on this line
	seen  bool // something visible stood outside of fences

	list    int  // column at which the content of the current list item starts
	marked  bool // a list marker stood on this line
	markEnd int  // column after it
	digits  int

	quote, prevQuote bool // ">" stood on this line, on the one before
	quoteSpace       bool // the blank after ">" is not indentation

	run      int  // length of the run of backticks or tildes being read
	runChar  byte //
	runStart bool // the run may open a fence: it starts its line
	escaped  bool // a backslash came directly before

	code  int  // length of the run that opened inline code; 0: none
	maybe bool // that run opens a fence if no backtick follows on its line
	tilde int  // length of a ~~~ run whose info string is being read

	fence      int // length of the opening fence; 0: none is open
	fenceChar  byte
	fenceBase  int
	fenceQuote bool
}

type mdPhase uint8

const (
	mdPrefix mdPhase = iota // blanks and container markers so far
	mdMarker                // after "-", "+" or "*": a blank makes it a list marker
	mdNumber                // in the digits of what may be a list marker
	mdNumberEnd
	mdRun // in a run of backticks or tildes
	mdText
	mdFencePrefix
	mdFenceRun
	mdFenceTail // a closing fence, if only blanks follow
	mdFenceText
)

// mdEvent is what a byte changed.
type mdEvent uint8

const (
	mdNothing    mdEvent = iota
	mdCodeClosed         // inline code was closed
	mdCodeCut            // inline code ended with its line
	mdFenceOpened
	mdFenceClosed
)

// live reports whether a tag here can be a command.
func (m *markdown) live() bool { return m.fence == 0 && m.code == 0 && m.tilde == 0 }

// inside reports whether the bytes here are shown text of a fence or of inline code.
func (m *markdown) inside() bool { return m.fence > 0 || m.code > 0 }

// restart puts the machine at the start of a visible line.
func (m *markdown) restart() { *m = markdown{plain: m.plain, seen: m.seen, clean: true} }

// next takes one byte of text.
func (m *markdown) next(c byte) mdEvent {
	if c == '\n' {
		return m.lineEnd()
	}
	ev := mdNothing
	if m.phase == mdRun {
		if c == m.runChar {
			m.run++
			m.col++
			return mdNothing
		}
		ev = m.endRun()
	}
	switch m.phase {
	case mdPrefix:
		m.prefix(c)
	case mdMarker:
		m.afterMarker(c, m.col)
	case mdNumber:
		switch {
		case isDigit(c) && m.digits < 9:
			m.digits++
			m.col++
		case c == '.' || c == ')':
			m.col++
			m.phase = mdNumberEnd
		default:
			m.text(c)
		}
	case mdNumberEnd:
		m.afterMarker(c, m.col)
	case mdText:
		m.text(c)
	default:
		return m.inFence(c)
	}
	return ev
}

// settle decides what the byte that follows decides, without taking it.
func (m *markdown) settle(c byte) mdEvent {
	switch {
	case m.phase == mdRun && c != m.runChar:
		return m.endRun()
	case m.phase == mdFencePrefix && m.fenceQuote && !m.quote && !isSpace(c) && c != '>':
		m.fence = 0
		m.phase = mdPrefix
		return mdFenceClosed
	}
	return mdNothing
}

// skipTag says that a tag stood here which is not text.
func (m *markdown) skipTag() {
	if m.phase != mdText {
		m.content()
		m.phase = mdText
	}
	m.clean, m.escaped = false, false
}

func (m *markdown) prefix(c byte) {
	switch {
	case isBlank(c):
		m.blank(c)
		return
	case m.plain:
		m.text(c)
		return
	}
	m.content()
	m.clean = false
	fits := m.col-m.list <= 3
	switch {
	case c == '>' && fits:
		m.seen = true
		m.openQuote()
	case (c == '-' || c == '+' || c == '*') && fits:
		m.seen = true
		m.col++
		m.phase = mdMarker
	case isDigit(c) && fits:
		m.seen = true
		m.digits = 1
		m.col++
		m.phase = mdNumber
	case c == '`' || c == '~':
		m.startRun(c, fits)
	default:
		m.text(c)
	}
}

// blank counts indentation.
func (m *markdown) blank(c byte) {
	switch {
	case c == '\r':
	case m.quoteSpace:
		m.quoteSpace = false
		if c == '\t' {
			m.col += 2
		}
	case c == '\t':
		m.col += 4 - m.col%4
	default:
		m.col++
	}
}

func (m *markdown) openQuote() {
	if !m.quote && !m.prevQuote {
		m.list = 0
	}
	m.quote, m.quoteSpace = true, true
	m.col, m.marked = 0, false
	m.phase = mdPrefix
}

// content says that the content of the line starts at the current column.
func (m *markdown) content() {
	m.quoteSpace = false
	switch {
	case m.marked && m.col-m.markEnd > 4:
		m.list = m.markEnd + 1
	case m.marked:
		m.list = m.col
	default:
		m.list = min(m.list, m.col)
	}
	m.marked = false
}

func (m *markdown) afterMarker(c byte, end int) {
	if !isBlank(c) {
		m.text(c)
		return
	}
	m.marked, m.markEnd = true, end
	m.phase = mdPrefix
	m.blank(c)
}

func (m *markdown) text(c byte) {
	m.phase = mdText
	m.clean = false
	if m.tilde == 0 && !m.maybe {
		m.seen = true
	}
	if c == '`' && m.tilde == 0 && !m.plain {
		m.startRun(c, false)
		return
	}
	m.escaped = c == '\\' && !m.escaped
}

func (m *markdown) startRun(c byte, start bool) {
	m.run, m.runChar, m.runStart = 1, c, start
	m.col++
	m.phase = mdRun
}

// endRun decides what a run of backticks or tildes was.
func (m *markdown) endRun() mdEvent {
	m.phase = mdText
	n := m.run
	if m.runChar == '~' {
		if m.runStart && n >= 3 {
			m.tilde = n
		} else {
			m.seen = true
		}
		return mdNothing
	}
	escaped := m.escaped
	m.escaped = false
	if m.code > 0 {
		if m.maybe {
			m.maybe, m.seen = false, true
		}
		if n == m.code {
			m.code = 0
			return mdCodeClosed
		}
		return mdNothing
	}
	if escaped {
		n--
	}
	m.code = n
	m.maybe = m.runStart && n >= 3
	if !m.maybe {
		m.seen = true
	}
	return mdNothing
}

func (m *markdown) inFence(c byte) mdEvent {
	switch m.phase {
	case mdFencePrefix:
		switch {
		case isBlank(c):
			m.blank(c)
		case m.fenceQuote && !m.quote && c == '>':
			m.quote, m.quoteSpace = true, true
			m.col = 0
		case m.fenceQuote && !m.quote:
			m.fence = 0
			m.phase = mdPrefix
			m.next(c)
			return mdFenceClosed
		case c == m.fenceChar && m.col-m.fenceBase <= 3:
			m.run = 1
			m.phase = mdFenceRun
		default:
			m.phase = mdFenceText
		}
	case mdFenceRun:
		switch {
		case c == m.fenceChar:
			m.run++
		case isBlank(c) && m.run >= m.fence:
			m.phase = mdFenceTail
		default:
			m.phase = mdFenceText
		}
	case mdFenceTail:
		if !isBlank(c) {
			m.phase = mdFenceText
		}
	}
	m.clean = m.clean && isBlank(c)
	return mdNothing
}

// lineEnd takes a line break.
func (m *markdown) lineEnd() mdEvent {
	ev := mdNothing
	if m.phase == mdRun {
		ev = m.endRun()
	}
	switch {
	case m.fence > 0:
		if m.closesFence() {
			m.fence = 0
			ev = mdFenceClosed
		}
	case m.tilde > 0:
		m.openFence('~', m.tilde)
		ev = mdFenceOpened
	case m.maybe:
		m.openFence('`', m.code)
		ev = mdFenceOpened
	case m.code > 0:
		ev = mdCodeCut
	case m.phase == mdMarker || m.phase == mdNumberEnd:
		m.list = m.col + 1 // an item that starts with an empty line
	case m.marked:
		m.list = m.markEnd + 1
	}
	m.phase = mdPrefix
	if m.fence > 0 {
		m.phase = mdFencePrefix
	}
	m.col, m.clean, m.marked = 0, true, false
	m.prevQuote, m.quote, m.quoteSpace = m.quote, false, false
	m.code, m.maybe, m.tilde, m.escaped = 0, false, 0, false
	return ev
}

func (m *markdown) openFence(c byte, n int) {
	m.fence, m.fenceChar, m.fenceBase, m.fenceQuote = n, c, m.list, m.quote
}

// closesFence reports whether the line of a fence that ends here closes it.
func (m *markdown) closesFence() bool {
	if m.fenceQuote && !m.quote {
		return true
	}
	return m.phase == mdFenceTail || m.phase == mdFenceRun && m.run >= m.fence
}
