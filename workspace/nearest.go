package workspace

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a refusal shows of the file.
const (
	nearestLines = 12
	nearestBytes = 1024
	nearestWidth = 240 // one line
)

// maxSampled is how many lines of old take part in the search for the nearest
// text, so that its cost is bounded by the length of the file.
const maxSampled = 24

// minSimilar is the least similarity of a place that is shown at all.
const minSimilar = 0.4

// explain words a refusal for an old text that is nowhere. Similarity only
// words it; it never picks a place to change. label is "" or "pair 2: ".
func (s *source) explain(path, label, old, new string) *Refusal {
	r := s.diagnose(path, old)
	if r == nil {
		r = s.nearest(path, old)
		if new = toLF(new); len(strings.TrimSpace(new)) >= 8 && strings.Count(s.lf, new) == 1 {
			r.Line = lineAt(s.lf, strings.Index(s.lf, new))
			r.Message += fmt.Sprintf(" The new text is there already, at line %d.", r.Line)
		}
	}
	if label != "" {
		r.Message = label + r.Message + " Nothing was changed; all pairs are looked up in the file as it was before this edit."
	}
	return r
}

// diagnose recognises the usual mistakes by name.
func (s *source) diagnose(path, old string) *Refusal {
	s.needLines()
	if stripped, ok := stripLineNumbers(old); ok {
		where := ""
		line := 0
		if f := s.find(want{old: stripped}); len(f.places) == 1 {
			line = f.places[0].line
			where = fmt.Sprintf("; without it the text stands at line %d", line)
		}
		return guardLineNumbers.refuse(path, line, where)
	}
	if r := s.diagnoseIndent(path, old); r != nil {
		return r
	}
	return s.diagnoseBlanks(path, old)
}

// diagnoseIndent looks for the same lines with other indentation.
func (s *source) diagnoseIndent(path, old string) *Refusal {
	lines := splitLines(old)
	keys := make([]string, len(lines))
	for i, l := range lines {
		keys[i] = innerText(l)
	}
	pivot := pivotLine(keys)
	if keys[pivot] == "" {
		return nil
	}
	at := -1
	n := 0
	for i := 0; i+len(keys) <= len(s.lines); i++ {
		if innerText(s.lines[i+pivot]) != keys[pivot] {
			continue
		}
		same := true
		for k := 0; same && k < len(keys); k++ {
			same = innerText(s.lines[i+k]) == keys[k]
		}
		if same {
			if at < 0 {
				at = i
			}
			n++
		}
	}
	if at < 0 {
		return nil
	}
	var r *Refusal
	have := indentOf(s.lines[at : at+len(keys)])
	quoted := indentOf(lines)
	haveStyle, quotedStyle := indentStyle(have), indentStyle(quoted)
	if haveStyle != quotedStyle && haveStyle != "no" && quotedStyle != "no" {
		r = guardIndentStyle.refuse(path, at+1, at+1, haveStyle, quotedStyle)
		r.Nearest = s.show(at, len(keys), true)
	} else {
		r = guardIndentDepth.refuse(path, at+1, at+1, indentDrift(lines, s.lines[at:at+len(keys)]))
		r.Nearest = s.show(at, len(keys), false)
	}
	if n > 1 {
		r.Message += fmt.Sprintf(" (and at %d more places)", n-1)
	}
	return r
}

// innerText is a line without the blanks around it.
func innerText(l string) string { return strings.Trim(l, " \t\f\v\n") }

// indentOf joins the indentations of the non-blank lines.
func indentOf(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if t := strings.TrimLeft(l, " \t"); strings.TrimSpace(t) != "" {
			b.WriteString(l[:len(l)-len(t)])
		}
	}
	return b.String()
}

func indentStyle(indent string) string {
	tab, blank := strings.Contains(indent, "\t"), strings.Contains(indent, " ")
	switch {
	case tab && blank:
		return "mixed"
	case tab:
		return "tab"
	case blank:
		return "blank"
	}
	return "no"
}

// indentDrift says how the indentation of the file differs from old's.
func indentDrift(old, file []string) string {
	drift, uniform, first := 0, true, true
	unit := "blanks"
	for i := range old {
		if strings.TrimSpace(old[i]) == "" {
			continue
		}
		a := len(old[i]) - len(strings.TrimLeft(old[i], " \t"))
		b := len(file[i]) - len(strings.TrimLeft(file[i], " \t"))
		if strings.Contains(old[i][:a]+file[i][:b], "\t") {
			unit = "tabs"
		}
		if !first && b-a != drift {
			uniform = false
		}
		drift, first = b-a, false
	}
	if !uniform || drift == 0 {
		return "other indentation"
	}
	word := "more"
	if drift < 0 {
		drift, word = -drift, "less"
	}
	if unit == "tabs" {
		return plural(drift, "level") + " " + word + " (" + plural(drift, "tab") + ")"
	}
	return plural(drift, "blank") + " " + word
}

func plural(n int, word string) string {
	small := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
	num := fmt.Sprint(n)
	if n < len(small) {
		num = small[n]
	}
	if n == 1 {
		return num + " " + word
	}
	return num + " " + word + "s"
}

// nearest finds the most similar lines.
func (s *source) nearest(path, old string) *Refusal {
	s.needLines()
	if strings.TrimSpace(s.lf) == "" {
		return refuse(CodeNoMatch, path, "old text not found: the file is empty.")
	}
	lines := splitLines(old)
	at, score := s.mostSimilar(lines)
	if score < minSimilar {
		return refuse(CodeNoMatch, path, "old text not found, and nothing in the file (%d lines) is similar; read the file, then quote it exactly.", len(s.lines))
	}
	if r := s.diagnoseLooks(path, lines, at); r != nil {
		return r
	}
	end := min(at+len(lines), len(s.lines))
	r := refuse(CodeNoMatch, path, "old text not found; most similar %s. Quote the file exactly.", lineSpan(at+1, end))
	r.Line = at + 1
	for i := 0; i < len(lines) && at+i < len(s.lines); i++ {
		if a, b := trailingKey(lines[i]), trailingKey(s.lines[at+i]); a != b {
			if len(lines) > 1 {
				r.Message += fmt.Sprintf(" The first line that differs is %d.", at+i+1)
			}
			if i >= nearestLines-2 { // show the place that matters
				r.Nearest = s.show(at+i-2, len(lines)-i+2, false)
			}
			break
		}
	}
	if r.Nearest == "" {
		r.Nearest = s.show(at, len(lines), false)
	}
	return r
}

func lineSpan(from, to int) string {
	if from == to {
		return fmt.Sprintf("line: %d", from)
	}
	return fmt.Sprintf("lines: %d-%d", from, to)
}

// show quotes lines of the file, bounded, as they are: without line numbers,
// which would be quoted back. visible shows tabs and blanks of the indentation.
func (s *source) show(at, n int, visible bool) string {
	at = max(at, 0)
	end := min(at+n, len(s.lines))
	if end-at > nearestLines {
		end = at + nearestLines
	}
	var b strings.Builder
	for i := at; i < end; i++ {
		l := strings.TrimSuffix(s.lines[i], "\n")
		if visible {
			t := strings.TrimLeft(l, " \t")
			l = strings.NewReplacer("\t", "→", " ", "·").Replace(l[:len(l)-len(t)]) + t
		}
		if len(l) > nearestWidth {
			l = cutText(l, nearestWidth) + "…"
		}
		if b.Len()+len(l) > nearestBytes {
			break
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// signature is a set of letter pairs, hashed into 256 bits.
type signature [4]uint64

func (g *signature) size() int {
	return bits.OnesCount64(g[0]) + bits.OnesCount64(g[1]) + bits.OnesCount64(g[2]) + bits.OnesCount64(g[3])
}

func (g *signature) common(o *signature) int {
	return bits.OnesCount64(g[0]&o[0]) + bits.OnesCount64(g[1]&o[1]) + bits.OnesCount64(g[2]&o[2]) + bits.OnesCount64(g[3]&o[3])
}

// signLine hashes the letter pairs of a line, without blanks and case. Only the
// first 200 bytes count.
func signLine(l string) (g signature) {
	var prev uint32
	seen := 0
	for i := 0; i < len(l) && seen < 200; {
		var r uint32
		if c := l[i]; c < utf8.RuneSelf {
			i++
			if c <= ' ' {
				continue
			}
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			r = uint32(c)
		} else {
			u, size := utf8.DecodeRuneInString(l[i:])
			i += size
			if unicode.IsSpace(u) {
				continue
			}
			r = uint32(foldRune(plainRune(u)))
		}
		seen++
		h := (prev*0x01000193 ^ r) * 0x9E3779B1
		h >>= 24
		g[h>>6] |= 1 << (h & 63)
		prev = r
	}
	return g
}

// mostSimilar returns the line (0-based) where the old lines fit best, and how
// well, from 0 to 1. It is linear in the file: at most maxSampled lines of old
// are compared, those with the most text.
func (s *source) mostSimilar(old []string) (at int, score float64) {
	type sample struct {
		offset int
		sig    signature
		size   int
		weight float64
	}
	var samples []sample
	step := max(1, (len(old)+maxSampled-1)/maxSampled)
	for i := 0; i < len(old); i += step {
		best := -1
		for k := i; k < min(i+step, len(old)); k++ {
			if len(strings.TrimSpace(old[k])) > 0 && (best < 0 || len(old[k]) > len(old[best])) {
				best = k
			}
		}
		if best < 0 {
			continue
		}
		g := signLine(old[best])
		samples = append(samples, sample{offset: best, sig: g, size: g.size(), weight: float64(min(g.size(), 40))})
	}
	total := 0.0
	for _, p := range samples {
		total += p.weight
	}
	if total == 0 {
		return 0, 0
	}
	sigs := make([]signature, len(s.lines))
	sizes := make([]int, len(s.lines))
	for i, l := range s.lines {
		sigs[i] = signLine(l)
		sizes[i] = sigs[i].size()
	}
	for i := range s.lines {
		sum, left := 0.0, total
		for k := range samples {
			p := &samples[k]
			if i+p.offset >= len(sigs) {
				break
			}
			if n := p.size + sizes[i+p.offset]; n > 0 {
				sum += p.weight * float64(2*p.sig.common(&sigs[i+p.offset])) / float64(n)
			}
			left -= p.weight
			if (sum+left)/total <= score {
				break // cannot become the best any more
			}
		}
		if sum/total > score {
			at, score = i, sum/total
		}
	}
	return at, score
}
