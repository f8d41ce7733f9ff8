package lsp

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.lsp.dev/uri"

	"thinkflow/agent"
)

// Bounds of what is attached to a task up front, in bytes. What is larger is
// named only, and the model reads what it needs.
const (
	maxSelection    = 64 << 10
	maxAttachedFile = 32 << 10
)

// attachments are the selection, its file and the files that the client named.
func (s *Server) attachments(p runParams) ([]agent.Attachment, error) {
	var out []agent.Attachment
	seen := map[string]bool{}
	if p.Selection != nil {
		a, key, err := s.selected(*p.Selection)
		if err != nil {
			return nil, err
		}
		if a.Text != "" {
			out = append(out, a)
		}
		seen[key] = true
		if f, ok := s.attachedFile(p.Selection.URI); ok && len(f.Text) > len(a.Text) {
			out = append(out, f)
		}
	}
	for _, spelled := range p.Files {
		u, err := parseURI(spelled)
		if err != nil {
			return nil, badParams("files: %v", err)
		}
		if key := docKey(u); !seen[key] {
			seen[key] = true
			if f, ok := s.attachedFile(spelled); ok {
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// selected cuts the selection out of its document, in whole lines. Its text is
// empty when nothing is selected or the document is neither open nor readable.
func (s *Server) selected(sel selection) (agent.Attachment, string, error) {
	u, err := parseURI(sel.URI)
	if err != nil {
		return agent.Attachment{}, "", badParams("selection: %v", err)
	}
	key := docKey(u)
	snap, ok := s.docs.get(key)
	if !ok || sel.Range.Start == sel.Range.End {
		return agent.Attachment{}, key, nil
	}
	start, err := snap.offset(sel.Range.Start, s.docs.enc)
	if err != nil {
		return agent.Attachment{}, key, badParams("selection: %v", err)
	}
	end, err := snap.offset(sel.Range.End, s.docs.enc)
	if err != nil || end < start {
		return agent.Attachment{}, key, badParams("selection: the end does not exist or is before the start")
	}
	first, from := snap.lineAt(start)
	last, lineStart := snap.lineAt(end)
	to := snap.lineEnd(end)
	if end == lineStart && end > start { // up to the start of a line: not that line
		last--
		to = snap.lineEnd(strings.LastIndexByte(snap.s[:end-1], '\n') + 1)
	}
	return agent.Attachment{
		Kind: "selection", Path: s.display(u), Text: cut(snap.s[from:to], maxSelection), StartLine: first + 1, EndLine: last + 1,
	}, key, nil
}

// attachedFile is the whole text of a document, open or on disk, if it is small
// and text.
func (s *Server) attachedFile(spelled string) (agent.Attachment, bool) {
	u, err := parseURI(spelled)
	if err != nil {
		return agent.Attachment{}, false
	}
	a := agent.Attachment{Kind: "file", Path: s.display(u)}
	if snap, ok := s.docs.get(docKey(u)); ok {
		a.Text = snap.s
	} else if path := docPath(u); path != "" {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxAttachedFile {
			return agent.Attachment{}, false
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return agent.Attachment{}, false
		}
		a.Text = string(data)
	}
	ok := a.Text != "" && len(a.Text) <= maxAttachedFile && utf8.ValidString(a.Text) && !strings.ContainsRune(a.Text, 0)
	return a, ok
}

// cut shortens a text to at most n bytes at the end of a line.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[:n]
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i]
	}
	for len(text) > 0 && !utf8.ValidString(text[max(0, len(text)-utf8.UTFMax):]) {
		text = text[:len(text)-1]
	}
	return text
}

// display is how people and models see a document.
func (s *Server) display(u uri.URI) string {
	path := docPath(u)
	if path == "" {
		return string(u)
	}
	if b := s.standing(); b != nil && b.Display != nil {
		return b.Display(path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.folders {
		if rel, err := filepath.Rel(f.root.Dir, path); err == nil && filepath.IsLocal(rel) {
			if len(s.folders) > 1 && f.root.Name != "" {
				rel = filepath.Join(f.root.Name, rel)
			}
			return filepath.ToSlash(rel)
		}
	}
	return path
}
