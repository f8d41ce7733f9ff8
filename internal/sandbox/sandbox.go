package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Kind names a mechanism.
type Kind string

// The mechanisms.
const (
	Bubblewrap Kind = "bubblewrap"
	Landlock   Kind = "landlock"
	Seatbelt   Kind = "sandbox-exec"
	None       Kind = "none"
)

// Report says what is in force on this machine, in words for people.
type Report struct {
	Kind    Kind   `json:"kind"`
	Version string `json:"version,omitempty"` // "0.8.0", "ABI 7"
	// Files, Network and Processes say what a command may do.
	Files     string `json:"files"`
	Network   string `json:"network"`
	Processes string `json:"processes"`
	// Limits are known weaknesses of the mechanism in force.
	Limits []string `json:"limits,omitempty"`
	// Missing says why a stronger mechanism is not in force, and what to do.
	Missing []string `json:"missing,omitempty"`
}

// Confines reports whether anything holds a command back. If not, every command
// must be asked for.
func (r Report) Confines() bool { return r.Kind != None && r.Kind != "" }

// Grants lift a part of the sandbox for one command, after a person agreed.
type Grants struct {
	// Git makes version control metadata writable, but not what runs programs
	// later: hooks and configuration. Under Landlock these can only be compared.
	Git bool
	// GitConfig makes hooks and configuration writable too.
	GitConfig bool
	// Net allows the network. Sockets of local services (Docker, ssh-agent)
	// stay out of reach.
	Net bool
}

// Class is what a path inside a root is to the sandbox.
type Class uint8

// The classes.
const (
	Free      Class = iota // may be written
	Protected              // may not, whether it exists or not
	VCS                    // version control metadata: as Protected, unless Grants.Git
	Hide                   // may not even be read
	Skip                   // a folder that need not be looked into
)

// Spec describes one command.
type Spec struct {
	// Line is the command line for the shell.
	Line string
	// Shell is the program and its arguments that Line is appended to; empty
	// means bash -c, or sh -c where there is no bash.
	Shell []string
	// Dir is the folder it starts in, absolute; empty means the first root.
	Dir string
	// Roots are the folders that may be written, absolute and existing.
	Roots []string
	// Classify says what a path inside a root is; links are not resolved. It is
	// called for everything in the roots, so it should look at names only. nil
	// means that all is Free.
	Classify func(path string, dir bool) Class
	// ReadOnly are further existing paths inside roots that may not be changed.
	ReadOnly []string
	// Watch are further paths that may not come to be.
	Watch []string
	// Hidden are files and folders that may not even be read. What does not
	// exist is ignored.
	Hidden []string
	// Cache is a folder for the caches of build tools, absolute; it is created
	// (mode 0700). The user's own caches are read-only, for what a command puts
	// there would run outside later. Empty: no cache is writable.
	Cache string
	// Grants lift parts of the sandbox.
	Grants Grants
	// Env is the whole environment; entries of PATH that are not absolute are
	// dropped from it.
	Env []string
	// Unconfined runs the command without a sandbox: a person asked for it.
	// Protected paths are still compared.
	Unconfined bool
}

// ErrNone: no sandbox works here. A person must be asked, and Spec.Unconfined set.
var ErrNone = errors.New("no sandbox is available on this machine")

// Sandbox is what Detect found. It is safe for concurrent use.
type Sandbox struct {
	report Report
	mech   mechanism
	tools  tools
}

// tools are the programs in use, by absolute path.
type tools struct {
	shell []string
	bwrap string
}

// mechanism turns a checked spec into a command.
type mechanism interface {
	command(ctx context.Context, p *plan) (*Command, error)
}

// Options restricts Detect. The zero value takes the strongest that works.
type Options struct {
	// Only tries just this mechanism.
	Only Kind
}

// Detect finds the strongest mechanism that works, by running a command in it
// that tries to break out. It takes some tens of milliseconds: call it once.
func Detect(ctx context.Context, o Options) *Sandbox {
	s := &Sandbox{tools: findTools(), report: noneReport()}
	if o.Only == None {
		return s
	}
	var missing []string
	for _, c := range candidates(&s.tools) {
		if o.Only != "" && o.Only != c.kind {
			continue
		}
		report, mech, err := c.open(ctx)
		if err == nil {
			err = probe(ctx, s.tools, mech)
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", c.kind, err))
			continue
		}
		s.report, s.mech = report, mech
		break
	}
	s.report.Missing = missing
	return s
}

// candidate is a mechanism that may or may not work here.
type candidate struct {
	kind Kind
	open func(ctx context.Context) (Report, mechanism, error)
}

func noneReport() Report {
	return Report{
		Kind:      None,
		Files:     "everything the user can write",
		Network:   "open",
		Processes: "all of the user's",
		Limits:    []string{"nothing confines a command: each one is asked for"},
	}
}

// Report says what is in force.
func (s *Sandbox) Report() Report { return s.report }

// Command prepares a command. The error says what is wrong with the spec, or is
// [ErrNone]. The caller sets standard streams, process group and WaitDelay on
// Cmd, starts it through Start or Run, and calls Finish in every case.
func (s *Sandbox) Command(ctx context.Context, spec Spec) (*Command, error) {
	mech := s.mech
	if spec.Unconfined {
		mech = unconfined{}
	}
	if mech == nil {
		return nil, ErrNone
	}
	p, err := newPlan(spec, s.tools)
	if err != nil {
		return nil, err
	}
	c, err := mech.command(ctx, p)
	if err != nil {
		_ = os.RemoveAll(p.temp)
		return nil, err
	}
	c.plan = p
	c.Cmd.Env = p.env
	return c, nil
}

// Command is one prepared command.
type Command struct {
	// Cmd is not yet started. Its Path, Args, Env, Dir and ExtraFiles belong to
	// the sandbox.
	Cmd *exec.Cmd

	plan *plan
	// confine restricts the calling thread, which then starts the command; nil
	// where the program itself does it.
	confine func() error
	// release closes what was opened for the command.
	release func()

	done     chan struct{} // closed by Finish; nil before Start
	finished sync.Once
	found    Findings
	err      error
}

// Run starts the command and waits for it; the error is that of [exec.Cmd.Run].
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Cmd.Wait()
}

// Findings is what is known when a command has ended.
type Findings struct {
	// Violations are protected paths that came to be, changed or went away
	// while the command ran, sorted.
	Violations []Violation
	// Killed counts processes that were still there and were ended.
	Killed int
	// Incomplete: the roots hold too much to be compared as a whole.
	Incomplete bool
}

// Finish compares the protected paths, removes the temporary folder and ends
// what the command left running. It must be called once Wait has returned, and
// when Start failed; later calls return the same.
func (c *Command) Finish() (Findings, error) {
	c.finished.Do(func() {
		if c.done != nil {
			close(c.done)
		}
		if c.release != nil {
			c.release()
		}
		c.found.Killed = endStragglers(c.plan.mark)
		after, err := takeStock(c.plan)
		c.err = err
		c.found.Violations = compare(c.plan, c.plan.before, after)
		c.found.Incomplete = c.plan.before.cut || after.cut
		if err := removeTemp(c.plan.temp); err != nil && c.err == nil {
			c.err = fmt.Errorf("the temporary folder of the command could not be removed: %w", err)
		}
	})
	return c.found, c.err
}

// removeTemp removes a folder that may hold read-only folders (module caches).
func removeTemp(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// probe runs a command in the mechanism that tries to write where it may and
// where it may not.
func probe(ctx context.Context, t tools, mech mechanism) error {
	base, err := os.MkdirTemp("", "thinkflow-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	in, out, held := filepath.Join(base, "in"), filepath.Join(base, "out"), filepath.Join(base, "in", "a", "held")
	for _, d := range []string{out, held, filepath.Join(in, "b")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("echo x > %s/b/f || exit 40; echo x > \"$TMPDIR/f\" || exit 41; (echo x > %s/f) 2>/dev/null; (echo x > %s/f) 2>/dev/null; exit 42",
		quoteShell(in), quoteShell(out), quoteShell(held))
	p, err := newPlan(Spec{Line: line, Roots: []string{in}, ReadOnly: []string{held}, Env: []string{"PATH=" + os.Getenv("PATH")}}, t)
	if err != nil {
		return err
	}
	c, err := mech.command(ctx, p)
	if err != nil {
		_ = os.RemoveAll(p.temp)
		return err
	}
	c.plan, c.Cmd.Env = p, p.env
	var said strings.Builder
	c.Cmd.Stderr = &said
	runErr := c.Run()
	if _, err := c.Finish(); err != nil {
		return err
	}
	if code := c.Cmd.ProcessState.ExitCode(); code != 42 {
		text := strings.TrimSpace(said.String())
		if text == "" && runErr != nil {
			text = runErr.Error()
		}
		return fmt.Errorf("does not work here: %s", firstLine(text))
	}
	for _, f := range []string{filepath.Join(out, "f"), filepath.Join(held, "f")} {
		if _, err := os.Lstat(f); err == nil {
			return errors.New("does not hold: a test command could write outside of its folder")
		}
	}
	return nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// unconfined runs the command as it is.
type unconfined struct{}

func (unconfined) command(ctx context.Context, p *plan) (*Command, error) {
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir = p.dir
	return &Command{Cmd: cmd}, nil
}

func findTools() tools {
	t := tools{shell: []string{"/bin/sh", "-c"}}
	if path, err := lookPathAbs("bash"); err == nil {
		t.shell = []string{path, "-c"}
	} else if runtime.GOOS == "windows" {
		t.shell = []string{"cmd", "/d", "/c"}
	}
	// Ubuntu lets only this one make user namespaces.
	if t.bwrap = "/usr/bin/bwrap"; !isFile(t.bwrap) {
		t.bwrap, _ = lookPathAbs("bwrap")
	}
	return t
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// lookPathAbs finds a program in the absolute entries of PATH only.
func lookPathAbs(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		return "", exec.ErrNotFound
	}
	return path, nil
}
