package lsp

import (
	"context"
	"fmt"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/agent"
	"thinkflow/workspace"
)

// ApplyEdit implements agent.Editor. It returns once the outcome is certain, or
// certain to stay unknown; an error means that the connection is gone. One edit
// at a time is under way per document.
func (s *Server) ApplyEdit(ctx context.Context, change *workspace.Change) (agent.EditOutcome, error) {
	facts := s.clientFacts()
	if !facts.applyEdit {
		return refusedEdit("the editor does not support workspace/applyEdit"), nil
	}
	key := changeKey(change)
	leave, err := s.enter(ctx, key)
	if err != nil {
		return refusedEdit("the edit was not sent: " + err.Error()), nil
	}
	defer leave()
	if err := context.Cause(ctx); err != nil {
		return refusedEdit("the edit was not sent: " + err.Error()), nil
	}
	switch change.Kind {
	case workspace.ChangeNone:
		return agent.EditOutcome{Verdict: agent.EditApplied, Version: change.Before.Version}, nil
	case workspace.ChangeDelete, workspace.ChangeMove:
		return s.applyResource(ctx, change, facts)
	case workspace.ChangeCreate, workspace.ChangeModify, workspace.ChangeCopy:
	default:
		return refusedEdit(fmt.Sprintf("an editor cannot do %q", change.Kind)), nil
	}
	if change.Open {
		return s.applyOpen(ctx, change, key, facts)
	}
	return s.applyClosed(ctx, change, key, facts)
}

func refusedEdit(reason string) agent.EditOutcome {
	return agent.EditOutcome{Verdict: agent.EditRefused, Reason: reason}
}

// changeKey identifies the document that a change is for.
func changeKey(c *workspace.Change) string {
	if c.Open && c.Before.URI != "" {
		if u, err := uri.Parse(c.Before.URI); err == nil {
			return docKey(u)
		}
	}
	return docKey(pathURI(changePath(c)))
}

// changePath is the absolute path whose text changes.
func changePath(c *workspace.Change) string {
	if c.Kind == workspace.ChangeCopy && c.Dest != nil {
		return c.Dest.Abs
	}
	return c.Target.Abs
}

// enter waits for its turn with the document.
func (s *Server) enter(ctx context.Context, key string) (leave func(), err error) {
	s.mu.Lock()
	gate, ok := s.gates[key]
	if !ok {
		gate = make(chan struct{}, 1)
		s.gates[key] = gate
	}
	s.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.ctx.Done():
		return nil, errGone
	}
}

// applyOpen edits an open document.
func (s *Server) applyOpen(ctx context.Context, change *workspace.Change, key string, facts clientFacts) (agent.EditOutcome, error) {
	for {
		snap, ok := s.docs.get(key)
		switch {
		case !ok:
			return refusedEdit("the document is not open any more"), nil
		case snap.lost != nil:
			return refusedEdit("the editor's changes could not be followed (" + snap.lost.Error() + "); close the document and open it again"), nil
		case snap.s != change.Before.Text:
			return agent.EditOutcome{Verdict: agent.EditStale, Reason: "the document has changed", Version: snap.version}, nil
		}
		edits, err := plannedEdits(snap.text, change.Edits)
		if err == nil && len(edits) == 0 { // no-ops are never sent
			return agent.EditOutcome{Verdict: agent.EditApplied, Version: snap.version}, nil
		}
		var positioned []protocol.TextEdit
		if err == nil {
			positioned, err = snap.textEdits(edits, facts.encoding)
		}
		if err != nil {
			return refusedEdit("the edit cannot be expressed: " + err.Error()), nil
		}
		c := newConfirmation(s.clock, snap, edits, s.settledLater(change))
		now, stop := s.docs.watch(key, c.changed)
		if now != snap { // it changed while the edit was being made
			stop()
			continue
		}
		c.onEnd(stop)
		return s.send(ctx, change, c, openEdit(snap, positioned, facts))
	}
}

// settledLater passes on what became of an edit that had been uncertain.
func (s *Server) settledLater(change *workspace.Change) func(agent.EditOutcome) {
	return func(out agent.EditOutcome) {
		s.log.Info("an uncertain edit is settled", "path", change.Target.Display, "verdict", out.Verdict)
		if b := s.standing(); b != nil && b.Settled != nil {
			b.Settled(change, out)
		}
	}
}

// send makes the request and waits for the verdict. The request has no label:
// Neovim prints it, and two prints make it wait for a key.
func (s *Server) send(ctx context.Context, change *workspace.Change, c *confirmation, e protocol.WorkspaceEdit) (agent.EditOutcome, error) {
	c.begin()
	go func() {
		var res *protocol.ApplyWorkspaceEditResult
		// The connection's context: the request is not taken back when the run
		// is cancelled, because its reply tells what became of the edit.
		_, err := s.conn.Call(s.ctx, protocol.MethodWorkspaceApplyEdit, &protocol.ApplyWorkspaceEditParams{Edit: e}, &res)
		c.replied(res, err)
		s.log.Debug(logAnswered, "path", change.Target.Display, "error", err)
	}()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.giveUp("the run was cancelled while the edit was under way")
	case <-s.ctx.Done():
		c.giveUp("the editor hung up while the edit was under way")
	}
	out := c.outcome()
	if out.Verdict == agent.EditUncertain && s.ctx.Err() != nil {
		return out, errGone
	}
	return out, nil
}

// logAnswered is logged when the reply to an applyEdit has been taken in.
const logAnswered = "applyEdit answered"
