package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// dirHandle stands for an open folder. Windows has no calls relative to one in
// package os, so names are checked for links right before each call: best
// effort.
type dirHandle struct{ path string }

var errLink = errors.New("a symbolic link or junction stands where none may")

func openDir(abs string) (*dirHandle, error) {
	for dir := abs; ; dir = filepath.Dir(dir) {
		fi, err := os.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if isReparse(fi) {
			return nil, &fs.PathError{Op: "open", Path: dir, Err: errLink}
		}
		if dir == abs && !fi.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")}
		}
		if dir == filepath.Dir(dir) {
			return &dirHandle{path: abs}, nil
		}
	}
}

func isReparse(fi fs.FileInfo) bool {
	return fi.Mode()&fs.ModeSymlink != 0 || fi.IsDir() && fi.Mode()&fs.ModeIrregular != 0
}

func (d *dirHandle) close() {}

func (d *dirHandle) join(name string) string { return filepath.Join(d.path, name) }

func (d *dirHandle) openSub(name string) (*dirHandle, error) { return openDir(d.join(name)) }

func (d *dirHandle) openFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	if fi, err := os.Lstat(d.join(name)); err == nil && isReparse(fi) {
		return nil, &fs.PathError{Op: "open", Path: d.join(name), Err: errLink}
	}
	return os.OpenFile(d.join(name), flags, perm)
}

func (d *dirHandle) lstat(name string) (fs.FileMode, error) {
	fi, err := os.Lstat(d.join(name))
	if err != nil {
		return 0, err
	}
	return fi.Mode(), nil
}

func (d *dirHandle) readlink(name string) (string, error) { return os.Readlink(d.join(name)) }
func (d *dirHandle) symlink(to, name string) error        { return os.Symlink(to, d.join(name)) }
func (d *dirHandle) mkdir(name string) error              { return os.Mkdir(d.join(name), 0o777) }
func (d *dirHandle) unlink(name string) error             { return os.Remove(d.join(name)) }
func (d *dirHandle) rmdir(name string) error              { return os.Remove(d.join(name)) }

func (d *dirHandle) rename(name string, to *dirHandle, toName string) error {
	return os.Rename(d.join(name), to.join(toName))
}

func (d *dirHandle) renameNew(name string, to *dirHandle, toName string) error {
	from, err := windows.UTF16PtrFromString(d.join(name))
	if err != nil {
		return err
	}
	dest, err := windows.UTF16PtrFromString(to.join(toName))
	if err != nil {
		return err
	}
	return windows.MoveFileEx(from, dest, windows.MOVEFILE_WRITE_THROUGH)
}

func (d *dirHandle) touch(name string, now time.Time) error {
	return os.Chtimes(d.join(name), now, now)
}

// sync: folders cannot be flushed here.
func (d *dirHandle) sync() error { return nil }

func openRead(abs string) (*os.File, fs.FileInfo, error) {
	d, err := openDir(filepath.Dir(abs))
	if err != nil {
		return nil, nil, err
	}
	if fi, err := os.Lstat(abs); err != nil {
		return nil, nil, err
	} else if fi.IsDir() {
		return nil, nil, errIsDir
	} else if !fi.Mode().IsRegular() && !isReparse(fi) {
		return nil, nil, errNotRegular
	}
	f, err := d.openFile(filepath.Base(abs), os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

func isLoop(err error) bool { return errors.Is(err, errLink) }

// isBusy: another program holds the file without sharing it.
func isBusy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

func isExist(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, windows.ERROR_ALREADY_EXISTS)
}
func isCross(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

func keepOwner(*os.File, fs.FileInfo) error { return nil }

func mustWriteInPlace(f *os.File, _ fs.FileInfo) bool {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return err == nil && info.NumberOfLinks > 1
}

func copyAttributes(_, _ *os.File) {}
