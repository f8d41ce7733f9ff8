package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// Reasons for which a run's context ends.
var (
	errCancelled = errors.New("cancelled")
	errWall      = errors.New("the time for this run is over")
)

// sameFailures is how often the same call may fail without an applied change
// in between.
const sameFailures = 3

// run is one user task being worked on. The loop's goroutine owns what no
// mutex guards.
type run struct {
	e       *Engine
	cfg     config.Config // as it was when the run began
	rules   *policy.Engine
	model   Model
	s       *session
	id      string
	task    string
	dryRun  bool
	started time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	emit    *emitter
	wall    *wallClock
	turnNo  atomic.Int32
	over    atomic.Bool

	traced     func(RunResult)
	parent     *parent // of a sub-agent; nil = the user's own run
	approvals  *approvals
	previews   *previewer
	ledger     func() (*ledger.Ledger, error)
	lastLedger func(time.Duration) (*ledger.Ledger, error)
	journal    *journal

	claimed    bool      // the run is in the ledger already: it is resumed
	saved      []Message // what the stored checkpoints hold of the history
	base       int       // turns before it was resumed
	spent      Usage     // the same in tokens and money
	usage      Usage
	interrupts int   // answers in a row that broke off
	broken     int   // answers whose tags could not be read
	overflowed error // the last answer ended because the context was full
	check      verifier
	verified   string // what the last check said
	shrunk     bool   // a refused request was made smaller, and no answer came since
	text       string

	mu         sync.Mutex // guards all below
	steer      []string
	unsteered  bool            // it ends: too late for a further message
	looked     map[string]bool // folders in which rules were looked for
	files      map[string]int  // path → changes applied and not taken back
	applied    int
	failed     int
	skipped    int
	changes    int            // applied changes, for the stop at identical failures
	failures   map[string]int // signature → failures since the last change
	badKeys    int
	suspension suspending
	held       []held  // commands that wait for a person
	grants     []grant // answers given while it was suspended
	refusal    string  // why the run needed a permission that nobody could give
	stopAfter  bool    // and it was tried again
}

func newRun(ctx context.Context, e *Engine, s *session, req RunRequest) *run {
	r := &run{
		e: e, cfg: e.cfg, rules: e.rules, model: e.model, s: s, id: req.Run, task: req.Task, dryRun: req.DryRun, started: e.now(),
		files: map[string]int{}, failures: map[string]int{}, suspension: suspending{over: make(chan struct{})},
		approvals: &approvals{},
	}
	ctx, r.traced = e.tracer.Run(ctx, TracedRun{Run: r.id, Session: s.id, Model: r.settings().Model})
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.journal = &journal{run: r.id}
	sink := req.Events
	if sink == nil {
		sink = func(Event) {}
	}
	r.emit = newEmitter(r.id, func(ev Event) {
		r.journal.event(ev)
		sink(ev)
	}, e.now)
	r.previews = newPreviewer(r.id, req.Preview, e.now)
	r.emit.safe, r.previews.safe = e.redact, e.redact
	r.wall = newWallClock(r.cfg.MaxWall, func() { r.cancel(errWall) })
	r.ledger = r.awaitLedger()
	return r
}

func (r *run) dir() string {
	if roots := r.e.ws.Roots(); len(roots) > 0 {
		return roots[0].Dir
	}
	return ""
}

// loop is the run: turn after turn until the model asks for nothing more.
func (r *run) loop(req RunRequest) RunResult {
	if !r.dryRun {
		go func() { _, _ = r.ledger() }() // while the first request is on its way
	}
	r.emit.emit(Event{Type: RunStarted, Session: r.s.id, Task: r.task, Model: r.settings().Model, Dir: r.dir()})
	r.firstMessage(req)
	r.checkpoint(0)
	r.beginVerify()
	return r.turns(1)
}

// turns works from turn n on until the run ends.
func (r *run) turns(n int) RunResult {
	for ; ; n++ {
		if reason := r.bound(n); reason != "" {
			return r.end(StateStopped, reason)
		}
		r.turnNo.Store(int32(n))
		r.emit.setTurn(n)
		r.emit.emit(Event{Type: TurnStarted})
		t, err := r.oneTurn(n)
		if err != nil {
			return r.endWith(err)
		}
		if done := r.after(t); done != nil {
			return *done
		}
		r.checkpoint(n)
	}
}

// oneTurn makes the request, again while nothing of an answer has been taken
// (case LR-09), and reads it.
func (r *run) oneTurn(n int) (*turn, error) {
	set := r.setup()
	r.askContext(set.Model)
	req, err := r.fitting(set)
	if err != nil {
		return nil, err
	}
	retry := newRetry(r.cfg.Retries, r.cfg.RetryCap)
	for {
		t := r.newTurn(n, set)
		start := r.e.now()
		stream, err := r.model.Stream(t.ctx, req)
		if err == nil {
			t.read(stream)
			err = t.err
		} else {
			t.err = err
			t.finishReading()
		}
		r.account(t, req)
		r.traceRequest(t, req, start)
		if r.ctx.Err() != nil {
			return t, nil // after() says what ran
		}
		if err == nil || t.accepted {
			r.shrunk = r.shrunk && err != nil
			return t, nil
		}
		if isOverflow(err) {
			if req, err = r.shrinkRefused(set, req, err); err != nil {
				return nil, err
			}
			r.emit.emit(Event{Type: TurnRestarted, Reason: "the request was too large for the model; trying again with a shorter conversation"})
			continue
		}
		wait, reason := retry.next(err)
		if reason != "" {
			return nil, fmt.Errorf("%s: %w", reason, err)
		}
		if wait < 0 {
			return nil, err
		}
		r.emit.emit(Event{Type: TurnRestarted, Reason: fmt.Sprintf("%v; trying again in %s", err, wait.Round(100*time.Millisecond))})
		select {
		case <-time.After(wait):
		case <-r.ctx.Done():
			return t, nil
		}
	}
}

// request is the next API call.
func (r *run) request(set *setup) *Request {
	return &Request{
		Model:           set.Model,
		Messages:        r.s.messages(r.systemPrompt(set)),
		Tools:           r.e.tools.offer(r, set),
		MaxTokens:       set.maxOutput,
		Temperature:     r.cfg.Temperature,
		ReasoningEffort: set.ReasoningEffort,
		Extra:           set.extra,
	}
}

func (r *run) account(t *turn, req *Request) {
	if t.outBytes == 0 && t.usage == nil && t.err != nil {
		return // the provider did nothing
	}
	in := req.bytes()
	r.usage.RequestBytes += in
	r.usage.ReusedBytes += req.reused(r.s.sent)
	r.s.sent = req
	if t.usage != nil {
		r.s.reported(req.Model, in, t.usage.Input)
	}
	r.usage.addTurn(t.usage, r.s.tokensFor(req.Model, in), t.outBytes, t.set.price)
	u := r.usage
	r.emit.emit(Event{Type: UsageReported, Usage: &u})
}

// after settles a turn: what the model asked for is done, the history grows,
// and either the run ends (the result is not nil) or the next turn follows.
func (r *run) after(t *turn) *RunResult {
	ended := func(s State, reason string) *RunResult {
		res := r.end(s, reason)
		return &res
	}
	if t.visible.Len() > 0 {
		r.text = t.visible.String()
	}
	if r.ctx.Err() == nil {
		t.finishCommands()
	} else {
		t.abandonCommands()
	}
	if r.isSuspended() {
		return r.suspend(t)
	}
	if r.ctx.Err() != nil {
		r.closeEarly(t)
		res := r.endWith(context.Cause(r.ctx))
		return &res
	}
	if t.finish == "content_filter" {
		r.closeEarly(t)
		return ended(StateFailed, "the provider's content filter ended the answer; say the task in other words or use another model")
	}
	if t.err != nil {
		r.interrupts++
		var me *ModelError
		switch {
		case isOverflow(t.err) && !r.shrunk:
			r.overflowed = t.err
		case errors.As(t.err, &me) && !me.Retryable, r.interrupts > r.cfg.Retries:
			r.closeEarly(t)
			res := r.endWith(t.err)
			return &res
		}
		r.emit.emit(Event{Type: TurnRestarted, Reason: "the answer broke off: " + t.err.Error()})
	} else {
		r.interrupts = 0
	}
	answers := t.runCalls(t.toHistory())
	r.count(t)
	t.shareBudget(answers)
	why := r.brokeFormat(t)
	steering := r.isSteered()
	next := t.writeAnswers(answers)
	next = t.tell(next || steering) || next
	if why != "" {
		r.emit.emit(Event{Type: TurnRestarted, Reason: why})
	}
	steered := r.takeSteer()
	if r.isSuspended() {
		return r.suspend(nil)
	}
	if r.ctx.Err() != nil {
		res := r.endWith(context.Cause(r.ctx))
		return &res
	}
	if r.refusedTwice() {
		return ended(StateRefused, r.refusal)
	}
	if why := r.stuck(t); why != "" {
		return ended(StateStopped, why)
	}
	if next || steered {
		return nil
	}
	if r.refusal == "" && r.verify() {
		return nil
	}
	if r.ctx.Err() != nil {
		res := r.endWith(context.Cause(r.ctx))
		return &res
	}
	if r.lastSteer() {
		return nil
	}
	if r.refusal != "" {
		return ended(StateRefused, r.refusal)
	}
	return ended(StateDone, "")
}

// closeEarly puts the turn of a run that ends now into the history, so that the
// next request tells all that happened and every call has its answer.
func (r *run) closeEarly(t *turn) {
	t.writeAnswers(t.runCalls(t.toHistory()))
	if len(t.dropped) > 0 {
		r.s.addNote("Not executed, because it came after a command whose result you had not seen: " + strings.Join(t.dropped, "; "))
	}
	r.count(t)
}

// bound says which bound the next turn would break.
func (r *run) bound(n int) string {
	c := &r.cfg
	switch {
	case n-r.base > c.MaxTurns:
		return fmt.Sprintf("stopped after %d turns (max_turns); raise it or give the rest as a new task", c.MaxTurns)
	case c.MaxTokens > 0 && r.usage.InputTokens+r.usage.OutputTokens-r.spent.InputTokens-r.spent.OutputTokens >= c.MaxTokens:
		return fmt.Sprintf("stopped after %d tokens (max_tokens)", r.usage.InputTokens+r.usage.OutputTokens)
	case c.MaxCost > 0 && r.usage.Cost-r.spent.Cost >= c.MaxCost:
		return fmt.Sprintf("stopped at a cost of %.4f (max_cost)", r.usage.Cost)
	}
	return ""
}

// stuck says that the same call failed three times without an applied change
// in between.
func (r *run) stuck(t *turn) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sig := range t.failedSignatures() {
		r.failures[sig]++
		if r.failures[sig] >= sameFailures {
			return fmt.Sprintf("stopped: the model sent the same failing call %d times in a row (%s)", sameFailures, t.failureText())
		}
	}
	return ""
}

// changed notes an applied change.
func (r *run) changed(ch *workspace.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.rememberChange(ch)
	r.changes++
	clear(r.failures)
	r.changedBySub(ch)
	for _, f := range changedFiles(ch) {
		r.files[f]++
	}
}

// unchanged notes that an applied change was taken back.
func (r *run) unchanged(x *executed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range x.files {
		r.s.rememberUndone(f)
		if r.files[f]--; r.files[f] <= 0 {
			delete(r.files, f)
		}
	}
	if r.parent != nil {
		r.parent.r.unchanged(x)
	}
}

func changedFiles(ch *workspace.Change) []string {
	if ch.Dest != nil {
		return []string{ch.Target.Display, ch.Dest.Display}
	}
	return []string{ch.Target.Display}
}

func (r *run) count(t *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied += len(t.applied)
	r.skipped += len(t.skipped)
	if t.failed != nil {
		r.failed++
	}
}

// endWith ends the run for an error of the provider or of its context.
func (r *run) endWith(err error) RunResult {
	var tooLarge *errTooLarge
	switch {
	case errors.Is(err, errWall):
		return r.end(StateStopped, fmt.Sprintf("stopped after %s (max_wall)", r.cfg.MaxWall))
	case r.ctx.Err() != nil:
		return r.end(StateCancelled, "what was applied stays")
	case errors.As(err, &tooLarge):
		return r.end(StateStopped, err.Error())
	}
	return r.end(StateFailed, err.Error())
}

func (r *run) end(state State, reason string) RunResult {
	defer r.over.Store(true)
	r.checkpoint(int(r.turnNo.Load()))
	r.mu.Lock()
	res := RunResult{
		Run: r.id, Session: r.s.id, State: state, Reason: reason, Text: r.text, Turns: int(r.turnNo.Load()), Usage: r.usage,
		Applied: r.applied, Failed: r.failed, Skipped: r.skipped, Verify: r.verified,
	}
	for f := range r.files {
		res.Files = append(res.Files, filepath.ToSlash(f))
	}
	r.mu.Unlock()
	slices.Sort(res.Files)
	res = safeResult(r.e.redact, res)
	reason = res.Reason
	typ := RunCompleted
	switch state {
	case StateFailed, StateStopped, StateRefused:
		typ = RunFailed
	case StateCancelled:
		typ = RunCancelled
	case StateSuspended:
		typ = RunSuspended
	}
	r.traced(res)
	r.e.log.Info("run ended", "run", r.id, "session", r.s.id, "state", state, "turns", res.Turns, "applied", res.Applied, "failed", res.Failed,
		"input", res.Usage.InputTokens, "output", res.Usage.OutputTokens, "ms", r.e.now().Sub(r.started).Milliseconds())
	r.e.release(r)
	flush := r.recordEnd(&res)
	r.emit.emit(Event{Type: typ, Result: &res, Usage: &res.Usage, Reason: reason})
	flush()
	return res
}

func (r *run) close() {
	r.wall.stop()
	r.previews.stop()
	r.cancel(nil)
}

// refuse notes that a permission was needed which nobody could give.
func (r *run) refuse(reason string, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == "" {
		r.refusal = reason
	}
	r.stopAfter = r.stopAfter || again
}

func (r *run) refusedTwice() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopAfter
}

// takeSteer puts messages that came meanwhile into the history.
func (r *run) takeSteer() bool {
	r.mu.Lock()
	texts := r.steer
	r.steer = nil
	r.mu.Unlock()
	for _, text := range texts {
		r.s.learn(text, "a message of the user")
		r.s.rememberTask(text)
		r.s.append(Message{Role: RoleUser, Content: text})
	}
	return len(texts) > 0
}

// lastSteer takes what came at the last moment; if nothing did, the run takes
// no more, so that no message is accepted and then lost.
func (r *run) lastSteer() bool {
	if r.takeSteer() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsteered = len(r.steer) == 0
	return !r.unsteered
}

func (r *run) isSteered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steer) > 0
}

// nextBadKey makes a key for a tag without a usable id, so that it can be
// recorded: below zero, where no command is.
func (r *run) nextBadKey(k ledger.Key) ledger.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.badKeys++
	k.ID = -r.badKeys
	return k
}

// resolve finds the real targets of an operation: path, then dest.
func (r *run) resolve(op workspace.Op) ([]workspace.Target, error) {
	access := workspace.AccessWrite
	switch op.Kind {
	case workspace.OpDelete, workspace.OpMove: // the entry itself goes away
		access = workspace.AccessDelete
	case workspace.OpCopy:
		access = workspace.AccessRead
	}
	t, err := r.e.ws.Resolve(op.Path, access)
	if err != nil {
		return nil, err
	}
	out := []workspace.Target{t}
	if op.Dest != "" {
		d, err := r.e.ws.Resolve(op.Dest, workspace.AccessCreate)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// keepsTags: the history needs the text as it came.
func (r *run) keepsTags() bool { return r.cfg.History != config.HistoryStrip }

func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = s[:n] + "…"
	}
	return s
}
