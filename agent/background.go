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
	"thinkflow/ledger"
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
	told  bool       // its start stands in the ledger
	over  bool       // it has ended, and res says how
	res   shellResult
	noted func() // records the end
}

// startProcess starts a command that goes on while the session does.
func (r *run) startProcess(at ledger.Key, line string, g sandbox.Grants) (*process, error) {
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
	p.noted = func() { r.recordBackground(at, p) }
	ownProcess(c.Cmd, p.out, r.e.held)
	if err := c.Start(); err != nil {
		cancel()
		_, _ = c.Finish()
		return nil, err
	}
	ps.list = append(ps.list, p)
	go p.await(r, at)
	return p, nil
}

// await waits for the end and settles what the command did.
func (p *process) await(r *run, at ledger.Key) {
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
	res.remark = r.found(at, found, p.started)
	p.mu.Lock()
	if p.asked {
		res.killed = "stopped"
	}
	p.res, p.over = res, true
	told := p.told
	p.mu.Unlock()
	if told {
		p.noted()
	}
	if res.remark != "" {
		r.s.addNote(fmt.Sprintf("Background command %s (%s) has ended: %s", p.id, oneLine(p.line, 80), strings.TrimSpace(res.remark)))
	}
}

// announced says that the start stands in the ledger: the end may follow. A nil
// *process is a command that did not go to the background.
func (p *process) announced() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.told = true
	over := p.over
	p.mu.Unlock()
	if over {
		p.noted()
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

// EndSession forgets a session whose conversation is over and ends its background
// commands; its runs stay in the ledger, from which it can be gone on with. A
// session that works on a task is left alone: Cancel ends that.
func (e *Engine) EndSession(id string) {
	e.mu.Lock()
	s := e.sessions[id]
	if s == nil || s.running {
		e.mu.Unlock()
		return
	}
	delete(e.sessions, id)
	opened := e.ledgerOpened
	e.mu.Unlock()
	s.procs.endAll()
	if !opened {
		return
	}
	if led, err := e.openLedger(); err == nil {
		e.noteLedger(led.EndSession(id))
	}
}
