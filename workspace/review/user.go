package review

import (
	"slices"
	"strings"

	"thinkflow/workspace"
)

// User takes in edits that a person (or another program) made: sorted, not
// overlapping, in offsets of the text, which becomes after. Outside of every
// hunk they change base and text alike; inside of one, its text. An edit that
// straddles an end of a hunk is split there.
func (f *File) User(edits []workspace.Edit, after string) {
	for i := range f.hunks {
		f.hunks[i].touched = false
	}
	for _, e := range slices.Backward(edits) { // so that the offsets before stay true
		f.userEdit(e)
	}
	f.text = after
	f.settle()
}

// userEdit moves the hunks for one edit; f.text is still the text before all.
func (f *File) userEdit(e workspace.Edit) {
	delta := len(e.New) - (e.End - e.Start)
	// Where the inserted text goes: into this hunk, or outside of all (-1).
	into := -1
	for i := range f.hunks {
		if h := &f.hunks[i]; h.start > e.End {
			break
		} else if f.takes(h, e) {
			into = i
			break
		}
	}
	for i := range f.hunks {
		h := &f.hunks[i]
		switch {
		case h.end < e.Start:
			continue
		case h.start > e.End:
			h.start += delta
			h.end += delta
			continue
		}
		h.touched = true
		inside := min(h.end, e.End) - max(h.start, e.Start) // bytes of the hunk that go away
		keep := h.end - h.start - max(inside, 0)
		switch {
		case i == into:
			h.start = min(h.start, e.Start)
			h.end = h.start + keep + len(e.New)
			h.edited = true
		case into >= 0 && i < into || into < 0 && h.start <= e.Start && (h.start < e.Start || h.end <= e.Start && h.start == h.end):
			// before the inserted text: cut at its end
			h.edited = h.edited || inside > 0
			h.end = h.start + keep
		default:
			// behind the inserted text: cut at its start
			h.edited = h.edited || inside > 0
			h.start = e.Start + len(e.New) + max(0, h.start-e.End)
			h.end = h.start + keep
		}
	}
}

// takes reports whether text that the edit inserts belongs to the hunk.
func (f *File) takes(h *hunk, e workspace.Edit) bool {
	switch {
	case e.Start < h.end && e.End > h.start: // overlaps
		return true
	case e.End < h.start || e.Start > h.end:
		return false
	case h.start == h.end: // the place where lines were removed
		return e.Start == h.start && e.End == h.end && e.New == h.old
	case e.End == h.start: // before its first line, unless it joins it
		return e.New != "" && !strings.HasSuffix(e.New, "\n") && e.Start == e.End
	}
	// At its end: outside where a new line begins on both sides.
	return !f.cleanEnd(h)
}

// cleanEnd reports whether a line begins at the end of the hunk, in text and
// base.
func (f *File) cleanEnd(h *hunk) bool {
	return atLine(f.text, h.end) && (h.old == "" || strings.HasSuffix(h.old, "\n"))
}

// meeting is a hunk in the making: those that were found to meet, in the order
// of the text.
type meeting struct {
	start, end int
	touched    bool
	before     []hunk // in reverse order
	parts      []hunk
	tail       byte // the last byte of the base's side; 0 = that is empty
}

func meet(h hunk) meeting {
	m := meeting{start: h.start, end: h.end, touched: h.touched, parts: []hunk{h}}
	m.grow(h.old)
	return m
}

// grow notes what the base's side ends with.
func (m *meeting) grow(s string) {
	if s != "" {
		m.tail = s[len(s)-1]
	}
}

// hunk is what came of it.
func (f *File) hunk(m *meeting) hunk {
	slices.Reverse(m.before)
	parts := append(m.before, m.parts...)
	n := f.joined(parts)
	n.start, n.end, n.touched = m.start, m.end, m.touched
	n.old = f.baseOf(m.start, m.end, parts)
	return n
}

// apart reports whether hunk i is as it was and meets none that was touched; out
// are the hunks before it.
func (f *File) apart(out []hunk, i int) bool {
	h := &f.hunks[i]
	if n := len(out); h.touched || n > 0 && out[n-1].touched && out[n-1].end >= h.start {
		return false
	}
	return i+1 == len(f.hunks) || !f.hunks[i+1].touched || h.end < f.hunks[i+1].start
}

// settle makes whole lines of the hunks that an edit touched, joins those that
// meet, and drops those that came to equal the base.
func (f *File) settle() {
	out := make([]hunk, 0, len(f.hunks))
	for i := 0; i < len(f.hunks); i++ {
		if f.apart(out, i) {
			out = append(out, f.hunks[i])
			continue
		}
		m := meet(f.hunks[i])
		for again := true; again; {
			again = false
			f.steps++
			if m.touched {
				if s := strings.LastIndexByte(f.text[:m.start], '\n') + 1; s < m.start {
					if n := len(out); n > 0 && out[n-1].end > s {
						s = out[n-1].end
					}
					if m.tail == 0 {
						m.grow(f.text[s:m.start])
					}
					m.start = s
				}
				stop := len(f.text)
				if i+1 < len(f.hunks) {
					stop = f.hunks[i+1].start
				}
				if clean := atLine(f.text, m.end) && (m.tail == 0 || m.tail == '\n'); !clean && m.end < stop {
					t := min(lineEnd(f.text, m.end), stop)
					m.grow(f.text[m.end:t])
					m.end = t
				}
			}
			if n := len(out); n > 0 && out[n-1].end >= m.start && (m.touched || out[n-1].touched) {
				a := out[n-1]
				if m.tail == 0 {
					m.grow(a.old)
				}
				m.start, m.touched, m.before = a.start, true, append(m.before, a)
				out = out[:n-1]
				again = true
			}
			if i+1 < len(f.hunks) && m.end >= f.hunks[i+1].start && (m.touched || f.hunks[i+1].touched) {
				i++
				b := f.hunks[i]
				m.grow(b.old)
				m.end, m.touched, m.parts = b.end, true, append(m.parts, b)
				again = true
			}
		}
		h := m.parts[0]
		if m.touched {
			if h = f.hunk(&m); !f.trim(&h) {
				continue
			}
		}
		out = append(out, h)
	}
	f.hunks = out
}

// Sync takes in a text that came about without us. A hunk that it shows as
// undone is; everything else that differs is a person's.
func (f *File) Sync(now string) {
	if now == f.text {
		return
	}
	pre := commonPrefix(f.text, now)
	suf := commonSuffix(f.text, now)
	for i := range f.hunks {
		h := &f.hunks[i]
		tail := len(f.text) - h.end
		if pre >= h.start && suf >= tail && len(now) == h.start+len(h.old)+tail && now[h.start:h.start+len(h.old)] == h.old {
			f.Agent([]workspace.Edit{{Start: h.start, End: h.end, New: h.old}}, now, "")
			return
		}
	}
	suf = min(suf, len(f.text)-pre, len(now)-pre)
	a, b := f.text[pre:len(f.text)-suf], now[pre:len(now)-suf]
	edits := []workspace.Edit{{Start: pre, End: pre + len(a), New: b}}
	if strings.Contains(a, "\n") && b != "" {
		// Several places, perhaps: from the line's start, so that lines compare.
		line := strings.LastIndexByte(f.text[:pre], '\n') + 1
		tail := lineEnd(f.text, pre+len(a)) - (pre + len(a))
		edits = workspace.DiffText(f.text[line:pre+len(a)+tail], now[line:pre+len(b)+tail])
		for i := range edits {
			edits[i].Start += line
			edits[i].End += line
		}
	}
	f.User(edits, now)
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	const step = 4096
	p := 0
	for p+step <= n && a[p:p+step] == b[p:p+step] {
		p += step
	}
	for p < n && a[p] == b[p] {
		p++
	}
	return p
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	const step = 4096
	s := 0
	for s+step <= n && a[len(a)-s-step:len(a)-s] == b[len(b)-s-step:len(b)-s] {
		s += step
	}
	for s < n && a[len(a)-1-s] == b[len(b)-1-s] {
		s++
	}
	return s
}
