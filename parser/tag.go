package parser

// tagScanner recognises one tag, byte by byte, from its "<". It keeps offsets
// into the tag, never its bytes: those are the caller's. The same scanner reads
// opening and closing tags in text, nested ones in bodies, and think tags.
type tagScanner struct {
	max    int      // bytes that one tag may have
	want   tagKinds // what may start here
	legacy bool     // bare names count as well
	stop   string   // ends a tag that cannot be parsed, before its ">": </think>

	state scanState
	back  scanState // where to go on after a zero-width character
	n     int       // bytes taken
	prev  byte      // the byte before the next one
	k     int       // bytes of the literals matched
	alive uint8     // literals that still match, a bit each
	bare  bool      // the name may be a legacy one
	fixed bool      // the name was given by start and ends here

	closing bool
	known   bool
	name    [32]byte
	nameLen int

	zero    [3]byte // bytes of a zero-width character
	zeroLen int
	sawZero bool

	attrs    []attrSpan
	cur      attrSpan
	quote    byte
	head     [4]byte // the first bytes of the current attribute's name
	hasEqual bool    // at least one attribute came as far as its "="

	// The first ">" inside a value that is still open or that holds a line
	// break: where the tag ends if it turns out that a quote was forgotten.
	gt, valueGt           int // -1: none
	gtSlash, valueGtSlash bool
	valueBreak            bool

	// The verdict's details.
	end         int // bytes of the tag
	selfClosing bool
	why         problem
	whyAttr     attrSpan // the attribute concerned, when there is one
}

// attrSpan holds the offsets of one attribute in its tag.
type attrSpan struct {
	name, nameEnd   int
	value, valueEnd int
}

// tagKinds says which tags may start at a place.
type tagKinds uint8

const (
	wantTags       tagKinds = 1 << iota // <tf-…> and </tf-…>
	wantThink                           // <think>
	wantThinkClose                      // </think>
)

// verdict is what a tagScanner says after some bytes.
type verdict uint8

const (
	tagMore       verdict = iota // not decided
	tagNone                      // no tag: its bytes are text
	tagLookalike                 // no tag, but it looks like one
	tagThink                     // <think>, <thinking>
	tagThinkClose                // </think>, </thinking>
	tagBare                      // an opening tag without attributes: text
	tagOpen                      // a well-formed opening tag
	tagBad                       // an opening tag that cannot be parsed
	tagClose                     // a closing tag
)

type scanState uint8

const (
	scanPrefix scanState = iota
	scanZero
	scanName
	scanBlank // an attribute, "/" or ">" comes next
	scanDots  // "<tf-write ...>": an ellipsis in the place of attributes
	scanAttr
	scanAttrEnd
	scanEqual
	scanValue
	scanValueEnd
	scanSlash
	scanBad // looking for the first ">"
)

// maxAttrs bounds the attributes of one tag; the protocol knows about ten.
const maxAttrs = 32

// reset makes the scanner ready for the "<" of another tag.
func (t *tagScanner) reset(want tagKinds) {
	*t = tagScanner{max: t.max, legacy: t.legacy, want: want, attrs: t.attrs[:0], gt: -1, valueGt: -1}
	if want&wantTags != 0 {
		t.alive |= 1<<litOpen | 1<<litClose
		t.bare = t.legacy
	}
	if want&wantThink != 0 {
		t.alive |= 1<<litThink | 1<<litThinking
	}
	if want&wantThinkClose != 0 {
		t.alive |= 1<<litThinkClose | 1<<litThinkingClose
	}
}

// start makes the scanner ready for what follows the name of a tag that the
// caller has matched so far: n bytes with "<" or "</" and the name.
func (t *tagScanner) start(n int, closing bool, max int) {
	*t = tagScanner{max: max, legacy: t.legacy, attrs: t.attrs[:0], gt: -1, valueGt: -1,
		state: scanName, n: n, closing: closing, known: true, fixed: true}
}

// feed takes bytes until the verdict is known; it returns how many it took. A
// verdict of tagNone or tagLookalike says nothing about the bytes taken.
func (t *tagScanner) feed(s string) (int, verdict) {
	for i := 0; i < len(s); i++ {
		if t.n >= t.max && t.state != scanBad {
			if v := t.spoil(problemTooLong, 0); v != tagMore {
				return i, v
			}
		}
		c := s[i]
		t.n++
		if v := t.step(c); v != tagMore {
			return i + 1, v
		}
		t.prev = c
	}
	return len(s), tagMore
}

func (t *tagScanner) step(c byte) verdict {
	pos := t.n - 1
	switch t.state {
	case scanPrefix:
		return t.prefix(c)
	case scanZero:
		return t.zeroWidth(c)
	case scanName:
		return t.inName(c)
	case scanBlank:
		switch {
		case isSpace(c):
		case c == '>':
			return t.done()
		case c == '/' && !t.closing:
			t.state = scanSlash
		case isLetter(c) || c == '_':
			t.cur = attrSpan{name: pos}
			t.head = [4]byte{c}
			t.state = scanAttr
		case (c == '.' || c == 0xE2) && len(t.attrs) == 0 && !t.closing:
			t.state = scanDots
		default:
			return t.spoil(problemStray, c)
		}
	case scanDots:
		switch c {
		case '.', ' ', 0xE2, 0x80, 0xA6, '/':
		case '>':
			t.end, t.selfClosing = t.n, t.prev == '/'
			return tagBare
		default:
			return t.spoil(problemStray, c)
		}
	case scanAttr, scanAttrEnd:
		if t.state == scanAttr && !isAttrByte(c) {
			t.cur.nameEnd = pos
			t.state = scanAttrEnd
		}
		switch {
		case t.state == scanAttr:
			if i := pos - t.cur.name; i < len(t.head) {
				t.head[i] = c
			}
		case isSpace(c):
		case c == '=':
			t.hasEqual = true
			t.state = scanEqual
		default:
			t.whyAttr = t.cur
			return t.spoil(problemNoValue, c)
		}
	case scanEqual:
		switch {
		case isSpace(c):
		case c == '"' || c == '\'':
			t.quote = c
			t.cur.value = t.n
			t.valueGt, t.valueBreak = -1, false
			t.state = scanValue
		default:
			t.whyAttr = t.cur
			return t.spoil(problemUnquoted, c)
		}
	case scanValue:
		return t.inValue(c, pos)
	case scanValueEnd:
		switch {
		case isSpace(c):
			t.state = scanBlank
		case c == '/' && !t.closing:
			t.state = scanSlash
		case c == '>':
			return t.done()
		default:
			t.whyAttr = t.cur
			return t.spoil(problemNoBlank, c)
		}
	case scanSlash:
		switch {
		case isSpace(c):
		case c == '>':
			t.selfClosing = true
			return t.done()
		case len(t.attrs) == 0:
			return tagNone
		default:
			return t.spoil(problemSlash, c)
		}
	case scanBad:
		if t.stop != "" && t.atStop(c) {
			t.end, t.selfClosing = t.n-len(t.stop), true
			return tagBad
		}
		if c == '>' {
			t.end, t.selfClosing = t.n, t.prev == '/'
			return tagBad
		}
	}
	return tagMore
}

func (t *tagScanner) inValue(c byte, pos int) verdict {
	switch c {
	case t.quote:
		t.cur.valueEnd = pos
		if t.valueBreak && t.valueGt >= 0 && t.gt < 0 {
			t.gt, t.gtSlash = t.valueGt, t.valueGtSlash
		}
		t.valueGt = -1
		if len(t.attrs) == maxAttrs {
			return t.spoil(problemTooMany, c)
		}
		t.attrs = append(t.attrs, t.cur)
		t.state = scanValueEnd
	case '>':
		if t.valueGt < 0 {
			t.valueGt, t.valueGtSlash = pos, t.prev == '/'
		}
	case '\n':
		// Only a shell command has lines; elsewhere a quote was forgotten.
		if !t.inCmd() {
			t.whyAttr = t.cur
			return t.spoil(problemLineBreak, c)
		}
		t.valueBreak = true
	}
	return tagMore
}

// inCmd reports whether the current attribute is a shell command.
func (t *tagScanner) inCmd() bool { return t.head == [4]byte{'c', 'm', 'd'} }

// endToken returns the token of a closing tag like </tf-write end="Q7">; plain
// is set when the tag has no attributes at all. raw is the whole tag.
func (t *tagScanner) endToken(raw string) (token string, plain bool) {
	switch {
	case len(t.attrs) == 0:
		return "", true
	case len(t.attrs) == 1 && raw[t.attrs[0].name:t.attrs[0].nameEnd] == "end":
		return raw[t.attrs[0].value:t.attrs[0].valueEnd], false
	}
	return "", false
}

// done is the verdict on a tag that came to its ">" in good order.
func (t *tagScanner) done() verdict {
	t.end = t.n
	switch {
	case t.closing:
		return tagClose
	case len(t.attrs) == 0:
		return tagBare
	}
	return tagOpen
}

// begun reports whether the bytes so far are more than a mention: an attribute
// has at least started, so that the end of the stream cuts a command.
func (t *tagScanner) begun() bool {
	switch t.state {
	case scanPrefix, scanZero, scanName, scanBlank, scanDots:
		return len(t.attrs) > 0
	case scanSlash:
		return len(t.attrs) > 0
	}
	return !t.closing && (t.known || t.hasEqual)
}
