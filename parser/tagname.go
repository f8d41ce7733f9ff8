package parser

// unlessZero is v, or tagNone when a zero-width character stood in the tag.
func (t *tagScanner) unlessZero(v verdict) verdict {
	if t.sawZero {
		return tagNone
	}
	return v
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
