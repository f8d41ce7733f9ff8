//go:build faults && unix

package workspace

import (
	"os"
	"syscall"
)

// fault kills this process, as kill -9 does, when THINKFLOW_FAULT names the
// point. It exists only in binaries that tests build with the tag faults.
func fault(point string) {
	if os.Getenv("THINKFLOW_FAULT") == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
