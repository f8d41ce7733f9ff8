package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
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

// writeTemp writes the text to the temporary file: mode and owner of the old
// file, if there is one; synced and closed. On an error it is gone again.
func (w *Workspace) writeTemp(d *dirHandle, c *Change, old *os.File) (_ string, err error) {
	name := filepath.Base(c.Temp)
	if !isTempName(name) {
		return "", errNotPlanned
	}
	f, err := d.openFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, tempPerm(c, old))
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = d.unlink(name)
		}
	}()
	if err := w.writeAll(f, c.after, 0); err != nil {
		return "", err
	}
	switch {
	case old != nil:
		fi, err := old.Stat()
		if err != nil {
			return "", err
		}
		_ = keepOwner(f, fi) // best effort: another owner is settled by InPlace
		copyAttributes(old, f)
		if err := f.Chmod(fi.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
			return "", err
		}
	case c.mode != 0:
		if err := f.Chmod(c.mode); err != nil {
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return name, f.Close()
}

func tempPerm(c *Change, old *os.File) fs.FileMode {
	if old != nil || c.mode != 0 {
		return 0o600
	}
	return 0o666
}

// writeAll writes at the offset and takes a short write for the error it is.
func (w *Workspace) writeAll(f *os.File, text string, off int64) error {
	if w.faults.write != nil {
		if n, err := w.faults.write(len(text)); err != nil {
			_, _ = f.WriteAt([]byte(text[:min(n, len(text))]), off)
			return err
		}
	}
	const chunk = 1 << 20
	for len(text) > 0 {
		part := text[:min(len(text), chunk)]
		n, err := f.WriteAt([]byte(part), off)
		if err != nil {
			return err
		}
		if n < len(part) {
			return io.ErrShortWrite
		}
		text = text[n:]
		off += int64(n)
	}
	return nil
}

// commitModify replaces a file's text.
func (w *Workspace) commitModify(c *Change) (done Committed, err error) {
	d, err := openDir(filepath.Dir(c.Target.Abs))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = &staleError{"the folder of the file is gone"}
		}
		return done, err
	}
	defer d.close()
	name := filepath.Base(c.Target.Abs)
	flags := os.O_RDONLY
	if c.Before.InPlace {
		flags = os.O_RDWR
	}
	f, err := openUnchanged(d, name, flags, c.BeforeHash)
	if err != nil {
		return done, err
	}
	defer f.Close()
	looked, err := f.Stat()
	if err != nil {
		return done, err
	}
	if c.Before.InPlace {
		if err := w.writeInPlace(f, c); err != nil {
			return done, err
		}
		return Committed{Hash: c.AfterHash, Bytes: int64(len(c.after)), InPlace: true}, nil
	}
	temp, err := w.writeTemp(d, c, f)
	if err != nil {
		return done, err
	}
	if w.faults.beforeRename != nil {
		w.faults.beforeRename()
	}
	if err := checkEntry(d, name, looked); err != nil {
		_ = d.unlink(temp)
		return done, err
	}
	err = d.rename(temp, d, name)
	for try := 0; runtime.GOOS == "windows" && isBusy(err) && try < 10; try++ {
		time.Sleep(20 * time.Millisecond) // a virus scanner holds it
		err = d.rename(temp, d, name)
	}
	if err != nil {
		_ = d.unlink(temp)
		if isBusy(err) {
			w.mu.Lock()
			w.inPlace[c.Target.Abs] = true
			w.mu.Unlock()
			return done, &Refusal{Code: CodeIO, Path: c.Target.Display, Err: err,
				Message: "the file is in use and could not be replaced; nothing was changed. Send the command again: it will be written in place"}
		}
		return done, err
	}
	_ = d.sync()
	return Committed{Hash: c.AfterHash, Bytes: int64(len(c.after))}, nil
}

// openUnchanged opens the file, which must be a regular one with the hash.
func openUnchanged(d *dirHandle, name string, flags int, hash string) (*os.File, error) {
	f, err := d.openFile(name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &staleError{"the file is gone"}
	} else if err != nil {
		return nil, err
	}
	have, err := hashFile(f)
	if err == nil && have != hash {
		err = &staleError{"the file changed meanwhile"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func hashFile(f *os.File) (string, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() {
		return "", &staleError{"this is no regular file any more"}
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkEntry makes sure that the name still means the file that was looked at,
// unchanged by size and time.
func checkEntry(d *dirHandle, name string, looked fs.FileInfo) error {
	now, err := d.openFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &staleError{"the file is gone"}
	} else if err != nil {
		return err
	}
	defer now.Close()
	fi, err := now.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(looked, fi) || looked.Size() != fi.Size() || !looked.ModTime().Equal(fi.ModTime()) {
		return &staleError{"the file changed meanwhile"}
	}
	return nil
}

// writeInPlace is for files that a rename would harm: several hard links, mount
// points, other owners. What grows is written first, so that a full disk is
// noticed while the old text stands; the text before is in the ledger.
func (w *Workspace) writeInPlace(f *os.File, c *Change) error {
	before, after := c.Before.Text, c.after
	if len(after) > len(before) {
		if err := w.writeAll(f, after[len(before):], int64(len(before))); err != nil {
			_ = f.Truncate(int64(len(before)))
			return err
		}
	}
	head := min(len(before), len(after))
	err := w.writeAll(f, after[:head], 0)
	if err == nil {
		err = f.Truncate(int64(len(after)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		if _, e := f.WriteAt([]byte(before), 0); e == nil {
			_ = f.Truncate(int64(len(before)))
			_ = f.Sync()
		}
	}
	return err
}

// commitDelete removes a file, a link, or an empty folder.
func (w *Workspace) commitDelete(c *Change) (Committed, error) {
	d, err := openDir(filepath.Dir(c.Target.Abs))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = &staleError{"the file is gone"}
		}
		return Committed{}, err
	}
	defer d.close()
	name := filepath.Base(c.Target.Abs)
	if err := entryUnchanged(d, name, c.BeforeHash); err != nil {
		return Committed{}, err
	}
	if c.BeforeHash == HashDir {
		err = d.rmdir(name)
	} else {
		err = d.unlink(name)
	}
	if err != nil {
		return Committed{}, err
	}
	_ = d.sync()
	removeDirs(c.rmParents)
	return Committed{}, nil
}

// entryUnchanged checks a file, link or folder against its hash.
func entryUnchanged(d *dirHandle, name, hash string) error {
	mode, err := d.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &staleError{"it is gone"}
	case err != nil:
		return err
	case mode.IsDir():
		if hash != HashDir {
			return &staleError{"it is a folder now"}
		}
		return nil
	case mode&fs.ModeSymlink != 0:
		to, err := d.readlink(name)
		if err == nil && hashLink(to) != hash {
			err = &staleError{"it is another symbolic link now"}
		}
		return err
	}
	f, err := openUnchanged(d, name, os.O_RDONLY, hash)
	if err != nil {
		return err
	}
	return f.Close()
}

// commitMove renames; the destination must be free.
func (w *Workspace) commitMove(c *Change) (done Committed, err error) {
	from, err := openDir(filepath.Dir(c.Target.Abs))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = &staleError{"the source is gone"}
		}
		return done, err
	}
	defer from.close()
	name, newName := filepath.Base(c.Target.Abs), filepath.Base(c.Dest.Abs)
	if err := entryUnchanged(from, name, c.BeforeHash); err != nil {
		return done, err
	}
	to, made, err := w.parentDir(*c.Dest)
	if err != nil {
		return done, err
	}
	defer to.close()
	defer func() {
		if err != nil {
			removeDirs(made)
		}
	}()
	if sameEntry(c.Target.Abs, c.Dest.Abs) {
		err = from.rename(name, to, newName) // only the letter case changes
	} else {
		err = from.renameNew(name, to, newName)
	}
	if err != nil {
		if isExist(err) {
			err = &staleError{"something appeared at the destination meanwhile"}
		}
		return done, err
	}
	_ = from.sync()
	_ = to.sync()
	removeDirs(c.rmParents)
	return Committed{Hash: c.AfterHash}, nil
}

func (w *Workspace) commitMkdir(c *Change) (done Committed, err error) {
	d, made, err := w.parentDir(c.Target)
	if err != nil {
		return done, err
	}
	defer d.close()
	if err := d.mkdir(filepath.Base(c.Target.Abs)); err != nil {
		removeDirs(made)
		if errors.Is(err, fs.ErrExist) {
			err = &staleError{"something of this name appeared meanwhile"}
		}
		return done, err
	}
	_ = d.sync()
	return Committed{Hash: HashDir}, nil
}

func (w *Workspace) commitTouch(c *Change) (Committed, error) {
	d, err := openDir(filepath.Dir(c.Target.Abs))
	if err != nil {
		return Committed{}, err
	}
	defer d.close()
	name := filepath.Base(c.Target.Abs)
	if err := entryUnchanged(d, name, c.BeforeHash); err != nil {
		return Committed{}, err
	}
	return Committed{Hash: c.AfterHash}, d.touch(name, time.Now())
}

// RemoveTemp removes a temporary file of ours that a crash left behind. Other
// names are refused; a missing file is no error.
func RemoveTemp(abs string) error {
	name := filepath.Base(abs)
	if !isTempName(name) {
		return fmt.Errorf("remove %s: this is no temporary file of ours", abs)
	}
	d, err := openDir(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer d.close()
	if err := d.unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readNames lists at most n names of a folder.
func readNames(abs string, n int) ([]string, error) {
	f, err := os.Open(abs)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(n)
	if err == io.EOF {
		err = nil
	}
	return names, err
}
