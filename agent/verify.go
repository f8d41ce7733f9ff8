package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"thinkflow/internal/config"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// headVerify heads the message that tells the model what its changes broke.
const headVerify = "[THINKFLOW VERIFY]"

// verifyRounds is how often a failing verify command is told to the model.
const verifyRounds = 2

// verifyFile holds the workspace's own verify command. It counts only once its
// content is trusted.
const verifyFile = ".thinkflow/verify"

// verifier is what a run knows of the state before its changes.
type verifier struct {
	before  chan map[errorKey]int // diagnostics before the first change; closed without one = unknown
	changes int                   // the count of changes at the last check
	told    int                   // how often something was told
}

// beginVerify notes the diagnostics before the first change, beside the first
// request.
func (r *run) beginVerify() {
	if r.dryRun || r.cfg.Verify != config.VerifyDiagnostics {
		return
	}
	d, err := r.e.diagnoser()
	if err != nil {
		return
	}
	before := make(chan map[errorKey]int, 1)
	r.check.before = before
	go func() {
		defer close(before)
		ctx, cancel := context.WithTimeout(r.ctx, settleMost)
		defer cancel()
		if list, err := d.Diagnostics(ctx, nil); err == nil {
			before <- errorCounts(list)
		}
	}()
}

// verify checks what was changed since the last check, when the model has ended.
// It reports whether the model was told something, so that a turn must follow.
func (r *run) verify() bool {
	r.mu.Lock()
	changes := r.changes
	r.mu.Unlock()
	if r.dryRun || changes == r.check.changes || r.ctx.Err() != nil {
		return false
	}
	r.check.changes = changes
	switch r.cfg.Verify {
	case config.VerifyDiagnostics:
		return r.verifyDiagnostics()
	case config.VerifyCommand:
		return r.verifyCommand()
	}
	return false
}

// verifyDiagnostics tells the new errors in changed files, once in a run.
func (r *run) verifyDiagnostics() bool {
	d, err := r.e.diagnoser()
	if err != nil || r.check.before == nil {
		return false
	}
	var before map[errorKey]int
	select {
	case before = <-r.check.before:
	case <-r.ctx.Done():
	}
	if before == nil {
		return false // what is new cannot be told
	}
	r.check.before = nil // once
	paths := r.changedPaths()
	if len(paths) == 0 {
		return false
	}
	tool := ToolEvent{CallID: "verify", Name: "verify", Summary: "new errors in the editor"}
	r.emit.emit(Event{Type: ToolStarted, Tool: &tool})
	done := ToolEvent{CallID: tool.CallID, Name: tool.Name, Status: "ok", Summary: "no new errors"}
	defer func() { r.emit.emit(Event{Type: ToolCompleted, Tool: &done}) }()
	list, err := settled(r.ctx, d, paths)
	if err != nil {
		r.e.log.Warn("verify: no diagnostics", "run", r.id, "err", err)
		done.Status, done.Summary, done.Error = "error", "", "the editor did not tell its errors"
		return false
	}
	fresh := r.readable(newErrors(list, before), "")
	if len(fresh) == 0 {
		r.verified = "no new errors"
		return false
	}
	text := cutText(renderDiagnostics(fresh), keepWhole)
	many := fmt.Sprintf("%d new errors", len(fresh))
	if len(fresh) == 1 {
		many = "1 new error"
	}
	r.verified = many + " told to the model"
	done.Status, done.Summary, done.Error = "error", many, firstLine(text)
	r.s.trouble("diagnostics", fmt.Sprintf("%d new errors in changed files, the first: %s", len(fresh), firstLine(text)))
	r.tellVerify(ledger.Key{}, fmt.Sprintf("Your changes brought new errors in the editor:\n%sMend them, or say why they are to stay.\n", fenceData("diagnostics", text)))
	return true
}

// changedPaths are the files that were changed and are still there.
func (r *run) changedPaths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for f := range r.files {
		if t, err := r.e.ws.Resolve(f, workspace.AccessRead); err == nil && t.Exists && !t.IsDir {
			out = append(out, t.Abs)
		}
	}
	return out
}

// verifyCommand runs the verify command and tells the model when it fails.
func (r *run) verifyCommand() bool {
	cmd := r.verifyLine()
	if cmd == "" || r.barred(ActionBash) != "" {
		return false
	}
	key := ledger.Key{Run: r.id, Turn: int(r.turnNo.Load()), Channel: "verify", ID: 1}
	led, err := r.ledger()
	if err == nil {
		err = led.Intent(r.effectCtx(), ledger.Intent{Key: key, Tool: "verify", Cmd: cmd, Flow: ledger.FlowBlocking, Risk: "high", ContentHash: workspace.HashText(cmd)})
	}
	if err != nil {
		r.e.log.Warn("verify: the ledger could not record it, so it was not run", "err", err)
		return false
	}
	tool := ToolEvent{CallID: "verify", Name: "verify", Arguments: fmt.Sprintf("%q", cmd), Summary: oneLine(cmd, 80)}
	r.emit.emit(Event{Type: ToolStarted, Tool: &tool})
	res := r.shell(key, cmd, func(out string) {
		r.emit.emit(Event{Type: ToolOutput, Text: out, Tool: &ToolEvent{CallID: "verify", Name: "verify"}})
	})
	ok := res.killed == "" && res.exit != nil && *res.exit == 0
	done := tool
	done.Arguments, done.Status, done.Bytes = "", "ok", len(res.output)
	out := ledger.Outcome{Key: key, Status: ledger.StatusApplied, Output: cameBack(res.output), Stdout: res.output, Bytes: int64(len(res.output)), ExitCode: res.exit}
	if res.killed != "" {
		out.Status, out.Code, out.Error = ledger.StatusUncertain, "killed", res.state()
	}
	if !ok {
		done.Status, done.Error = "error", res.state()
	}
	r.emit.emit(Event{Type: ToolCompleted, Tool: &done})
	if err := led.Outcome(out); err != nil {
		r.e.log.Warn("ledger: outcome not recorded", "command", key.String(), "err", err)
	}
	r.s.ran(cmd, res)
	r.s.learn(res.output, "the output of the verify command")
	r.verified = fmt.Sprintf("%s: %s", oneLine(cmd, 80), res.state())
	if ok || r.ctx.Err() != nil || r.check.told >= verifyRounds {
		return false
	}
	r.check.told++
	r.tellVerify(key, fmt.Sprintf("After your last change the user's check failed: %s ended with %s.\n%sMend what your changes broke; if it failed before them, say so and end.\n",
		oneLine(cmd, 200), res.state(), fenceData("output", middle(res.output, keepWhole*2))))
	return true
}

// tellVerify puts a check's result into the history, with what else the model
// has not been told.
func (r *run) tellVerify(about ledger.Key, text string) {
	r.tellPendingWith(headVerify+"\n"+text, about)
}

// verifyLine is the command to run: the user's own, else the workspace's if it
// is trusted.
func (r *run) verifyLine() string {
	if r.cfg.VerifyCommand != "" {
		return r.cfg.VerifyCommand
	}
	for _, root := range r.e.ws.Roots() {
		t, err := r.e.ws.Resolve(filepath.Join(root.Dir, filepath.FromSlash(verifyFile)), workspace.AccessRead)
		if err != nil || !t.Exists || t.IsDir {
			continue
		}
		snap, err := r.e.ws.Snapshot(t)
		if err == nil && r.trusted(trust.Verify, t.Abs, snap.Text) {
			return strings.TrimSpace(snap.Text)
		}
	}
	return ""
}
