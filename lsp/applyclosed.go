package lsp

import (
	"context"
	"fmt"
	"os"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/agent"
	"thinkflow/workspace"
)

// applyClosed sends the change of a file that is not open (setting apply:
// editor). The client opens it, usually as an unsaved buffer: if it tells us of
// that document, the text decides; if it does not, its word is all there is.
func (s *Server) applyClosed(ctx context.Context, change *workspace.Change, key string, facts clientFacts) (agent.EditOutcome, error) {
	path := changePath(change)
	create := change.Kind != workspace.ChangeModify
	before := change.Before.Text
	if create {
		if _, err := os.Lstat(path); err == nil {
			return agent.EditOutcome{Verdict: agent.EditStale, Reason: "a file is there now"}, nil
		}
		before = ""
	}
	snap := &snapshot{text: newText(before), key: key, path: path, version: -1, hash: new(lazyHash)}
	edits, err := plannedEdits(snap.text, change.Edits)
	if change.Kind == workspace.ChangeCopy {
		edits, err = plannedEdits(snap.text, []workspace.Edit{{New: change.After()}})
	}
	var positioned []protocol.TextEdit
	if err == nil && utf8.ValidString(before) {
		positioned, err = snap.textEdits(edits, facts.encoding)
	}
	if err != nil {
		return refusedEdit("the edit cannot be expressed: " + err.Error()), nil
	}
	if len(edits) == 0 && !create {
		return agent.EditOutcome{Verdict: agent.EditApplied}, nil
	}
	c := newConfirmation(s.clock, snap, edits, s.settledLater(change))
	c.unseen = true
	now, stop := s.docs.watch(key, c.changed)
	if now != nil { // the person opened it meanwhile
		stop()
		return agent.EditOutcome{Verdict: agent.EditStale, Reason: "the file is open now", Version: now.version}, nil
	}
	c.onEnd(stop)
	return s.send(ctx, change, c, closedEdit(pathURI(path), create, positioned, facts))
}

// applyResource moves or deletes an open document through the client, which
// does it on disk before it answers: the disk shows whether it did.
func (s *Server) applyResource(ctx context.Context, change *workspace.Change, facts clientFacts) (agent.EditOutcome, error) {
	u := pathURI(change.Target.Abs)
	if snap, ok := s.docs.get(changeKey(change)); ok {
		u = uri.URI(snap.uri)
	}
	var op protocol.DocumentChange
	switch {
	case change.Kind == workspace.ChangeDelete && facts.delete:
		op = deleteFile(u, change.Target.IsDir)
	case change.Kind == workspace.ChangeMove && facts.rename && change.Dest != nil:
		op = renameFile(u, pathURI(change.Dest.Abs))
	default:
		return refusedEdit(fmt.Sprintf("the editor has no operation for %s: save and close the document first", change.Kind)), nil
	}
	ctx, cancel := joined(ctx, s.ctx)
	defer cancel()
	var res *protocol.ApplyWorkspaceEditResult
	_, err := s.conn.Call(ctx, protocol.MethodWorkspaceApplyEdit, &protocol.ApplyWorkspaceEditParams{
		Edit: protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{op}},
	}, &res)
	_, gone := os.Lstat(change.Target.Abs)
	done := os.IsNotExist(gone)
	if done && change.Dest != nil {
		_, there := os.Lstat(change.Dest.Abs)
		done = there == nil
	}
	switch {
	case done:
		return agent.EditOutcome{Verdict: agent.EditApplied}, nil
	case s.ctx.Err() != nil:
		return agent.EditOutcome{Verdict: agent.EditUncertain, Reason: errGone.Error()}, errGone
	case ctx.Err() != nil:
		return agent.EditOutcome{Verdict: agent.EditUncertain, Reason: "the run was cancelled before the editor answered"}, nil
	case err != nil:
		return refusedEdit(err.Error()), nil
	case res == nil || !res.Applied:
		reason := "the editor refused it"
		if res != nil && res.FailureReason != nil {
			reason = *res.FailureReason
		}
		return refusedEdit(reason), nil
	}
	return agent.EditOutcome{Verdict: agent.EditUncertain, Over: true, Reason: "the editor says that it was done, but the disk does not show it"}, nil
}
