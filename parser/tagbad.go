package parser

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
