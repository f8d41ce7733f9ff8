//go:build unix && !linux

package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// searchFlags open a folder only to go through it.
const searchFlags = unix.O_RDONLY

// openNoFollow opens an absolute path that holds no symbolic link.
func openNoFollow(abs string, flags int) (int, error) { return openPerComponent(abs, flags) }

// renameNoReplace has no portable form; the caller checks and renames.
func renameNoReplace(int, string, int, string) error { return errors.ErrUnsupported }

func isMountPoint(*os.File) bool { return false }

func copyAttributes(_, _ *os.File) {}
