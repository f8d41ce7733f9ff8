package lsp

import (
	"slices"

	"go.lsp.dev/protocol"
)

// clientFacts is what matters to us of what the client said in initialize.
type clientFacts struct {
	name, version string
	encoding      encoding

	applyEdit       bool // workspace/applyEdit at all
	documentChanges bool // versioned edits
	// neovim: never checks an edit of version 0, see editVersion.
	neovim        bool
	create        bool // CreateFile and so on in a WorkspaceEdit
	rename        bool
	delete        bool
	progress      bool // window/workDoneProgress/create
	showDocument  bool
	configuration bool // workspace/configuration
	codeLens      bool // textDocument/codeLens: they are shown
	refreshLens   bool // and asked for again when we say so
	// events: the client is a ThinkFlow plugin (it named the protocol version
	// that it speaks) and gets thinkflow/event for every run.
	events bool
	// diagnostics: the plugin answers thinkflow/diagnostics.
	diagnostics bool
	// approves: the plugin asks the person itself and answers with
	// thinkflow/approve, so no message request is sent.
	approves bool
}

// factsOf reads the capabilities. Neovim handles documentChanges in every
// version and advertises them in none; it does list resource operations, which
// exist only inside documentChanges, so those imply them.
func factsOf(p *protocol.InitializeParams, o initOptions) clientFacts {
	f := clientFacts{name: p.ClientInfo.Name, encoding: utf16Units, events: o.Protocol > 0, approves: o.Approvals, diagnostics: o.Diagnostics}
	f.version, _ = p.ClientInfo.Version.Get()
	if g := p.Capabilities.General; g != nil {
		f.encoding = chooseEncoding(g.PositionEncodings)
	}
	if w := p.Capabilities.Window; w != nil {
		f.progress = isTrue(w.WorkDoneProgress)
		f.showDocument = w.ShowDocument != nil && w.ShowDocument.Support
	}
	if t := p.Capabilities.TextDocument; t != nil {
		f.codeLens = t.CodeLens != nil
	}
	w := p.Capabilities.Workspace
	if w == nil {
		return f
	}
	f.refreshLens = f.codeLens && w.CodeLens != nil && isTrue(w.CodeLens.RefreshSupport)
	f.applyEdit = isTrue(w.ApplyEdit)
	f.configuration = isTrue(w.Configuration)
	if e := w.WorkspaceEdit; e != nil {
		f.create = slices.Contains(e.ResourceOperations, protocol.ResourceOperationKindCreate)
		f.rename = slices.Contains(e.ResourceOperations, protocol.ResourceOperationKindRename)
		f.delete = slices.Contains(e.ResourceOperations, protocol.ResourceOperationKindDelete)
		f.documentChanges = isTrue(e.DocumentChanges) || len(e.ResourceOperations) > 0
		f.neovim = !isTrue(e.DocumentChanges) && len(e.ResourceOperations) > 0
	}
	return f
}

func isTrue(b *bool) bool { return b != nil && *b }

// editVersion is the version to send for an edit of a document of version v.
// Neovim opens documents with version 0 and never checks an edit of version 0,
// so that an edit that comes after unreported typing would land in the wrong
// place. It applies edits of newer versions and skips those of older ones;
// after any change it counts from 2 on, so 1 stands for the text that it opened.
func (f clientFacts) editVersion(v int32) int32 {
	if f.neovim && v == 0 {
		return 1
	}
	return v
}
