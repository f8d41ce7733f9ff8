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

// The literals that a tag starts with, in step with the bits of alive.
const (
	litOpen = iota
	litClose
	litThink
	litThinking
	litThinkClose
	litThinkingClose
)

var literals = [...]string{"<" + tagPrefix, "</" + tagPrefix, "<think>", "<thinking>", "</think>", "</thinking>"}

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

// problem says why an opening tag cannot be parsed.
type problem uint8

const (
	problemNone problem = iota
	problemStray
	problemNoValue
	problemUnquoted
	problemNoBlank
	problemSlash
	problemLineBreak
	problemTooMany
	problemTooLong
	problemOpenQuote
	problemCut // the stream ended in the tag
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

// prefix matches the fixed beginnings: "<tf-", "<think>" and so on, and the
// letters of a bare name when those count.
func (t *tagScanner) prefix(c byte) verdict {
	if t.k > 0 && t.startZero(c) {
		return tagMore
	}
	alive := uint8(0)
	for i, lit := range literals {
		if t.alive&(1<<i) != 0 && lit[t.k] == c {
			alive |= 1 << i
		}
	}
	t.alive = alive
	t.k++
	if t.bare && t.k > 1 {
		switch {
		case c == '/' && t.k == 2:
			t.closing = true
		case isLetter(c) && t.nameLen < len(t.name):
			t.name[t.nameLen] = c
			t.nameLen++
			t.bare, _ = bareAlive(string(t.name[:t.nameLen]))
		default:
			t.bare = false
		}
	}
	for i, lit := range literals {
		if alive&(1<<i) == 0 || t.k < len(lit) {
			continue
		}
		switch i {
		case litThink, litThinking:
			t.end = t.n
			return t.unlessZero(tagThink)
		case litThinkClose, litThinkingClose:
			t.end = t.n
			return t.unlessZero(tagThinkClose)
		}
		t.closing = i == litClose
		t.bare = false
		t.nameLen = copy(t.name[:], tagPrefix)
		t.state = scanName
		return tagMore
	}
	switch {
	case alive != 0:
	case t.bare:
		t.state = scanName
	default:
		return tagNone
	}
	return tagMore
}

// unlessZero is v, or tagNone when a zero-width character stood in the tag.
func (t *tagScanner) unlessZero(v verdict) verdict {
	if t.sawZero {
		return tagNone
	}
	return v
}

func (t *tagScanner) inName(c byte) verdict {
	switch {
	case isNameByte(c):
		if t.fixed || t.nameLen == len(t.name) || t.nameLen == len(tagPrefix) && !isLetter(c) && !t.bare {
			return tagNone
		}
		t.name[t.nameLen] = c
		t.nameLen++
		if t.bare {
			if alive, _ := bareAlive(string(t.name[:t.nameLen])); !alive {
				return tagNone
			}
		}
		return tagMore
	case isSpace(c), c == '>', c == '/' && !t.closing:
		if v := t.nameDone(); v != tagMore {
			return v
		}
		switch c {
		case '>':
			return t.done()
		case '/':
			t.state = scanSlash
		default:
			t.state = scanBlank
		}
		return tagMore
	case !t.fixed && t.startZero(c):
		return tagMore
	}
	return tagNone
}

// nameDone looks at the whole name.
func (t *tagScanner) nameDone() verdict {
	if t.fixed {
		return tagMore
	}
	if !t.bare && t.nameLen == len(tagPrefix) {
		return tagNone
	}
	if t.bare {
		_, t.known = bareAlive(string(t.name[:t.nameLen]))
	} else {
		_, i := commandOf(string(t.name[:t.nameLen]))
		t.known = i >= 0
	}
	switch {
	case t.bare && !t.known:
		return tagNone
	case t.sawZero && t.known && !t.closing:
		return tagLookalike
	case t.sawZero:
		return tagNone
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

// spoil notes that the tag cannot be parsed because of byte c (0: because of
// its length). What was never more than a mention is text, and so is any such
// tag in a body; else the tag ends at its first ">", which may have gone by
// inside a value.
func (t *tagScanner) spoil(why problem, c byte) verdict {
	if t.closing || t.fixed || !t.known && !t.hasEqual {
		return tagNone
	}
	t.why = why
	return t.endBad(c)
}

func (t *tagScanner) endBad(c byte) verdict {
	if t.state == scanValue && t.gt < 0 {
		t.gt, t.gtSlash = t.valueGt, t.valueGtSlash
	}
	switch {
	case t.gt >= 0:
		t.end, t.selfClosing = t.gt+1, t.gtSlash
		return tagBad
	case c == '>':
		t.end, t.selfClosing = t.n, t.prev == '/'
		return tagBad
	}
	t.state = scanBad
	t.k = 0
	if t.stop != "" {
		t.atStop(c)
	}
	return tagMore
}

// atStop matches c against the stop; it reports whether that is complete.
func (t *tagScanner) atStop(c byte) bool {
	if c != t.stop[t.k] {
		t.k = 0
	}
	if c == t.stop[t.k] {
		t.k++
	}
	return t.k == len(t.stop)
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

// startZero reports whether c may start a zero-width character in a tag's
// beginning or name, and if so collects it.
func (t *tagScanner) startZero(c byte) bool {
	if c != 0xC2 && c != 0xE2 && c != 0xEF || t.want&wantTags == 0 {
		return false
	}
	t.back, t.state = t.state, scanZero
	t.zero[0], t.zeroLen = c, 1
	return true
}

func (t *tagScanner) zeroWidth(c byte) verdict {
	t.zero[t.zeroLen] = c
	t.zeroLen++
	if t.zeroLen < 3 && t.zero[0] != 0xC2 {
		return tagMore
	}
	switch string(t.zero[:t.zeroLen]) {
	case "\u00ad", // soft hyphen
		"\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff":
		t.sawZero = true
		t.state = t.back
		return tagMore
	}
	return tagNone
}
