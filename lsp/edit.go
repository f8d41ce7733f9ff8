package lsp

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"thinkflow/workspace"
)

// Constructors for the parts of a WorkspaceEdit. They exist because the Kind of
// resource operations is not filled in by the types ("kind":"" on the wire).

func createFile(u uri.URI) *protocol.CreateFile {
	// ignoreIfExists always: without it Neovim and Helix truncate a file that is
	// there. Never overwrite beside it: VS Code lets overwrite=false win.
	yes := true
	return &protocol.CreateFile{Kind: "create", URI: u, Options: &protocol.CreateFileOptions{IgnoreIfExists: &yes}}
}

func renameFile(from, to uri.URI) *protocol.RenameFile {
	return &protocol.RenameFile{Kind: "rename", OldURI: from, NewURI: to}
}

func deleteFile(u uri.URI, recursive bool) *protocol.DeleteFile {
	d := &protocol.DeleteFile{Kind: "delete", URI: u}
	if recursive {
		d.Options = &protocol.DeleteFileOptions{Recursive: &recursive}
	}
	return d
}

// textDocumentEdit holds the edits of one document; version nil means a
// document that is not open.
func textDocumentEdit(u uri.URI, version *int32, edits []protocol.TextEdit) *protocol.TextDocumentEdit {
	e := &protocol.TextDocumentEdit{Edits: make([]protocol.TextDocumentEditElement, len(edits))}
	e.TextDocument.URI, e.TextDocument.Version = u, version
	for i := range edits {
		e.Edits[i] = &edits[i]
	}
	return e
}

// plannedEdits takes the edits of a change: sorted, not overlapping, touching
// ones merged (clients disagree on the order of inserts at one place), each on
// positions that exist in the text.
func plannedEdits(t text, in []workspace.Edit) ([]edit, error) {
	out := make([]edit, 0, len(in))
	for _, e := range in {
		if e.Start < 0 || e.End < e.Start || e.End > len(t.s) {
			return nil, fmt.Errorf("edit %d-%d is outside of the text of %d bytes", e.Start, e.End, len(t.s))
		}
		out = append(out, t.widen(edit{e.Start, e.End, e.New}))
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].start < out[j].start })
	merged := out[:0]
	for _, e := range out {
		if n := len(merged); n > 0 {
			last := &merged[n-1]
			if e.start < last.end {
				return nil, fmt.Errorf("edits %d-%d and %d-%d overlap", last.start, last.end, e.start, e.end)
			}
			if e.start == last.end {
				last.end, last.repl = e.end, last.repl+e.repl
				continue
			}
		}
		merged = append(merged, e)
	}
	merged = slices.DeleteFunc(merged, func(e edit) bool { return t.s[e.start:e.end] == e.repl })
	if n := len(merged); n > 0 {
		merged[n-1] = t.beforeFinalBreak(merged[n-1])
	}
	return merged, nil
}

// beforeFinalBreak moves whole lines that are appended to the text in front of
// its final line break, which gives the same text. The position behind that
// break is valid, and Neovim up to 0.10 leaves a stray empty line for it.
func (t text) beforeFinalBreak(e edit) edit {
	br := "\n"
	if strings.HasSuffix(t.s, "\r\n") {
		br = "\r\n"
	}
	if e.start != len(t.s) || !strings.HasSuffix(t.s, br) || !strings.HasSuffix(e.repl, br) || br == "\n" && strings.HasSuffix(e.repl, "\r\n") {
		return e
	}
	at := len(t.s) - len(br)
	return edit{at, at, br + strings.TrimSuffix(e.repl, br)}
}

// widen moves the ends of an edit out of characters and line breaks: no
// position stands between '\r' and '\n' or inside a UTF-8 sequence.
func (t text) widen(e edit) edit {
	start, end := e.start, e.end
	for !t.onBoundary(start) {
		start--
	}
	for !t.onBoundary(end) {
		end++
	}
	if start == e.start && end == e.end {
		return e
	}
	return edit{start, end, t.s[start:e.start] + e.repl + t.s[e.end:end]}
}

// textEdits converts edits to client positions.
func (t text) textEdits(edits []edit, enc encoding) ([]protocol.TextEdit, error) {
	out := make([]protocol.TextEdit, len(edits))
	for i, e := range edits {
		start, err := t.position(e.start, enc)
		if err != nil {
			return nil, err
		}
		end := start
		if e.end != e.start {
			if end, err = t.position(e.end, enc); err != nil {
				return nil, err
			}
		}
		if !utf8.ValidString(e.repl) {
			return nil, fmt.Errorf("the new text at byte %d is not valid UTF-8", e.start)
		}
		out[i] = protocol.TextEdit{Range: protocol.Range{Start: start, End: end}, NewText: e.repl}
	}
	return out, nil
}

// openEdit is the WorkspaceEdit for an open document, with the version that it
// was made for. Only a client that knows no documentChanges gets unversioned
// edits.
func openEdit(snap *snapshot, edits []protocol.TextEdit, f clientFacts) protocol.WorkspaceEdit {
	u := uri.URI(snap.uri)
	if !f.documentChanges {
		return protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{u: edits}}
	}
	version := f.editVersion(snap.version)
	return protocol.WorkspaceEdit{DocumentChanges: []protocol.DocumentChange{textDocumentEdit(u, &version, edits)}}
}

// closedEdit is the WorkspaceEdit for a file that is not open (setting apply:
// editor). create: our own check found nothing at the path.
func closedEdit(u uri.URI, create bool, edits []protocol.TextEdit, f clientFacts) protocol.WorkspaceEdit {
	if !f.documentChanges {
		return protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{u: edits}}
	}
	var e protocol.WorkspaceEdit
	if create && f.create {
		e.DocumentChanges = append(e.DocumentChanges, createFile(u))
	}
	if len(edits) > 0 {
		e.DocumentChanges = append(e.DocumentChanges, textDocumentEdit(u, nil, edits))
	}
	return e
}
