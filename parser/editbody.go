package parser

import (
	"fmt"
	"strings"
)

// editBody finds the <old>/<new> pairs in the body of an edit.
type editBody struct {
	pairs []pairSpan // the last one may be open
	part  Part       // which part is open
	start int        // its text starts here
	depth int        // nested tags of the open part's name that are open
	inner int        // all of them so far
	other int        // openings of the other part's name in its text

	closeAt, closeEnd int // the closing tag of the part that is being judged
	strayEnd          int // end of the last closing tag that closed nothing; 0: none
	strayName         string
}

// pairSpan holds the offsets of one pair's texts.
type pairSpan struct{ old, oldEnd, new, newEnd int }

const (
	oldOpen  = "<old>"
	oldClose = "</old>"
	newOpen  = "<new>"
	newClose = "</new>"
)

// tags returns the tags of the open part and those of the other one.
func (e *editBody) tags() (open, close, otherOpen, otherClose string) {
	if e.part == PartOld {
		return oldOpen, oldClose, newOpen, newClose
	}
	return newOpen, newClose, oldOpen, oldClose
}

// texts returns the pairs.
func (e *editBody) texts(v string) []Pair {
	pairs := make([]Pair, len(e.pairs))
	for i, p := range e.pairs {
		pairs[i] = Pair{Old: v[p.old:p.oldEnd], New: v[p.new:p.newEnd]}
	}
	return pairs
}

// endsLikeAnEdit reports whether a closing tag of a part stands directly before
// offset at, although it did not close the part: it was meant to.
func (e *editBody) endsLikeAnEdit(v string, at int) bool {
	return e.strayEnd > e.start && at-e.strayEnd <= maxBlanks && allSpace(v[e.strayEnd:at])
}

// matchGap looks for the first <old>.
func (b *body) matchGap(v string) (wait bool) {
	for b.at < len(v) && isSpace(v[b.at]) {
		b.at++
		b.l.steps++
	}
	b.mark = b.at
	if b.at == len(v) || b.full() {
		return true
	}
	rest := v[b.at:]
	isOld := startsWith(rest, oldOpen, candidateOpen)
	isNew := startsWith(rest, newOpen, candidateOpen)
	isEnd := startsWith(rest, b.closeStart, candidateClose)
	isThink := candidateNone
	if b.l.kind == laneThink {
		isThink = startsWith(rest, b.l.p.think.closing(), candidateThink)
	}
	switch {
	case isOld == candidateOpen:
		b.openPair()
	case isNew == candidateOpen:
		b.fail(b.newFirst())
	case isEnd == candidateClose:
		b.startTag(b.at, b.at, true, placeGap)
	case isThink == candidateThink:
		b.startThink()
	case isOld == candidateMore || isNew == candidateMore || isEnd == candidateMore || isThink == candidateMore:
		return true
	default:
		b.fail(b.strayText(b.at))
	}
	return false
}

// openPair begins the pair whose <old> stands at b.at.
func (b *body) openPair() {
	b.edit.pairs = append(b.edit.pairs, pairSpan{})
	b.openPartAt(PartOld)
}

// openPartAt begins a part whose tag stands at b.at.
func (b *body) openPartAt(part Part) {
	b.edit.part = part
	b.at += len(oldOpen)
	b.mark = b.at
	b.state = editStart
}

// matchStart drops the line break directly after <old> or <new>.
func (b *body) matchStart(v string, final bool) (wait bool) {
	switch rest := v[b.at:]; {
	case strings.HasPrefix(rest, "\n"):
		b.at++
	case strings.HasPrefix(rest, "\r\n"):
		b.at += 2
	case (rest == "" || rest == "\r") && !final:
		return true
	}
	e := &b.edit
	e.start, e.depth, e.inner, e.other, e.strayEnd = b.at, 0, 0, 0, 0
	b.depth, b.nested = 0, ""
	b.sent, b.mark = b.at, b.at
	b.state = editPart
	return false
}

// matchPart looks for the next tag that means something in the text of a part.
func (b *body) matchPart(v string, final bool) (wait bool) {
	e := &b.edit
	open, close, otherOpen, otherClose := e.tags()
	for {
		i := nextTag(v[b.at:])
		if i < 0 {
			b.l.steps += len(v) - b.at
			b.at, b.mark = len(v), len(v)
			return true
		}
		b.l.steps += i + 1
		b.at += i
		if b.at > b.l.p.opts.MaxBody {
			b.mark = b.at
			return true
		}
		rest := v[b.at:]
		switch tag, whole := b.partTag(rest); {
		case tag == "":
			b.at++
		case !whole:
			b.mark = b.at
			if final {
				b.at, b.mark = len(v), len(v)
			}
			return true
		case tag == open:
			e.depth++
			e.inner++
			b.at += len(tag)
		case tag == close:
			if e.depth > 0 {
				e.depth--
				b.at += len(tag)
				continue
			}
			b.mark = b.at
			e.closeAt, e.closeEnd = b.at, b.at+len(tag)
			b.at = e.closeEnd
			b.state = editAfter
			return false
		case tag == otherOpen:
			e.other++
			b.at += len(tag)
		case tag == otherClose:
			b.at += len(tag)
			if e.other > 0 {
				e.other--
			} else {
				e.strayEnd, e.strayName = b.at, tag
			}
		case tag == b.openStart:
			b.startTag(b.at, b.at, false, placePart)
			return false
		case tag == b.closeStart:
			b.startTag(b.at, b.at, true, placePart)
			return false
		default:
			b.startThink()
			return false
		}
	}
}

// partTag says which tag starts at s, a "<", or may start there.
func (b *body) partTag(s string) (tag string, whole bool) {
	if len(s) > 1 && s[1] != '/' && s[1] != 'o' && s[1] != 'n' && s[1] != b.openStart[1] {
		return "", false
	}
	think := ""
	if b.l.kind == laneThink {
		think = b.l.p.think.closing()
	}
	opening := b.openStart
	if !b.nests() {
		opening = ""
	}
	for _, tag := range [...]string{oldOpen, oldClose, newOpen, newClose, b.closeStart, opening, think} {
		if tag == "" {
			continue
		}
		switch startsWith(s, tag, candidateOpen) {
		case candidateOpen:
			return tag, true
		case candidateMore:
			return tag, false
		}
	}
	return "", false
}

// matchAfter looks at what follows a closing tag of the open part: </old>
// closes only before <new>, </new> only before <old> or the end of the edit.
func (b *body) matchAfter(v string, final bool) (wait bool) {
	e := &b.edit
	for b.at < len(v) && b.at-e.closeEnd < maxBlanks && isSpace(v[b.at]) {
		b.at++
		b.l.steps++
	}
	if b.at == len(v) && !final {
		return true
	}
	rest := v[b.at:]
	next, then := newOpen, candidateNone
	if e.part == PartNew {
		next = oldOpen
		then = startsWith(rest, b.closeStart, candidateClose)
	}
	switch opens := startsWith(rest, next, candidateOpen); {
	case rest == "":
		b.stray()
	case opens == candidateOpen:
		b.closePart()
		if e.part == PartOld {
			b.openPartAt(PartNew)
		} else {
			b.openPair()
		}
	case then == candidateClose:
		b.startTag(e.closeAt, b.at, true, placeAfter)
	case (opens == candidateMore || then == candidateMore) && !final:
		return true
	default:
		b.stray()
	}
	return false
}

// stray says that the closing tag of a part that was being judged is content.
func (b *body) stray() {
	e := &b.edit
	_, e.strayName, _, _ = e.tags()
	e.strayEnd = e.closeEnd
	b.at = e.closeEnd
	b.state = editPart
}

// closePart ends the open part at the closing tag that was judged.
func (b *body) closePart() {
	e := &b.edit
	p := &e.pairs[len(e.pairs)-1]
	if e.part == PartOld {
		p.old, p.oldEnd = e.start, e.closeAt
	} else {
		p.new, p.newEnd = e.start, e.closeAt
	}
	b.tell(e.closeAt, true)
}

// editError is an error of the edit's form, which stands at offset at.
func (b *body) editError(at int, format string, args ...any) *Error {
	e := b.err(CodeMissingOldNew, b.base+int64(at))
	e.Line = b.lineAt(at)
	e.Message = fmt.Sprintf("line %d: %s: malformed edit %d: %s, not executed. Write <old>…</old><new>…</new> pairs and nothing else between the tags of the edit",
		e.Line, named(e.Name, e.Path), e.ID, fmt.Sprintf(format, args...))
	return e
}

func (b *body) newFirst() *Error { return b.editError(b.at, "<old> must come before <new>") }

func (b *body) strayText(at int) *Error {
	return b.editError(at, "text stands before the first <old>")
}

func (b *body) noPairs() *Error {
	return b.editError(b.contentEnd, "it has no <old>/<new> pair")
}

// openPart says why the part that is open at the end of the edit is open.
func (b *body) openPart() *Error {
	e := &b.edit
	open, close, _, _ := e.tags()
	switch {
	case e.inner > 0:
		return b.editError(b.tagAt, "%s is not closed by %s: its text holds %s, which takes a closing tag of its own", open, close, open)
	case e.strayEnd > 0 && e.strayName == close && e.part == PartOld:
		return b.editError(b.tagAt, "</old> must be followed by <new>")
	case e.strayEnd > 0 && e.strayName == close:
		return b.editError(b.tagAt, "</new> must be followed by <old> or by the end of the edit")
	}
	return b.editError(b.tagAt, "%s is not closed by %s", open, close)
}
