//go:build unix

package experiment

import (
	"os/exec"
	"syscall"
)

// ownGroup lets the end of the context end the process and its children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
