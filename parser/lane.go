package parser

import "strings"

// lane parses one kind of text: the answer, the think blocks in it, a reasoning
// channel, or (as a probe, which executes nothing) what stands in a fence. Each
// has its own state, ids and pairs; a stream is in one of them at a time.
type lane struct {
	p       *Parser
	kind    laneKind
	channel Channel

	state laneState
	off   int64 // offset in the stream of the next byte to parse
	line  int   // its line, from 1

	md   markdown
	tag  tagScanner
	hold []byte // the bytes of an undecided tag, at most MaxTag
	lost int    // line breaks of that tag beyond hold
	tail int    // bytes of the think tag at the start of hold (inTail)
	body body

	mentions int // <think> in this line's text
	pairing  pairing
	ids      map[int]fingerprint
	commands int // tags taken out of the text, good ones and bad ones

	probed probeResult // of a probe only
	steps  int         // looks at bytes so far, which tests compare with their number
}

type laneKind uint8

const (
	laneText laneKind = iota
	laneThink
	laneReasoning
	laneProbe
)

type laneState uint8

const (
	inText laneState = iota
	inTag            // a tag has begun, hold has its bytes
	inTail           // a think tag waits for the end of its line
	inBody
)

// maxBlanks bounds the blanks that are looked through for what follows a tag;
// beyond them the tag counts as followed by text.
const maxBlanks = 1024

func (l *lane) init(p *Parser, kind laneKind, ch Channel) {
	l.p, l.kind, l.channel = p, kind, ch
	l.line = 1
	l.tag.max, l.tag.legacy = p.opts.MaxTag, p.opts.Legacy
	l.md.plain = kind == laneProbe
	l.md.clean = true
	l.body.l = l
	l.body.tag.legacy = p.opts.Legacy
}

// feed parses the beginning of s and returns the rest.
func (l *lane) feed(s string) string {
	switch l.state {
	case inText:
		return l.feedText(s, 0)
	case inTag:
		return l.feedTag(s)
	case inTail:
		return l.feedTail(s)
	}
	return l.feedBody(s)
}

// again parses bytes that were held back, in the lane that is current now.
func (l *lane) again(s string) {
	if l.kind != laneProbe {
		l.p.run(s)
		return
	}
	for s != "" {
		s = l.feed(s)
	}
}

// want says which tags may start here.
func (l *lane) want() tagKinds {
	answer := l.kind == laneText || l.kind == laneThink
	tags := wantTags
	if l.p.opts.NoCommands {
		tags = 0
	}
	switch live := l.md.live(); {
	case live && answer:
		return tags | wantThink | wantThinkClose
	case live:
		return tags
	case l.kind == laneThink:
		return wantThinkClose
	}
	return 0
}

// feedTag goes on with a tag that began in an earlier piece.
func (l *lane) feedTag(s string) string {
	n, v := l.tag.feed(s)
	l.steps += n
	if v == tagNone || v == tagLookalike {
		l.state = inText
		if v == tagLookalike {
			l.noteLookalike()
		}
		l.again(l.feedText(intern(l.hold), 1))
		return s
	}
	room := min(n, max(0, l.tag.max-len(l.hold)))
	l.hold = append(l.hold, s[:room]...)
	l.lost += strings.Count(s[room:n], "\n")
	if v == tagMore {
		return ""
	}
	l.state = inText
	raw := string(l.hold)
	used := l.take(v, raw)
	// Bytes that were taken for the tag and lie behind its end are parsed again.
	over := l.tag.n - used
	switch {
	case over <= n:
		return s[n-over:]
	case l.tag.n-n <= len(raw):
		l.again(raw[used : l.tag.n-n])
	default: // only a </think> can reach beyond what is held
		l.again(l.tag.stop[:over-n])
	}
	return s
}

// take deals with a whole tag whose first byte is at l.off. It returns how many
// bytes the tag has.
func (l *lane) take(v verdict, raw string) int {
	t := &l.tag
	switch v {
	case tagOpen, tagBad:
		return l.open(v, raw)
	case tagThink:
		return l.thinkOpens(raw)
	case tagThinkClose:
		return l.thinkCloses(raw)
	}
	// A bare opening tag or a closing one is text, but it may belong to a pair.
	clean, line, off := l.md.clean, l.line, l.off
	_, i := commandOf(string(t.name[:t.nameLen]))
	token, plain := t.endToken(raw)
	n := t.n
	l.feedText(raw, len(raw))
	switch {
	case i < 0:
	case v == tagBare:
		if !t.selfClosing {
			l.pairing.opened(i, clean)
		}
	case plain || token != "":
		if !l.pairing.closed(i) && clean {
			l.pairing.wait(i, strings.Clone(token), off, off+int64(n), line)
		}
	}
	return n
}

// emit passes text on.
func (l *lane) emit(s string) {
	if s == "" || l.p.stopped {
		return
	}
	switch l.kind {
	case laneText:
		l.p.sink.Text(s)
	case laneThink:
		l.p.think.keep(s)
		l.p.sink.Reasoning(s)
	case laneReasoning:
		l.p.sink.Reasoning(s)
	case laneProbe:
		l.probed.text(s)
	}
}

func (l *lane) note(n Note) {
	if !l.p.stopped && l.kind != laneProbe {
		l.p.sink.Note(n)
	}
}

func (l *lane) report(e *Error) {
	if !l.p.stopped && l.kind != laneProbe {
		l.p.sink.Error(e)
	}
}

// settle resolves what waits for more bytes when there are none; it reports
// whether it did something after which the lane may wait again.
func (l *lane) settle() bool {
	switch l.state {
	case inTag:
		l.settleTag()
	case inTail:
		l.endTail(true)
	case inBody:
		l.settleBody()
	default:
		return false
	}
	return true
}

// settleTag ends a tag that the stream cuts.
func (l *lane) settleTag() {
	t := &l.tag
	l.state = inText
	if !t.begun() {
		l.again(l.feedText(intern(l.hold), 1))
		return
	}
	raw := string(l.hold)
	if t.state == scanValue && t.valueGt >= 0 && (t.valueBreak || !t.inCmd()) {
		// There was a ">" and then no quote any more: it was forgotten.
		t.why, t.whyAttr = problemOpenQuote, t.cur
		t.endBad(0)
		used := l.take(tagBad, raw)
		l.again(raw[used:])
		return
	}
	if t.state != scanBad {
		t.why = problemCut
	}
	t.end, t.selfClosing = t.n, true
	used := l.take(tagBad, raw)
	if used < len(raw) {
		l.again(raw[used:])
	}
}
