package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// shellResult is what a shell command left behind.
type shellResult struct {
	output string // stdout and stderr as they came, bounded: beginning and end
	exit   *int
	killed string // why it was ended from outside; its effects are unknown
}

func (s shellResult) state() string {
	switch {
	case s.killed != "":
		return s.killed
	case s.exit != nil:
		return fmt.Sprintf("exit status %d", *s.exit)
	}
	return "not run"
}

// shell runs one command line in the first root, in a process group of its own,
// with an environment that holds no keys. It ends with the run, or after
// bash_timeout.
func (r *run) shell(line string, live func(string)) shellResult {
	limit := r.cfg.BashTimeout
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	name, args := shellCommand(line)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir()
	cmd.Env = childEnv(os.Environ())
	out := &boundedOutput{limit: r.cfg.BashOutput, live: live}
	cmd.Stdout, cmd.Stderr = out, out
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	out.finish()
	res := shellResult{output: out.String()}
	if cmd.ProcessState != nil {
		code := cmd.ProcessState.ExitCode()
		res.exit = &code
	}
	switch {
	case r.ctx.Err() != nil:
		res.killed = "killed (cancelled), its effects are unknown"
	case ctx.Err() != nil:
		res.killed = fmt.Sprintf("killed after %s (bash_timeout), its effects are unknown", limit)
	case errors.Is(err, exec.ErrWaitDelay):
		_ = killGroup(cmd) // what it left in the background holds the output open
	case err != nil && res.exit == nil:
		res.output += "could not be started: " + err.Error() + "\n"
	}
	return res
}

// envAllowed lists what a child process may know of the environment. API keys
// and tokens are not in it, whatever they are called.
var envAllowed = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "LANG": true, "LANGUAGE": true, "TZ": true,
	"TMPDIR": true, "TEMP": true, "TMP": true, "PWD": true,
	"GOPATH": true, "GOROOT": true, "GOCACHE": true, "GOMODCACHE": true, "GOFLAGS": true, "GOTOOLCHAIN": true,
	"CARGO_HOME": true, "RUSTUP_HOME": true, "JAVA_HOME": true, "NVM_DIR": true, "PYENV_ROOT": true, "VIRTUAL_ENV": true, "CONDA_PREFIX": true,
	"XDG_CACHE_HOME": true, "XDG_CONFIG_HOME": true, "XDG_DATA_HOME": true, "XDG_RUNTIME_DIR": true,
	"SYSTEMROOT": true, "SYSTEMDRIVE": true, "WINDIR": true, "COMSPEC": true, "PATHEXT": true, "USERPROFILE": true,
	"APPDATA": true, "LOCALAPPDATA": true, "PROGRAMDATA": true, "PROGRAMFILES": true, "PROGRAMFILES(X86)": true, "NUMBER_OF_PROCESSORS": true,
}

// childEnv is the environment of a child process.
func childEnv(env []string) []string {
	out := []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "THINKFLOW=1"}
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if upper := strings.ToUpper(name); ok && (envAllowed[upper] || strings.HasPrefix(upper, "LC_")) {
			out = append(out, kv)
		}
	}
	return out
}

// boundedOutput keeps the first and the last half of limit bytes, and passes
// what comes on while it comes, at most 20 times a second.
type boundedOutput struct {
	limit int
	live  func(string)

	mu     sync.Mutex // guards all below
	head   []byte
	tail   []byte
	total  int
	unsent []byte
	last   time.Time
}

func (b *boundedOutput) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(p)
	b.total += n
	b.pass(p)
	if room := b.limit/2 - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	b.tail = append(b.tail, p...)
	if keep := b.limit / 2; len(b.tail) > 2*keep {
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-keep:]...)
	}
	return n, nil
}

// pass hands on what is new, but no more than the limit in all.
func (b *boundedOutput) pass(p []byte) {
	if b.live == nil || b.total > b.limit {
		return
	}
	b.unsent = append(b.unsent, p...)
	if now := time.Now(); now.Sub(b.last) >= textInterval {
		b.last = now
		b.live(strings.ToValidUTF8(string(b.unsent), "\uFFFD"))
		b.unsent = b.unsent[:0]
	}
}

func (b *boundedOutput) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live != nil && len(b.unsent) > 0 {
		b.live(strings.ToValidUTF8(string(b.unsent), "\uFFFD"))
		b.unsent = nil
	}
}

func (b *boundedOutput) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	tail := b.tail
	if keep := b.limit / 2; len(tail) > keep {
		tail = tail[len(tail)-keep:]
	}
	s := string(b.head)
	if cut := b.total - len(b.head) - len(tail); cut > 0 {
		s += fmt.Sprintf("\n… %d bytes left out …\n", cut)
	}
	return strings.ToValidUTF8(s+string(tail), "\uFFFD")
}
