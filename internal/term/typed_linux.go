package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTypedAhead forgets what was typed before a question was on the screen:
// it was not meant as the answer.
func dropTypedAhead(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
