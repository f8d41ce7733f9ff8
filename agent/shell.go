package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
)

// shellResult is what a shell command left behind.
type shellResult struct {
	output string // stdout and stderr as they came, bounded: beginning and end
	exit   *int
	killed string // why it was ended from outside; see fate
	late   bool   // bash_timeout was over
	// fate is what is known of a command whose time was over or whose run ended:
	// it had come to its end by itself, it never began, or nobody knows. "" when
	// it was not ended from outside.
	fate   registry.Verdict
	remark string // what the sandbox found, at the end of output as well

	background string // id of the process that goes on
	process    *process
}

func (s shellResult) state() string {
	switch {
	case s.killed != "" && s.fate == registry.VerdictUnknown:
		return s.killed + ", its effects are unknown"
	case s.killed != "" && s.fate == registry.NotExecuted:
		return s.killed + " before it began"
	case s.killed != "":
		return s.killed
	case s.background != "":
		return "in the background as " + s.background
	case s.exit != nil:
		return fmt.Sprintf("exit status %d", *s.exit)
	}
	return "not run"
}

// shell runs one command line in the first root and in the sandbox, in a process
// group of its own, with an environment that holds no keys. It ends with the run,
// or after bash_timeout. Whether it may run has been asked.
func (r *run) shell(at ledger.Key, line string, live func(string)) shellResult {
	return r.shellWith(at, line, sandbox.Grants{}, live)
}

// shellWith is shell with parts of the sandbox opened.
func (r *run) shellWith(at ledger.Key, line string, g sandbox.Grants, live func(string)) shellResult {
	limit := r.cfg.BashTimeout
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	start := r.e.now()
	res := shellResult{}
	c, err := r.command(ctx, line, g)
	if err != nil {
		res.output = "could not be started: " + err.Error() + "\n"
		res.overdue(r.ctx, ctx, limit, registry.NotExecuted)
		return res
	}
	out := &boundedOutput{limit: r.cfg.BashOutput, live: live}
	killed := ownProcess(c.Cmd, out, r.e.held)
	err = c.Start()
	if err == nil {
		// Exec ends the command itself only until the shell has ended; what that
		// left in the background may hold the output open for longer.
		stop := context.AfterFunc(ctx, func() { _ = killGroup(c.Cmd) })
		err = c.Cmd.Wait()
		stop()
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = killGroup(c.Cmd)
	}
	out.finish()
	res.output = out.String()
	fate := registry.NotExecuted
	if st := c.Cmd.ProcessState; st != nil {
		code := st.ExitCode()
		res.exit = &code
		fate = registry.VerdictUnknown
		if endedItself(st, killed()) {
			fate = registry.Succeeded
		}
	} else if err != nil {
		res.output += "could not be started: " + err.Error() + "\n"
	}
	res.overdue(r.ctx, ctx, limit, fate)
	found, err := c.Finish()
	if err != nil {
		r.e.log.Warn("sandbox: not all could be looked at", "err", err)
	}
	res.remark = r.found(at, found, start)
	if res.remark == "" && res.exit != nil && *res.exit != 0 {
		res.remark = r.heldBack(res.output, g)
	}
	if res.remark != "" {
		if res.output != "" && !strings.HasSuffix(res.output, "\n") {
			res.output += "\n"
		}
		res.output += res.remark
	}
	return res
}

// overdue notes that a command ran until the run was cancelled or its time was
// over, and what is known of it. One that had come to its end by itself counts as
// what it is: only something that it left in the background was ended.
func (s *shellResult) overdue(run, own context.Context, limit time.Duration, fate registry.Verdict) {
	var why string
	switch {
	case run.Err() != nil:
		why = "killed (cancelled)"
	case own.Err() != nil:
		why, s.late = fmt.Sprintf("killed after %s (bash_timeout)", limit), true
	default:
		return
	}
	s.fate = fate
	if fate != registry.Succeeded {
		s.killed = why
	}
}

// ownProcess makes a command one that can be ended with all it started, and
// gives it its output, which may stay open for as long as held when the shell has
// gone. The function tells whether it was ended by its context.
func ownProcess(cmd *exec.Cmd, out io.Writer, held time.Duration) (killed func() bool) {
	var was atomic.Bool
	cmd.Stdout, cmd.Stderr = out, out
	ownGroup(cmd)
	cmd.Cancel = func() error {
		was.Store(true)
		cmd.WaitDelay = killedHolds // exec reads it behind this
		return killGroup(cmd)
	}
	cmd.WaitDelay = held
	return was.Load
}

// How long the output of a command may stay open when its shell has gone: what the
// shell left behind may still say something; what was killed has nothing to say,
// and whatever got away is ended when the sandbox is finished.
const (
	leftHolds   = time.Second
	killedHolds = 200 * time.Millisecond
)

// heldBack explains a failure that looks like the sandbox's doing.
func (r *run) heldBack(output string, g sandbox.Grants) string {
	if !r.confines() {
		return ""
	}
	low := strings.ToLower(output)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case !g.Net && has("could not resolve", "name resolution", "network is unreachable", "no such host", "getaddrinfo", "enotfound", "eai_again", "connection refused"):
		return "[sandbox] commands have no network; with=\"net\" asks the user for it\n"
	case !g.Git && has(".git/"):
		return "[sandbox] .git is read-only for commands; with=\"git\" asks the user for it\n"
	case has("read-only file system", "operation not permitted"):
		return "[sandbox] commands can write in the workspace and in $TMPDIR only, and not to protected files\n"
	}
	return ""
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
	taken  int // of total, by take
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

// take returns what came since it was called before, its end if that is too much.
func (b *boundedOutput) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := b.total - b.taken
	b.taken = b.total
	all := append(b.head[:len(b.head):len(b.head)], b.tail...)
	if fresh <= len(all) && fresh <= b.limit/2 || b.total == len(all) {
		return strings.ToValidUTF8(string(all[len(all)-fresh:]), "\uFFFD")
	}
	keep := min(fresh, len(b.tail), b.limit/2)
	return strings.ToValidUTF8(fmt.Sprintf("… %d bytes left out …\n%s", fresh-keep, b.tail[len(b.tail)-keep:]), "\uFFFD")
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
