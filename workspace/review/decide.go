package review

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"thinkflow/workspace"
)

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
