package parser

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Bounds of body storage, in bytes.
const (
	maxCloseTag = 256      // a closing tag with its token and blanks
	minPiece    = 512      // a body takes at least so much of a chunk at once,
	maxPiece    = 64 << 10 // and at most so much, or as much as it has already
	trimAt      = 32 << 10 // a body that is not wanted keeps no more than this
	digestAt    = 4 << 10  // content is counted and hashed in pieces that are still in the cache
)

// body finds the end of the body that an opening tag owns, in one pass over
// what has arrived, and collects it if the command wants it. Offsets are into
// the collected text unless they are said to be the stream's.
type body struct {
	l     *lane
	cmd   *Command // nil: the tag runs nothing, but still owns its body
	keep  bool     // the text is collected for the command
	edits bool     // the parts of an edit are looked for
	name  string   // as written
	index int      // in known
	token string

	openStart, closeStart string // "<tf-write", "</tf-write"

	text  strings.Builder
	base  int64 // stream offset of text[0]; moves when text is trimmed
	first int64 // stream offset of the body's first byte

	openLine  int // line of the opening tag
	firstLine int // line of the body's first byte
	counted   int // text up to here ...
	lines     int // ... has these lines, counted from the stream's first

	break0 breakState
	block  bool // a line break followed the opening tag
	state  bodyState
	at     int // next byte to look at
	mark   int // first byte that may belong to a tag; all before it is content
	tag    tagScanner
	tagAt  int       // start of the tag being read
	tagFor tagPlace  // what that tag may be
	back   bodyState // where an undecided </think> was found

	depth  int    // nested openings of the same name that are open
	inner  int    // all of them so far
	nested string // token of a nested opening: only its own closing tag counts

	contentEnd int // the body ends here,
	closeEnd   int // its closing tag here
	aborted    bool

	hash   maphash.Hash // of the content, unless it is an edit's
	hashed int          // content up to here is in hash

	follow follow
	filled bool // something but blanks stands in the body
	sent   int  // progress was told up to here
	edit   editBody
}

// follow remembers closing tags that counted as content because of what
// followed them on their line.
type follow struct{ count, first, last int }

type breakState uint8

const (
	breakOpen   breakState = iota // directly after the opening tag
	breakReturn                   // after a carriage return there
	breakDone
)

type bodyState uint8

const (
	bodyBlank  bodyState = iota // blanks after the opening tag: block form?
	bodyScan                    // content
	bodyTag                     // in a tag of the body's own name
	bodyFollow                  // after a closing tag: what follows?
	bodyThink                   // after </think>: does the line end?
	editGap                     // before the first <old>
	editStart                   // directly after <old> or <new>
	editPart                    // in their text
	editAfter                   // after </old> or </new>: what follows?
	bodyDone
)

// tagPlace says where a tag of the body's own name stands.
type tagPlace uint8

const (
	placeBody  tagPlace = iota
	placeGap            // edit: before the first <old>
	placePart           // edit: in the text of a part
	placeAfter          // edit: after </new>
)

// begin starts the body of an opening tag.
func (b *body) begin(o *opening, cmd *Command) {
	*b = body{
		l: b.l, cmd: cmd, name: o.written, index: o.index, token: o.token,
		openStart: "<" + o.written, closeStart: "</" + o.written,
		base: o.end, first: o.end,
		openLine: o.line, firstLine: b.l.line, lines: b.l.line,
		tag:  tagScanner{legacy: b.tag.legacy, attrs: b.tag.attrs[:0]},
		edit: editBody{pairs: b.edit.pairs[:0]},
	}
	if cmd != nil {
		b.keep, b.edits = cmd.Name.hasBody(), cmd.Name == Edit
		b.hash.SetSeed(b.l.p.hashSeed())
	}
}

// giveUp says that nothing of the body is wanted any more.
func (b *body) giveUp() { b.cmd, b.keep, b.edits = nil, false, false }

// drop forgets the body and what it collected.
func (b *body) drop() {
	b.giveUp()
	b.text.Reset()
}

func (b *body) view() string { return b.text.String() }

func (b *body) closeTag() string {
	if b.token != "" {
		return b.closeStart + ` end="` + b.token + `">`
	}
	return b.closeStart + ">"
}

// lineAt returns the line of offset i, from 1. Asked in ascending order it
// costs one pass over the text.
func (b *body) lineAt(i int) int {
	if i < b.counted {
		return b.lines - strings.Count(b.view()[i:b.counted], "\n")
	}
	b.lines += strings.Count(b.view()[b.counted:i], "\n")
	b.counted = i
	return b.lines
}

// feedBody goes on with the open body; it returns what follows its end.
func (l *lane) feedBody(s string) string {
	b := &l.body
	in := s
	if b.break0 != breakDone {
		s = b.skipBreak(s)
	}
	if b.state == bodyScan && b.at == b.text.Len() && len(s) <= minPiece && nextTag(s) < 0 {
		b.takeContent(s)
		return ""
	}
	for s != "" && !l.p.stopped {
		n := min(len(s), max(minPiece, min(maxPiece, b.text.Len())))
		b.write(s[:n])
		s = s[n:]
		if b.advance(false) {
			return l.leaveBody(in, s)
		}
		b.settled()
	}
	return ""
}

// takeContent takes a small chunk that is nothing but content, as most are.
// What matters here is the time that one delta of a model costs.
func (b *body) takeContent(s string) {
	b.write(s)
	n := b.text.Len()
	b.at, b.mark = n, n
	b.l.steps += len(s)
	p := b.l.p
	if !b.keep || n > p.opts.MaxBody || p.stopped {
		b.publish()
		b.settled()
		return
	}
	b.sent = n
	p.sink.Progress(Progress{ID: b.cmd.ID, Delta: s, Total: n})
	if n-b.hashed >= digestAt {
		b.digest(n)
	}
}

// nextTag returns the place of the first "<" in s, or -1. Deltas of models are
// so short that a call to the vectorised search costs more than a loop.
func nextTag(s string) int {
	if len(s) > 16 {
		return strings.IndexByte(s, '<')
	}
	for i := range len(s) {
		if s[i] == '<' {
			return i
		}
	}
	return -1
}

// leaveBody goes back to the text after the closing tag. Of in, what comes
// before s has been collected.
func (l *lane) leaveBody(in, s string) string {
	b := &l.body
	v := b.view()
	l.off = b.base + int64(b.closeEnd)
	l.line = b.lineAt(b.closeEnd)
	used := len(in) - len(s)
	left := len(v) - b.closeEnd
	before := ""
	if left > used {
		before = strings.Clone(v[b.closeEnd : len(v)-used])
		left = used
	}
	b.finish(b.contentEnd)
	l.again(before)
	return in[used-left:]
}

// settleBody ends the body with the stream.
func (l *lane) settleBody() {
	b := &l.body
	if b.break0 == breakReturn {
		b.write("\r")
	}
	b.break0 = breakDone
	if b.advance(true) {
		l.again(l.leaveBody("", ""))
		return
	}
	if b.cmd != nil {
		l.report(b.unclosed(b.text.Len()))
	}
	end := b.text.Len()
	l.off, l.line = b.base+int64(end), b.lineAt(end)
	l.state = inText
	b.drop()
}

// skipBreak drops the one line break directly after the opening tag.
func (b *body) skipBreak(s string) string {
	if b.break0 == breakOpen {
		if s[0] != '\n' && s[0] != '\r' {
			b.break0 = breakDone
			return s
		}
		if s[0] == '\r' {
			b.break0 = breakReturn
			if s = s[1:]; s == "" {
				return s
			}
		}
	}
	switch {
	case s[0] == '\n':
		dropped := int64(1)
		if b.break0 == breakReturn {
			dropped = 2
		}
		b.base += dropped
		b.first = b.base
		b.firstLine++
		b.lines++
		b.block = true
		s = s[1:]
	default:
		b.write("\r")
	}
	b.break0 = breakDone
	return s
}

// write collects text. The storage doubles, so that it never holds more than
// twice the body and what came with the last piece.
func (b *body) write(s string) {
	if b.text.Cap()-b.text.Len() < len(s) {
		b.l.steps += b.text.Len()
		b.text.Grow(max(len(s), 64))
	}
	b.text.WriteString(s)
}

// settled does what is due for decided content.
func (b *body) settled() {
	switch {
	case !b.keep && b.mark >= trimAt:
		b.trim()
	case b.keep && b.mark-b.hashed >= digestAt:
		b.digest(b.mark)
	}
}

// digest counts and hashes the content up to offset end.
func (b *body) digest(end int) {
	b.lineAt(end)
	if !b.edits {
		b.hash.WriteString(b.view()[b.hashed:end])
	}
	b.hashed = end
}

// trim forgets decided text of a body that is not wanted.
func (b *body) trim() {
	v := b.view()
	b.lineAt(b.mark)
	b.filled = b.filled || !allSpace(v[:b.mark])
	rest := strings.Clone(v[b.mark:])
	b.l.steps += len(rest)
	n := b.mark
	b.base += int64(n)
	b.at, b.tagAt, b.closeEnd, b.counted, b.mark = b.at-n, b.tagAt-n, b.closeEnd-n, b.counted-n, 0
	b.text.Reset()
	b.text.WriteString(rest)
}

// advance looks for the end of the body and tells of new content; it reports
// whether the end was found.
func (b *body) advance(final bool) (found bool) {
	for {
		if b.match(final) {
			return true
		}
		if !b.publish() {
			return false
		}
	}
}

// publish tells of new content. It reports whether that was too much: then the
// command was given up.
func (b *body) publish() (tooLarge bool) {
	if !b.keep {
		return false
	}
	if !b.edits || len(b.edit.pairs) > 0 && b.state != editStart {
		b.tell(b.mark, false)
	}
	if !b.full() {
		return false
	}
	b.fail(b.tooLarge())
	return true
}

// full reports whether there is more content than the command may have.
func (b *body) full() bool { return b.keep && b.mark > b.l.p.opts.MaxBody }

// tell reports the content up to offset end, but no more than a body may have.
func (b *body) tell(end int, closed bool) {
	if max := b.l.p.opts.MaxBody; end > max {
		end, closed = max, false
	}
	if b.sent >= end && !closed || b.l.p.stopped {
		return
	}
	p := Progress{ID: b.cmd.ID, Delta: b.view()[b.sent:end], Total: end, Closed: closed}
	if b.edits {
		e := &b.edit
		p.Part, p.Pair, p.Total = e.part, len(e.pairs)-1, end-e.start
	}
	b.sent = end
	b.l.p.sink.Progress(p)
}

// fail reports an error of the open command; its body is skipped from here on.
func (b *body) fail(e *Error) {
	b.l.report(e)
	b.giveUp()
	b.tagFor, b.back = placeBody, bodyScan
	switch b.state {
	case editGap, editStart, editPart, editAfter:
		b.state = bodyScan
	}
}

// finish ends the body at offset end; the command, if all is well, is delivered.
func (b *body) finish(end int) {
	b.l.state = inText
	switch {
	case b.cmd == nil:
	case b.aborted:
		b.publish()
		b.l.report(b.unclosed(end))
	case b.keep && end > b.l.p.opts.MaxBody: // by the blanks before </tf-edit>
		b.l.report(b.tooLarge())
	default:
		b.complete(end)
	}
	b.drop()
}

func (b *body) complete(end int) {
	l, c := b.l, b.cmd
	content := b.view()[:end]
	filled := b.filled || !allSpace(content)
	if b.keep && !b.edits && b.closeEnd > 0 {
		b.tell(end, true)
	}
	cmd, hasCmd := attr(c.Attrs, "cmd")
	c.Block, c.End = b.block, b.base+int64(b.closeEnd)
	switch c.Name {
	case Edit:
		if len(b.edit.pairs) == 0 {
			l.report(b.noPairs())
			return
		}
		c.Pairs = b.edit.texts(b.view())
	case Write, Append:
		c.Body = content
	case Bash:
		switch {
		case hasCmd && filled:
			l.report(b.wrongBody())
			return
		case !hasCmd && !filled:
			l.report(b.noCommand())
			return
		case hasCmd:
			c.Cmd = cmd
		default:
			c.Cmd = content
		}
	default:
		if filled {
			l.report(b.wrongBody())
			return
		}
	}
	l.deliver(c, b)
}

// hashContent hashes what the opening tag does not say: the body, or the pairs
// of an edit.
func (b *body) hashContent() uint64 {
	if !b.edits {
		b.digest(b.contentEnd)
		return b.hash.Sum64()
	}
	for _, p := range b.cmd.Pairs {
		maphash.WriteComparable(&b.hash, p)
	}
	return b.hash.Sum64()
}

// deliver hands over a complete command, unless its id was used before.
func (l *lane) deliver(c *Command, b *body) {
	f := fingerprint{true, l.p.hashOpening(c), b.hashContent()}
	if old := l.ids[c.ID]; old.set {
		if old != f {
			e := b.err(CodeDuplicateID, c.End)
			e.Message = fmt.Sprintf("line %d: %s: %s, not executed. %s", e.Line, named(e.Name, e.Path), duplicateReason(c.ID), advice(CodeDuplicateID))
			l.report(e)
			return
		}
		c.Repeated = true
	}
	if l.ids == nil {
		l.ids = make(map[int]fingerprint)
	}
	l.ids[c.ID] = f
	if b.block {
		l.pairing.delivered(b.index, block{id: c.ID, path: c.Path, token: b.token,
			line: b.lineAt(b.contentEnd), inFence: endsInFence(b.view()[:b.contentEnd])})
	}
	if l.kind == laneThink {
		l.p.think.ran++
	}
	if !l.p.stopped {
		l.p.sink.Command(c)
	}
}
