package parser

import (
	"fmt"
	"strings"
)

// fences follows the fences and the inline code of the answer. Nothing in them
// runs; a probe reads along, so that the model can be told about commands that
// it put there, and so that a message which is only a fence around commands is
// an error instead of silence (case TS-13).
type fences struct {
	p     *Parser
	probe lane

	count int   // fences so far
	alone bool  // the open one has nothing before it
	line  int   // of its opening
	start int64 // offset of its content

	// pending: the message is one fence around commands so far.
	pending bool
	held    probeResult
}

// probeResult is what a probe found.
type probeResult struct {
	commands int
	name     Name // of the first
	id       int
	mixed    bool // there was other text
}

func (f *fences) init(p *Parser) {
	f.p = p
	f.probe.init(p, laneProbe, p.opts.Channel)
	f.reset()
}

// text looks at text around the commands. Backticks and tildes may be those of
// the closing fence.
func (r *probeResult) text(s string) {
	for i := 0; i < len(s) && !r.mixed; i++ {
		r.mixed = !isSpace(s[i]) && s[i] != '`' && s[i] != '~'
	}
}

// feed shows text to the probe.
func (f *fences) feed(s string) {
	for s != "" {
		s = f.probe.feed(s)
	}
}

// mayReport reports whether showing s to the probe may lead to an error.
func (f *fences) mayReport(s string) bool {
	return f.probe.state != inText || f.probe.pairing.waiting || strings.IndexByte(s, '<') >= 0
}

// reset makes the probe ready for other text.
func (f *fences) reset() {
	l := &f.probe
	l.state = inText
	l.pairing = pairing{}
	l.probed = probeResult{}
	l.md.restart()
	l.md.skipTag() // inline code starts within a line
	l.body.drop()
}

func (f *fences) opened(line int, start int64) {
	f.demote()
	f.reset()
	f.probe.md.restart()
	f.alone = f.count == 0 && !f.p.main.md.seen && f.p.main.commands == 0
	f.count++
	f.line, f.start = line-1, start
	f.probe.line, f.probe.off = line, start
}

func (f *fences) closed() {
	f.probe.pairing.lineEnd(&f.probe)
	switch r := f.probe.probed; {
	case r.commands == 0:
	case f.alone && !r.mixed:
		f.pending, f.held = true, r
	default:
		f.tell(r, fmt.Sprintf("in the fence on line %d", f.line))
	}
	f.reset()
}

// codeCut ends inline code that no backtick closed.
func (f *fences) codeCut() {
	if r := f.probe.probed; r.commands > 0 {
		f.tell(r, "after an unpaired backtick")
	}
	f.reset()
}

// demote says that more than the one fence stands in the message.
func (f *fences) demote() {
	if f.pending {
		f.pending = false
		f.tell(f.held, fmt.Sprintf("in the fence on line %d", f.line))
	}
}

func (f *fences) tell(r probeResult, where string) {
	what := string(r.name)
	if r.id > 0 {
		what = fmt.Sprintf("%s %d", r.name, r.id)
	}
	if r.commands > 1 {
		what = fmt.Sprintf("%d commands (the first is %s)", r.commands, what)
	}
	f.p.main.note(Note{Kind: NoteFencedText, Name: string(r.name), ID: r.id,
		Message: what + " stood " + where + " and did not run: tags in fences and inline code are text. To run a command, send it outside of them"})
}

// end ends the message.
func (f *fences) end() {
	if f.p == nil {
		return // not the channel of the answer
	}
	m := &f.p.main.md
	fenced := m.fence > 0
	ev := m.lineEnd()
	switch {
	case fenced:
		f.closed()
	case ev == mdCodeCut:
		f.codeCut()
	}
	if m.seen {
		f.demote()
	}
	if !f.pending {
		return
	}
	f.p.main.report(&Error{
		Code: CodeFenced, Name: string(f.held.name), ID: f.held.id, Channel: f.p.main.channel,
		Line: f.line, Start: f.start, End: f.p.main.off,
		Message: fmt.Sprintf("line %d: the whole answer is one fence around %s, so nothing was executed. Send the commands again, with new ids, without the fence",
			f.line, plural(f.held.commands, "command")),
	})
}

// endsInFence reports whether a text ends within an open fence. It is a rough
// look at bodies, any indentation counts.
func endsInFence(text string) bool {
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return false
	}
	open, length := byte(0), 0
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t>")
		if line == "" || line[0] != '`' && line[0] != '~' {
			continue
		}
		c, n := line[0], 0
		for n < len(line) && line[n] == c {
			n++
		}
		rest := line[n:]
		switch {
		case n < 3 || open != 0 && (c != open || n < length || !allSpace(rest)):
		case open != 0:
			open = 0
		case c == '~' || strings.IndexByte(rest, '`') < 0:
			open, length = c, n
		}
	}
	return open != 0
}
