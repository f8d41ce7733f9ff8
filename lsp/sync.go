package lsp

import (
	"context"

	"go.lsp.dev/protocol"
)

// didOpen is served from the raw params, because only they show how the client
// spells the URI.
func (s *Server) didOpen(raw []byte) error {
	var p protocol.DidOpenTextDocumentParams
	if err := protocol.Unmarshal(raw, &p); err != nil {
		return err
	}
	d := p.TextDocument
	return s.docs.apply(modification{
		cause: opened, uri: d.URI, spelled: spelledURI(raw, d.URI),
		language: string(d.LanguageID), version: d.Version, text: d.Text,
	})
}

// DidChange applies the changes of one notification.
func (s *Server) DidChange(_ context.Context, p *protocol.DidChangeTextDocumentParams) error {
	changes := make([]contentChange, 0, len(p.ContentChanges))
	for _, c := range p.ContentChanges {
		switch c := c.(type) {
		case *protocol.TextDocumentContentChangePartial:
			changes = append(changes, contentChange{span: c.Range, text: c.Text})
		case *protocol.TextDocumentContentChangeWholeDocument:
			changes = append(changes, contentChange{whole: true, text: c.Text})
		}
	}
	return s.docs.apply(modification{cause: changed, uri: p.TextDocument.URI, version: p.TextDocument.Version, changes: changes})
}

// DidSave notes that the text is on disk now.
func (s *Server) DidSave(_ context.Context, p *protocol.DidSaveTextDocumentParams) error {
	return s.docs.apply(modification{cause: saved, uri: p.TextDocument.URI})
}

// DidClose forgets the document; the disk counts again.
func (s *Server) DidClose(_ context.Context, p *protocol.DidCloseTextDocumentParams) error {
	return s.docs.apply(modification{cause: closed, uri: p.TextDocument.URI})
}
