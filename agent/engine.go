package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/xid"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/internal/redact"
	"thinkflow/internal/sandbox"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// Options is what an engine works with. Model, Workspace and Ledger are
// required; the rest has a useful zero value.
type Options struct {
	Config    config.Config
	Model     Model
	Workspace *workspace.Workspace
	// Ledger opens the ledger. It is called once, in the background of the
	// first request, so that it costs no start-up time.
	Ledger func(context.Context) (*ledger.Ledger, error)
	// Editor is the editor that open documents are edited through; nil = none.
	Editor Editor
	// Approver asks a person; nil = nobody is there, every ask is a no.
	Approver Approver
	// Asks is where questions are answered, for the ledger: editor, terminal, http.
	Asks string
	// Trust knows what content of the workspace a person agreed to; nil = none.
	Trust *trust.Store
	// Redact knows what must not be shown or written down; nil = nothing but
	// shapes.
	Redact *redact.Redactor
	// Tools are further native tools, asked for anew before every turn; nil =
	// none. It must not block.
	Tools func(context.Context) []ExtraTool
	// Shell says how shell commands are held.
	Shell Shell
	// Tracer hears of runs, requests and tool calls; nil = nobody.
	Tracer Tracer
	// Notice tells a person something that belongs to no run (intents of a
	// crashed process that were settled); nil = logged.
	Notice func(string)
	Log    *slog.Logger
	Now    func() time.Time
}

// Engine runs tasks in one workspace. It is safe for concurrent use; runs of
// different sessions go on side by side.
type Engine struct {
	ws       *workspace.Workspace // with proposals laid over the files
	under    *workspace.Workspace // the files and documents as they are
	review   *reviewer
	editor   Editor
	approver Approver
	asks     string // where questions are answered
	notice   func(string)
	trust    *trust.Store
	tracer   Tracer
	log      *slog.Logger
	now      func() time.Time
	locks    pathLocks
	tools    *toolbox // built in
	extra    func(context.Context) []ExtraTool
	redact   *redact.Redactor
	shell    Shell
	box      func() *sandbox.Sandbox
	held     time.Duration // see leftHolds

	openLedger func() (*ledger.Ledger, error)
	hasLedger  bool

	mu       sync.Mutex // guards all below
	cfg      config.Config
	rules    *policy.Engine // of cfg
	model    Model
	sessions map[string]*session
	runs     map[string]*run

	writes       map[string]time.Time // own changes of protected paths
	ledgerOpened bool
	opened       *ledger.Ledger // once that has come to its end
	toldLedger   string         // what was told about the ledger's file
	uncertain    map[*workspace.Change]uncertainEdit
	untrusted    map[string]string         // path → what was told about it
	toldProfiles bool                      // what is wrong in the user's profiles
	extended     *registry.Registry[*turn] // the tools of the last request of any run
	toldTools    []string                  // tools that were told to be left out
	contexts     map[string]int            // tokens, by model, as the endpoint told; 0 = asked
}

// New makes an engine.
func New(o Options) *Engine {
	e := &Engine{
		cfg: o.Config, model: o.Model, ws: o.Workspace.Overlay(), under: o.Workspace, review: newReviewer(), editor: o.Editor, approver: o.Approver, asks: o.Asks,
		notice: o.Notice, trust: o.Trust, tracer: o.Tracer, log: o.Log, now: o.Now, extra: o.Tools, shell: o.Shell, rules: newRules(&o.Config), held: leftHolds,
		sessions: map[string]*session{}, runs: map[string]*run{},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.tracer == nil {
		e.tracer = noTracer{}
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.notice == nil {
		e.notice = func(s string) { e.log.Warn(s) }
	}
	if e.redact = o.Redact; e.redact == nil {
		e.redact = &redact.Redactor{}
	}
	notice := e.notice
	e.notice = func(s string) { notice(redact.Visible(e.redact.String(s))) }
	e.hasLedger = o.Ledger != nil
	e.tools = newToolbox()
	e.box = sync.OnceValue(func() *sandbox.Sandbox { return sandbox.Detect(context.Background(), sandbox.Options{}) })
	e.openLedger = sync.OnceValues(func() (*ledger.Ledger, error) {
		e.mu.Lock()
		e.ledgerOpened = true
		e.mu.Unlock()
		led, err := o.Ledger(context.Background())
		if err != nil {
			return nil, err
		}
		for _, s := range led.Settled() {
			e.notice(fmt.Sprintf("an earlier run ended in the middle of %s %s: %s", s.Tool, s.Path, s.Reason))
		}
		e.tellOf(led)
		e.mu.Lock()
		e.opened = led
		e.mu.Unlock()
		return led, nil
	})
	return e
}

// NewID makes an id for a session, run or approval: short, unique, sortable by
// time.
func NewID() string { return xid.New().String() }

// Attachment is text that is given to the model along with the task.
type Attachment struct {
	Kind string // file, selection
	Path string // as people see it
	Text string
	// StartLine and EndLine are 1-based and inclusive; 0 = the whole file.
	StartLine, EndLine int
}

// RunRequest is one user task.
type RunRequest struct {
	Run         string // id; "" = a new one
	Session     string // id of a conversation to go on with; "" = a new one
	Task        string
	Attachments []Attachment
	// DryRun plans and shows every change and makes none.
	DryRun bool
	// Events gets every event of the run, in order and never concurrently.
	Events func(Event)
	// Preview gets the bodies of commands as they grow, at most 20 times a
	// second; nil = nobody watches.
	Preview func(Preview)
}

// RunInfo describes a run that is going on.
type RunInfo struct {
	Run     string    `json:"runId"`
	Session string    `json:"session"`
	Task    string    `json:"task"`
	Turn    int       `json:"turn"`
	Started time.Time `json:"started"`
}

// ErrNoRun: there is no such run, or it has ended.
var ErrNoRun = errors.New("no such run, or it has ended")

// Run works on the task until the model asks for nothing more, a bound is hit,
// the run fails or is cancelled (ctx, or Cancel). Only a request that cannot
// be a run is an error; every other end is a result.
func (e *Engine) Run(ctx context.Context, req RunRequest) (RunResult, error) {
	if strings.TrimSpace(req.Task) == "" {
		return RunResult{}, errors.New("the task is empty: say what is to be done")
	}
	if err := e.loadSession(ctx, req.Session); err != nil {
		return RunResult{}, err
	}
	r, err := e.begin(ctx, req)
	if err != nil {
		return RunResult{}, err
	}
	defer e.finish(r)
	return r.loop(req), nil
}

// Configure sets what the runs that begin from now on work with.
func (e *Engine) Configure(c config.Config, m Model) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg, e.rules, e.model = c, newRules(&c), m
}

// begin registers a run and its session.
func (e *Engine) begin(ctx context.Context, req RunRequest) (*run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if req.Run == "" {
		req.Run = NewID()
	}
	if _, ok := e.runs[req.Run]; ok {
		return nil, fmt.Errorf("run %s is going on already; leave runId out for a new one", req.Run)
	}
	if req.Session == "" {
		req.Session = NewID()
	}
	s := e.session(req.Session)
	if s.running {
		return nil, fmt.Errorf("session %s is working on another task: wait for it, cancel it, or steer it", s.id)
	}
	s.running = true
	r := newRun(ctx, e, s, req)
	e.runs[r.id] = r
	e.review.begin(r.id, s)
	return r, nil
}

// session finds or begins a session. e.mu is held.
func (e *Engine) session(id string) *session {
	s, ok := e.sessions[id]
	if !ok {
		s = newSession(id, &e.cfg)
		e.sessions[id] = s
	}
	return s
}

func (e *Engine) finish(r *run) {
	r.close()
	e.mu.Lock()
	led := e.opened
	e.mu.Unlock()
	if led != nil { // one that is still being opened is not waited for
		e.tellOf(led)
	}
	e.release(r)
}

// tellOf tells, once, how the ledger was found, by its opening or in use.
func (e *Engine) tellOf(led *ledger.Ledger) {
	notice := led.Notice()
	e.mu.Lock()
	known := e.toldLedger == notice
	e.toldLedger = notice
	e.mu.Unlock()
	if !known {
		e.notice(notice)
	}
}

// release frees the session, before the last event is told: whoever hears it
// may begin the next task at once.
func (e *Engine) release(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs[r.id] == r {
		delete(e.runs, r.id)
		r.s.running = false
	}
}

func (e *Engine) find(id string) (*run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := e.runs[id]; ok {
		return r, nil
	}
	return nil, fmt.Errorf("run %q: %w", id, ErrNoRun)
}

// Cancel ends the run; it reports whether there was one. Applied commands stay.
func (e *Engine) Cancel(id string) bool {
	r, err := e.find(id)
	if err != nil {
		return false
	}
	r.cancel(errCancelled)
	return true
}

// Approve answers an approval that the run waits for.
func (e *Engine) Approve(id, approval string, d Decision) error {
	r, err := e.find(id)
	if err != nil {
		return err
	}
	if !r.approvals.answer(approval, d) {
		return fmt.Errorf("run %s does not wait for approval %q (any more)", id, approval)
	}
	return nil
}

// Runs lists what is going on, oldest first.
func (e *Engine) Runs() []RunInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]RunInfo, 0, len(e.runs))
	for _, r := range e.runs {
		out = append(out, RunInfo{Run: r.id, Session: r.s.id, Task: r.task, Turn: int(r.turnNo.Load()), Started: r.started})
	}
	slices.SortFunc(out, func(a, b RunInfo) int { return a.Started.Compare(b.Started) })
	return out
}

// stage lets later commands of a dry run see what an earlier one would have
// written: the planned text stands in the workspace as an open document.
func (e *Engine) stage(ch *workspace.Change) {
	switch ch.Kind {
	case workspace.ChangeCreate, workspace.ChangeModify:
		e.ws.OpenDocument(workspace.Document{Path: ch.Target.Abs, Text: ch.After()})
	}
}

// uncertainEdit is an edit that was sent to the editor and whose fate was not
// known when its command ended.
type uncertainEdit struct {
	key ledger.Key
	s   *session
	o   outcome
}

// watch keeps an uncertain edit until the editor's late reply or change.
func (e *Engine) watch(change *workspace.Change, u uncertainEdit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.uncertain == nil {
		e.uncertain = map[*workspace.Change]uncertainEdit{}
	}
	e.uncertain[change] = u
}

// Settled hears what became of an edit whose verdict had been uncertain: the
// ledger is set right, and the model is told with the next request of the
// session.
func (e *Engine) Settled(change *workspace.Change, out EditOutcome) {
	e.mu.Lock()
	u, ok := e.uncertain[change]
	delete(e.uncertain, change)
	e.mu.Unlock()
	if !ok || out.Verdict == EditUncertain {
		return
	}
	o := u.o
	o.status, o.code, o.message = string(ledger.StatusApplied), "", ""
	if out.Verdict != EditApplied {
		o.status, o.code, o.message = string(ledger.StatusNotApplied), codeEditor, editReason(out)
	}
	if led, err := e.openLedger(); err == nil {
		err := led.Outcome(ledger.Outcome{Key: u.key, Status: ledger.Status(o.status), Code: o.code, Error: o.message, Bytes: o.bytes})
		if err != nil {
			e.log.Warn("ledger: late outcome not recorded", "command", u.key.String(), "err", err)
		}
	}
	if out.Verdict == EditApplied {
		e.trackApplied(u.key.String(), change)
		u.s.wrote(change.Target.Abs, change.BeforeHash, change.AfterHash, change.Op.Kind == workspace.OpWrite)
	}
	u.s.addNote(fmt.Sprintf("%s (%s %s), whose outcome was uncertain, is now known: %s.", upperFirst(o.nth()), o.tool(), o.path, strings.ReplaceAll(o.status, "_", " ")))
}

// Close ends the background commands of all sessions, and flushes and closes
// the ledger, if it was ever opened. Runs must have ended.
func (e *Engine) Close() error {
	e.endProcesses()
	e.endTraces()
	e.mu.Lock()
	opened := e.ledgerOpened
	e.mu.Unlock()
	if !opened {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return nil //nolint:nilerr // told when it was opened
	}
	return led.Close()
}
