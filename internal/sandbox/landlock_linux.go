package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the first Landlock that also refuses truncation (Linux 6.2).
const leastABI = 3

// locker runs commands under Landlock and a system call filter, both put on the
// one thread that starts the command: what it starts inherits them.
type locker struct {
	config landlock.Config // of the kernel's ABI
}

func openLandlock(context.Context) (Report, mechanism, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return Report{}, nil, errors.New("the kernel has none, or it is switched off (boot parameter lsm=)")
	}
	if abi < leastABI {
		return Report{}, nil, fmt.Errorf("the kernel has ABI %d, which lets files be emptied; %d (Linux 6.2) is needed", abi, leastABI)
	}
	if _, err := filterProgram(filterNoNet); err != nil {
		return Report{}, nil, fmt.Errorf("it leaves the network open, and a system call filter is needed: %w", err)
	}
	r := Report{
		Kind:      Landlock,
		Version:   fmt.Sprintf("ABI %d", abi),
		Files:     "only the workspace, a private temporary folder and the cache folder can be written; version control metadata and existing protected paths cannot",
		Network:   "none, and no sockets at all",
		Processes: "others are seen, but cannot be read or traced",
		Limits: []string{
			"beside a protected path, so in the top folder of most repositories, nothing new can be made, renamed or removed",
			"modes, owners and times of the user's files elsewhere can be changed",
			"/tmp is not writable; the temporary folder is in TMPDIR",
			"what leaves the process group is looked for and ended, not held",
			"protected paths that do not exist can be made in other folders, and are reported afterwards",
		},
	}
	if abi < 6 {
		r.Processes += "; signals to others are not held back"
	}
	versions := []landlock.Config{landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11}
	return r, &locker{config: versions[min(abi-leastABI, len(versions)-1)]}, nil
}

// Rights that a rule may give.
const (
	rightsRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	rightsWrite = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSRefer
	// rightsFile are those that make sense for what is not a folder.
	rightsFile = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

// devices may be read and written by every command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

func (l *locker) command(ctx context.Context, p *plan) (*Command, error) {
	config := l.config
	use := filterNoNet
	if p.spec.Grants.Net {
		config.HandledAccessNet = 0
		use = filterNet
	}
	filter, err := filterProgram(use)
	if err != nil {
		return nil, fmt.Errorf("sandbox: system call filter: %w", err)
	}
	fd, flags, err := config.NewRulesetFD()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	rules := &ruleset{fd: fd, handled: uint64(config.HandledAccessFS)}
	if err := rules.fill(p); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("sandbox: Landlock: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir = p.dir
	return &Command{
		Cmd:     cmd,
		release: func() { _ = unix.Close(fd) },
		confine: func() error {
			if err := dropCapabilities(); err != nil {
				return fmt.Errorf("sandbox: capabilities: %w", err)
			}
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return fmt.Errorf("sandbox: no_new_privs: %w", err)
			}
			if err := ll.LandlockRestrictSelf(fd, flags); err != nil {
				return fmt.Errorf("sandbox: landlock_restrict_self: %w", err)
			}
			return loadFilter(filter)
		},
	}, nil
}

// ruleset adds rules to a Landlock ruleset.
type ruleset struct {
	fd      int
	handled uint64
}

func (r *ruleset) fill(p *plan) error {
	// Reading: all but what is hidden, and devices.
	if err := r.carve("/", append(slices.Clone(p.hidden), "/dev"), rightsRead, ll.AccessFSReadDir); err != nil {
		return err
	}
	for _, d := range devices {
		if err := r.allow(d, ll.AccessFSReadFile|ll.AccessFSWriteFile|ll.AccessFSIoctlDev); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Writing: the roots around what is guarded.
	holes := append(slices.Clone(p.carve), p.hidden...)
	for _, root := range p.roots {
		if err := r.carve(root, holes, rightsRead|rightsWrite, 0); err != nil {
			return err
		}
	}
	if p.cache != "" {
		if err := r.carve(p.cache, p.hidden, rightsRead|rightsWrite, 0); err != nil {
			return err
		}
	}
	return r.allow(p.temp, rightsRead|rightsWrite)
}

// carve gives the rights to base and all in it, but not to the holes. Since
// rights reach down, folders on the way to a hole get only those of onWay, and
// each of their entries a rule of its own. Links are left out: a rule holds for
// what a link leads to.
func (r *ruleset) carve(base string, holes []string, rights, onWay uint64) error {
	below := false
	for _, h := range holes {
		if inside(h, base) {
			return nil
		}
		below = below || inside(base, h)
	}
	if !below {
		return r.allow(base, rights)
	}
	if onWay != 0 {
		if err := r.allow(base, onWay); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil // what cannot be listed is not granted
		}
		return err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		err := r.carve(filepath.Join(base, e.Name()), holes, rights, onWay)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// allow adds one rule. The path is opened without following any link, so that
// an entry that was swapped for a link grants nothing.
func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	rights &= r.handled
	if rights == 0 {
		return nil
	}
	if err := ll.LandlockAddPathBeneathRule(r.fd, &ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd}, 0); err != nil {
		return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: err}
	}
	return nil
}

// dropCapabilities takes from root what makes it root: the capabilities that a
// program would get when it is started. For other users there is nothing to do.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) {
				break // past the last one that the kernel knows
			}
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&head, &data[0])
}
