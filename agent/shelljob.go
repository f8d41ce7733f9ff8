package agent

import (
	"strings"
	"sync"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
)

// shellGrace is how long a killed command may take to be gone, and what it did
// to be looked at, before its run goes on without it.
const shellGrace = 1500 * time.Millisecond

// shellJob is one shell command that the model asked for, as a tag or as a call,
// over the attempts at it. Every attempt has an intent of its own in the ledger.
type shellJob struct {
	t      *turn
	ask    shellAsk
	grants sandbox.Grants
	event  ToolEvent // names it in tool.output
	intent ledger.Intent

	mu    sync.Mutex // guards all below
	begun bool
	last  ledger.Key // of the last attempt
	ended bool       // an attempt has come back, and this is what it left
	res   shellResult
	noLog error // the ledger could not record it, so nothing was run
}

// run makes one attempt, the first with number 1.
func (j *shellJob) run(attempt int) (toolOutput, error) {
	r := j.t.r
	j.mu.Lock()
	j.begun = true
	j.mu.Unlock()
	in := j.intent
	if attempt > 1 {
		in.Key = retryKey(in.Key, attempt-1)
	}
	j.mu.Lock()
	j.last = in.Key
	j.mu.Unlock()
	led, err := r.ledger()
	if err == nil {
		err = led.Intent(r.effectCtx(), in)
	}
	if err != nil {
		err := registry.Errorf(registry.Unavailable, "the ledger could not record it, so it was not run: %v", err)
		j.mu.Lock()
		j.noLog = err
		j.mu.Unlock()
		return toolOutput{}, err
	}
	res := r.runShell(in.Key, j.ask, j.grants, func(out string) {
		ev := j.event
		r.emit.emit(Event{Type: ToolOutput, Text: out, Tool: &ev})
	})
	j.t.settleOutcome(led, in.Key, res.outcomeOf(j.ask))
	res.process.announced()
	j.mu.Lock()
	j.res, j.ended = res, true
	j.mu.Unlock()
	r.s.ran(j.ask.line, res)
	if res.late {
		says := res.killed
		if says == "" {
			says = "its time was over"
		}
		return toolOutput{}, &registry.Late{Says: says}
	}
	return shellOutput(res), nil
}

// left is what the last attempt left. One that did not come back in time may have
// done anything. The error says why there was none.
func (j *shellJob) left(called error) (shellResult, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.noLog != nil:
		return shellResult{}, j.noLog
	case !j.begun && called != nil:
		return shellResult{}, called
	case !j.ended:
		return shellResult{killed: "killed (cancelled)", fate: registry.VerdictUnknown}, nil
	}
	return j.res, nil
}

// lastKey is the key of the last attempt at a call.
func (t *turn) lastKey(c PreparedCall) ledger.Key {
	if key := t.announced(c.History.ID); key != (ledger.Key{}) {
		return key
	}
	if j := t.shellJob(c.History.ID); j != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.last != (ledger.Key{}) {
			return j.last
		}
	}
	return t.callKey(c.N)
}

// outcome is the result as the ledger has it.
func (s shellResult) outcome() outcome {
	o := outcome{status: string(ledger.StatusApplied), stdout: s.output, exit: s.exit}
	switch {
	case s.killed == "":
	case s.fate == registry.NotExecuted:
		o.status, o.code, o.message = string(ledger.StatusNotApplied), "not_started", s.state()
	default:
		o.status, o.code, o.message = string(ledger.StatusUncertain), "killed", s.state()
	}
	return o
}

// outcomeOf is outcome with what was asked for besides.
func (s shellResult) outcomeOf(a shellAsk) outcome {
	o := s.outcome()
	o.output, o.bytes = cameBack(s.output), int64(len(s.output))
	if s.background != "" {
		o.notes = append(o.notes, "goes on in the background as "+s.background)
	}
	if a.with.Net || a.with.Git {
		o.notes = append(o.notes, strings.Join(shellAsk{with: a.with}.wishes(), ", "))
	}
	return o
}

func shellOutput(res shellResult) toolOutput {
	return toolOutput{
		Text:   res.state() + "\n" + res.output,
		Shrink: func(most int) string { return res.state() + "\n" + middle(res.output, most-len(res.state())-1) },
	}
}

// shellJob is the command of this call, nil before its first attempt.
func (t *turn) shellJob(call string) *shellJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jobs[call]
}

func (t *turn) keepJob(call string, j *shellJob) *shellJob {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs == nil {
		t.jobs = map[string]*shellJob{}
	}
	t.jobs[call] = j
	return j
}
