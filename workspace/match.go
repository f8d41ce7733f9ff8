package workspace

import (
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// The rungs of the matching ladder, from strict to loose. Each one is tried
// only when the stricter ones found nothing, and each accepts a single place
// only (DESIGN, Files: Matching ladder).
const (
	RungExact         = "exact"          // the same text, on a view with LF endings
	RungFinalNewline  = "final-newline"  // old's last line break, at the end of a file lacking one
	RungTrailingSpace = "trailing-space" // whole lines, blanks at their ends ignored
	RungUnicode       = "unicode"        // whole lines, NFC, typographic quotes, dashes, spaces
	RungIndentShift   = "indent-shift"   // whole lines, all moved by one level of indentation
)

// rungOrder ranks the rungs for Change.Rung.
var rungOrder = map[string]int{RungExact: 1, RungFinalNewline: 2, RungTrailingSpace: 3, RungUnicode: 4, RungIndentShift: 5}

// maxCandidates is how many places are looked for when only one is wanted.
const maxCandidates = 100

// nearLines is how far from the hint a match may start to be settled by it.
const nearLines = 10

// place is where an old text was found: offsets in the LF view.
type place struct {
	start, end int
	line       int // 1-based line of start
	// dropNL: the last line break of old, and of new, does not exist in the file.
	dropNL bool
	// prefix is put before every non-blank line of new (indent-shift), or taken
	// off when less is set.
	prefix string
	less   bool
}

// found is what a rung gave.
type found struct {
	rung    string
	places  []place
	more    bool // there are more than maxCandidates
	overlap bool // some places overlap
}

// source is a text prepared for matching.
type source struct {
	view
	lines []string // of the LF view, with line breaks; made when needed
	offs  []int
	memo  *findMemo // nil: nothing is remembered
}

func newSource(raw string) *source { return &source{view: newView(raw)} }

func (s *source) needLines() {
	if s.lines == nil && s.lf != "" {
		s.lines = splitLines(s.lf)
		s.offs = lineOffsets(s.lines)
	}
}

// want is what is looked for.
type want struct {
	old string // LF endings, not empty
	all bool
	// near, when set, limits the search to places that start within nearLines of
	// it once there are several.
	near int
}

// findMemo remembers what was found last: an edit is looked for when its old text
// has arrived, for its preview, and again when it is complete.
type findMemo struct {
	mu    sync.Mutex // guards what follows
	raw   string
	want  want
	found found
}

func (m *findMemo) get(raw string, w want) (found, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found, m.want == w && w.old != "" && m.raw == raw
}

func (m *findMemo) put(raw string, w want, f found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.raw, m.want, m.found = raw, w, f
}

// find goes down the ladder. What it returns is not to be written to.
func (s *source) find(w want) found {
	if s.memo == nil {
		return s.search(w)
	}
	f, ok := s.memo.get(s.raw, w)
	if !ok {
		f = s.search(w)
		s.memo.put(s.raw, w, f)
	}
	return f
}

func (s *source) search(w want) found {
	f := s.findExact(w)
	if len(f.places) > 0 {
		return f
	}
	if f = s.findFinalNewline(w); len(f.places) > 0 {
		return f
	}
	if strings.TrimSpace(w.old) == "" {
		return f // blank lines are found exactly or not at all
	}
	s.needLines()
	old := splitLines(w.old)
	for _, rung := range []struct {
		name string
		key  func(string) string
	}{
		{RungTrailingSpace, trailingKey},
		{RungUnicode, unicodeKey},
	} {
		f = s.findLines(w, old, rung.key)
		if len(f.places) > 0 {
			f.rung = rung.name
			return f
		}
	}
	f = s.findShifted(w, old)
	f.rung = RungIndentShift
	return f
}

// findExact looks for the same bytes. Overlapping places count.
func (s *source) findExact(w want) found {
	f := found{rung: RungExact}
	line, counted := 1, 0
	old := newNeedle(s.lf, w.old)
	for at := 0; ; {
		i := old.index(s.lf[at:])
		if i < 0 {
			return f
		}
		i += at
		line += strings.Count(s.lf[counted:i], "\n")
		counted = i
		if n := len(f.places); n > 0 && f.places[n-1].end > i {
			f.overlap = true
			if w.all {
				f.places = append(f.places, place{start: i, end: i + len(w.old), line: line})
				return f
			}
		}
		if len(f.places) >= maxCandidates && !w.all {
			f.more = true
			if w.near == 0 || line > w.near+nearLines {
				return f
			}
			if f.places = dropFar(f.places, w.near); len(f.places) >= maxCandidates {
				return f
			}
		}
		f.places = append(f.places, place{start: i, end: i + len(w.old), line: line})
		at = i + 1
	}
}

// dropFar forgets places that the hint cannot settle, to bound the list.
func dropFar(places []place, near int) []place {
	out := places[:0]
	for _, p := range places {
		if p.line >= near-nearLines {
			out = append(out, p)
		}
	}
	return out
}

// findFinalNewline ignores the last line break of old where the file ends
// without one, and nowhere else.
func (s *source) findFinalNewline(w want) found {
	f := found{rung: RungFinalNewline}
	old, ok := strings.CutSuffix(w.old, "\n")
	if !ok || old == "" || endsLine(s.lf) || !strings.HasSuffix(s.lf, old) {
		return f
	}
	start := len(s.lf) - len(old)
	f.places = []place{{start: start, end: len(s.lf), line: lineAt(s.lf, start), dropNL: true}}
	return f
}

// findLines compares whole lines by a key.
func (s *source) findLines(w want, old []string, key func(string) string) found {
	keys := make([]string, len(old))
	for i, l := range old {
		keys[i] = key(l)
	}
	pivot := pivotLine(keys)
	have := make([]string, len(s.lines))
	known := make([]bool, len(s.lines))
	at := func(i int) string {
		if !known[i] {
			have[i], known[i] = key(s.lines[i]), true
		}
		return have[i]
	}
	var f found
	last := -1
	for i := 0; i+len(old) <= len(s.lines); i++ {
		if at(i+pivot) != keys[pivot] {
			continue
		}
		ok := true
		for k := 0; ok && k < len(old); k++ {
			ok = at(i+k) == keys[k]
		}
		if ok && !s.addLines(&f, w, old, i, &last, place{}) {
			return f
		}
	}
	return f
}

// pivotLine is the line to compare first: the longest one.
func pivotLine(keys []string) int {
	best := 0
	for i, k := range keys {
		if len(k) > len(keys[best]) {
			best = i
		}
	}
	return best
}

// addLines records a match of the old lines at line i (0-based). It reports
// whether to look on. last is the line of the match before, or -1.
func (s *source) addLines(f *found, w want, old []string, i int, last *int, p place) bool {
	end := i + len(old)
	p.start, p.end, p.line = s.offs[i], s.offs[end], i+1
	if !endsLine(old[len(old)-1]) {
		p.end = s.offs[end-1] + len(strings.TrimSuffix(s.lines[end-1], "\n"))
	} else if !endsLine(s.lines[end-1]) {
		p.dropNL = true
	}
	if *last >= 0 && i < *last+len(old) {
		f.overlap = true
	}
	*last = i
	if len(f.places) >= maxCandidates && !w.all {
		f.more = true
		if w.near == 0 || p.line > w.near+nearLines {
			return false
		}
		if f.places = dropFar(f.places, w.near); len(f.places) >= maxCandidates {
			return false
		}
	}
	f.places = append(f.places, p)
	return !(w.all && f.overlap)
}

// trailingKey is a line without its break and the blanks before it. A lone CR is
// no blank.
func trailingKey(l string) string {
	return strings.TrimRight(strings.TrimSuffix(l, "\n"), " \t\f\v")
}

// unicodeKey is a line in NFC with typography taken back to ASCII, without
// blanks at its end. The ellipsis is not three dots.
func unicodeKey(l string) string {
	ascii := true
	for i := 0; i < len(l); i++ {
		if l[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if !ascii {
		l = strings.Map(plainRune, norm.NFC.String(l))
	}
	return trailingKey(l)
}

// plainRune is the fixed map of quotes, dashes and spaces.
func plainRune(r rune) rune {
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u201B', '\u2032', '\u02BC':
		return '\''
	case '\u201C', '\u201D', '\u201E', '\u201F', '\u2033':
		return '"'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212', '\uFE58', '\uFE63', '\uFF0D':
		return '-'
	case '\u00A0', '\u1680', '\u202F', '\u205F', '\u3000':
		return ' '
	}
	if r >= '\u2000' && r <= '\u200A' {
		return ' '
	}
	return r
}

// findShifted looks for the old lines moved by one level: every non-blank line
// of the file is the line of old with one more (or one less) prefix, the same
// for all of them: a tab, or one to four blanks.
func (s *source) findShifted(w want, old []string) found {
	keys := make([]string, len(old))
	first := -1
	for i, l := range old {
		keys[i] = trailingKey(l)
		if first < 0 && keys[i] != "" {
			first = i
		}
	}
	var f found
	last := -1
	for i := 0; i+len(old) <= len(s.lines); i++ {
		have := trailingKey(s.lines[i+first])
		prefix, less, ok := shiftBetween(keys[first], have)
		if !ok {
			continue
		}
		for k := 0; ok && k < len(old); k++ {
			have := trailingKey(s.lines[i+k])
			switch {
			case keys[k] == "" || have == "":
				ok = keys[k] == have
			case less:
				ok = len(keys[k]) == len(prefix)+len(have) && strings.HasPrefix(keys[k], prefix) && keys[k][len(prefix):] == have
			default:
				ok = len(have) == len(prefix)+len(keys[k]) && strings.HasPrefix(have, prefix) && have[len(prefix):] == keys[k]
			}
		}
		if ok && !s.addLines(&f, w, old, i, &last, place{prefix: prefix, less: less}) {
			return f
		}
	}
	return f
}

// shiftBetween is the one level of indentation by which the line of the file
// differs from the one of old; less: the file has it not, old does.
func shiftBetween(old, file string) (prefix string, less, ok bool) {
	long, short := file, old
	if len(old) > len(file) {
		long, short, less = old, file, true
	}
	n := len(long) - len(short)
	if n == 0 || n > 4 || short == "" || long[n:] != short {
		return "", false, false
	}
	prefix = long[:n]
	if prefix == "\t" || strings.Trim(prefix, " ") == "" {
		return prefix, less, true
	}
	return "", false, false
}

// shiftText applies the shift of a place to new. ok is false when a line of new
// has not the indentation that is to be taken off.
func (p place) shiftText(s string) (out string, ok bool) {
	if p.prefix == "" {
		return s, true
	}
	var b strings.Builder
	for _, l := range splitLines(s) {
		switch {
		case strings.TrimSpace(l) == "":
			b.WriteString(l)
		case !p.less:
			b.WriteString(p.prefix)
			b.WriteString(l)
		default:
			rest, cut := strings.CutPrefix(l, p.prefix)
			if !cut {
				return "", false
			}
			b.WriteString(rest)
		}
	}
	return b.String(), true
}
