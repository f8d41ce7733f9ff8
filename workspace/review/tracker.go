package review

import (
	"io/fs"
	"strings"
	"sync"

	"thinkflow/workspace"
)

// Applied is a change of the agent that has happened. Paths are absolute.
type Applied struct {
	Key        string // of the command; "" = something was taken back
	Kind       workspace.ChangeKind
	Path, Dest string // Dest: copy and move
	Before     string // text before; of a copy, ignored
	After      string // text after; of a copy, that of Dest
	Edits      []workspace.Edit
	Mode       fs.FileMode // of a deleted file
	Link       string      // of a deleted link
	Opaque     bool        // Before is not known: the file is no text
}

// tracked is one file. Exactly one of three holds: the file is on both sides
// (file), only in the text (created), or only in the base (deleted).
type tracked struct {
	file    *File
	created bool
	deleted bool
	whole   string // the text of a created file, the base of a deleted one
	self    hunk   // of a created or deleted file: id, keys, edited
	path    string
	from    string // the base's path, where it differs
	moved   hunk   // id and keys of that
	opaque  bool   // no text: the file is only moved or deleted, never compared
	mode    fs.FileMode
	link    string
	rev     int64
}

// Tracker keeps the files of a workspace in which something waits for review.
// It is safe for concurrent use.
type Tracker struct {
	mu    sync.Mutex // guards all below
	last  ID
	rev   int64
	files map[string]*tracked
}

// NewTracker makes an empty one.
func NewTracker() *Tracker { return &Tracker{files: map[string]*tracked{}} }

func (t *Tracker) nextID() ID {
	t.last++
	return t.last
}

// Agent takes in a change of the agent.
func (t *Tracker) Agent(a Applied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Kind {
	case workspace.ChangeModify:
		t.modify(a)
	case workspace.ChangeCreate:
		t.create(a.Path, a.After, a.Key)
	case workspace.ChangeCopy:
		t.create(a.Dest, a.After, a.Key)
	case workspace.ChangeDelete:
		t.delete(a)
	case workspace.ChangeMove:
		t.move(a)
	}
}

// settle drops a file in which nothing waits any more, else counts the change.
func (t *Tracker) settle(f *tracked) {
	t.rev++
	f.rev = t.rev
	if !f.created && !f.deleted && f.from == "" && !f.file.Changed() {
		delete(t.files, f.path)
		return
	}
	t.files[f.path] = f
}

func (t *Tracker) modify(a Applied) {
	f := t.files[a.Path]
	switch {
	case f == nil || f.deleted:
		f = &tracked{path: a.Path, file: NewFile(a.Before, t.nextID)}
	case f.created:
		f.whole = a.After
		f.self.keys.add(a.Key)
		t.settle(f)
		return
	}
	f.sync(a.Before)
	f.file.Agent(a.Edits, a.After, a.Key)
	t.settle(f)
}

func (t *Tracker) create(path, text, key string) {
	f := t.files[path]
	if f != nil && f.deleted { // it is back, perhaps with another text
		base := f.whole
		f.file, f.deleted, f.whole = NewFile(base, t.nextID), false, ""
		f.file.Agent(workspace.DiffText(base, text), text, key)
		t.settle(f)
		return
	}
	if key == "" { // it was there before the agent came
		delete(t.files, path)
		return
	}
	if base, keys, ok := t.vacate(path, nil); ok {
		t.put(path, base, text, append(keys, key))
		return
	}
	t.settle(&tracked{path: path, created: true, whole: text, self: hunk{id: t.nextID(), keys: keysOf(key)}})
}

func (t *Tracker) delete(a Applied) {
	f := t.files[a.Path]
	delete(t.files, a.Path)
	base, self := a.Before, hunk{}
	path := a.Path
	switch {
	case f != nil && f.created:
		return // it never was
	case f != nil && f.file != nil:
		f.sync(a.Before)
		base, self = f.file.Base(), f.file.joined(f.file.hunks)
		if f.from != "" {
			path, self = f.from, f.file.joined([]hunk{f.moved, self})
		}
	}
	if self.id == 0 {
		self.id = t.nextID()
	}
	self.keys.add(a.Key)
	t.settle(&tracked{path: path, deleted: true, whole: base, self: self, mode: a.Mode, link: a.Link, opaque: a.Opaque})
}

func (t *Tracker) move(a Applied) {
	f := t.files[a.Path]
	if f == nil {
		f = &tracked{path: a.Path, file: NewFile(a.Before, t.nextID), opaque: a.Opaque}
	}
	delete(t.files, a.Path)
	if f.from != a.Dest && a.Path != a.Dest && !f.opaque {
		if base, keys, ok := t.vacate(a.Dest, f); ok {
			t.moveOver(f, a, base, keys)
			return
		}
	}
	f.path = a.Dest
	switch {
	case f.created:
		f.self.keys.add(a.Key)
	case f.from == a.Dest:
		f.from, f.moved = "", hunk{}
	case f.from == "":
		f.from = a.Path
		f.moved = hunk{id: t.nextID()}
		fallthrough
	default:
		f.moved.keys.add(a.Key)
	}
	t.settle(f)
}

// sync takes in a text that a person made.
func (f *tracked) sync(now string) {
	if f.created {
		f.self.edited = f.self.edited || f.whole != now
		f.whole = now
		return
	}
	f.file.Sync(now)
}

// Sync takes in what the file is now: what differs from what was known is a
// person's. Files that are not tracked are of no interest.
func (t *Tracker) Sync(path, now string, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	switch {
	case f == nil:
	case !exists && f.deleted:
	case !exists, f.deleted: // a person removed it, or brought it back
		delete(t.files, path)
		t.rev++
	case f.created && f.whole != now, !f.created && f.file.Text() != now:
		f.sync(now)
		t.settle(f)
	}
}

// SyncBase is Sync for a tracker of proposals, whose base is the real file: of a
// moved one, that of its old place (Origin).
func (t *Tracker) SyncBase(path, now string, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	if f == nil || f.opaque {
		return
	}
	switch {
	case f.from != "" && !exists: // a person removed what was to be moved
		t.unmove(f)
		f.self.edited = true
		return
	case f.created && exists:
		text := f.whole
		f.file, f.created, f.whole = NewFile(now, t.nextID), false, ""
		f.file.Agent(workspace.DiffText(now, text), text, first(f.self.keys.list))
	case f.created:
		return
	case f.deleted && !exists:
		delete(t.files, path)
		t.rev++
		return
	case f.deleted:
		if f.whole == now {
			return
		}
		f.whole, f.self.edited = now, true
	case !exists:
		keys := f.file.joined(f.file.hunks)
		f.created, f.whole, f.file = true, f.file.Text(), nil
		f.self = keys
		f.self.edited = true
		if f.self.id == 0 {
			f.self.id = t.nextID()
		}
	default:
		if f.file.Base() == now {
			return
		}
		f.file.SyncBase(now)
	}
	t.settle(f)
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// MoveFolder renames the tracked files below a folder that was moved.
func (t *Tracker) MoveFolder(from, to, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, f := range t.files {
		rest, ok := strings.CutPrefix(path, from)
		if !ok || rest == "" || rest[0] != '/' && rest[0] != '\\' || f.deleted {
			continue
		}
		delete(t.files, path)
		f.path = to + rest
		switch {
		case f.created:
		case f.from == f.path:
			f.from, f.moved = "", hunk{}
		case f.from == "":
			f.from, f.moved = path, hunk{id: t.nextID()}
			f.moved.keys.add(key)
		}
		t.settle(f)
	}
}
