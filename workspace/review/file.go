package review

import (
	"fmt"
	"slices"
	"strings"

	"thinkflow/workspace"
)

// ID names a hunk. It is given when the hunk comes into being and never again.
type ID int64

// String is the form in which people and requests name a hunk: h1, h2, …
func (id ID) String() string { return fmt.Sprintf("h%d", int64(id)) }

// Hunk says that the bytes Start to End of the text stand for Old in the base,
// which has it at BaseStart to BaseEnd. Both sides are whole lines.
type Hunk struct {
	ID                 ID
	Start, End         int
	BaseStart, BaseEnd int
	Old, New           string
	Keys               []string // of the commands that contributed, in order of their first contribution
	Edited             bool     // a person changed the text inside
	Merged             []ID     // hunks that this one swallowed
}

// hunk is what is stored: old in the base is start to end in the text. Hunks
// are sorted, and there is always common text between two of them.
type hunk struct {
	id         ID
	start, end int
	old        string
	keys       keySet
	edited     bool
	merged     []ID
	touched    bool // while an edit is being taken in
}

// File is the review of one text. It is not safe for concurrent use.
type File struct {
	text  string
	hunks []hunk
	next  func() ID
	steps int // hunks and keys that joining has looked at; tests count them
}

// NewFile starts with a text that is its own base. next gives the ids.
func NewFile(text string, next func() ID) *File { return &File{text: text, next: next} }

// Text is the current text.
func (f *File) Text() string { return f.text }

// Base is the text without what waits for review.
func (f *File) Base() string {
	if len(f.hunks) == 0 {
		return f.text
	}
	return f.baseOf(0, len(f.text), f.hunks)
}

// baseOf is the base's side of text[start:end], which holds the given hunks.
func (f *File) baseOf(start, end int, hunks []hunk) string {
	var b strings.Builder
	at := start
	for i := range hunks {
		b.WriteString(f.text[at:hunks[i].start])
		b.WriteString(hunks[i].old)
		at = hunks[i].end
	}
	b.WriteString(f.text[at:end])
	return b.String()
}

// Hunks lists what waits for review, in the order of the text.
func (f *File) Hunks() []Hunk {
	out := make([]Hunk, len(f.hunks))
	shift := 0 // base minus text, before the hunk
	for i := range f.hunks {
		h := &f.hunks[i]
		out[i] = Hunk{
			ID: h.id, Start: h.start, End: h.end, BaseStart: h.start + shift, BaseEnd: h.start + shift + len(h.old),
			Old: h.old, New: f.text[h.start:h.end], Keys: slices.Clone(h.keys.list), Edited: h.edited, Merged: slices.Clone(h.merged),
		}
		shift += len(h.old) - (h.end - h.start)
	}
	return out
}

// Changed reports whether text and base differ.
func (f *File) Changed() bool { return len(f.hunks) > 0 }

func (f *File) find(id ID) int {
	return slices.IndexFunc(f.hunks, func(h hunk) bool { return h.id == id })
}

// Keep makes the hunk's text that of the base too. It reports whether there is
// such a hunk.
func (f *File) Keep(id ID) bool {
	i := f.find(id)
	if i < 0 {
		return false
	}
	f.hunks = slices.Delete(f.hunks, i, i+1)
	return true
}

// Undo returns the edit of the text that takes the hunk back. It becomes true
// only once the text shows it: see Agent and Sync.
func (f *File) Undo(id ID) (workspace.Edit, bool) {
	i := f.find(id)
	if i < 0 {
		return workspace.Edit{}, false
	}
	h := &f.hunks[i]
	return workspace.Edit{Start: h.start, End: h.end, New: h.old}, true
}

// Agent takes in edits of the agent: sorted, not overlapping, in offsets of the
// text, which becomes after. With key "" they only take something back: what
// they cannot cancel belongs to no command.
func (f *File) Agent(edits []workspace.Edit, after, key string) {
	edits = f.refine(edits)
	if len(edits) == 0 {
		f.text = after
		return
	}
	old := *f
	f.text, f.hunks = after, make([]hunk, 0, len(old.hunks)+len(edits))
	shift, h, e := 0, 0, 0
	for h < len(old.hunks) || e < len(edits) {
		// The next group: hunks and edits that overlap or touch.
		start, end := 0, 0
		h0, e0 := h, e
		var span [2]int
		if e < len(edits) {
			span[0], span[1] = lines(old.text, edits[e])
		}
		switch {
		case h < len(old.hunks) && (e == len(edits) || old.hunks[h].end < span[0]):
			moved := old.hunks[h]
			moved.start += shift
			moved.end += shift
			f.hunks = append(f.hunks, moved)
			h++
			continue
		case h < len(old.hunks) && old.hunks[h].start < span[0]:
			start, end = old.hunks[h].start, old.hunks[h].end
		default:
			start, end = span[0], span[1]
		}
		for grown := true; grown; {
			grown = false
			if h < len(old.hunks) && old.hunks[h].start <= end {
				end = max(end, old.hunks[h].end)
				h++
				grown = true
			}
			if e < len(edits) {
				if s, t := lines(old.text, edits[e]); s <= end {
					start, end = min(start, s), max(end, t)
					e++
					grown = true
				}
			}
		}
		size := end - start
		for _, x := range edits[e0:e] {
			size += len(x.New) - (x.End - x.Start)
		}
		n := f.joined(old.hunks[h0:h])
		n.start, n.end = start+shift, start+shift+size
		n.old = old.baseOf(start, end, old.hunks[h0:h])
		n.keys.add(key)
		if f.trim(&n) {
			if n.id == 0 {
				n.id = f.next()
			}
			f.hunks = append(f.hunks, n)
		}
		shift += size - (end - start)
	}
}

// refine cuts edits of several lines down to the lines that differ.
func (f *File) refine(edits []workspace.Edit) []workspace.Edit {
	var out []workspace.Edit
	for _, e := range edits {
		old := f.text[e.Start:e.End]
		if old == e.New {
			continue
		}
		if !strings.Contains(old, "\n") || !strings.Contains(e.New, "\n") {
			out = append(out, e)
			continue
		}
		for _, d := range workspace.DiffText(old, e.New) {
			out = append(out, workspace.Edit{Start: e.Start + d.Start, End: e.Start + d.End, New: d.New})
		}
	}
	return out
}

// lines are the whole lines that an edit rewrites. Inserted or removed whole
// lines rewrite none beside them.
func lines(text string, e workspace.Edit) (start, end int) {
	start = strings.LastIndexByte(text[:e.Start], '\n') + 1
	if atLine(text, e.End) && (strings.HasSuffix(e.New, "\n") || e.New == "" && start == e.Start) {
		return start, e.End
	}
	return start, lineEnd(text, e.End)
}

func atLine(text string, off int) bool { return off == 0 || text[off-1] == '\n' }

// lineEnd is the offset behind the line break that follows, or the end.
func lineEnd(text string, off int) int {
	if i := strings.IndexByte(text[off:], '\n'); i >= 0 {
		return off + i + 1
	}
	return len(text)
}

// trim drops equal lines from the ends of a hunk and reports whether something
// is left of it.
func (f *File) trim(h *hunk) bool {
	now := f.text[h.start:h.end]
	if now == h.old {
		return false
	}
	p := 0
	for {
		a, b := lineEnd(now, p), lineEnd(h.old, p)
		if p >= len(now) || p >= len(h.old) || a != b || now[p:a] != h.old[p:a] {
			break
		}
		p = a
	}
	h.start += p
	now, h.old = now[p:], h.old[p:]
	for now != "" && h.old != "" {
		a := strings.LastIndexByte(now[:len(now)-1], '\n') + 1
		b := strings.LastIndexByte(h.old[:len(h.old)-1], '\n') + 1
		if now[a:] != h.old[b:] || !atLine(f.text, h.end) && h.end != len(f.text) {
			break
		}
		h.end -= len(now) - a
		now, h.old = now[:a], h.old[:b]
	}
	return now != h.old
}
