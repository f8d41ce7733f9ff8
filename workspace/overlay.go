package workspace

import "sort"

// Overlay is a workspace that lies over this one: it sees the same roots, files
// and open documents, and in front of them the texts that were given to Stage.
// Plans, reads and searches see those; nothing reaches a file or a document.
// It is how proposals that nobody accepted yet build on each other.
func (w *Workspace) Overlay() *Workspace {
	if w == nil {
		return nil
	}
	docs := newDocuments()
	docs.parent, docs.gone, docs.hashes = w.docs, map[string]bool{}, w.docs.hashes
	return &Workspace{opts: w.opts, rules: w.rules, docs: docs, inPlace: map[string]bool{}, parent: w}
}

// Under is the workspace that an overlay lies over, else w itself.
func (w *Workspace) Under() *Workspace {
	if w.parent != nil {
		return w.parent
	}
	return w
}

// Stage puts a text in front of the file at abs (a real path), or, when exists
// is false, hides that there is one.
func (w *Workspace) Stage(abs, text string, exists bool) {
	w.docs.removeStaged(abs)
	if !exists {
		w.docs.mu.Lock()
		w.docs.gone[samePathKey(abs)] = true
		w.docs.mu.Unlock()
		return
	}
	doc := &document{Document: Document{Path: abs, Text: text, Dirty: true}, key: samePathKey(abs), real: abs}
	if under, ok := w.docs.parent.find(abs); ok {
		doc.URI, doc.Version = under.URI, under.Version
	}
	w.docs.put(doc)
}

// Unstage lets the file at abs be seen as it is again.
func (w *Workspace) Unstage(abs string) { w.docs.removeStaged(abs) }

// Staged reports whether something was staged for the file at abs.
func (w *Workspace) Staged(abs string) bool {
	if w.docs.parent == nil {
		return false
	}
	_, ok := w.docs.findOwn([]string{abs})
	return ok || w.docs.isGone(abs)
}

func (s *documents) removeStaged(abs string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := samePathKey(abs)
	delete(s.gone, key)
	s.removeLocked(key)
	s.hashes.forget(key)
}

// isGone reports whether an overlay hides the file.
func (s *documents) isGone(abs string) bool {
	if s.parent == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.gone) > 0 && s.gone[samePathKey(abs)]
}

// findOver looks at the overlay first.
func (s *documents) findOver(paths []string) (*document, bool) {
	if d, ok := s.findOwn(paths); ok {
		return d, true
	}
	d, ok := s.parent.find(paths...)
	if !ok {
		return nil, false
	}
	if s.isGone(d.real) {
		return nil, false
	}
	// The document may be open through a link, the proposal be for what it
	// leads to.
	if own, ok := s.findOwn([]string{d.real}); ok {
		return own, true
	}
	return d, true
}

// documentsOver lists the documents as the overlay shows them.
func (w *Workspace) documentsOver() []Document {
	var out []Document
	w.docs.mu.RLock()
	for _, d := range w.docs.byPath {
		out = append(out, d.Document)
	}
	w.docs.mu.RUnlock()
	for _, d := range w.parent.Documents() {
		under, ok := w.parent.docs.find(d.Path)
		if ok && !w.Staged(under.real) {
			out = append(out, d)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// staged tells what the overlay says of a target that was found on disk.
func (w *Workspace) staged(t *Target) {
	switch {
	case w.docs.parent == nil:
	case w.docs.isGone(t.Abs):
		t.Exists, t.IsDir, t.IsLink = false, false, false
	case !t.Exists:
		_, t.Exists = w.docs.findOwn([]string{t.Abs})
	}
}
