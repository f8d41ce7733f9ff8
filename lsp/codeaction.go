package lsp

import (
	"context"
	"fmt"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/agent"
)

// offer is one thing that a person can do with changes.
type offer struct {
	title, command string
	arg            any
}

// reviewOffers for a hunk (nil: none at the place) of a file with changes.
func reviewOffers(spelled string, f *agent.FileChanges, h *agent.Hunk, line int) []offer {
	keep, undo, keepIt, undoIt := commandKeep, commandUndo, "keep", "undo"
	if f.Staged {
		keep, undo, keepIt, undoIt = commandAccept, commandReject, "accept", "reject"
	}
	var out []offer
	sel := func(ids ...string) selectParams {
		p := selectParams{Selection: agent.Selection{Hunks: ids, Version: f.Version}}
		if len(ids) == 0 {
			p.URI = spelled
		}
		return p
	}
	if h != nil {
		what := describeHunk(h)
		out = append(out,
			offer{"ThinkFlow: " + keepIt + " this change" + what, keep, sel(h.ID)},
			offer{"ThinkFlow: " + undoIt + " this change" + what, undo, sel(h.ID)})
	}
	n := fmt.Sprintf(" (%d)", len(f.Hunks))
	return append(out,
		offer{"ThinkFlow: " + keepIt + " all changes of this file" + n, keep, sel()},
		offer{"ThinkFlow: " + undoIt + " all changes of this file" + n, undo, sel()},
		offer{"ThinkFlow: next change", commandNextHunk, placeParams{spelled, line}})
}

func describeHunk(h *agent.Hunk) string {
	added, removed := h.EndLine-h.StartLine, h.BaseEndLine-h.BaseStartLine
	switch h.Kind {
	case "create":
		return " (new file)"
	case "delete":
		return " (deleted file)"
	case "move":
		return " (moved from " + h.From + ")"
	}
	return fmt.Sprintf(" (+%d −%d)", added, removed)
}

// changesOf are the changes of one open document, as far as an engine stands.
func (s *Server) changesOf(ctx context.Context, u uri.URI) (spelled string, files []agent.FileChanges) {
	path := docPath(u)
	b := s.standing()
	if path == "" || b == nil {
		return "", nil
	}
	r, ok := b.Engine.(Reviewer)
	if !ok {
		return "", nil
	}
	release(ctx)
	ch, err := r.Changes(ctx, agent.Selection{Path: path})
	if err != nil {
		s.log.Warn("the changes of a document are not known", "path", path, "error", err)
		return "", nil
	}
	return s.spelled(path), ch.Files
}

// CodeAction offers what can be done with the changes at the cursor.
func (s *Server) CodeAction(ctx context.Context, p *protocol.CodeActionParams) ([]protocol.CommandOrCodeAction, error) {
	out := []protocol.CommandOrCodeAction{}
	spelled, files := s.changesOf(ctx, p.TextDocument.URI)
	from, to := int(p.Range.Start.Line), int(p.Range.End.Line)
	for i := range files {
		f := &files[i]
		var at *agent.Hunk
		for j := range f.Hunks {
			if h := &f.Hunks[j]; at == nil && touches(f, h, from, to) {
				at = h
			}
		}
		for _, o := range reviewOffers(spelled, f, at, to) {
			out = append(out, &protocol.Command{Title: o.title, Command: o.command, Arguments: lspArgument(o.arg)})
		}
	}
	return out, nil
}

// touches reports whether a hunk is at the lines; of removed lines, the lines
// around the place.
func touches(f *agent.FileChanges, h *agent.Hunk, from, to int) bool {
	start, end := h.StartLine, h.EndLine
	if f.Staged { // the document shows the base
		start, end = h.BaseStartLine, h.BaseEndLine
	}
	if h.Kind != "edit" {
		return true
	}
	if start == end {
		return from <= start && to >= start-1
	}
	return from < end && to >= start
}

// CodeLens shows, above each change, what can be done with it.
func (s *Server) CodeLens(ctx context.Context, p *protocol.CodeLensParams) ([]protocol.CodeLens, error) {
	out := []protocol.CodeLens{}
	spelled, files := s.changesOf(ctx, p.TextDocument.URI)
	for i := range files {
		f := &files[i]
		for j := range f.Hunks {
			h := &f.Hunks[j]
			line := h.StartLine
			if f.Staged {
				line = h.BaseStartLine
			}
			pos := protocol.Position{Line: uint32(line)}
			for _, o := range reviewOffers(spelled, f, h, line)[:2] {
				out = append(out, protocol.CodeLens{
					Range:   protocol.Range{Start: pos, End: pos},
					Command: protocol.Command{Title: o.title, Command: o.command, Arguments: lspArgument(o.arg)},
				})
			}
		}
	}
	return out, nil
}

// refreshLenses asks the client to ask again, where it shows them and can.
func (s *Server) refreshLenses() {
	if !s.clientFacts().refreshLens {
		return
	}
	go func() { // the client answers when it likes
		if err := s.client.CodeLensRefresh(s.ctx); err != nil && s.ctx.Err() == nil {
			s.log.Debug("the client did not refresh its lenses", "error", err)
		}
	}()
}
