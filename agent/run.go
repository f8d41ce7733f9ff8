package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/ledger"
)

// Reasons for which a run's context ends.
var (
	errCancelled = errors.New("cancelled")
	errWall      = errors.New("the time for this run is over")
	errTaskTime  = errors.New("the time for this sub-agent is over")
)

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

	traced      func(RunResult)
	parent      *parent // of a sub-agent; nil = the user's own run
	approvals   *approvals
	persons     personClock
	previews    *previewer
	ledger      func() (*ledger.Ledger, error)
	lastLedger  func(time.Duration) (*ledger.Ledger, error)
	journal     *journal
	needsLedger atomic.Bool // a command could not be done for want of it

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
	if err := r.unrecordable(); err != nil {
		return ended(StateFailed, err.Error())
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

// keepsTags: the history needs the text as it came.
func (r *run) keepsTags() bool { return r.cfg.History != config.HistoryStrip }

func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = s[:n] + "…"
	}
	return s
}
