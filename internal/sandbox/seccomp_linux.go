package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterUse says for what a system call filter is made.
type filterUse uint8

const (
	// filterBubblewrap: namespaces hold files and network; the filter closes
	// what they leave open.
	filterBubblewrap filterUse = iota
	// filterNoNet: no socket of any kind; socket pairs stay.
	filterNoNet
	// filterNet: internet sockets, but none to local services.
	filterNet
)

// Offsets in struct seccomp_data; an argument's low half comes first on the
// little-endian processors that we support.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// x32Bit marks system calls of the x32 interface on amd64, which would pass by
// a list of numbers.
const x32Bit = 0x40000000

// filterProgram is the seccomp program as the kernel takes it. What it refuses
// fails with EPERM, or with ENOSYS where programs then do without.
func filterProgram(use filterUse) ([]byte, error) {
	var arch uint32
	switch runtime.GOARCH {
	case "amd64":
		arch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil, fmt.Errorf("none is made for %s", runtime.GOARCH)
	}
	perm := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	nosys := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	load := func(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }

	prog := []bpf.Instruction{
		load(offArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		perm, // 32-bit programs have system calls of other numbers
		load(offNumber),
	}
	if runtime.GOARCH == "amd64" {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1}, nosys)
	}
	// call refuses a system call; with args only when the tests on it succeed.
	call := func(number uintptr, ret bpf.Instruction, args ...bpf.Instruction) {
		skip := len(args) + 1
		if len(args) > 0 {
			skip++ // the number is loaded again behind the tests
		}
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(skip)})
		prog = append(prog, args...)
		prog = append(prog, ret)
		if len(args) > 0 {
			prog = append(prog, load(offNumber))
		}
	}
	low := func(arg uint32) uint32 { return offArgs + 8*arg }

	// Not namespaced, or able to do what others here may not.
	call(unix.SYS_IO_URING_SETUP, nosys) // opens sockets past a filter
	call(unix.SYS_KEYCTL, perm)          // the user's key ring of the kernel
	call(unix.SYS_ADD_KEY, perm)
	call(unix.SYS_REQUEST_KEY, perm)
	// Typing into the terminal on the user's behalf.
	call(unix.SYS_IOCTL, perm, load(low(1)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipFalse: 1})
	call(unix.SYS_IOCTL, perm, load(low(1)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCLINUX, SkipFalse: 1})

	switch use {
	case filterBubblewrap:
		// The machine outside of a virtual one.
		call(unix.SYS_SOCKET, perm, load(low(0)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_VSOCK, SkipFalse: 1})
	case filterNoNet:
		call(unix.SYS_SOCKET, perm)
	case filterNet:
		for _, family := range []uint32{unix.AF_UNIX, unix.AF_VSOCK, unix.AF_PACKET} {
			call(unix.SYS_SOCKET, perm, load(low(0)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipFalse: 1})
		}
	}
	prog = append(prog, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})

	raw, err := bpf.Assemble(prog)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, in := range raw {
		// struct sock_filter: u16 code, u8 jt, u8 jf, u32 k
		_ = binary.Write(&b, binary.NativeEndian, in)
	}
	return b.Bytes(), nil
}

// loadFilter puts the calling thread, and what it starts, under the filter.
// It needs no_new_privs to be set.
func loadFilter(prog []byte) error {
	filter := make([]unix.SockFilter, len(prog)/8)
	for i := range filter {
		p := prog[8*i:]
		filter[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(p), Jt: p[2], Jf: p[3], K: binary.NativeEndian.Uint32(p[4:])}
	}
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(filter)
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
