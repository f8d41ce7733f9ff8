//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// peak is the largest resident size of an ended process, in KiB on Linux.
func peak(cmd *exec.Cmd) int64 {
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss)
	}
	return 0
}
