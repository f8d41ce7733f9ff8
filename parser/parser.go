package parser

import (
	"hash/maphash"
	"strings"
)

// Limits that apply when Options leave them at 0, in bytes.
const (
	defaultMaxTag  = 8 << 10
	defaultMaxBody = 16 << 20
)

// Parser recognises the commands in one channel of one answer. It is not safe
// for concurrent use.
type Parser struct {
	opts Options
	sink Sink

	stopped, closed bool
	bom             int // bytes of a byte order mark seen at the start; -1: past it

	cur   *lane
	main  lane
	think *thinkLane // nil until the first think block
	fence fences     // of the text channel
	seed  maphash.Seed
}

// byteOrderMark is skipped at the very start of a stream (case TS-33).
const byteOrderMark = "\ufeff"

// New returns a parser that calls sink while it is written to.
func New(opts Options, sink Sink) *Parser {
	if opts.MaxTag <= 0 {
		opts.MaxTag = defaultMaxTag
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = defaultMaxBody
	}
	if opts.Channel == "" {
		opts.Channel = ChannelText
	}
	p := &Parser{opts: opts, sink: sink}
	kind := laneText
	if opts.Channel == ChannelReasoning {
		kind = laneReasoning
	}
	p.main.init(p, kind, opts.Channel)
	p.cur = &p.main
	if kind == laneText {
		p.fence.init(p)
		if opts.StartInThink {
			p.openThink("")
		}
	}
	return p
}

// Write parses the next bytes of the stream, cut anywhere, and calls the sink
// for what they complete. Strings given to the sink may alias chunk.
func (p *Parser) Write(chunk string) {
	if p.stopped || p.closed {
		return
	}
	if p.bom >= 0 {
		chunk = p.skipMark(chunk)
	}
	p.run(chunk)
}

// Close ends the stream: what is still open is reported, text that is held
// back is released. The finish reason (as the provider sent it) never makes an
// open command complete.
func (p *Parser) Close(finish string) {
	if p.stopped || p.closed {
		return
	}
	p.closed = true
	if p.bom > 0 {
		p.run(byteOrderMark[:p.bom])
	}
	for !p.stopped && p.cur.settle() {
	}
	p.cur.pairing.lineEnd(p.cur)
	if p.cur != &p.main {
		p.showThink()
	}
	p.fence.end()
}

// Stop ends parsing at once; the sink is not called any more, whatever is
// written. It may be called from the sink.
func (p *Parser) Stop() { p.stopped = true }

// Line returns the line that the stream has come to, from 1.
func (p *Parser) Line() int {
	l := p.cur
	switch l.state {
	case inTag:
		return l.line + strings.Count(string(l.hold), "\n") + l.lost
	case inBody:
		return l.body.lineAt(l.body.text.Len())
	}
	return l.line
}

// Idle reports whether no tag or body is open and nothing is held back.
func (p *Parser) Idle() bool { return p.cur.state == inText && p.bom <= 0 }

// run parses s in the lanes that it belongs to.
func (p *Parser) run(s string) {
	for s != "" && !p.stopped {
		s = p.cur.feed(s)
	}
}

func (p *Parser) skipMark(s string) string {
	for s != "" && p.bom < len(byteOrderMark) && s[0] == byteOrderMark[p.bom] {
		p.bom++
		s = s[1:]
	}
	switch {
	case p.bom == len(byteOrderMark):
		p.cur.off += int64(len(byteOrderMark))
	case s == "":
		return ""
	default:
		p.run(byteOrderMark[:p.bom])
	}
	p.bom = -1
	return s
}
