package review

import "thinkflow/workspace"

// SyncBase takes in what a person changed in the base, which is now: for
// proposals, the base is the real file and the text what is proposed. Outside
// of hunks the text changes alike. A hunk whose base came to equal it is gone.
func (f *File) SyncBase(now string) {
	m := f.mirror()
	if m.text == now {
		return
	}
	m.Sync(now)
	*f = *m.mirror()
}

// Accept returns the edit of the base that makes a hunk real.
func (f *File) Accept(id ID) (workspace.Edit, bool) {
	for _, h := range f.Hunks() {
		if h.ID == id {
			return workspace.Edit{Start: h.BaseStart, End: h.BaseEnd, New: h.New}, true
		}
	}
	return workspace.Edit{}, false
}

// mirror is the file seen from the other side: the base as the text.
func (f *File) mirror() *File {
	m := &File{text: f.Base(), next: f.next, hunks: make([]hunk, len(f.hunks))}
	for i, h := range f.Hunks() {
		n := f.hunks[i]
		n.start, n.end, n.old = h.BaseStart, h.BaseEnd, h.New
		m.hunks[i] = n
	}
	return m
}
