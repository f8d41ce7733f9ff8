package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

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
