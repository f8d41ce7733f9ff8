package parser

import "strings"

// textRun is one pass over a piece of text.
type textRun struct {
	l      *lane
	s      string
	i      int // next byte
	sent   int // bytes that have been emitted
	probed int // bytes that the probe of fences has had; -1: it is not wanted here
}

// feedText parses text, the first plain bytes of which start no tag. It returns
// what follows a tag; the rest of s is used up.
func (l *lane) feedText(s string, plain int) string {
	m := &l.md
	r := textRun{l: l, s: s, probed: -1}
	if l.kind == laneText && m.inside() {
		r.probed = 0
	}
	for !l.p.stopped {
		r.skip()
		if r.i >= len(s) {
			break
		}
		if s[r.i] == '<' && r.i >= plain {
			if ev := m.settle('<'); ev != mdNothing {
				r.event(ev, r.i)
			}
			if want := l.want(); want != 0 && l.mayStart(s[r.i:]) {
				if rest, stop := r.tag(want); stop {
					return rest
				}
			}
		}
		r.next()
	}
	r.finish(r.i)
	l.steps += r.i
	l.off += int64(r.i)
	return ""
}

// mayStart is a quick look at whether a tag may start at s.
func (l *lane) mayStart(s string) bool {
	if len(s) < 2 {
		return true
	}
	c := s[1]
	return c == 't' || c == '/' || c >= 0x80 || l.p.opts.Legacy && isLetter(c)
}

// skip passes over bytes that change nothing.
func (r *textRun) skip() {
	l := r.l
	switch m := &l.md; {
	case l.pairing.waiting:
	case m.phase == mdText && !m.escaped:
		for r.i < len(r.s) {
			switch r.s[r.i] {
			case '<', '\n', '\\', '`':
				return
			}
			r.i++
		}
	case m.phase == mdFenceText && l.kind != laneThink:
		if n := strings.IndexByte(r.s[r.i:], '\n'); n >= 0 {
			r.i += n
		} else {
			r.i = len(r.s)
		}
	}
}

// next takes one byte of text.
func (r *textRun) next() {
	l := r.l
	c := r.s[r.i]
	if l.pairing.waiting {
		switch {
		case c == '\n':
			r.flush(r.i)
			l.pairing.lineEnd(l)
		case !isBlank(c):
			l.pairing.waiting = false
		}
	}
	ev := l.md.next(c)
	r.i++
	if c == '\n' {
		l.line++
		l.mentions = 0
	}
	if l.kind != laneText {
		return
	}
	f := &l.p.fence
	if f.pending && l.md.seen {
		r.flush(r.i)
		f.demote()
	}
	at := r.i
	if ev == mdCodeClosed || ev == mdFenceClosed && c != '\n' {
		at-- // the byte is the first one outside
	}
	switch {
	case ev != mdNothing:
		r.event(ev, at)
	case r.probed < 0 && l.md.inside():
		r.probed = r.i - 1
	case c == '\n' && r.probed >= 0:
		r.probe(r.i)
	}
}

// event follows a change of fences and code in the text, which came before
// byte at.
func (r *textRun) event(ev mdEvent, at int) {
	l := r.l
	if l.kind != laneText {
		return
	}
	f := &l.p.fence
	switch ev {
	case mdCodeClosed:
		f.reset()
		r.probed = -1
	case mdCodeCut:
		r.probe(at)
		r.flush(at)
		f.codeCut()
		r.probed = -1
	case mdFenceOpened:
		r.flush(at)
		f.opened(l.line, l.off+int64(at))
		r.probed = at
	case mdFenceClosed:
		r.probe(at)
		r.flush(at)
		f.closed()
		r.probed = -1
	}
}

// flush emits the text up to byte to.
func (r *textRun) flush(to int) {
	if r.sent < to {
		r.l.emit(r.s[r.sent:to])
		r.sent = to
	}
}

// probe shows the text up to byte to to the probe of fences.
func (r *textRun) probe(to int) {
	if r.probed < 0 || r.probed >= to {
		return
	}
	s := r.s[r.probed:to]
	r.probed = to
	f := &r.l.p.fence
	if f.mayReport(s) {
		r.flush(to)
	}
	f.feed(s)
}

// finish ends the pass at byte to.
func (r *textRun) finish(to int) {
	r.probe(to)
	r.flush(to)
}

// tag looks at the "<" at r.i. When a tag begins there, or may, the pass ends
// and the rest of the piece is returned.
func (r *textRun) tag(want tagKinds) (rest string, stop bool) {
	l, s := r.l, r.s[r.i:]
	t := &l.tag
	t.reset(want)
	if l.kind == laneThink {
		t.stop = l.p.think.closing()
	}
	n, v := t.feed(s)
	l.steps += n
	switch v {
	case tagNone:
		return "", false
	case tagLookalike:
		r.finish(r.i)
		l.noteLookalike()
		return "", false
	}
	r.finish(r.i)
	l.steps += r.i
	l.off += int64(r.i)
	l.lost = 0
	if v == tagMore {
		l.state = inTag
		k := min(len(s), t.max)
		l.hold = append(l.hold[:0], s[:k]...)
		l.lost = strings.Count(s[k:], "\n")
		return "", true
	}
	return s[l.take(v, s[:n]):], true
}

// intern returns the bytes as a string, without an allocation for what usually
// turns out to be no tag.
func intern(b []byte) string {
	for _, lit := range commonStarts {
		if len(b) <= len(lit) && string(b) == lit[:len(b)] {
			return lit[:len(b)]
		}
	}
	return string(b)
}

// commonStarts are tags in whose beginnings text is most often held back.
var commonStarts = [...]string{
	"<tf-write>", "<tf-append>", "<tf-mkdir>", "<tf-touch>", "<tf-copy>", "<tf-move>", "<tf-edit>",
	"<tf-delete>", "<tf-read>", "<tf-bash>", "</tf-", "<thinking>", "</thinking>", "<think>", "</think>",
}
