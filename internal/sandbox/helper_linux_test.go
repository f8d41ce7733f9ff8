package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain lets the test program be the command that tries to break out:
// thinkflow-helper VERB ARGS.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && filepath.Base(os.Args[0]) == "thinkflow-helper" {
		os.Exit(helper(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

// helper does what it is told and says "got out" when it could.
func helper(verb string, args []string) int {
	err := func() error {
		switch verb {
		case "dial": // network address
			c, err := net.Dial(args[0], args[1])
			if err != nil {
				return err
			}
			if _, err := c.Write([]byte("secret")); err != nil {
				return err
			}
			return nil
		case "loopback": // a server and a client of its own
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			go func() {
				if c, err := l.Accept(); err == nil {
					_, _ = io.WriteString(c, "hello")
					_ = c.Close()
				}
			}()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			_, err = io.ReadAll(c)
			return err
		case "socket": // family
			var family int
			if _, err := fmt.Sscan(args[0], &family); err != nil {
				return err
			}
			_, err := unix.Socket(family, unix.SOCK_STREAM, 0)
			return err
		case "socketpair":
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return err
		case "uring":
			var params [120]byte
			_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
			if e != 0 {
				return e
			}
			return nil
		case "type-ahead":
			b := byte('x')
			_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
			if !errors.Is(e, unix.EPERM) {
				return nil // ENOTTY: the filter did not stop it
			}
			return e
		case "environ": // pid: its environment
			data, err := os.ReadFile("/proc/" + args[0] + "/environ")
			if err != nil {
				return err
			}
			if !strings.Contains(string(data), "=") {
				return errors.New("empty")
			}
			return nil
		case "trace": // pid
			var pid int
			if _, err := fmt.Sscan(args[0], &pid); err != nil {
				return err
			}
			return syscall.PtraceAttach(pid)
		case "signal":
			var pid int
			if _, err := fmt.Sscan(args[0], &pid); err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGURG)
		case "mount":
			return unix.Mount("none", args[0], "tmpfs", 0, "")
		case "remount":
			return unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
		case "namespace": // remount inside a user namespace of its own
			cmd := exec.Command(os.Args[0], "remount", args[0])
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			}
			return cmd.Run()
		case "mknod":
			return unix.Mknod(args[0], unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
		case "capabilities":
			data, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(data)) {
				if v, ok := strings.CutPrefix(line, "CapEff:"); ok && strings.Trim(v, "0 \t\n") == "" {
					return errors.New("none")
				}
			}
			return nil
		case "stay": // a process that left group and session; says its pid, then waits for the file
			cmd := exec.Command(os.Args[0], "wait", args[0])
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
			fmt.Println("started")
			return nil
		case "wait":
			f, err := os.OpenFile(args[0], os.O_RDONLY, 0) // a pipe: blocks until somebody writes
			if err != nil {
				return err
			}
			_, _ = io.ReadAll(f)
			return os.WriteFile(args[0]+".woke", []byte("x"), 0o600)
		}
		return fmt.Errorf("unknown verb %s", verb)
	}()
	if err != nil {
		fmt.Println("held:", err)
		return 1
	}
	fmt.Println("got out")
	return 0
}
