package notify

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"thinkflow/agent"
)

// Way is how a terminal is told.
type Way string

// The ways of a terminal.
const (
	Off    Way = "off"
	Bell   Way = "bell"
	OSC9   Way = "osc9"   // iTerm2, Windows Terminal, kitty, Ghostty, WezTerm
	OSC777 Way = "osc777" // urxvt, foot, Ghostty, WezTerm
)

// hookTime bounds the user's command.
const hookTime = 10 * time.Second

// maxText bounds what is told, in bytes.
const maxText = 200

// Notifier tells of runs. It is safe for concurrent use.
type Notifier struct {
	Way  Way
	Hook string    // command line of the user; "" = none
	Out  io.Writer // the terminal; nil = none
	// After is the time from which on a run is long enough for nobody to look.
	After time.Duration
	Env   []string // environment of the hook
	Log   func(error)

	hooks sync.WaitGroup
	mu    sync.Mutex // guards runs
	runs  map[string]begun
}

// begun is a run that goes on.
type begun struct {
	task string
	at   time.Time
}

// Wait waits for the user's commands, each of which has ten seconds.
func (n *Notifier) Wait() { n.hooks.Wait() }

// Event takes the events of runs, those of each in order.
func (n *Notifier) Event(ev agent.Event) {
	switch ev.Type {
	case agent.RunStarted:
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.runs == nil {
			n.runs = map[string]begun{}
		}
		n.runs[ev.Run] = begun{ev.Task, ev.Time}
	case agent.ApprovalRequested:
		n.tell(n.task(ev.Run), "asks", fmt.Sprintf("%s: %s", ev.Approval.Action, ev.Approval.Target), &ev)
	case agent.RunSuspended:
		n.tell(n.end(ev.Run).task, "waits", ev.Reason, &ev)
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled:
		if b := n.end(ev.Run); ev.Time.Sub(b.at) >= n.After {
			what := "done"
			if ev.Result != nil {
				what = string(ev.Result.State)
			}
			n.tell(b.task, what, b.task, &ev)
		}
	}
}

func (n *Notifier) task(run string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs[run].task
}

func (n *Notifier) end(run string) begun {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.runs[run]
	delete(n.runs, run)
	return b
}

func (n *Notifier) tell(task, what, text string, ev *agent.Event) {
	if n.Out != nil {
		_, _ = io.WriteString(n.Out, Sequence(n.Way, "ThinkFlow: "+what, text))
	}
	if n.Hook == "" {
		return
	}
	env := append([]string(nil), n.Env...)
	env = append(env, "THINKFLOW_EVENT="+what, "THINKFLOW_RUN="+ev.Run, "THINKFLOW_TEXT="+plain(text), "THINKFLOW_TASK="+plain(task))
	n.hooks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hookTime)
		defer cancel()
		if err := hook(ctx, n.Hook, env); err != nil && n.Log != nil {
			n.Log(fmt.Errorf("notify_hook: %w", err))
		}
	})
}

func hook(ctx context.Context, line string, env []string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, "cmd", "/c", line)
	}
	cmd.Env = env
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// Sequence is what the terminal is sent. Texts cannot end the sequence or begin
// another one.
func Sequence(w Way, title, text string) string {
	switch w {
	case Bell:
		return "\a"
	case OSC9:
		return "\x1b]9;" + plain(title+": "+text) + "\a"
	case OSC777:
		clean := func(s string) string { return strings.ReplaceAll(plain(s), ";", ",") }
		return "\x1b]777;notify;" + clean(title) + ";" + clean(text) + "\a"
	}
	return ""
}

// plain is one line without control characters, bounded.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
