package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"thinkflow/internal/sandbox"
)

// maxProcesses bounds the background commands of one session.
const maxProcesses = 8

// startWait is how long the start of a background command is watched: what fails
// at once is told at once.
const startWait = 500 * time.Millisecond

// processes are the background commands of a session. They end with it.
type processes struct {
	mu     sync.Mutex // guards all below
	list   []*process
	n      int // of the last one
	closed bool
}

// process is one background command.
type process struct {
	id      string
	line    string
	started time.Time
	c       *sandbox.Command
	out     *boundedOutput
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended

	mu    sync.Mutex // guards what follows
	asked bool       // somebody ended it
	res   shellResult
}

// startProcess starts a command that goes on while the session does.
func (r *run) startProcess(line string, g sandbox.Grants) (*process, error) {
	ps := r.s.procs
	ps.mu.Lock()
	defer ps.mu.Unlock()
	running := 0
	for _, p := range ps.list {
		if !p.ended() {
			running++
		}
	}
	switch {
	case ps.closed:
		return nil, errors.New("the session is over")
	case running >= maxProcesses:
		return nil, fmt.Errorf("%d background commands are running already; stop one first", running)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c, err := r.command(ctx, line, g)
	if err != nil {
		cancel()
		return nil, err
	}
	ps.n++
	p := &process{
		id: fmt.Sprintf("p%d", ps.n), line: line, started: r.e.now(), c: c, cancel: cancel,
		out: &boundedOutput{limit: r.cfg.BashOutput}, done: make(chan struct{}),
	}
	ownProcess(c.Cmd, p.out)
	if err := c.Start(); err != nil {
		cancel()
		_, _ = c.Finish()
		return nil, err
	}
	ps.list = append(ps.list, p)
	go p.await(r)
	return p, nil
}

// await waits for the end and settles what the command did.
func (p *process) await(r *run) {
	defer close(p.done)
	err := p.c.Cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = killGroup(p.c.Cmd)
	}
	p.cancel()
	found, _ := p.c.Finish()
	res := shellResult{}
	if st := p.c.Cmd.ProcessState; st != nil {
		code := st.ExitCode()
		res.exit = &code
	}
	// Once the run is over nobody is asked: what was made is removed.
	res.remark = r.found(found, p.started)
	p.mu.Lock()
	if p.asked {
		res.killed = "stopped"
	}
	p.res = res
	p.mu.Unlock()
	if res.remark != "" {
		r.s.addNote(fmt.Sprintf("Background command %s (%s) has ended: %s", p.id, oneLine(p.line, 80), strings.TrimSpace(res.remark)))
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end, a while at most.
func (p *process) wait(ctx context.Context, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// stop ends the command and waits for that.
func (p *process) stop() {
	p.mu.Lock()
	p.asked = p.asked || !p.ended()
	p.mu.Unlock()
	p.cancel()
	<-p.done
}

// report is the state and what came since the last report.
func (p *process) report() string {
	state := "running"
	var remark string
	if p.ended() {
		p.mu.Lock()
		state, remark = p.res.state(), p.res.remark
		p.mu.Unlock()
	}
	return fmt.Sprintf("%s: %s\n%s%s", p.id, state, p.out.take(), remark)
}

// find returns the process of that id, or says which there are.
func (ps *processes) find(id string) (*process, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var have []string
	for _, p := range ps.list {
		if p.id == id {
			return p, nil
		}
		have = append(have, p.id)
	}
	if len(have) == 0 {
		return nil, errors.New("there is no background command; bash with background starts one")
	}
	return nil, fmt.Errorf("there is no background command %s; there are %s", oneLine(id, 20), strings.Join(have, ", "))
}

// endAll ends every background command; none can be started afterwards.
func (ps *processes) endAll() {
	ps.mu.Lock()
	ps.closed = true
	list := ps.list
	ps.mu.Unlock()
	for _, p := range list {
		p.cancel()
	}
	for _, p := range list {
		p.stop()
	}
}

// endProcesses ends the background commands of all sessions.
func (e *Engine) endProcesses() {
	e.mu.Lock()
	var all []*session
	for _, s := range e.sessions {
		all = append(all, s)
	}
	e.mu.Unlock()
	for _, s := range all {
		s.procs.endAll()
	}
}

// EndSession forgets a session and ends its background commands. A session that
// works on a task is cancelled by Cancel, not by this.
func (e *Engine) EndSession(id string) {
	e.mu.Lock()
	s, ok := e.sessions[id]
	if ok && !s.running {
		delete(e.sessions, id)
	}
	e.mu.Unlock()
	if ok {
		s.procs.endAll()
	}
}
