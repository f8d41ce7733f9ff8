package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endedItself tells that nobody ended a process: its state does not show it here.
func endedItself(_ *os.ProcessState, killed bool) bool { return !killed }

// killGroup ends the command and all that it started.
func killGroup(cmd *exec.Cmd) error {
	system := os.Getenv("SystemRoot")
	if system == "" {
		system = `C:\Windows`
	}
	kill := exec.Command(filepath.Join(system, "System32", "taskkill.exe"), "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid))
	kill.Env = childEnv(os.Environ())
	return kill.Run()
}
