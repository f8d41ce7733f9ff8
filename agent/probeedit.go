package agent

import (
	"context"

	"thinkflow/agent/registry"
	"thinkflow/workspace"
)

// sendEdit lets the editor carry out a change. An edit without a certain answer
// is looked for: what stands in the document, or on disk, counts.
func (e *Engine) sendEdit(ctx context.Context, change *workspace.Change) EditOutcome {
	if e.editor == nil {
		return EditOutcome{Verdict: EditRefused, Reason: "the document is open in an editor that cannot be reached"}
	}
	out, err := e.editor.ApplyEdit(ctx, change)
	switch {
	case err != nil && ctx.Err() != nil:
		out = EditOutcome{Verdict: EditUncertain, Reason: "the run was cancelled while the editor had not yet answered"}
	case err != nil:
		out = EditOutcome{Verdict: EditUncertain, Reason: "the editor did not answer: " + err.Error()}
	}
	if out.Verdict == EditUncertain {
		switch e.probeEdit(change, out) {
		case registry.Succeeded:
			out.Verdict, out.Reason = EditApplied, ""
		case registry.NotExecuted:
			out.Verdict = editUndone
		}
	}
	return out
}

// editUndone is the verdict over an edit that is known not to have happened, and
// of which nothing is still to come.
const editUndone EditVerdict = "undone"

// probeEdit finds out what became of an edit whose fate the editor did not tell.
// The text after it says that it was done. The text before it proves nothing as
// long as the editor may still come to it: only when its request is over.
func (e *Engine) probeEdit(change *workspace.Change, out EditOutcome) registry.Verdict {
	var before, after bool
	switch change.Kind {
	case workspace.ChangeCreate, workspace.ChangeModify:
		hash, exists, ok := e.hashNow(change.Target)
		after = ok && exists && hash == change.AfterHash
		before = ok && (change.Kind == workspace.ChangeCreate && !exists || change.Kind == workspace.ChangeModify && exists && hash == change.BeforeHash)
	case workspace.ChangeDelete, workspace.ChangeMove:
		_, there, err := workspace.ProbeFile(change.Target.Abs)
		before, after = err == nil && there, err == nil && !there
		if change.Kind == workspace.ChangeMove && change.Dest != nil {
			_, moved, err := workspace.ProbeFile(change.Dest.Abs)
			before, after = before && err == nil && !moved, after && err == nil && moved
		}
	}
	switch {
	case after:
		return registry.Succeeded
	case before && out.Over:
		return registry.NotExecuted
	}
	return registry.VerdictUnknown
}

// hashNow is the hash of the text of a document or file as it is.
func (e *Engine) hashNow(t workspace.Target) (hash string, exists, ok bool) {
	now, err := e.under.Resolve(t.Abs, workspace.AccessRead)
	if err != nil {
		return "", false, false
	}
	snap, err := e.under.Snapshot(now)
	return snap.Hash, snap.Exists, err == nil
}
