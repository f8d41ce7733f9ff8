package lsp

import (
	"sort"
	"strings"
)

// edit replaces the bytes [start, end) of some text.
type edit struct {
	start, end int
	repl       string
}

// trim drops what the edit leaves as it is at both ends of its range in old.
// Editors report more than they changed; whole-document changes in particular.
func (e edit) trim(old string) edit {
	was := old[e.start:e.end]
	p := commonPrefix(was, e.repl)
	was, repl := was[p:], e.repl[p:]
	q := commonSuffix(was, repl)
	return edit{e.start + p, e.end - q, repl[:len(repl)-q]}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i+32 <= n && a[i:i+32] == b[i:i+32] {
		i += 32
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i+32 <= n && a[len(a)-i-32:len(a)-i] == b[len(b)-i-32:len(b)-i] {
		i += 32
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// hunk relates a range of an old text to the range of the current text that
// stands in its place.
type hunk struct {
	from, to       int // bytes of the old text
	curFrom, curTo int // bytes of the current text
}

// delta is what happened to a text since some moment: sorted hunks that do not
// touch. Outside of them old and current text are the same.
type delta []hunk

// maxHunks bounds a delta; beyond it neighbours are merged into one.
const maxHunks = 4096

// add composes one more edit, given in bytes of the current text.
func (d delta) add(e edit) delta {
	shift := len(e.repl) - (e.end - e.start)
	// Hunks i..j-1 touch the edit.
	i := sort.Search(len(d), func(k int) bool { return d[k].curTo >= e.start })
	j := i
	for j < len(d) && d[j].curFrom <= e.end {
		j++
	}
	h := hunk{d.toOld(i, e.start), d.toOld(j, e.end), e.start, e.end + shift}
	if i < j {
		if d[i].curFrom <= e.start {
			h.from, h.curFrom = d[i].from, d[i].curFrom
		}
		if d[j-1].curTo >= e.end {
			h.to, h.curTo = d[j-1].to, d[j-1].curTo+shift
		}
	}
	out := make(delta, 0, len(d)-(j-i)+1)
	out = append(out, d[:i]...)
	out = append(out, h)
	for _, rest := range d[j:] {
		rest.curFrom += shift
		rest.curTo += shift
		out = append(out, rest)
	}
	if len(out) > maxHunks {
		out = out.halved()
	}
	return out
}

// toOld maps an offset of the current text that lies in no hunk, with n hunks
// before it.
func (d delta) toOld(n, cur int) int {
	if n == 0 {
		return cur
	}
	return cur - d[n-1].curTo + d[n-1].to
}

// toCur maps an offset of the old text that lies in no hunk, with n hunks
// before it.
func (d delta) toCur(n, old int) int {
	if n == 0 {
		return old
	}
	return old - d[n-1].to + d[n-1].curTo
}

func (d delta) halved() delta {
	out := make(delta, 0, len(d)/2+1)
	for i := 0; i < len(d); i += 2 {
		h := d[i]
		if i+1 < len(d) {
			h.to, h.curTo = d[i+1].to, d[i+1].curTo
		}
		out = append(out, h)
	}
	return out
}

// applyEdits applies sorted edits that do not overlap, all given in bytes of s.
func applyEdits(s string, edits []edit) string {
	var b strings.Builder
	n := len(s)
	for _, e := range edits {
		n += len(e.repl) - (e.end - e.start)
	}
	b.Grow(n)
	at := 0
	for _, e := range edits {
		b.WriteString(s[at:e.start])
		b.WriteString(e.repl)
		at = e.end
	}
	b.WriteString(s[at:])
	return b.String()
}
