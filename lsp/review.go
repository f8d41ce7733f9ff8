package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/agent"
)

// Reviewer is what an engine has besides if its changes can be reviewed;
// *agent.Engine has it.
type Reviewer interface {
	Changes(ctx context.Context, sel agent.Selection) (agent.Changes, error)
	Keep(ctx context.Context, sel agent.Selection) (agent.Reviewed, error)
	Undo(ctx context.Context, sel agent.Selection) (agent.Reviewed, error)
	Content(ctx context.Context, path, side string) (text string, exists bool, err error)
	// ChangesIn is what waits in a file now, applied and proposed.
	ChangesIn(path string) []agent.ChangesEvent
	Rewind(ctx context.Context, session string, message int, dryRun bool) (agent.RewindResult, error)
}

var _ Reviewer = (*agent.Engine)(nil)

// reviewer waits for the engine and returns that side of it. It releases the
// read loop: an undo waits for the editor.
func (s *Server) reviewer(ctx context.Context) (Reviewer, error) {
	release(ctx)
	b, err := s.engine(ctx)
	if err != nil {
		return nil, fmt.Errorf("the engine could not be set up: %w", err)
	}
	if r, ok := b.Engine.(Reviewer); ok {
		return r, nil
	}
	return nil, errors.New("this engine has no review")
}

// selectParams say which changes are meant: an agent.Selection, whose path may
// be given as a URI.
type selectParams struct {
	agent.Selection
	URI string `json:"uri,omitempty"`
}

func (p *selectParams) selection() (agent.Selection, error) {
	sel := p.Selection
	sel.By = "editor"
	if p.URI != "" {
		u, err := parseURI(p.URI)
		if err != nil {
			return sel, badParams("uri: %v", err)
		}
		if sel.Path = docPath(u); sel.Path == "" {
			return sel, badParams("uri %q is no file", p.URI)
		}
	}
	return sel, nil
}

// fileChanges is agent.FileChanges with the URI as the client spells it.
type fileChanges struct {
	URI string `json:"uri"`
	agent.FileChanges
}

// changesResult is the answer to thinkflow/changes.
type changesResult struct {
	Files    []fileChanges   `json:"files"`
	Problems []agent.Problem `json:"problems,omitempty"`
}

// changes serves thinkflow/changes.
func (s *Server) changes(ctx context.Context, p selectParams) (changesResult, error) {
	r, err := s.reviewer(ctx)
	if err != nil {
		return changesResult{}, err
	}
	sel, err := p.selection()
	if err != nil {
		return changesResult{}, err
	}
	ch, err := r.Changes(ctx, sel)
	if err != nil {
		return changesResult{}, err
	}
	out := changesResult{Files: []fileChanges{}, Problems: ch.Problems}
	for _, f := range ch.Files {
		out.Files = append(out.Files, fileChanges{s.spelled(f.Abs), f})
	}
	return out, nil
}

// spelled is the URI of a file as the client spelled it, if it is open.
func (s *Server) spelled(abs string) string {
	u := pathURI(abs)
	if snap, ok := s.docs.get(docKey(u)); ok {
		return snap.uri
	}
	return string(u)
}

// keep serves thinkflow/keep and, for proposals, accepting.
func (s *Server) keep(ctx context.Context, p selectParams) (agent.Reviewed, error) {
	return s.decide(ctx, p, Reviewer.Keep)
}

// undo serves thinkflow/undo and, for proposals, rejecting.
func (s *Server) undo(ctx context.Context, p selectParams) (agent.Reviewed, error) {
	return s.decide(ctx, p, Reviewer.Undo)
}

func (s *Server) decide(ctx context.Context, p selectParams, do func(Reviewer, context.Context, agent.Selection) (agent.Reviewed, error)) (agent.Reviewed, error) {
	r, err := s.reviewer(ctx)
	if err != nil {
		return agent.Reviewed{}, err
	}
	sel, err := p.selection()
	if err != nil {
		return agent.Reviewed{}, err
	}
	res, err := do(r, ctx, sel)
	if err == nil && !sel.Preview {
		s.changed(r, res.Files)
	}
	return res, err
}

// changed tells every view that what waits in the files is another thing now:
// lenses, and changes.updated of no run, which a run does not tell because none
// of its commands did it.
func (s *Server) changed(r Reviewer, files []string) {
	s.refreshLenses()
	if !s.clientFacts().events || len(files) == 0 {
		return
	}
	for _, f := range files {
		for _, ev := range r.ChangesIn(f) {
			s.notifyOwn(notifyEvent, agent.Event{Type: agent.ChangesUpdated, Time: time.Now().UTC(), Changes: &ev})
		}
	}
}

// contentParams name one side of a file.
type contentParams struct {
	URI  string `json:"uri"`
	Side string `json:"side,omitempty"` // text, base, staged
}

// contentResult is that side; exists is false when it has no file there.
type contentResult struct {
	Text   string `json:"text"`
	Exists bool   `json:"exists"`
}

// content serves thinkflow/content.
func (s *Server) content(ctx context.Context, p contentParams) (contentResult, error) {
	r, err := s.reviewer(ctx)
	if err != nil {
		return contentResult{}, err
	}
	sel, err := (&selectParams{URI: p.URI}).selection()
	if err != nil {
		return contentResult{}, err
	}
	text, exists, err := r.Content(ctx, sel.Path, p.Side)
	return contentResult{text, exists}, err
}

// rewindParams take a session back to before a message of the user.
type rewindParams struct {
	Session string `json:"session"`
	Message int    `json:"message"` // from 1; 0 lists them
	DryRun  bool   `json:"dryRun,omitempty"`
}

// rewind serves thinkflow/rewind.
func (s *Server) rewind(ctx context.Context, p rewindParams) (agent.RewindResult, error) {
	r, err := s.reviewer(ctx)
	if err != nil {
		return agent.RewindResult{}, err
	}
	res, err := r.Rewind(ctx, p.Session, p.Message, p.DryRun)
	if err == nil && !p.DryRun {
		s.changed(r, res.Files)
	}
	return res, err
}

// reviewCommand runs one of the commands for clients without a plugin. What
// could not be done is shown, since such a client shows no result.
func (s *Server) reviewCommand(name string) ownMethod {
	return typed(func(ctx context.Context, p selectParams) (agent.Reviewed, error) {
		do := Reviewer.Keep
		if name == commandUndo || name == commandReject {
			do = Reviewer.Undo
		}
		p.Staged = p.Staged || name == commandAccept || name == commandReject
		res, err := s.decide(ctx, p, do)
		if s.clientFacts().events {
			return res, err
		}
		for _, pr := range res.Problems {
			s.show(protocol.MessageTypeWarning, "ThinkFlow: "+strings.TrimPrefix(pr.Path+": ", ": ")+pr.Reason)
		}
		return res, err
	})
}

// placeParams are a place in a document.
type placeParams struct {
	URI  string `json:"uri,omitempty"`
	Line int    `json:"line"` // from 0; the search begins behind it
}

// placeResult is where the next change is; without one, uri is empty.
type placeResult struct {
	URI   string          `json:"uri,omitempty"`
	Range *protocol.Range `json:"range,omitempty"`
	Hunk  string          `json:"hunk,omitempty"`
}

// nextHunk finds the next change behind a place, in the file, then in the files
// after it, then from the start, and shows it where the client can.
func (s *Server) nextHunk(ctx context.Context, p placeParams) (placeResult, error) {
	r, err := s.reviewer(ctx)
	if err != nil {
		return placeResult{}, err
	}
	path := ""
	if p.URI != "" {
		sel, err := (&selectParams{URI: p.URI}).selection()
		if err != nil {
			return placeResult{}, err
		}
		path = sel.Path
	}
	ch, err := r.Changes(ctx, agent.Selection{All: true})
	if err != nil {
		return placeResult{}, err
	}
	type place struct {
		abs  string
		hunk agent.Hunk
		line int
	}
	var all []place
	for _, f := range ch.Files {
		for _, h := range f.Hunks {
			line := h.StartLine
			if f.Staged {
				line = h.BaseStartLine
			}
			all = append(all, place{f.Abs, h, line})
		}
	}
	if len(all) == 0 {
		if !s.clientFacts().events {
			s.show(protocol.MessageTypeInfo, "ThinkFlow: no change waits for review")
		}
		return placeResult{}, nil
	}
	slices.SortStableFunc(all, func(a, b place) int {
		if c := strings.Compare(a.abs, b.abs); c != 0 {
			return c
		}
		return a.line - b.line
	})
	i := slices.IndexFunc(all, func(q place) bool { return q.abs > path || q.abs == path && q.line > p.Line })
	next := all[max(i, 0)]
	pos := protocol.Position{Line: uint32(next.line)}
	res := placeResult{URI: s.spelled(next.abs), Range: &protocol.Range{Start: pos, End: pos}, Hunk: next.hunk.ID}
	if !s.clientFacts().showDocument {
		if !s.clientFacts().events {
			s.show(protocol.MessageTypeInfo, fmt.Sprintf("ThinkFlow: next change in %s, line %d", filepath.Base(next.abs), next.line+1))
		}
		return res, nil
	}
	yes := true
	_, err = s.client.ShowDocument(ctx, &protocol.ShowDocumentParams{URI: uri.URI(res.URI), TakeFocus: &yes, Selection: res.Range})
	return res, err
}

// lspArgument is one argument of a command.
func lspArgument(v any) []protocol.LSPAny {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return []protocol.LSPAny{protocol.LSPAny(raw)}
}
