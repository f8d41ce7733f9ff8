package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func candidates(t *tools) []candidate {
	return []candidate{
		{Bubblewrap, func(ctx context.Context) (Report, mechanism, error) { return openBubblewrap(ctx, t.bwrap) }},
		{Landlock, openLandlock},
	}
}

// Start starts the command. It is started by a thread of its own, which takes
// the restrictions first and stays until Finish: the restrictions never reach
// another goroutine, and bubblewrap, which ends with the thread that started it,
// lives as long as the command.
func (c *Command) Start() error {
	c.done = make(chan struct{})
	if c.confine == nil {
		return c.Cmd.Start()
	}
	started := make(chan error, 1)
	onOwnThread(func() {
		err := c.confine()
		if err == nil {
			err = c.Cmd.Start()
		}
		started <- err
		if err == nil {
			<-c.done
		}
	})
	return <-started
}

// onOwnThread runs f on a thread that ends with it. The first thread of the
// process is not taken: it stands for the whole process in many places.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked: the runtime ends the thread
		}
		held := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(held)
			f()
		}()
		<-held
		runtime.UnlockOSThread()
	}()
}

// endStragglers kills processes that carry the command's mark, which are those
// that left its process group or namespace has not ended yet, and waits until
// they are gone. It returns how many there were.
func endStragglers(mark string) int {
	killed := 0
	for range 20 { // one may start another while we look
		var ended []int
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil || pid == os.Getpid() {
				continue
			}
			// The handle is taken before the look: the number may be given anew.
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			env, err := os.ReadFile(filepath.Join(dir, "environ"))
			if err == nil && holds(env, mark) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
				ended = append(ended, fd)
				continue
			}
			_ = unix.Close(fd)
		}
		for _, fd := range ended {
			awaitExit(fd)
			_ = unix.Close(fd)
		}
		killed += len(ended)
		if len(ended) == 0 {
			break
		}
	}
	return killed
}

// awaitExit waits until the process has ended, two seconds at most.
func awaitExit(pidfd int) {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, 2000); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func holds(env []byte, mark string) bool {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == mark {
			return true
		}
	}
	return false
}
