//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// believable refuses a store that somebody else could have written.
func believable(path string, fi fs.FileInfo) error {
	switch {
	case !fi.Mode().IsRegular():
		return fmt.Errorf("trust: %s is not a regular file; nothing is trusted until it is removed", path)
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("trust: others can write %s (mode %04o); check it, then run: chmod 600 %s", path, fi.Mode().Perm(), path)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("trust: %s belongs to another user; nothing in it is trusted", path)
	}
	return nil
}
