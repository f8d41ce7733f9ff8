package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bubble runs commands in bubblewrap.
type bubble struct {
	path   string
	filter []byte // seccomp program; nil on processors that we have none for
}

func openBubblewrap(ctx context.Context, path string) (Report, mechanism, error) {
	if path == "" {
		return Report{}, nil, errors.New("bwrap is not installed; install the package bubblewrap")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Report{}, nil, fmt.Errorf("%s --version: %w", path, err)
	}
	r := Report{
		Kind:      Bubblewrap,
		Version:   strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap")),
		Files:     "only the workspace, a private temporary folder and the cache folder can be written; version control metadata and existing protected paths cannot",
		Network:   "none but a loopback of its own",
		Processes: "only its own; all end with it",
	}
	b := &bubble{path: path}
	if b.filter, err = filterProgram(filterBubblewrap); err != nil {
		r.Limits = append(r.Limits, "no system call filter: "+err.Error())
	}
	r.Limits = append(r.Limits, "protected paths that do not exist can be made, and are reported afterwards")
	return r, b, nil
}

func (b *bubble) command(ctx context.Context, p *plan) (*Command, error) {
	args := bubbleArgs(p, hostPaths())
	c := &Command{}
	if b.filter != nil {
		f, err := bytesFile(b.filter)
		if err != nil {
			return nil, fmt.Errorf("sandbox: system call filter: %w", err)
		}
		args = append(args, "--seccomp", "3") // the first of ExtraFiles
		c.release = func() { _ = f.Close() }
		c.Cmd = exec.CommandContext(ctx, b.path)
		c.Cmd.ExtraFiles = []*os.File{f}
	} else {
		c.Cmd = exec.CommandContext(ctx, b.path)
	}
	c.Cmd.Args = append(append(c.Cmd.Args, args...), append([]string{"--"}, p.argv...)...)
	c.Cmd.Dir = "/"
	// bwrap ends when the thread that started it does; it gets one that stays.
	c.confine = func() error { return nil }
	return c, nil
}

// host is what of the machine matters for the mounts.
type host struct {
	exists func(path string) bool
	// back are paths below /run that programs need: those of PATH and the
	// resolver's configuration.
	back func(p *plan) []string
}

func hostPaths() host {
	return host{
		exists: func(path string) bool {
			fi, err := os.Lstat(path)
			return err == nil && fi.Mode()&os.ModeSymlink == 0
		},
		back: func(p *plan) []string {
			var out []string
			for _, kv := range p.env {
				if v, ok := strings.CutPrefix(kv, "PATH="); ok {
					for _, dir := range filepath.SplitList(v) {
						if parts := strings.Split(dir, "/"); len(parts) > 2 && parts[1] == "run" {
							out = append(out, "/run/"+parts[2])
						}
					}
				}
			}
			if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && inside("/run", real) {
				out = append(out, real)
			}
			return outermost(out)
		},
	}
}

// bubbleArgs are the options of bwrap; later mounts lie over earlier ones.
func bubbleArgs(p *plan, h host) []string {
	a := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
	}
	if p.spec.Grants.Net {
		a = append(a, "--share-net")
	}
	// Sockets of local services answer whoever can see them, read-only mount or
	// not: Docker's is as good as root.
	for _, dir := range []string{"/run", "/var/run"} {
		if h.exists(dir) {
			a = append(a, "--tmpfs", dir)
		}
	}
	for _, path := range h.back(p) {
		a = append(a, "--ro-bind-try", path, path)
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if h.exists(dir) {
			a = append(a, "--bind", p.temp, dir)
		}
	}
	if !inside("/tmp", p.temp) && !inside("/var/tmp", p.temp) {
		a = append(a, "--bind", p.temp, p.temp)
	}
	for _, r := range p.roots {
		a = append(a, "--bind", r, r)
	}
	if p.cache != "" {
		a = append(a, "--bind", p.cache, p.cache)
	}
	for _, g := range p.guard {
		a = append(a, "--ro-bind", g, g)
	}
	for _, path := range p.hidden {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			a = append(a, "--tmpfs", path, "--remount-ro", path)
		} else if err == nil {
			a = append(a, "--ro-bind", "/dev/null", path)
		}
	}
	// The folder for temporary files is seen as /tmp where that is its mount.
	if temp := p.tempInside(h); temp != p.temp {
		for _, name := range []string{"TMPDIR", "TEMP", "TMP"} {
			a = append(a, "--setenv", name, temp)
		}
	}
	return append(a, "--chdir", p.dir)
}

// tempInside is the temporary folder as the command sees it.
func (p *plan) tempInside(h host) string {
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if inside(dir, p.temp) && h.exists(dir) {
			return dir
		}
	}
	return p.temp
}

// bytesFile is a file that reads as data.
func bytesFile(data []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.Write(data); err != nil { // some hundred bytes: less than a pipe holds
		_ = r.Close()
		return nil, err
	}
	return r, nil
}
