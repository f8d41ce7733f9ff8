package workspace

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Bounds of the exact line difference. They count lines, not time, so that the
// result does not depend on the speed of the machine.
const (
	// maxExactLines is how many lines between two anchors are compared exactly;
	// more become one replacement.
	maxExactLines = 3000
	// maxExactCells bounds the work over one difference (lines times lines).
	maxExactCells = 12_000_000
	// maxAnchorDepth bounds how often regions are split at unique lines.
	maxAnchorDepth = 24
)

// DiffText returns edits that turn before into after: whole lines are compared
// first, then each changed place is cut down to its changed words. The result
// depends on nothing but the texts. It is for texts whose edits are not known.
func DiffText(before, after string) []Edit {
	if before == after {
		return nil
	}
	a, b := splitLines(before), splitLines(after)
	var edits []Edit
	offA, offB := lineOffsets(a), lineOffsets(b)
	for _, h := range diffLines(a, b) {
		e := Edit{Start: offA[h.a0], End: offA[h.a1], New: after[offB[h.b0]:offB[h.b1]]}
		edits = append(edits, trimEdit(before, e))
	}
	return mergeEdits(edits)
}

// lineOffsets returns the offset of each line, and of the end.
func lineOffsets(lines []string) []int {
	offs := make([]int, len(lines)+1)
	for i, l := range lines {
		offs[i+1] = offs[i] + len(l)
	}
	return offs
}

// lineHunk says that lines a0 to a1 (exclusive) are replaced by b0 to b1.
type lineHunk struct{ a0, a1, b0, b1 int }

// diffLines compares two lists of lines.
func diffLines(a, b []string) []lineHunk {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	enda, endb := len(a), len(b)
	for enda > pre && endb > pre && a[enda-1] == b[endb-1] {
		enda--
		endb--
	}
	if pre == enda && pre == endb {
		return nil
	}
	if pre == enda || pre == endb {
		return []lineHunk{{pre, enda, pre, endb}}
	}
	d := lineDiff{pairs: make([]int, enda-pre)}
	d.intern(a[pre:enda], b[pre:endb])
	for i := range d.pairs {
		d.pairs[i] = -1
	}
	d.region(0, len(d.a), 0, len(d.b), 0)
	hunks := d.hunks()
	for i := range hunks {
		hunks[i].a0 += pre
		hunks[i].a1 += pre
		hunks[i].b0 += pre
		hunks[i].b1 += pre
	}
	return hunks
}

// lineDiff is one comparison; lines are small numbers, equal for equal lines.
type lineDiff struct {
	a, b           []int32
	pairs          []int // for each line of a the equal line of b, or -1
	countA, countB []int32
	whereB         []int32
	cells          int
}

func (d *lineDiff) intern(a, b []string) {
	ids := make(map[string]int32, len(a))
	number := func(lines []string) []int32 {
		out := make([]int32, len(lines))
		for i, l := range lines {
			id, ok := ids[l]
			if !ok {
				id = int32(len(ids))
				ids[l] = id
			}
			out[i] = id
		}
		return out
	}
	d.a, d.b = number(a), number(b)
	d.countA = make([]int32, len(ids))
	d.countB = make([]int32, len(ids))
	d.whereB = make([]int32, len(ids))
}

// region pairs the lines of a0 to a1 with those of b0 to b1: equal ends first,
// then lines that are unique in both (patience), then exactly, if it is small.
func (d *lineDiff) region(a0, a1, b0, b1, depth int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		d.pairs[a0] = b0
		a0++
		b0++
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1--
		b1--
		d.pairs[a1] = b1
	}
	if a0 == a1 || b0 == b1 {
		return
	}
	var anchors []lineHunk
	if depth < maxAnchorDepth {
		anchors = d.anchors(a0, a1, b0, b1)
	}
	if len(anchors) == 0 {
		d.exact(a0, a1, b0, b1)
		return
	}
	for _, n := range anchors {
		d.pairs[n.a0] = n.b0
		d.region(a0, n.a0, b0, n.b0, depth+1)
		a0, b0 = n.a0+1, n.b0+1
	}
	d.region(a0, a1, b0, b1, depth+1)
}

// anchors are the lines that occur once in each region, as far as they come in
// the same order: the longest such chain.
func (d *lineDiff) anchors(a0, a1, b0, b1 int) []lineHunk {
	for _, id := range d.a[a0:a1] {
		d.countA[id]++
	}
	for j := b0; j < b1; j++ {
		d.countB[d.b[j]]++
		d.whereB[d.b[j]] = int32(j)
	}
	var cand []lineHunk
	for i := a0; i < a1; i++ {
		if id := d.a[i]; d.countA[id] == 1 && d.countB[id] == 1 {
			cand = append(cand, lineHunk{a0: i, b0: int(d.whereB[id])})
		}
	}
	for _, id := range d.a[a0:a1] {
		d.countA[id] = 0
	}
	for _, id := range d.b[b0:b1] {
		d.countB[id] = 0
	}
	return longestChain(cand)
}

// longestChain keeps the longest run of candidates (sorted by a0) whose b0 grow.
func longestChain(cand []lineHunk) []lineHunk {
	if len(cand) < 2 {
		return cand
	}
	tails := make([]int, 0, len(cand)) // index of the smallest end of a chain of length i+1
	prev := make([]int, len(cand))
	for i, c := range cand {
		n := sort.Search(len(tails), func(k int) bool { return cand[tails[k]].b0 >= c.b0 })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	out := make([]lineHunk, len(tails))
	for i, k := len(tails)-1, tails[len(tails)-1]; i >= 0; i, k = i-1, prev[k] {
		out[i] = cand[k]
	}
	return out
}

// exact compares a region without anchors. Lines that occur on one side only
// cannot be paired and are left out first.
func (d *lineDiff) exact(a0, a1, b0, b1 int) {
	for _, id := range d.a[a0:a1] {
		d.countA[id] = 1
	}
	for _, id := range d.b[b0:b1] {
		d.countB[id] = 1
	}
	var ra, rb []rune
	var ia, ib []int
	names := map[int32]rune{}
	add := func(id int32, at int, r []rune, idx []int) ([]rune, []int) {
		if d.countA[id]&d.countB[id] == 0 {
			return r, idx
		}
		name, ok := names[id]
		if !ok {
			name = rune(len(names) + 1)
			names[id] = name
		}
		return append(r, name), append(idx, at)
	}
	for i := a0; i < a1; i++ {
		ra, ia = add(d.a[i], i, ra, ia)
	}
	for j := b0; j < b1; j++ {
		rb, ib = add(d.b[j], j, rb, ib)
	}
	for _, id := range d.a[a0:a1] {
		d.countA[id] = 0
	}
	for _, id := range d.b[b0:b1] {
		d.countB[id] = 0
	}
	work := len(ra) * len(rb)
	if work == 0 || max(len(ra), len(rb)) > maxExactLines || d.cells+work > maxExactCells {
		return // one replacement
	}
	d.cells += work
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0
	i, j := 0, 0
	for _, part := range dmp.DiffMainRunes(ra, rb, false) {
		n := utf8.RuneCountInString(part.Text)
		switch part.Type {
		case diffmatchpatch.DiffEqual:
			for k := range n {
				d.pairs[ia[i+k]] = ib[j+k]
			}
			i, j = i+n, j+n
		case diffmatchpatch.DiffDelete:
			i += n
		case diffmatchpatch.DiffInsert:
			j += n
		}
	}
}

// hunks are the gaps between the pairs.
func (d *lineDiff) hunks() []lineHunk {
	var out []lineHunk
	i, j := 0, 0
	for k := 0; k <= len(d.a); k++ {
		to := len(d.b)
		if k < len(d.a) {
			if d.pairs[k] < 0 {
				continue
			}
			to = d.pairs[k]
		}
		if k > i || to > j {
			out = append(out, lineHunk{i, k, j, to})
		}
		i, j = k+1, to+1
	}
	return out
}

// trimEdit cuts what an edit of text leaves as it is at its ends, in whole words
// and never between CR and LF.
func trimEdit(text string, e Edit) Edit {
	old, new := text[e.Start:e.End], e.New
	p := commonPrefix(old, new)
	old, new = old[p:], new[p:]
	s := commonSuffix(old, new)
	return Edit{Start: e.Start + p, End: e.End - s, New: new[:len(new)-s]}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	p := 0
	for p < n && a[p] == b[p] {
		p++
	}
	if p == len(a) && p == len(b) {
		return p
	}
	for p > 0 && !(runeStartAt(a, p) && runeStartAt(b, p)) {
		p--
	}
	if p > 0 && a[p-1] == '\r' && (byteAt(a, p) == '\n' || byteAt(b, p) == '\n') {
		p--
	}
	if wordAt(a, p) || wordAt(b, p) {
		for p > 0 {
			r, size := utf8.DecodeLastRuneInString(a[:p])
			if !isWord(r) {
				break
			}
			p -= size
		}
	}
	return p
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	s := 0
	for s < n && a[len(a)-1-s] == b[len(b)-1-s] {
		s++
	}
	for s > 0 && !utf8.RuneStart(a[len(a)-s]) {
		s--
	}
	if s > 0 && a[len(a)-s] == '\n' && (byteAt(a, len(a)-s-1) == '\r' || byteAt(b, len(b)-s-1) == '\r') {
		s--
	}
	if wordEndsAt(a, len(a)-s) || wordEndsAt(b, len(b)-s) {
		for s > 0 {
			r, size := utf8.DecodeRuneInString(a[len(a)-s:])
			if !isWord(r) {
				break
			}
			s -= size
		}
	}
	return s
}

func byteAt(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

func runeStartAt(s string, i int) bool { return i >= len(s) || utf8.RuneStart(s[i]) }

// wordAt reports a word character right behind the offset.
func wordAt(s string, i int) bool {
	r, size := utf8.DecodeRuneInString(s[i:])
	return size > 0 && isWord(r)
}

// wordEndsAt reports a word character right before the offset.
func wordEndsAt(s string, i int) bool {
	r, size := utf8.DecodeLastRuneInString(s[:i])
	return size > 0 && isWord(r)
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// hasPrefixFold compares ASCII letters without case.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
