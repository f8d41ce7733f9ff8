package workspace

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
)

// matcher finds matching lines. literal, when set, is text that every match
// holds: it is looked for first, in the whole file at once.
type matcher struct {
	literal []byte // in lower case with fold
	fold    bool   // ASCII letters of literal without case
	re      *regexp.Regexp
	rare    int // index of literal's rarest byte
}

func newMatcher(r GrepRequest) (*matcher, *Refusal) {
	if r.Pattern == "" {
		return nil, refuse(CodeInvalid, "", "the search pattern is empty")
	}
	if strings.ContainsAny(r.Pattern, "\n\r") {
		return nil, refuse(CodeInvalid, "", "the search pattern holds a line break; the search looks at single lines")
	}
	m := &matcher{fold: r.IgnoreCase}
	expr := r.Pattern
	if !r.Regex {
		if !r.IgnoreCase || plainASCII(r.Pattern) {
			m.setLiteral(r.Pattern, r.IgnoreCase)
			return m, nil
		}
		expr = regexp.QuoteMeta(expr)
	}
	if r.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, refuse(CodeInvalid, "", "%q is no valid regular expression (RE2): %s", r.Pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	m.re = re
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil {
		lit, fold := required(tree.Simplify())
		if len(lit) >= 2 && (!fold || plainASCII(lit)) {
			m.setLiteral(lit, fold)
		}
	}
	return m, nil
}

func (m *matcher) setLiteral(s string, fold bool) {
	m.fold = fold
	if fold {
		s = strings.ToLower(s)
	}
	m.literal = []byte(s)
	for i := range m.literal {
		if byteRank(s[i]) < byteRank(s[m.rare]) {
			m.rare = i
		}
	}
}

// required returns the longest text that every match of the expression holds.
func required(re *syntax.Regexp) (lit string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune), re.Flags&syntax.FoldCase != 0
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min >= 1 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l, f := required(sub); len(l) > len(lit) {
				lit, fold = l, f
			}
		}
	}
	return lit, fold
}

// byteRank orders bytes by how often they occur in source text, roughly.
func byteRank(c byte) int {
	const often = " etaoinsrlcdupmhgf_bvywkxjqz"
	if i := strings.IndexByte(often, c); i >= 0 {
		return len(often) - i
	}
	return 3
}

// next finds the next matching line at or behind the offset, which is the start
// of a line.
func (m *matcher) next(data []byte, at int) (start, end, col int, ok bool) {
	for at < len(data) {
		hit := at
		if m.literal != nil {
			i := m.index(data[at:])
			if i < 0 {
				return 0, 0, 0, false
			}
			hit = at + i
			start = bytes.LastIndexByte(data[:hit], '\n') + 1
		} else {
			start = at
		}
		end = bytes.IndexByte(data[hit:], '\n')
		if end < 0 {
			end = len(data)
		} else {
			end += hit
		}
		if m.re == nil {
			return start, end, hit - start, true
		}
		line := bytes.TrimSuffix(data[start:end], []byte{'\r'})
		if loc := m.re.FindIndex(line); loc != nil {
			return start, end, loc[0], true
		}
		at = end + 1
	}
	return 0, 0, 0, false
}

// index finds the literal.
func (m *matcher) index(data []byte) int {
	if !m.fold {
		return m.indexExact(data)
	}
	n := len(m.literal)
	low := m.literal[m.rare]
	up := low
	if low >= 'a' && low <= 'z' {
		up = low - 'a' + 'A'
	}
	nextLow, nextUp := -1, -1 // where the rare byte comes next; len(data) = nowhere
	for at := m.rare; at < len(data); {
		if nextLow < at {
			nextLow = indexFrom(data, low, at)
		}
		if up != low && nextUp < at {
			nextUp = indexFrom(data, up, at)
		}
		hit := nextLow
		if up != low {
			hit = min(hit, nextUp)
		}
		if hit >= len(data) {
			return -1
		}
		from := hit - m.rare
		if from+n <= len(data) && equalFoldASCII(data[from:from+n], m.literal) {
			return from
		}
		at = hit + 1
	}
	return -1
}

// indexExact looks for the rarest byte first, which skips most of the text at
// the speed of memory; where it is not rare after all, bytes.Index takes over.
func (m *matcher) indexExact(data []byte) int {
	misses := 0
	for at := 0; ; {
		i := indexFrom(data, m.literal[m.rare], at+m.rare)
		if i >= len(data) {
			return -1
		}
		from := i - m.rare
		if from+len(m.literal) <= len(data) && bytes.Equal(data[from:from+len(m.literal)], m.literal) {
			return from
		}
		at = from + 1
		if misses++; misses > 8+at/128 {
			if i := bytes.Index(data[at:], m.literal); i >= 0 {
				return at + i
			}
			return -1
		}
	}
}

func indexFrom(data []byte, c byte, at int) int {
	if at >= len(data) {
		return len(data)
	}
	i := bytes.IndexByte(data[at:], c)
	if i < 0 {
		return len(data)
	}
	return at + i
}

// equalFoldASCII compares with a text in lower case.
func equalFoldASCII(b, lower []byte) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
