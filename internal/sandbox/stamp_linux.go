package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// changeTime is the inode's change time, which no program can set back.
func changeTime(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d", st.Ctim.Sec, st.Ctim.Nsec)
}
