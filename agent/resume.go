package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// ResumeRequest goes on with a run that has ended without being done: it was
// suspended, its process died, or it was cancelled, stopped or failed.
type ResumeRequest struct {
	Run string // id, unique prefix of one, or "last"
	// Answers to the approvals that it waits for, by id. An answer counts for
	// the very command that was asked about, once.
	Answers map[string]Decision
	By      string // who answers, for the ledger: editor, command line, http
	Message string // a further message of the user; "" = none
	Events  func(Event)
	Preview func(Preview)
}

// WaitingApproval is a question that a suspended run waits with.
type WaitingApproval struct {
	Run  string `json:"runId"`
	Task string `json:"task"`
	ApprovalEvent
}

// LastRun names the newest run.
const LastRun = ledger.Last

// ErrWaits: the run waits for an answer that the request does not give, and
// nobody is there to ask.
var ErrWaits = errors.New("the run waits for an approval")

// resumable is a run that can be gone on with.
type resumable struct {
	info     ledger.Run
	state    savedState
	messages []Message
}

// Resume goes on with a run until it ends again. What its process left open has
// been settled by looking; the model is told what was found, and nothing that
// was done is done again.
func (e *Engine) Resume(ctx context.Context, req ResumeRequest) (RunResult, error) {
	r, err := e.BeginResume(ctx, req)
	if err != nil {
		return RunResult{}, err
	}
	return r()
}

// BeginResume is Resume in two steps: when it returns, the run is claimed and
// known to Cancel, Steer and Approve; the function carries it out.
func (e *Engine) BeginResume(ctx context.Context, req ResumeRequest) (func() (RunResult, error), error) {
	led, err := e.openLedger()
	if err != nil {
		return nil, err
	}
	e.settleDead(ctx, led)
	from, err := loadRun(ctx, led, req.Run)
	if err != nil {
		return nil, err
	}
	grants, err := e.answered(from, req)
	if err != nil {
		return nil, err
	}
	newest, err := led.SessionRun(ctx, from.info.Session)
	if err == nil && newest.ID != from.info.ID && newest.Session != "" {
		return nil, fmt.Errorf("the conversation of run %s went on with run %s: give a new task in session %s instead", from.info.ID, newest.ID, newest.Session)
	}
	if _, err := led.ClaimRun(ctx, from.info.ID); err != nil {
		return nil, err
	}
	r, err := e.adopt(ctx, led, from, req)
	if err != nil {
		_ = led.EndRun(from.info.ID, from.info.State, from.info.Reason, nil)
		return nil, err
	}
	r.grants = grants
	for _, g := range grants {
		r.recordAnswer(led, g, req.By)
	}
	return func() (RunResult, error) {
		defer e.finish(r)
		return r.goOn(from, req), nil
	}, nil
}

// settleDead settles what other processes left behind since the ledger was
// opened.
func (e *Engine) settleDead(ctx context.Context, led *ledger.Ledger) {
	settled, err := led.SettleDead(ctx)
	if err != nil {
		e.log.Warn("ledger: what other processes left open could not be settled", "err", err)
	}
	for _, s := range settled {
		e.notice(fmt.Sprintf("an earlier run ended in the middle of %s %s: %s", s.Tool, s.Path, s.Reason))
	}
}

// loadRun finds a run and its stored state.
func loadRun(ctx context.Context, led *ledger.Ledger, ref string) (*resumable, error) {
	info, err := led.LookUpRun(ctx, ref)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Ended == nil:
		return nil, fmt.Errorf("run %s: %w", info.ID, ledger.ErrRunning)
	case info.State == string(StateDone):
		return nil, fmt.Errorf("run %s is done: give a new task in its session (%s)", info.ID, info.Session)
	}
	saved, err := led.Checkpoint(ctx, info.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, fmt.Errorf("run %s has no stored state: it ended before its first request, or its conversation went on; give the task again", info.ID)
	}
	if err != nil {
		return nil, err
	}
	from := &resumable{info: info}
	from.state, from.messages, err = loadCheckpoint(saved)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", info.ID, err)
	}
	return from, nil
}

// answered pairs the request's answers with what the run waits for.
func (e *Engine) answered(from *resumable, req ResumeRequest) ([]grant, error) {
	var out []grant
	known := map[string]bool{}
	for _, h := range from.state.Run.Waiting {
		known[h.Approval.ID] = true
		d, ok := req.Answers[h.Approval.ID]
		if choices := h.Approval.Choices; ok && !slices.Contains(choices, d) {
			return nil, fmt.Errorf("decision %q is none of %v", d, choices)
		}
		switch {
		case ok:
			out = append(out, grant{h, d})
		case e.approver == nil && from.info.State == string(StateSuspended):
			return nil, fmt.Errorf("%w: %s (%s). Answer with: thinkflow approve %s %s once|session|no",
				ErrWaits, oneLine(h.Approval.Target, 200), h.Approval.Rule, from.info.ID, h.Approval.ID)
		}
	}
	for id := range req.Answers {
		if !known[id] {
			return nil, fmt.Errorf("run %s does not wait for approval %q (any more)", from.info.ID, id)
		}
	}
	return out, nil
}

// adopt registers the resumed run and its session.
func (e *Engine) adopt(ctx context.Context, led *ledger.Ledger, from *resumable, req ResumeRequest) (*run, error) {
	last, err := led.LastSeq(ctx, from.info.ID)
	if err != nil {
		return nil, err
	}
	if from.info.State == ledger.RunInterrupted {
		// Events that were told but not yet stored are lost; their numbers are
		// not given again.
		last = (last/seqGap + 2) * seqGap
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.runs[from.info.ID]; ok {
		return nil, fmt.Errorf("run %s: %w", from.info.ID, ledger.ErrRunning)
	}
	if s := e.sessions[from.info.Session]; s != nil && s.running {
		return nil, fmt.Errorf("session %s is working on another task: wait for it, cancel it, or steer it", s.id)
	}
	// What is stored counts: another process may have gone on in between.
	s := from.state.Session.restore(&e.cfg, from.messages)
	s.running = true
	e.sessions[s.id] = s
	r := newRun(ctx, e, s, RunRequest{Run: from.info.ID, Session: s.id, Task: from.state.Run.Task, Events: req.Events, Preview: req.Preview})
	r.claimed = true
	r.emit.seq = last
	r.restore(&from.state.Run)
	r.saved = slices.Clone(from.messages) // they are stored: only what comes is added
	e.runs[r.id] = r
	return r, nil
}

// seqGap: a run that is resumed after a crash numbers its events from a later
// multiple of this on.
const seqGap = 1000

func (r *run) restore(s *savedRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage, r.spent, r.text = s.Usage, s.Usage, s.Text
	r.steer, r.applied, r.failed, r.skipped, r.badKeys = s.Steer, s.Applied, s.Failed, s.Skipped, s.BadKeys
	for f, n := range s.Files {
		r.files[f] = n
	}
	for f, n := range s.Failures {
		r.failures[f] = n
	}
}

func (r *run) recordAnswer(led *ledger.Ledger, g grant, by string) {
	err := led.Approval(g.key(r.id), ledger.Approval{ID: g.Approval.ID, Action: string(g.Class), Target: g.Approval.Target, Hash: g.Approval.Hash, Decision: string(g.decision), By: by})
	if err != nil {
		r.e.log.Warn("ledger: answer not recorded", "run", r.id, "err", err)
	}
}

// goOn is the loop of a resumed run.
func (r *run) goOn(from *resumable, req ResumeRequest) RunResult {
	if _, err := r.ledger(); err != nil {
		return r.end(StateFailed, err.Error())
	}
	state := from.info.State
	r.emit.emit(Event{Type: RunStarted, Session: r.s.id, Task: r.task, Model: r.cfg.Model, Dir: r.dir(), Reason: "resumed; it was " + state})
	turn := max(from.state.Run.Turn, from.info.Turns)
	r.tellLost(from, turn)
	if req.Message != "" {
		r.mu.Lock()
		r.steer = append(r.steer, req.Message)
		r.mu.Unlock()
	}
	if len(from.state.Run.Waiting) > 0 {
		if res := r.runHeld(from.state.Run.Waiting); res != nil {
			return *res
		}
	} else {
		r.tellPending()
	}
	r.takeSteer()
	r.checkpoint(turn)
	r.base = turn
	return r.turns(turn + 1)
}

// tellLost finds what the ledger knows and the stored state does not: commands
// of a turn that a crash cut short, and outcomes that changed since. It reads
// only what came after the stored state and what the state itself names: a run
// of many commands is gone on with as fast as a short one.
func (r *run) tellLost(from *resumable, turn int) {
	led, err := r.ledger()
	if err != nil {
		return
	}
	commands, err := led.List(r.effectCtx(), ledger.Filter{Run: r.id, AfterTurn: from.state.Run.Turn})
	if err != nil {
		r.e.log.Warn("ledger: what the run did before it ended cannot be read", "run", r.id, "err", err)
		return
	}
	known := map[ledger.Key]*ledger.Command{}
	for _, o := range from.state.Session.Pending {
		if c, err := led.Get(r.effectCtx(), o.Key); err == nil {
			known[o.Key] = &c
		}
	}
	var lost []outcome
	var outputs []string
	for i := range commands {
		c := &commands[i]
		known[c.Key] = c
		if c.Turn <= from.state.Run.Turn || c.Extra || c.Tool == "rollback" || strings.HasSuffix(c.Channel, ".rollback") {
			continue
		}
		if strings.Contains(c.Channel, ".retry") && c.Status != ledger.StatusApplied && c.Status != ledger.StatusUncertain {
			continue
		}
		if c.Tool == string(parser.Read) || c.Flow == ledger.FlowNative && c.Cmd == "" && !strings.HasPrefix(c.Tool, "tf-") {
			continue // its result was lost with the answer; it changed nothing
		}
		lost = append(lost, outcomeFrom(c))
		if c.Stdout != "" {
			outputs = append(outputs, fenceData("output of "+commandName(c.Key, c.Tool), bound(c.Stdout, diffPerTurn)))
		}
	}
	r.s.merge(known, lost)
	var note string
	switch state := from.info.State; {
	case state == string(StateSuspended):
		note = "The user took some time to answer; files may have changed meanwhile."
	case state == ledger.RunInterrupted:
		note = "ThinkFlow ended in the middle of this task and goes on now. What you were writing was lost. "
		if len(lost) > 0 {
			note += "What had been done of it is listed above; it is not done again. "
		}
		note += "Look at files before you change them, then " + r.setup().onward() + "."
	default:
		note = "The user resumed this task, which had ended (" + state + "). Go on where it stopped."
	}
	r.s.addNote(note)
	for _, out := range outputs {
		r.s.addNote(out)
	}
}

// merge brings the untold outcomes up to what the ledger says.
func (s *session) merge(known map[ledger.Key]*ledger.Command, lost []outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := map[ledger.Key]bool{}
	for i := range s.pending {
		o := &s.pending[i]
		have[o.key] = true
		if c := known[o.key]; c != nil && string(c.Status) != o.status {
			o.status, o.code, o.message = string(c.Status), c.Code, c.Error
		}
	}
	for _, o := range lost {
		if !have[o.key] {
			s.pending = append(s.pending, o)
		}
	}
}

func outcomeFrom(c *ledger.Command) outcome {
	channel, _, _ := strings.Cut(c.Channel, ".")
	if cameNative(c.Key) {
		channel = string(ChannelNative)
	}
	return outcome{
		id: c.ID, channel: parser.Channel(channel), name: c.Tool, path: c.Path, dest: c.Dest, cmd: c.Cmd, status: string(c.Status),
		code: c.Code, message: c.Error, notes: c.Notes, rung: c.Rung, added: c.Added, removed: c.Removed, bytes: c.Bytes,
		output: c.Output, stdout: c.Stdout, exit: c.ExitCode, key: c.Key,
	}
}

// runHeld carries out the commands that waited, each only if its question was
// answered with yes, in the turn that they came in.
func (r *run) runHeld(waiting []held) *RunResult {
	n := waiting[0].Turn
	r.turnNo.Store(int32(n))
	r.emit.setTurn(n)
	t := r.newTurn(n, r.setup())
	t.q.close()
	t.worker.Wait()
	r.s.dropStaged()
	t.staged = map[ledger.Key]bool{}
	for _, h := range waiting {
		if h.staged() {
			t.staged[h.key(r.id)] = true
		}
	}
	for _, h := range waiting {
		if r.isSuspended() { // again: the ones behind it wait as they did
			r.mu.Lock()
			r.held = append(r.held, h)
			r.mu.Unlock()
			continue
		}
		switch {
		case h.Call != nil:
			out, err := t.set.tools.call(r.ctx, t, *h.Call, r.cfg.ResultBudget)
			if !r.isSuspended() {
				t.callDone(*h.Call, &out, err)
				t.keepResult(result{t.callKey(h.Call.N), "the call of " + h.Call.Name + " that waited", out})
			}
		case h.Command == nil:
		case h.Command.Name == parser.Read:
			t.reads = []*parser.Command{h.Command}
			t.readAll()
		case h.Command.Name == parser.Bash:
			t.bash(h.Command)
		default:
			t.execute(h.Command, h.Flow)
			if !t.hasFailed() {
				t.keepResult(result{t.key(h.Command), fmt.Sprintf("%d %s %s", h.Command.ID, h.Command.Name, h.Command.Path), registry.Text("applied, as the user allowed it\n")})
			}
		}
	}
	t.cancel(nil)
	r.count(t)
	if r.isSuspended() {
		res := r.suspend(nil)
		return res
	}
	if r.ctx.Err() != nil {
		res := r.endWith(context.Cause(r.ctx))
		return &res
	}
	t.tell(true)
	return nil
}

// dropStaged takes the commands that wait from what is still to be told: they
// are carried out now.
func (s *session) dropStaged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(o outcome) bool { return o.code == codeWaiting })
}

// Waiting lists the questions that suspended runs wait with, oldest run last.
func (e *Engine) Waiting(ctx context.Context) ([]WaitingApproval, error) {
	led, err := e.openLedger()
	if err != nil {
		return nil, err
	}
	return Waiting(ctx, led)
}

// Waiting lists the questions that suspended runs of a ledger wait with, newest
// run first.
func Waiting(ctx context.Context, led *ledger.Ledger) ([]WaitingApproval, error) {
	runs, err := led.Runs(ctx, ledger.RunFilter{State: string(StateSuspended)})
	if err != nil {
		return nil, err
	}
	var out []WaitingApproval
	for _, info := range runs {
		from, err := loadRun(ctx, led, info.ID)
		if err != nil {
			continue // said when it is resumed
		}
		for _, h := range from.state.Run.Waiting {
			out = append(out, WaitingApproval{info.ID, info.Task, h.Approval})
		}
	}
	return out, nil
}

// Abandon gives a suspended run up: what waited is not done.
func (e *Engine) Abandon(ctx context.Context, ref string) error {
	led, err := e.openLedger()
	if err != nil {
		return err
	}
	info, err := led.LookUpRun(ctx, ref)
	if err != nil {
		return err
	}
	if info.State != string(StateSuspended) {
		return fmt.Errorf("run %s: %w", info.ID, ErrNoRun)
	}
	from, err := loadRun(ctx, led, info.ID)
	if err != nil {
		return err
	}
	if _, err := led.ClaimRun(ctx, info.ID); err != nil {
		return err
	}
	for _, h := range from.state.Run.Waiting {
		if h.staged() {
			err = errors.Join(err, led.Outcome(ledger.Outcome{Key: h.key(info.ID), Status: ledger.StatusCancelled, Code: codeCancelled, Error: "the run was given up while it waited"}))
		}
	}
	usage, _ := json.Marshal(info.Usage)
	return errors.Join(err, led.EndRun(info.ID, string(StateCancelled), "given up while it waited for an approval", usage), led.Flush(ctx))
}
