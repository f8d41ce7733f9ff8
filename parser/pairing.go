package parser

import "fmt"

// pairing follows the tags that stand in the text: bare openings pair with
// their closing tags; a closing tag that has no opening and stands alone on its
// line means that the body of an earlier command was cut (cases TS-04, TS-36).
type pairing struct {
	// Bare openings that wait for their closing tags: those that start a line,
	// and those in prose, which the next block of that name makes obsolete.
	own, prose [len(known)]int
	// The last block-form command, by the form of its closing tag: without
	// and with a token.
	last [len(known)][2]block

	// A closing tag without an opening, alone on its line so far.
	waiting bool
	name    int
	token   string
	start   int64
	end     int64
	line    int
}

// block is a block-form command that was delivered.
type block struct {
	set     bool
	id      int
	path    string
	token   string
	line    int  // of its closing tag
	inFence bool // its body ends in an open fence
}

func (p *pairing) opened(name int, startsLine bool) {
	if startsLine {
		p.own[name]++
	} else {
		p.prose[name]++
	}
}

// closed pairs a closing tag; it reports whether there was an opening for it.
func (p *pairing) closed(name int) bool {
	switch {
	case p.prose[name] > 0:
		p.prose[name]--
	case p.own[name] > 0:
		p.own[name]--
	default:
		return false
	}
	return true
}

func (p *pairing) wait(name int, token string, start, end int64, line int) {
	p.waiting, p.name, p.token, p.start, p.end, p.line = true, name, token, start, end, line
}

// delivered notes a block-form command.
func (p *pairing) delivered(name int, b block) {
	b.set = true
	form := 0
	if b.token != "" {
		form = 1
	}
	p.last[name][form] = b
	p.prose[name] = 0
}

// lineEnd ends the line of a closing tag that waits: it is an orphan.
func (p *pairing) lineEnd(l *lane) {
	if !p.waiting {
		return
	}
	p.waiting = false
	if l.kind == laneProbe {
		// The fence itself may come out of the body that was cut.
		l.p.main.orphan(p, true)
		return
	}
	l.orphan(p, false)
}

// orphan reports the closing tag that waited in from, if a command was cut there.
func (l *lane) orphan(from *pairing, fenced bool) {
	form := 0
	if from.token != "" {
		form = 1
	}
	b := &l.pairing.last[from.name][form]
	if !b.set || b.token != from.token || fenced && !b.inFence {
		return
	}
	name := string(known[from.name])
	tag, how := "</"+name+">", `end="TOKEN"`
	if b.token != "" {
		tag, how = fmt.Sprintf("</%s end=%q>", name, b.token), "another end token"
	}
	l.report(&Error{
		Code: CodeOrphanClose, Name: name, ID: b.id, Channel: l.channel, Path: b.path, Cut: b.id,
		Line: from.line, Start: from.start, End: from.end,
		Message: fmt.Sprintf("line %d: %s stands alone on its line with no command open, so the body of command %d (%s) was cut at the closing tag on line %d. "+
			"Command %d and all commands after it do not count. Send it again with a new id and %s in its opening and closing tag",
			from.line, tag, b.id, named(name, b.path), b.line, b.id, how),
	})
	b.set = false
}
