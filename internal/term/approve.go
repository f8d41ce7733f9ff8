package term

import (
	"bufio"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"thinkflow/agent"
)

// Approver asks the person at the terminal. While it waits, events are held
// back, so that nothing is written between the question and the answer.
type Approver struct {
	r     *Renderer
	in    io.Reader
	flush func() // drops what was typed before the question

	mu    sync.Mutex // one question at a time; guards lines
	lines chan string
}

var _ agent.Approver = (*Approver)(nil)

// NewApprover asks on the renderer's terminal and reads answers from in.
func NewApprover(r *Renderer, in io.Reader) *Approver {
	a := &Approver{r: r, in: in, flush: func() {}}
	if f, ok := in.(*os.File); ok {
		a.flush = func() { dropTypedAhead(f) }
	}
	return a
}

// Ask shows what is to be done, to which real target, with its diff, and waits
// for y (once), s (for this session) or n. Anything else, the end of the input
// included, is a no.
func (a *Approver) Ask(ctx context.Context, ev agent.ApprovalEvent) (agent.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return agent.Deny, ctx.Err()
	}
	if a.lines == nil {
		a.lines = make(chan string)
		go a.read()
	}
	a.flush()
	a.r.question(ev)
	decision, answered, err := agent.Deny, false, error(nil)
	select {
	case line, ok := <-a.lines:
		answered = ok
		decision = decisionOf(ev, line)
	case <-ctx.Done():
		err = ctx.Err()
	}
	a.r.answered(answered)
	return decision, err
}

// answers are what may be typed, and how it is offered.
var answers = []struct {
	keys     []string
	decision agent.Decision
	offer    string
}{
	{[]string{"y", "yes"}, agent.AllowOnce, "y once"},
	{[]string{"w", "net"}, agent.AllowOnceNet, "w once with network"},
	{[]string{"g", "git"}, agent.AllowOnceGit, "g once with .git"},
	{[]string{"b", "both"}, agent.AllowOnceGitNet, "b once with both"},
	{[]string{"s", "session"}, agent.AllowSession, "s for this session"},
}

// offered reports whether the answer means something for the question.
func offered(ev agent.ApprovalEvent, d agent.Decision) bool {
	if len(ev.Choices) == 0 {
		return d == agent.AllowOnce || d == agent.AllowSession
	}
	return slices.Contains(ev.Choices, d)
}

// decisionOf is what was typed; anything that was not offered is a no.
func decisionOf(ev agent.ApprovalEvent, line string) agent.Decision {
	typed := strings.ToLower(strings.TrimSpace(line))
	for _, a := range answers {
		if slices.Contains(a.keys, typed) && offered(ev, a.decision) {
			return a.decision
		}
	}
	return agent.Deny
}

// read passes lines on, for as long as there are any. It outlives a question
// that was cancelled: a read from a terminal cannot be interrupted.
func (a *Approver) read() {
	defer close(a.lines)
	sc := bufio.NewScanner(a.in)
	for sc.Scan() {
		a.lines <- sc.Text()
	}
}

// linesOfTarget bounds what is shown of a command line that asks. A person must
// see all that they consent to, so it is generous.
const linesOfTarget = 100

// question shows an approval and holds events back until answered.
func (r *Renderer) question(ev agent.ApprovalEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp()
	r.enter(blockDetail)
	r.line(seg{"? ", r.pal.prompt}, seg{"The model wants to " + asking(ev.Action), r.pal.prompt})
	for i, l := range wrapText(Visible(ev.Target), max(0, r.width()-4)) {
		if i == linesOfTarget {
			r.line(seg{"    … this goes on: too long to show whole. If in doubt, say no.", r.pal.bad})
			break
		}
		r.line(seg{"    ", nil}, seg{l, r.pal.path})
	}
	if ev.Rule != "" {
		r.para(2, r.pal.dim, ev.Rule, 4)
	}
	r.diff(parseDiff(ev.Diff), false)
	if r.o.Inline {
		r.asking = true
		r.s.flush()
		return
	}
	choices := "  "
	for _, a := range answers {
		if offered(ev, a.decision) {
			choices += a.offer + ", "
		}
	}
	choices += "n no (default) "
	r.s.put(paint(r.pal.dim, choices)+paint(r.pal.prompt, "› "), cells(choices)+2)
	r.asking = true
	active := r.state.active
	r.state.active = false
	r.refresh()
	r.state.active = active
}

// answered goes on with what came in the meantime. With an answer the terminal
// has echoed the line break.
func (r *Renderer) answered(echoed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = false
	if echoed && r.o.Live {
		r.s.col = 0
	} else {
		r.s.fresh()
	}
	for _, e := range r.queued {
		r.arrive(e)
	}
	r.queued = nil
	r.refresh()
}

func asking(action string) string {
	switch action {
	case "bash":
		return "run a command"
	case "delete":
		return "delete"
	case "read":
		return "read"
	case "write":
		return "write"
	case "trust":
		return "use text of the workspace"
	case "keep":
		return "keep what a command made"
	}
	return VisibleName(strings.TrimPrefix(action, "tf-"))
}
