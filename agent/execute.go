package agent

import (
	"context"
	"fmt"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// Codes of failures that are not the workspace's or the parser's.
const (
	codePermission = "permission_denied"
	codeRejected   = "rejected"
	codeLedger     = "ledger"
	codeWrite      = "write_failed"
	codeEditor     = "editor_refused"
	codeStale      = "stale"
	codeUncertain  = "uncertain"
	codeCancelled  = "cancelled"
	codeMode       = "mode"
)

// staleRetries is how often an edit is matched again on a document that moved
// on while it was being sent.
const staleRetries = 3

// executed is an applied command that can be rolled back.
type executed struct {
	key   ledger.Key
	cmd   *parser.Command
	undo  workspace.Undo
	abs   []string
	files []string // as people see them
	// staged: it was only proposed.
	staged bool
}

// work is the one worker of a turn: it takes items in stream order. After the
// first failure everything is skipped, with no side effects.
func (t *turn) work() {
	for {
		it, ok := t.q.pop()
		if !ok {
			return
		}
		switch {
		case t.hasFailed():
			t.skip(it)
		case t.r.ctx.Err() != nil:
			t.cancelled(it)
		case it.err != nil:
			t.parseError(it.err)
		case it.bad != nil:
			t.badArguments(it.cmd, it.bad)
		default:
			t.execute(it.cmd, flowOf(it.cmd))
		}
	}
}

// execute runs one predictable command or a delete: permission, plan, intent,
// effect, outcome. Its failure ends the turn.
func (t *turn) execute(c *parser.Command, flow ledger.Flow) {
	r := t.r
	o := t.outcomeOf(c)
	op := operation(c)
	fail := func(code, message string) {
		o.status, o.code, o.message = string(ledger.StatusFailed), code, message
		t.record(c, o, flow)
		t.fail(o, signature(c))
	}

	targets, err := r.resolve(op)
	if err != nil {
		t.refused(c, o, flow, err)
		return
	}
	action := ActionWrite
	staging := r.stages(targets)
	if c.Name == parser.Delete && !staging { // a proposal asks by itself
		action = ActionDelete
	}
	if d := r.permit(t.key(c), action, describe(c), contentHash(c, targets), func() string { return t.previewDiff(op) }, targets...); !d.allowed {
		t.denied(c, o, flow, d)
		return
	}
	// What was approved is what runs: another target by now is refused (SE-08).
	for _, tg := range targets {
		op.Approved = append(op.Approved, tg.Abs)
	}
	for _, tg := range targets {
		op.AllowSecret = op.AllowSecret || tg.Secret
	}
	unlock, err := r.e.locks.lockFor(r.ctx, absPaths(targets))
	if err != nil {
		t.denied(c, o, flow, permit{cancelled: true, message: "the run was cancelled while another one worked on the file"})
		return
	}
	defer unlock()
	if staging {
		r.prepareStage(targets)
	}

	undone := 0
	for attempt := 0; ; attempt++ {
		op.Known, op.KnownEver = r.s.knownHash(targets[0].Abs)
		change, err := r.plan(op)
		if err != nil {
			t.refused(c, o, flow, err)
			return
		}
		if ch := change.Dest; ch != nil && ch.Protected && !targets[len(targets)-1].Protected {
			t.refused(c, o, flow, &workspace.Refusal{Code: workspace.CodeForbidden, Path: ch.Display, Message: "this puts files into a protected place (" + ch.ProtectedRule + "); move them one by one"})
			return
		}
		describeChange(&o, change)
		if r.dryRun {
			r.e.stage(change)
			o.status = string(ledger.StatusStaged)
			t.applyDone(c, o, change, "dry run")
			return
		}
		if change.Kind == workspace.ChangeNone {
			o.status = string(ledger.StatusApplied)
			t.record(c, o, flow)
			t.applyDone(c, o, change, "")
			return
		}
		key := t.key(c)
		if staging {
			if err := t.stageCommand(c, o, key, change, flow); err != nil {
				fail(codeLedger, err.Error())
				return
			}
			o.status = string(ledger.StatusStaged)
			t.ran = append(t.ran, &executed{key: key, cmd: c, undo: change.Undo(), abs: absPaths(targets), files: changedFiles(change), staged: true})
			t.applyDone(c, o, change, "review")
			r.changesUpdated(changedPath(change), true)
			return
		}
		if attempt > 0 {
			key = retryKey(key, attempt)
			o.key = key
		}
		led, err := r.ledger()
		if err != nil {
			fail(codeLedger, err.Error())
			return
		}
		if err := led.Intent(r.effectCtx(), r.intentOf(key, c, change, flow)); err != nil {
			fail(codeLedger, "the ledger could not record it, so it was not done: "+err.Error())
			return
		}
		verdict, message, size := t.effect(change)
		o.bytes = size
		switch verdict {
		case EditApplied:
			o.status = string(ledger.StatusApplied)
			r.e.noteWrites(targets)
			t.settleOutcome(led, key, o)
			r.e.trackApplied(key.String(), change)
			t.ran = append(t.ran, &executed{key: key, cmd: c, undo: change.Undo(), abs: absPaths(targets), files: changedFiles(change)})
			via := "disk"
			if r.throughEditor(change) {
				via = "editor"
			}
			t.applyDone(c, o, change, via)
			r.changesUpdated(changedPath(change), false)
			return
		case EditStale:
			if attempt < staleRetries-1 {
				stale := o
				stale.status, stale.code, stale.message = string(ledger.StatusNotApplied), codeStale, message
				t.settleOutcome(led, key, stale)
				continue
			}
			o.status, o.code = string(ledger.StatusFailed), codeStale
			o.message = fmt.Sprintf("the document changed while it was being edited, %d times in a row; read it and send the edit again", staleRetries)
		case editUndone:
			was := o
			was.status, was.code, was.message = string(ledger.StatusNotApplied), codeEditor, message
			if undone++; registry.After(registry.NotExecuted, undone) == registry.Retry {
				t.settleOutcome(led, key, was)
				continue
			}
			o = was
		case EditUncertain:
			o.status, o.code, o.message = string(ledger.StatusUncertain), codeUncertain, message
			r.e.watch(change, uncertainEdit{key: key, s: r.s, o: o})
		default:
			o.status, o.code, o.message = string(ledger.StatusFailed), codeEditor, message
			if !r.throughEditor(change) {
				o.code = codeWrite
			}
		}
		t.settleOutcome(led, key, o)
		t.completed(c, o)
		t.fail(o, signature(c))
		return
	}
}

// changedPath is the real path whose text a change leads to.
func changedPath(ch *workspace.Change) string {
	if ch.Dest != nil {
		return ch.Dest.Abs
	}
	return ch.Target.Abs
}

// reloadWait is how long a clean buffer that differs from the disk may take to
// be reloaded by its editor (case LE-22).
const reloadWait = 2 * time.Second

// plan is Plan, once more after the editor had time to reload a document that
// changed on disk.
func (r *run) plan(op workspace.Op) (*workspace.Change, error) {
	change, err := r.e.ws.Plan(op)
	ref, ok := workspace.AsRefusal(err)
	if !ok || ref.Code != workspace.CodeBufferStale {
		return change, err
	}
	t, rerr := r.e.ws.Resolve(op.Path, workspace.AccessWrite)
	if rerr != nil || !r.e.ws.AwaitReload(r.ctx, t.Abs, reloadWait) {
		return nil, err
	}
	return r.e.ws.Plan(op)
}

// effect makes the change real: through the editor for open documents, on disk
// for everything else.
func (t *turn) effect(change *workspace.Change) (EditVerdict, string, int64) {
	if t.r.throughEditor(change) {
		out := t.r.e.sendEdit(t.r.ctx, change)
		return out.Verdict, editReason(out), int64(len(change.After()))
	}
	done, err := t.r.e.ws.Commit(t.r.effectCtx(), change)
	if err != nil {
		return EditRefused, err.Error(), 0
	}
	return EditApplied, "", done.Bytes
}

// throughEditor says that the editor carries the change out: its document is
// open, or everything goes that way (setting apply: editor).
func (r *run) throughEditor(c *workspace.Change) bool {
	if c.Open || r.cfg.Apply != config.ApplyEditor || r.e.editor == nil {
		return c.Open
	}
	switch c.Kind {
	case workspace.ChangeCreate, workspace.ChangeModify, workspace.ChangeCopy:
		return true
	}
	return false
}

func editReason(o EditOutcome) string {
	switch {
	case o.Reason != "":
		return o.Reason
	case o.Verdict == EditRefused:
		return "the editor refused the edit and gave no reason; the document may be read-only"
	case o.Verdict == EditUncertain:
		return "the editor did not confirm the edit; it may or may not have landed: read the file before you go on"
	}
	return ""
}

// previewDiff is the diff that an approval shows; "" when none can be made.
func (t *turn) previewDiff(op workspace.Op) string {
	op.AllowSecret = true
	change, err := t.r.e.ws.Plan(op)
	if err != nil {
		return ""
	}
	return change.Diff(eventDiff)
}

// applyDone accounts an applied (or dry-run) command.
func (t *turn) applyDone(c *parser.Command, o outcome, change *workspace.Change, via string) {
	whole := c.Name == parser.Write || c.Name == parser.Copy || c.Name == parser.Move
	switch {
	case c.Name == parser.Move && change.Dest != nil:
		hash, ever := t.r.s.knownHash(change.Target.Abs)
		t.r.s.forget(change.Target.Abs)
		if ever {
			t.r.s.know(change.Dest.Abs, hash)
		}
	case c.Name == parser.Copy:
	default:
		t.r.s.wrote(change.Target.Abs, change.BeforeHash, change.AfterHash, whole)
	}
	t.mu.Lock()
	t.applied = append(t.applied, c.ID)
	t.mu.Unlock()
	if change.Kind != workspace.ChangeNone {
		t.r.changed(change)
		t.r.noteRules(change.Target)
	}
	o.via = via
	t.completed(c, o)
	t.keepOutcome(o)
	if c.NeedResult {
		t.addResult(o.key, fmt.Sprintf("%d %s %s", c.ID, c.Name, c.Path), o.line()+"\n"+bound(o.diff, diffPerTurn))
	}
}

// completed tells the outcome of a command to whoever watches.
func (t *turn) completed(c *parser.Command, o outcome) {
	ev := commandEvent(c)
	ev.Status, ev.Code, ev.Rung, ev.Notes = o.status, o.code, o.rung, o.notes
	ev.Added, ev.Removed, ev.Diff, ev.Created, ev.Via, ev.Bytes = o.added, o.removed, o.diff, o.created, o.via, int(o.bytes)
	if o.status != string(ledger.StatusApplied) && o.status != string(ledger.StatusStaged) {
		ev.Error = o.message
		if o.nearest != "" {
			ev.Error += "\n" + o.nearest
		}
		ev.Diff = ""
	}
	ev.Output, ev.ExitCode = o.stdout, o.exit
	at, took, ok := t.took(c)
	if ok {
		ev.Micros = took.Microseconds()
	}
	t.traceCommand(o, at)
	t.r.emit.emit(Event{Type: CommandCompleted, Command: ev})
}

func (t *turn) addResult(k ledger.Key, title, text string) {
	t.keepResult(result{k, title, registry.Text(text)})
}

func (t *turn) keepResult(r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results = append(t.results, r)
}

// effectCtx lets an effect that has begun come to its end although the run is
// cancelled: nothing is left half-written.
func (r *run) effectCtx() context.Context { return context.WithoutCancel(r.ctx) }
