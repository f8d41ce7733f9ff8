//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity is device and inode: a file that was replaced shows.
func identity(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
