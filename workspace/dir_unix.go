//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dirHandle is an open folder. All names are single components, and no call
// follows a symbolic link in place of one.
type dirHandle struct {
	fd   int
	path string
}

// openDir opens the folder at the real path without following any link in it.
func openDir(abs string) (*dirHandle, error) {
	fd, err := openNoFollow(abs, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	return &dirHandle{fd: fd, path: abs}, nil
}

func (d *dirHandle) close() { _ = unix.Close(d.fd) }

// openSub opens a folder in d.
func (d *dirHandle) openSub(name string) (*dirHandle, error) {
	fd, err := openatRetry(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, d.wrap("open", name, err)
	}
	return &dirHandle{fd: fd, path: filepath.Join(d.path, name)}, nil
}

// openFile opens a file in d; flags are those of package os.
func (d *dirHandle) openFile(name string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, err := openatRetry(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, uint32(perm.Perm()))
	if err != nil {
		return nil, d.wrap("open", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.path, name)), nil
}

// lstat describes the entry itself.
func (d *dirHandle) lstat(name string) (mode fs.FileMode, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, d.wrap("lstat", name, err)
	}
	mode = fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return mode, nil
}

func (d *dirHandle) readlink(name string) (string, error) {
	buf := make([]byte, maxPath)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", d.wrap("readlink", name, err)
	}
	return string(buf[:n]), nil
}

func (d *dirHandle) symlink(to, name string) error {
	return d.wrap("symlink", name, unix.Symlinkat(to, d.fd, name))
}

func (d *dirHandle) mkdir(name string) error {
	return d.wrap("mkdir", name, unix.Mkdirat(d.fd, name, 0o777))
}

func (d *dirHandle) unlink(name string) error {
	return d.wrap("remove", name, unix.Unlinkat(d.fd, name, 0))
}

func (d *dirHandle) rmdir(name string) error {
	return d.wrap("rmdir", name, unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR))
}

// rename moves an entry over whatever stands at the destination.
func (d *dirHandle) rename(name string, to *dirHandle, toName string) error {
	return d.wrap("rename", name, unix.Renameat(d.fd, name, to.fd, toName))
}

// renameNew moves an entry to a name that must be free.
func (d *dirHandle) renameNew(name string, to *dirHandle, toName string) error {
	err := renameNoReplace(d.fd, name, to.fd, toName)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		if _, serr := to.lstat(toName); serr == nil {
			return d.wrap("rename", toName, unix.EEXIST)
		}
		err = unix.Renameat(d.fd, name, to.fd, toName)
	}
	return d.wrap("rename", name, err)
}

// touch sets both times of a file to now.
func (d *dirHandle) touch(name string, now time.Time) error {
	ts := unix.NsecToTimespec(now.UnixNano())
	return d.wrap("touch", name, unix.UtimesNanoAt(d.fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
}

// sync makes the folder's entries durable.
func (d *dirHandle) sync() error {
	err := unix.Fsync(d.fd)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // file systems that cannot
	}
	return d.wrap("sync", ".", err)
}

func (d *dirHandle) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

// openRead opens the regular file at the real path for reading, without
// following a link anywhere in it.
func openRead(abs string) (*os.File, fs.FileInfo, error) {
	fd, err := openNoFollow(abs, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: abs, Err: err}
	}
	return checkRegular(os.NewFile(uintptr(fd), abs))
}

func checkRegular(f *os.File) (*os.File, fs.FileInfo, error) {
	fi, err := f.Stat()
	switch {
	case err != nil:
	case fi.IsDir():
		err = errIsDir
	case !fi.Mode().IsRegular():
		err = errNotRegular
	default:
		return f, fi, nil
	}
	f.Close()
	return nil, nil, err
}

func openatRetry(fd int, name string, flags int, perm uint32) (int, error) {
	for {
		got, err := unix.Openat(fd, name, flags|unix.O_CLOEXEC, perm)
		if err != unix.EINTR {
			return got, err
		}
	}
}

// openPerComponent opens an absolute path one component at a time.
func openPerComponent(abs string, flags int) (int, error) {
	fd, err := openatRetry(unix.AT_FDCWD, "/", searchFlags|unix.O_DIRECTORY, 0)
	parts := splitRel(strings.TrimPrefix(abs, "/"))
	if len(parts) == 0 && err == nil {
		unix.Close(fd)
		return openatRetry(unix.AT_FDCWD, "/", flags, 0)
	}
	for i, p := range parts {
		if err != nil {
			return -1, err
		}
		how := searchFlags | unix.O_DIRECTORY | unix.O_NOFOLLOW
		if i == len(parts)-1 {
			how = flags | unix.O_NOFOLLOW
		}
		var next int
		next, err = openatRetry(fd, p, how, 0)
		unix.Close(fd)
		fd = next
	}
	return fd, err
}

// isLoop reports that a link stood where none may.
func isLoop(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}

func isBusy(err error) bool  { return errors.Is(err, unix.EBUSY) }
func isExist(err error) bool { return errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) }
func isCross(err error) bool { return errors.Is(err, unix.EXDEV) }

// owner is who a file belongs to.
type owner struct{ uid, gid uint32 }

// keepOwner gives the new file the owner of the old one, if it differs.
func keepOwner(f *os.File, old fs.FileInfo) error {
	want, ok := ownerOf(old)
	if !ok {
		return nil
	}
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if have, ok := ownerOf(fi); !ok || have == want {
		return nil
	}
	return f.Chown(int(want.uid), int(want.gid))
}

// mustWriteInPlace reports a file that a rename cannot replace without harm.
func mustWriteInPlace(f *os.File, fi fs.FileInfo) bool {
	if o, ok := ownerOf(fi); ok && os.Geteuid() != 0 && int(o.uid) != os.Geteuid() {
		return true // a new file would be ours
	}
	return hardLinks(fi) > 1 || isMountPoint(f)
}
