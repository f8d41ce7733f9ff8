package agent

import (
	"os/exec"
	"strconv"
	"syscall"
)

func shellCommand(line string) (string, []string) {
	if path, err := exec.LookPath("bash"); err == nil {
		return path, []string{"-c", line}
	}
	return "cmd", []string{"/d", "/c", line}
}

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends the command and all that it started.
func killGroup(cmd *exec.Cmd) error {
	return exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run()
}
