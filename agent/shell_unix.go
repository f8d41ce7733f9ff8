//go:build unix

package agent

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the command into a process group of its own, so that all it
// starts can be ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endedItself tells from a process's state that nobody ended it.
func endedItself(st *os.ProcessState, _ bool) bool { return st.Exited() }

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
