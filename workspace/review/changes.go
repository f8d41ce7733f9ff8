package review

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Kind says what a change is about: lines of a file, or the file itself.
type Kind string

// The kinds.
const (
	KindEdit   Kind = "edit"   // lines
	KindCreate Kind = "create" // the file is not in the base
	KindDelete Kind = "delete" // the file is only in the base
	KindMove   Kind = "move"   // the base has it under another path
)

// Change is one hunk of one file.
type Change struct {
	Hunk
	Kind Kind
	Path string // absolute, as it is now; of a deleted file, as it was
	From string // KindMove: the path in the base
}

// Paths lists the files in which something waits, sorted.
func (t *Tracker) Paths() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, 0, len(t.files))
	for p := range t.files {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

// Revision counts changes of what is known of the file; 0 = nothing waits in it.
func (t *Tracker) Revision(path string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.files[path]; f != nil {
		return f.rev
	}
	return 0
}

// Changes lists what waits in the file, in the order of its text.
func (t *Tracker) Changes(path string) []Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	if f == nil {
		return nil
	}
	return f.changes()
}

func (f *tracked) changes() []Change {
	var out []Change
	if f.from != "" && !f.deleted {
		out = append(out, Change{Hunk: f.moved.plain(), Kind: KindMove, Path: f.path, From: f.from})
	}
	h := f.self.plain()
	switch {
	case f.created:
		h.New, h.End = f.whole, len(f.whole)
		return append(out, Change{Hunk: h, Kind: KindCreate, Path: f.path})
	case f.deleted:
		h.Old, h.BaseEnd = f.whole, len(f.whole)
		return append(out, Change{Hunk: h, Kind: KindDelete, Path: f.path})
	}
	for _, h := range f.file.Hunks() {
		out = append(out, Change{Hunk: h, Kind: KindEdit, Path: f.path})
	}
	return out
}

func (h *hunk) plain() Hunk {
	return Hunk{ID: h.id, Keys: slices.Clone(h.keys.list), Edited: h.edited, Merged: slices.Clone(h.merged)}
}

// Find returns the change with that id, as ID.String has it.
func (t *Tracker) Find(id string) (Change, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "h"), 10, 64)
	if err != nil {
		return Change{}, fmt.Errorf("%q: %w", id, ErrNoHunk)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.files {
		for _, c := range f.changes() {
			if c.ID == ID(n) {
				return c, nil
			}
			if slices.Contains(c.Merged, ID(n)) {
				return Change{}, fmt.Errorf("%q grew together with %s: %w", id, c.ID, ErrNoHunk)
			}
		}
	}
	return Change{}, fmt.Errorf("%q: %w", id, ErrNoHunk)
}

// Text is the file as it is here; Base, as it is without what waits. ok is
// false when the file is not tracked, exists when it is not there on that side.
func (t *Tracker) Text(path string) (text string, exists, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch f := t.files[path]; {
	case f == nil:
		return "", false, false
	case f.created:
		return f.whole, true, true
	case f.deleted:
		return "", false, true
	default:
		return f.file.Text(), true, true
	}
}

// Base is described at Text.
func (t *Tracker) Base(path string) (text string, exists, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch f := t.files[path]; {
	case f == nil:
		return "", false, false
	case f.created:
		return "", false, true
	case f.deleted:
		return f.whole, true, true
	default:
		return f.file.Base(), true, true
	}
}
