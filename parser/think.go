package parser

import (
	"fmt"
	"strings"
)

// thinkLane is the text of think blocks: a lane of its own, with the ids and
// commands of the reasoning, whatever the answer around it does.
type thinkLane struct {
	lane
	name  string // "think" or "thinking"; "" when the opening tag was never seen
	fresh bool   // nothing but blanks came yet

	// shown is the block's text, for the case that it is never closed.
	shown  strings.Builder
	ran    int // commands of this block that were delivered
	cutOff bool
}

// openThink begins a think block; name is that of its tag.
func (p *Parser) openThink(name string) {
	if p.think == nil {
		p.think = &thinkLane{}
		p.think.init(p, laneThink, ChannelReasoning)
	}
	t := p.think
	t.name, t.fresh = name, true
	t.shown.Reset()
	t.ran, t.cutOff = 0, false
	t.md.restart()
	t.mentions = 0
	t.off, t.line = p.main.off, p.main.line
	p.cur = &t.lane
}

// closeThink goes back to the answer. To it nothing has happened: the block began
// at the start of a line, and the line is still at its start.
func (p *Parser) closeThink() {
	t := p.think
	t.pairing.waiting = false
	t.shown.Reset()
	p.main.off, p.main.line = t.off, t.line
	p.cur = &p.main
}

// showThink ends a think block that the stream leaves open: its text is shown,
// so that the user is not left with an empty answer (case TS-21).
func (p *Parser) showThink() {
	t := p.think
	p.main.off, p.main.line = t.off, t.line
	text := t.shown.String()
	if !allSpace(text) {
		p.main.md.seen = true
		p.fence.demote()
	}
	p.cur = &p.main
	p.main.emit(text)
	done := "no command was executed"
	if t.ran > 0 {
		done = fmt.Sprintf("%s in it ran", plural(t.ran, "command"))
	}
	cut := ""
	if t.cutOff {
		cut = " (its beginning)"
	}
	p.main.note(Note{Kind: NoteThinkUnclosed,
		Message: fmt.Sprintf("%s: the reasoning block was not closed, its text%s was shown as the answer. Close it with %s before the answer", done, cut, t.closing())})
}

// closing is the tag that ends the block.
func (t *thinkLane) closing() string {
	if t.name == "" {
		return "</think>"
	}
	return "</" + t.name + ">"
}

// closedBy reports whether a closing tag ends this block.
func (t *thinkLane) closedBy(raw string) bool { return t.name == "" || raw == t.closing() }

// keep stores text of the block, as much as one body may have.
func (t *thinkLane) keep(s string) {
	if t.fresh && !allSpace(s) {
		t.fresh = false
	}
	room := t.p.opts.MaxBody - t.shown.Len()
	if len(s) > room {
		s, t.cutOff = s[:max(0, room)], true
	}
	t.shown.WriteString(s)
}

// thinkOpens deals with <think> or <thinking>, which opens a block only at the
// start of a line of the answer.
func (l *lane) thinkOpens(raw string) int {
	switch {
	case l.kind == laneText && l.md.clean:
		l.off += int64(len(raw))
		l.p.openThink(strings.Clone(raw[1 : len(raw)-1]))
	case l.kind == laneThink && l.p.think.fresh && l.p.think.name == "":
		// The block was open already, and here is its tag after all.
		l.off += int64(len(raw))
		l.p.think.name = strings.Clone(raw[1 : len(raw)-1])
		l.p.think.fresh = false
	default:
		l.feedText(raw, len(raw))
		l.mentions++
	}
	return len(raw)
}

// thinkCloses deals with </think> or </thinking>. In the answer it is dropped
// when it ends its line: its opening tag was lost. In a block it is the end,
// but within code, a fence or a body only when it ends its line.
func (l *lane) thinkCloses(raw string) int {
	switch {
	case l.kind == laneThink && !l.p.think.closedBy(raw), l.kind == laneText && l.mentions > 0:
		l.mentions = max(0, l.mentions-1)
		l.feedText(raw, len(raw))
	case l.kind == laneThink && l.md.live():
		l.off += int64(len(raw))
		l.p.closeThink()
	default:
		l.hold = append(l.hold[:0], raw...)
		l.tail = len(raw)
		l.state = inTail
	}
	return len(raw)
}

// feedTail looks for the end of the line after a closing think tag.
func (l *lane) feedTail(s string) string {
	i := 0
	for i < len(s) && isBlank(s[i]) && len(l.hold)-l.tail+i < maxBlanks {
		i++
	}
	l.steps += i
	l.hold = append(l.hold, s[:i]...)
	if i < len(s) {
		l.endTail(s[i] == '\n')
	}
	return s[i:]
}

func (l *lane) endTail(lineEnds bool) {
	l.state = inText
	held := string(l.hold)
	switch {
	case !lineEnds:
		l.feedText(held, len(held))
	case l.kind == laneThink:
		l.off += int64(l.tail)
		l.p.closeThink()
		l.p.run(held[l.tail:])
	default:
		l.off += int64(l.tail)
		l.feedText(held[l.tail:], 0)
	}
}
