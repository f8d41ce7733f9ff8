package review

import (
	"slices"

	"thinkflow/workspace"
)

// A path has two sides: what stands there now, and what the base has there. After
// a move they may belong to different files. As long as nobody else needs the old
// place, a move stays a move; once something else is put there, or a file is moved
// to where another one was deleted, both become changes that do not depend on each
// other: a new file, and a place with another text. Then each can be decided about
// alone, in any order.

// claimer is the file whose base is at the path, although it is elsewhere now.
func (t *Tracker) claimer(path string) *tracked {
	for _, g := range t.files {
		if g.from == path && g.path != path && !g.deleted {
			return g
		}
	}
	return nil
}

// Claimed tells whether the base of a file that was moved away is at the path:
// nothing is there now.
func (t *Tracker) Claimed(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[path] == nil && t.claimer(path) != nil
}

// Origin is where the base of a moved file is, "" when it is not moved.
func (t *Tracker) Origin(path string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.files[path]; f != nil && !f.deleted {
		return f.from
	}
	return ""
}

// unmove makes a moved file a new one and returns what the base has in its old
// place, which is free then.
func (t *Tracker) unmove(g *tracked) (base string) {
	base = g.file.Base()
	self := g.file.joined(append([]hunk{g.moved}, g.file.hunks...))
	g.created, g.whole, g.self = true, g.file.Text(), self
	g.file, g.from, g.moved = nil, "", hunk{}
	t.settle(g)
	return base
}

// put makes text what stands at a path whose base is another text.
func (t *Tracker) put(path, base, text string, keys []string) {
	f := &tracked{path: path, file: NewFile(base, t.nextID)}
	f.file.Agent(workspace.DiffText(base, text), text, first(keys))
	for i := range f.file.hunks {
		for _, k := range keys {
			f.file.hunks[i].keys.add(k)
		}
	}
	t.settle(f)
}

// vacate frees the base's side of a path for a text that comes there. ok is false
// when nothing is there, or when it has no text that could be compared.
func (t *Tracker) vacate(path string, comes *tracked) (base string, keys []string, ok bool) {
	if d := t.files[path]; d != nil && d.deleted && !d.opaque {
		delete(t.files, path)
		return d.whole, slices.Clone(d.self.keys.list), true
	}
	if g := t.claimer(path); g != nil && g != comes && !g.opaque {
		return t.unmove(g), nil, true
	}
	return "", nil, false
}

// moveOver moves a file to a place that the base knows as another one: the place
// gets its text, and where it was it is deleted.
func (t *Tracker) moveOver(f *tracked, a Applied, base string, keys []string) {
	text := f.whole
	if f.created {
		keys = append(keys, f.self.keys.list...)
	} else {
		text = f.file.Text()
		origin := f.path
		self := f.file.joined(f.file.hunks)
		if f.from != "" {
			origin, self = f.from, f.file.joined([]hunk{f.moved, self})
		}
		keys = append(keys, self.keys.list...)
		if self.id == 0 {
			self.id = t.nextID()
		}
		self.keys.add(a.Key)
		t.settle(&tracked{path: origin, deleted: true, whole: f.file.Base(), self: self, mode: a.Mode, link: a.Link})
	}
	if a.Key != "" {
		keys = append(keys, a.Key)
	}
	t.put(a.Dest, base, text, keys)
}

// Forget drops what waits in a file; the base is what is there, then.
func (t *Tracker) Forget(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.files[path]; ok {
		delete(t.files, path)
		t.rev++
	}
}
