package workspace

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// searchFlags open a folder only to go through it.
const searchFlags = unix.O_PATH

// openNoFollow opens an absolute path that holds no symbolic link, now as well
// as when it was resolved.
func openNoFollow(abs string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, abs, &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL):
			return openPerComponent(abs, flags) // old kernels, filtered containers
		}
		return -1, err
	}
}

func renameNoReplace(fromFD int, from string, toFD int, to string) error {
	return unix.Renameat2(fromFD, from, toFD, to, unix.RENAME_NOREPLACE)
}

// isMountPoint reports a file that something is mounted on (a bind mount of a
// single file, as containers have them): renaming onto it fails with EBUSY.
func isMountPoint(f *os.File) bool {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st)
	return err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// copyAttributes copies extended attributes (access lists, security labels) as
// far as the system lets us.
func copyAttributes(from, to *os.File) {
	buf := make([]byte, 4096)
	n, err := unix.Flistxattr(int(from.Fd()), buf)
	if err != nil || n <= 0 {
		return
	}
	value := make([]byte, 64<<10)
	for _, name := range strings.Split(strings.TrimRight(string(buf[:n]), "\x00"), "\x00") {
		if m, err := unix.Fgetxattr(int(from.Fd()), name, value); err == nil {
			_ = unix.Fsetxattr(int(to.Fd()), name, value[:m], 0)
		}
	}
}
