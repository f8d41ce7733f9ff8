package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

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
	fault("temp file begun")
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
	fault("after temp file")
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
