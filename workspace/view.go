package workspace

import (
	"sort"
	"strings"
)

// view is a text with LF line endings and without byte order mark, and the way
// back: matching and planning work on it, splicing on the raw text. Only CR LF
// is a line ending; a lone CR is data.
type view struct {
	raw string
	bom int    // bytes of the byte order mark in raw
	lf  string // what matching sees
	crs []int  // offsets in lf of the line breaks that are CR LF in raw
}

func newView(raw string) view {
	v := view{raw: raw}
	if strings.HasPrefix(raw, bom) {
		v.bom = len(bom)
	}
	v.lf = raw[v.bom:]
	n := strings.Count(v.lf, "\r\n")
	if n == 0 {
		return v
	}
	v.crs = make([]int, 0, n)
	var b strings.Builder
	b.Grow(len(v.lf) - n)
	rest := v.lf
	for {
		i := strings.Index(rest, "\r\n")
		if i < 0 {
			break
		}
		b.WriteString(rest[:i])
		v.crs = append(v.crs, b.Len())
		b.WriteByte('\n')
		rest = rest[i+2:]
	}
	b.WriteString(rest)
	v.lf = b.String()
	return v
}

// rawOffset maps an offset of the view to the raw text. The offset of a line
// break that is CR LF maps to its CR, so no offset falls between the two.
func (v *view) rawOffset(off int) int {
	return v.bom + off + sort.SearchInts(v.crs, off)
}

// isCRLF reports whether the line break at the offset of the view is CR LF.
func (v *view) isCRLF(off int) bool {
	i := sort.SearchInts(v.crs, off)
	return i < len(v.crs) && v.crs[i] == off
}

// toLF turns CR LF into LF.
func toLF(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// withEnding gives all line breaks of s (LF or CR LF) the ending.
func withEnding(s, ending string) string {
	s = toLF(s)
	if ending == "\n" {
		return s
	}
	return strings.ReplaceAll(s, "\n", ending)
}

// dominantEnding is the more frequent ending of a text; the first one on a tie,
// "" when there is no line break.
func dominantEnding(text string) string {
	all := strings.Count(text, "\n")
	crlf := strings.Count(text, "\r\n")
	switch {
	case all == 0:
		return ""
	case crlf > all-crlf:
		return "\r\n"
	case crlf < all-crlf:
		return "\n"
	}
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// endingFor is the ending that new lines of the text take; other is consulted
// when the text has no line break itself.
func endingFor(text, other string) string {
	if e := dominantEnding(text); e != "" {
		return e
	}
	if e := dominantEnding(other); e != "" {
		return e
	}
	return "\n"
}

// splitLines cuts after each line break; the last line may lack one. An empty
// text has no lines.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := make([]string, 0, strings.Count(s, "\n")+1)
	for s != "" {
		i := strings.IndexByte(s, '\n') + 1
		if i == 0 {
			i = len(s)
		}
		lines = append(lines, s[:i])
		s = s[i:]
	}
	return lines
}

// countLines counts lines, a last one without line break included.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// lineAt is the 1-based line of the offset.
func lineAt(s string, off int) int {
	return strings.Count(s[:min(off, len(s))], "\n") + 1
}
