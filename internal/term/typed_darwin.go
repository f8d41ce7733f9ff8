package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// fread is FREAD of <sys/fcntl.h>: flush what was typed.
const fread = 1

// dropTypedAhead forgets what was typed before a question was on the screen:
// it was not meant as the answer.
func dropTypedAhead(f *os.File) {
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, fread)
}
