package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Committed says what Commit did.
type Committed struct {
	Hash    string // afterwards, of the target (copy, move: of the destination); "" = absent
	Bytes   int64  // size of the text written
	InPlace bool   // written in place instead of by a rename
}

// Commit carries the change out on disk: all of it or nothing. The target is
// opened anew without following any link, and must still hold what the plan was
// made against. The caller has recorded change.Undo() durably before. A change
// of an open document belongs to the editor and is refused, but for the removal
// or move of one without unsaved text. Errors are *Refusal; after one nothing
// is different and no temporary file is left. Once the new entry stands, a
// folder that cannot be synced is no error: the effect can be seen.
func (w *Workspace) Commit(ctx context.Context, c *Change) (Committed, error) {
	if err := ctx.Err(); err != nil {
		return Committed{}, err
	}
	if ref := w.mayCommit(c); ref != nil {
		return Committed{}, ref
	}
	var done Committed
	var err error
	switch c.Kind {
	case ChangeNone:
		return Committed{Hash: c.AfterHash}, nil
	case ChangeCreate, ChangeCopy:
		done, err = w.commitNew(c)
	case ChangeModify:
		done, err = w.commitModify(c)
	case ChangeDelete:
		done, err = w.commitDelete(c)
	case ChangeMove:
		done, err = w.commitMove(c)
	case ChangeMkdir:
		done, err = w.commitMkdir(c)
	case ChangeTouch:
		done, err = w.commitTouch(c)
	default:
		err = errNotPlanned
	}
	if err != nil {
		return Committed{}, commitRefusal(c, err)
	}
	fault("after effect")
	return done, nil
}

// mayCommit checks what can be checked without opening anything.
func (w *Workspace) mayCommit(c *Change) *Refusal {
	targets := []Target{c.Target}
	if c.Dest != nil {
		targets = append(targets, *c.Dest)
	}
	roots := w.rootList()
	for _, t := range targets {
		if _, _, ok := holder(roots, t.Abs); !ok {
			return refuse(CodeOutside, t.Display, "the workspace folder of this file is not open any more")
		}
	}
	if c.Open && c.Kind != ChangeNone {
		switch {
		case c.Kind != ChangeDelete && c.Kind != ChangeMove && c.Kind != ChangeCopy:
			return refuse(CodeInvalid, c.Target.Display, "the file is open in the editor, which has to change it")
		case c.Before.Dirty:
			return refuse(CodeDirty, c.Target.Display, "the file has unsaved changes in the editor; they would be lost. Ask for it to be saved first")
		}
	}
	return nil
}

// staleError: what stands on disk is not what the plan was made against.
type staleError struct{ what string }

func (e *staleError) Error() string { return e.what }

// commitRefusal words an error of the system.
func commitRefusal(c *Change, err error) *Refusal {
	t := c.Target
	if c.Dest != nil && c.Kind != ChangeMove {
		t = *c.Dest
	}
	var stale *staleError
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &stale):
		return refuse(CodeChanged, t.Display, "%s; nothing was changed. Look again and repeat", stale.what)
	case isLoop(err):
		return refuse(CodeChanged, t.Display, "a part of the path became a symbolic link since it was approved; nothing was changed")
	case errors.Is(err, fs.ErrPermission):
		return &Refusal{Code: CodeIO, Path: t.Display, Err: err,
			Message: fmt.Sprintf("the folder %s is not writable (%s); nothing was changed", filepath.Dir(t.Abs), plainError(err))}
	case isCross(err):
		return &Refusal{Code: CodeIO, Path: t.Display, Err: err,
			Message: "source and destination are on different file systems; copy the file and delete the old one"}
	}
	return &Refusal{Code: CodeIO, Path: t.Display, Err: err, Message: plainError(err) + "; nothing was changed"}
}

// parentDir opens the folder of a target, making those that are missing inside
// the root. made are the ones it made, innermost first.
func (w *Workspace) parentDir(t Target) (d *dirHandle, made []string, err error) {
	dir := filepath.Dir(t.Abs)
	if d, err = openDir(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return d, nil, err
	}
	roots := w.rootList()
	_, _, ok := holder(roots, dir)
	var todo []string
	for ; ok && errors.Is(err, fs.ErrNotExist); dir = filepath.Dir(dir) {
		if _, _, ok = holder(roots, dir); !ok {
			break
		}
		todo = append(todo, filepath.Base(dir))
		d, err = openDir(filepath.Dir(dir))
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Backward(todo) {
		err = d.mkdir(name)
		if err == nil {
			made = append([]string{filepath.Join(d.path, name)}, made...)
			err = d.sync()
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		var sub *dirHandle
		if err == nil {
			sub, err = d.openSub(name)
		}
		d.close()
		if err != nil {
			removeDirs(made)
			return nil, nil, err
		}
		d = sub
	}
	return d, made, nil
}

// removeDirs removes folders that are empty, in the given order.
func removeDirs(dirs []string) {
	for _, dir := range dirs {
		p, err := openDir(filepath.Dir(dir))
		if err != nil {
			return
		}
		err = p.rmdir(filepath.Base(dir))
		p.close()
		if err != nil {
			return
		}
	}
}

// commitNew writes a file that must not exist yet.
func (w *Workspace) commitNew(c *Change) (done Committed, err error) {
	t := c.Target
	if c.Kind == ChangeCopy {
		t = *c.Dest
		if ref := w.sourceUnchanged(c); ref != nil {
			return done, ref
		}
	}
	d, made, err := w.parentDir(t)
	if err != nil {
		return done, err
	}
	defer d.close()
	defer func() {
		if err != nil {
			removeDirs(made)
		}
	}()
	name := filepath.Base(t.Abs)
	if _, err := d.lstat(name); err == nil {
		return done, &staleError{"something of this name appeared meanwhile"}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	if c.link != "" {
		if err := d.symlink(c.link, name); err != nil {
			return done, err
		}
		_ = d.sync()
		return Committed{Hash: c.AfterHash}, nil
	}
	temp, err := w.writeTemp(d, c, nil)
	if err != nil {
		return done, err
	}
	if err := d.renameNew(temp, d, name); err != nil {
		_ = d.unlink(temp)
		if isExist(err) {
			err = &staleError{"something of this name appeared meanwhile"}
		}
		return done, err
	}
	_ = d.sync()
	return Committed{Hash: c.AfterHash, Bytes: int64(len(c.after))}, nil
}

// sourceUnchanged checks the source of a copy once more.
func (w *Workspace) sourceUnchanged(c *Change) *Refusal {
	if c.Before.Open {
		return nil // the text was taken from the buffer
	}
	hash, _, err := ProbeFile(c.Target.Abs)
	if err != nil {
		return readRefusal(c.Target, err)
	}
	if hash != c.BeforeHash {
		return refuse(CodeChanged, c.Target.Display, "the file changed meanwhile; nothing was copied. Look again and repeat")
	}
	return nil
}
