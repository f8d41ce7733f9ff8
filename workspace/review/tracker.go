package review

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"thinkflow/workspace"
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
}

// Action is what has to be done to a file to take a change back (Undo) or to
// make a proposal real (Accept). It is not done yet.
type Action struct {
	Kind  Kind             // edit; create: write Text; delete: remove; move: to Dest
	Path  string           // absolute
	Dest  string           // move
	Edits []workspace.Edit // edit: sorted, in offsets of the text
	Text  string           // create
	Mode  fs.FileMode      // create; 0 = as usual
	Link  string           // create: it is a symbolic link to this
}

// Errors of requests.
var (
	ErrNoHunk = errors.New("there is no such change (any more)")
	ErrStale  = errors.New("the changes are not those that were looked at")
)

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
	t.settle(&tracked{path: path, deleted: true, whole: base, self: self, mode: a.Mode, link: a.Link})
}

func (t *Tracker) move(a Applied) {
	f := t.files[a.Path]
	if f == nil {
		f = &tracked{path: a.Path, file: NewFile(a.Before, t.nextID)}
	}
	delete(t.files, a.Path)
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

// SyncBase is Sync for a tracker of proposals, whose base is the real file.
func (t *Tracker) SyncBase(path, now string, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	if f == nil || f.from != "" {
		return
	}
	switch {
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

// Keep moves the base: the change is the person's own from now on.
func (t *Tracker) Keep(path string, ids ...ID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	if f == nil {
		return ErrNoHunk
	}
	for _, id := range ids {
		switch {
		case f.from != "" && id == f.moved.id:
			f.from, f.moved = "", hunk{}
		case f.created && id == f.self.id:
			f.file, f.created, f.whole = NewFile(f.whole, t.nextID), false, ""
		case f.deleted && id == f.self.id:
			delete(t.files, path)
			t.rev++
			return nil
		case f.file == nil || !f.file.Keep(id):
			return fmt.Errorf("%s: %w", id, ErrNoHunk)
		}
	}
	t.settle(f)
	return nil
}

// Undo says what has to happen to the file so that the changes are gone. They
// are gone once Agent or Sync has been told that it did. A removal of the file
// swallows all else; a move comes last.
func (t *Tracker) Undo(path string, ids ...ID) ([]Action, error) {
	return t.plan(path, ids, func(f *tracked) Action {
		switch {
		case f.created:
			return Action{Kind: KindDelete, Path: f.path}
		case f.deleted:
			return Action{Kind: KindCreate, Path: f.path, Text: f.whole, Mode: f.mode, Link: f.link}
		}
		return Action{Kind: KindMove, Path: f.path, Dest: f.from}
	}, (*File).Undo)
}

// Accept says what has to happen to the real file so that the proposals are
// real. They are once Keep has been told that it did.
func (t *Tracker) Accept(path string, ids ...ID) ([]Action, error) {
	return t.plan(path, ids, func(f *tracked) Action {
		switch {
		case f.created:
			return Action{Kind: KindCreate, Path: f.path, Text: f.whole}
		case f.deleted:
			return Action{Kind: KindDelete, Path: f.path}
		}
		return Action{Kind: KindMove, Path: f.from, Dest: f.path}
	}, (*File).Accept)
}

func (t *Tracker) plan(path string, ids []ID, self func(*tracked) Action, edit func(*File, ID) (workspace.Edit, bool)) ([]Action, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[path]
	if f == nil {
		return nil, ErrNoHunk
	}
	var out []Action
	var edits []workspace.Edit
	move := false
	for _, id := range ids {
		switch {
		case f.from != "" && id == f.moved.id:
			move = true
		case (f.created || f.deleted) && id == f.self.id:
			out = append(out, self(f))
		default:
			var e workspace.Edit
			ok := f.file != nil
			if ok {
				e, ok = edit(f.file, id)
			}
			if !ok {
				return nil, fmt.Errorf("%s: %w", id, ErrNoHunk)
			}
			edits = append(edits, e)
		}
	}
	if len(edits) > 0 {
		slices.SortFunc(edits, func(a, b workspace.Edit) int { return a.Start - b.Start })
		out = append(out, Action{Kind: KindEdit, Path: f.path, Edits: edits})
	}
	if move {
		out = append(out, self(f))
	}
	return out, nil
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
