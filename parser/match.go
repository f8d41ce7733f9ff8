package parser

import "strings"

// match goes on looking for the end of the body; it reports whether it was
// found. With final set, no more text will come. It stops when the content is
// more than the command may have: what follows is read without the command.
func (b *body) match(final bool) bool {
	v := b.view()
	for !b.full() {
		wait := false
		switch b.state {
		case bodyBlank:
			wait = b.matchBlank(v, final)
		case bodyScan:
			wait = b.matchContent(v, final)
		case bodyTag:
			wait = b.matchTag(v, final)
		case bodyFollow:
			wait = b.matchFollow(v, final)
		case bodyThink:
			wait = b.matchThink(v, final)
		case editGap:
			wait = b.matchGap(v)
		case editStart:
			wait = b.matchStart(v, final)
		case editPart:
			wait = b.matchPart(v, final)
		case editAfter:
			wait = b.matchAfter(v, final)
		case bodyDone:
			return true
		}
		if wait {
			return false
		}
	}
	return false
}

// matchBlank looks at the rest of the opening tag's line: if it is blank, the
// body has block form.
func (b *body) matchBlank(v string, final bool) (wait bool) {
	for !b.block && b.at < len(v) && b.at < maxBlanks && isBlank(v[b.at]) {
		b.at++
	}
	if !b.block && b.at == len(v) && !final {
		return true
	}
	b.block = b.block || b.at < len(v) && v[b.at] == '\n'
	b.at = 0
	b.state = bodyScan
	if b.edits {
		b.state = editGap
	}
	return false
}

// matchContent looks for the next tag of the body's own name.
func (b *body) matchContent(v string, final bool) (wait bool) {
	for {
		i := nextTag(v[b.at:])
		if i < 0 {
			b.l.steps += len(v) - b.at
			b.at, b.mark = len(v), len(v)
			return true
		}
		b.l.steps += i + 1
		b.at += i
		rest := v[b.at:]
		if len(rest) > 1 && !b.mayStart(rest) {
			b.at++
			continue
		}
		switch b.candidate(rest) {
		case candidateNone:
			b.at++
		case candidateMore:
			b.mark = b.at
			if final {
				b.at, b.mark = len(v), len(v)
			}
			return true
		case candidateThink:
			b.startThink()
			return false
		case candidateOpen:
			b.startTag(b.at, b.at, false, placeBody)
			return false
		case candidateClose:
			b.startTag(b.at, b.at, true, placeBody)
			return false
		}
	}
}

// mayStart is a quick look at s, a "<" and at least one byte more.
func (b *body) mayStart(s string) bool {
	switch s[1] {
	case '/':
		return len(s) == 2 || s[2] == b.closeStart[2] || s[2] == 't'
	case b.openStart[1]:
		return len(s) == 2 || s[2] == b.openStart[2]
	}
	return false
}

// candidate is what may begin at a "<" in a body.
type candidate uint8

const (
	candidateNone candidate = iota
	candidateMore           // too short to say
	candidateOpen
	candidateClose
	candidateThink
)

// candidate looks at the start of s, a "<".
func (b *body) candidate(s string) candidate {
	c := candidateNone
	if b.l.kind == laneThink {
		c = startsWith(s, b.l.p.think.closing(), candidateThink)
	}
	if c == candidateNone {
		c = startsWith(s, b.closeStart, candidateClose)
	}
	if c == candidateNone && b.nests() {
		c = startsWith(s, b.openStart, candidateOpen)
	}
	return c
}

// nests reports whether nested openings count here: not where a token closes.
func (b *body) nests() bool { return b.token == "" && b.nested == "" }

// startsWith says whether s starts with lit, or may.
func startsWith(s, lit string, whole candidate) candidate {
	switch {
	case strings.HasPrefix(s, lit):
		return whole
	case strings.HasPrefix(lit, s):
		return candidateMore
	}
	return candidateNone
}

// startTag begins to read the tag at offset at; what comes before mark is content.
func (b *body) startTag(mark, at int, closing bool, place tagPlace) {
	b.mark, b.tagAt, b.tagFor = mark, at, place
	n, max := len(b.openStart), b.l.tag.max
	if closing {
		n, max = len(b.closeStart), min(max, maxCloseTag)
	}
	b.tag.start(n, closing, max)
	b.at = at + n
	b.state = bodyTag
}

// matchTag reads on in a tag of the body's own name.
func (b *body) matchTag(v string, final bool) (wait bool) {
	n, verdict := b.tag.feed(v[b.at:])
	b.l.steps += n
	b.at += n
	switch {
	case verdict == tagMore && !final:
		return true
	case verdict == tagOpen:
		b.nestedOpening(v)
	case verdict == tagBare:
		b.resume()
	case verdict == tagClose:
		b.closeEnd = b.at
		b.closing(v)
	default: // no tag, or one that cannot be parsed
		b.at = b.tagAt + 1
		b.noTag()
	}
	return false
}

// nestedOpening counts a complete opening tag that has an id.
func (b *body) nestedOpening(v string) {
	t := &b.tag
	id, token := false, ""
	for _, a := range t.attrs {
		switch v[b.tagAt+a.name : b.tagAt+a.nameEnd] {
		case "id":
			id = true
		case "end":
			token = v[b.tagAt+a.value : b.tagAt+a.valueEnd]
		}
	}
	switch {
	case !id || t.selfClosing:
	case token != "":
		b.nested = strings.Clone(token)
	default:
		b.depth++
		b.inner++
	}
	b.resume()
}

// resume goes on after a tag that is content.
func (b *body) resume() {
	b.state = bodyScan
	if b.edits {
		b.state = editPart
	}
}

// noTag goes on where what looked like a tag is none.
func (b *body) noTag() {
	switch b.tagFor {
	case placeGap:
		b.fail(b.strayText(b.tagAt))
		b.resume()
	case placeAfter:
		b.stray()
	default:
		b.resume()
	}
}

// closing decides about a closing tag of the body's own name.
func (b *body) closing(v string) {
	token, plain := b.tag.endToken(v[b.tagAt:b.closeEnd])
	switch {
	case b.token != "":
		if token == b.token {
			b.closed()
			return
		}
		b.content()
	case b.nested != "":
		if token == b.nested {
			b.nested = ""
		}
		b.content()
	case !plain:
		b.content()
	case b.depth > 0:
		if b.tagFor != placeAfter { // there it is read again, as text of the part
			b.depth--
		}
		b.content()
	case b.needsFollow(v):
		b.state = bodyFollow
	default:
		b.closed()
	}
}

// content goes on after a closing tag that closes nothing here.
func (b *body) content() {
	switch b.tagFor {
	case placeGap:
		b.fail(b.strayText(b.tagAt))
		b.resume()
	case placeAfter:
		b.stray()
	default:
		b.resume()
	}
}

// needsFollow reports whether what follows a closing tag decides about it:
// always in block form, and where a part of an edit is still open.
func (b *body) needsFollow(v string) bool {
	if b.tagFor == placePart {
		return b.block || !b.edit.endsLikeAnEdit(v, b.tagAt)
	}
	return b.block
}

// matchFollow looks at what follows a closing tag: it counts when the rest of
// its line is blank, when the stream ends, or when another tag follows.
func (b *body) matchFollow(v string, final bool) (wait bool) {
	for b.at < len(v) && b.at-b.closeEnd < maxBlanks && isBlank(v[b.at]) {
		b.at++
		b.l.steps++
	}
	if b.at == len(v) {
		if !final {
			return true
		}
		b.closed()
		return false
	}
	follows := candidateNone
	switch v[b.at] {
	case '\n':
		follows = candidateOpen
	case '<':
		follows = b.commandFollows(v[b.at:])
	}
	switch {
	case follows == candidateMore && !final:
		return true
	case follows == candidateOpen:
		b.closed()
		return false
	}
	b.at = b.closeEnd
	if b.tagFor == placeAfter {
		b.stray() // and the closing tag is looked at again, as text of the part
		return false
	}
	line := b.lineAt(b.tagAt)
	if b.follow.count == 0 {
		b.follow.first = line
	}
	b.follow.last = line
	b.follow.count++
	if b.tagFor == placeGap {
		b.fail(b.strayText(b.tagAt))
	}
	b.resume()
	return false
}

// commandFollows says whether s starts with the tag of a command, or with the
// end of the think block that the body stands in.
func (b *body) commandFollows(s string) candidate {
	c := candidateNone
	if b.l.kind == laneThink {
		c = startsWith(s, b.l.p.think.closing(), candidateOpen)
	}
	for _, n := range known {
		if c != candidateNone {
			break
		}
		c = startsName(s, string(n))
		if c == candidateNone && b.l.p.opts.Legacy {
			c = startsName(s, string(n[len(tagPrefix):]))
		}
	}
	return c
}

// startsName says whether s is "<", the name, and a byte that ends the name.
func startsName(s, name string) candidate {
	s = s[1:]
	if len(s) <= len(name) {
		if strings.HasPrefix(name, s) {
			return candidateMore
		}
		return candidateNone
	}
	if c := s[len(name)]; strings.HasPrefix(s, name) && (isSpace(c) || c == '/' || c == '>') {
		return candidateOpen
	}
	return candidateNone
}

// closed ends the body at the closing tag that was just read.
func (b *body) closed() {
	b.contentEnd = b.tagAt
	b.state = bodyDone
	if !b.edits {
		return
	}
	switch b.tagFor {
	case placeAfter:
		b.closePart()
	case placePart:
		b.publish()
		b.fail(b.openPart())
	}
}

// startThink looks at a </think> in a body: it ends the block, and leaves the
// command unclosed, when it ends its line.
func (b *body) startThink() {
	b.mark = b.at
	b.back = b.state
	b.closeEnd = b.at + len(b.l.p.think.closing())
	b.at = b.closeEnd
	b.state = bodyThink
}

func (b *body) matchThink(v string, final bool) (wait bool) {
	for b.at < len(v) && b.at-b.closeEnd < maxBlanks && isBlank(v[b.at]) {
		b.at++
		b.l.steps++
	}
	if b.at == len(v) && !final {
		return true
	}
	if b.at < len(v) && v[b.at] != '\n' {
		b.at = b.closeEnd
		b.state = b.back
		return false
	}
	b.contentEnd, b.closeEnd = b.mark, b.mark
	b.aborted = true
	b.state = bodyDone
	return false
}
