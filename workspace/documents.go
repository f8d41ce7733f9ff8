package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
)

// documents are the open documents, by path as the editor spells it and by
// resolved path (a file may be open through a linked folder).
type documents struct {
	mu      sync.RWMutex // guards what follows
	byPath  map[string]*document
	byReal  map[string][]*document // in order of opening
	changed chan struct{}          // closed and replaced at each change

	hashes *textHashes // shared with the overlays

	// parent is what an overlay lies over; gone are the real paths that it says
	// are not there.
	parent *documents
	gone   map[string]bool
}

// document is the immutable Document with what is known of its file. A change
// replaces the whole value.
type document struct {
	Document
	key, real string
	// disk is what the file looked like when text and disk last agreed.
	disk diskMark
}

// diskMark tells a changed file cheaply.
type diskMark struct {
	known bool
	size  int64
	mtime time.Time
}

func newDocuments() *documents {
	return &documents{byPath: map[string]*document{}, byReal: map[string][]*document{}, changed: make(chan struct{}), hashes: newTextHashes()}
}

// samePathKey makes one key of the spellings of one path: the letter of a drive
// in lower case; on systems that ignore case (and composition), all of it.
func samePathKey(path string) string {
	switch runtime.GOOS {
	case "darwin", "ios":
		return foldName(norm.NFC.String(path))
	case "windows":
		return foldName(path)
	}
	if len(path) >= 2 && path[1] == ':' && isLetter(path[0]) {
		return strings.ToLower(path[:1]) + path[1:]
	}
	return path
}

// OpenDocument adds or replaces an open document. Whether it is dirty is found
// out by comparing it with the file.
func (w *Workspace) OpenDocument(d Document) {
	d.Path = filepath.Clean(d.Path)
	doc := &document{Document: d, key: samePathKey(d.Path), real: d.Path}
	vol := filepath.VolumeName(d.Path) + string(filepath.Separator)
	if filepath.IsAbs(d.Path) && strings.HasPrefix(d.Path, vol) {
		if f, ref := resolveLinks(vol, splitRel(filepath.ToSlash(d.Path[len(vol):])), true, d.Path); ref == nil {
			doc.real = f.path
		}
	}
	doc.Dirty = true
	if mark, same := compareDisk(doc.real, d.Text, w.opts.MaxFile); same {
		doc.Dirty, doc.disk = false, mark
	}
	w.docs.put(doc)
}

func (s *documents) put(doc *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(doc.key)
	s.byPath[doc.key] = doc
	k := samePathKey(doc.real)
	s.byReal[k] = append(s.byReal[k], doc)
	s.signalLocked()
}

// replaceLocked swaps the value of a document in place.
func (s *documents) replaceLocked(old, doc *document) {
	s.byPath[doc.key] = doc
	list := s.byReal[samePathKey(old.real)]
	for i, d := range list {
		if d == old {
			list[i] = doc
		}
	}
	s.signalLocked()
}

func (s *documents) removeLocked(key string) {
	old, ok := s.byPath[key]
	if !ok {
		return
	}
	delete(s.byPath, key)
	k := samePathKey(old.real)
	var rest []*document
	for _, d := range s.byReal[k] {
		if d != old {
			rest = append(rest, d)
		}
	}
	if len(rest) == 0 {
		delete(s.byReal, k)
	} else {
		s.byReal[k] = rest
	}
	s.signalLocked()
}

func (s *documents) signalLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// find looks a document up by path, then by resolved path.
func (s *documents) find(paths ...string) (*document, bool) {
	if s.parent != nil {
		return s.findOver(paths)
	}
	return s.findOwn(paths)
}

func (s *documents) findOwn(paths []string) (*document, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range paths {
		if d, ok := s.byPath[samePathKey(p)]; ok {
			return d, true
		}
	}
	for _, p := range paths {
		if list := s.byReal[samePathKey(p)]; len(list) > 0 {
			return list[len(list)-1], true
		}
	}
	return nil, false
}

// ChangeDocument applies edits one after the other (offsets of each refer to the
// text after those before it) and sets the version. ok is false, and nothing
// changes, when the document is not open or an edit lies outside the text.
func (w *Workspace) ChangeDocument(path string, version int32, edits []Edit) (doc Document, ok bool) {
	return w.docs.update(path, func(d *document) bool {
		text := d.Text
		for _, e := range edits {
			if e.Start < 0 || e.Start > e.End || e.End > len(text) {
				return false
			}
			text = text[:e.Start] + e.New + text[e.End:]
		}
		d.Dirty = d.Dirty || text != d.Text
		d.Text, d.Version = text, version
		return true
	})
}

// ReplaceDocument sets the whole text; ok is false when it is not open. A text
// that equals the file (a reload) makes the document clean.
func (w *Workspace) ReplaceDocument(path string, version int32, text string) (doc Document, ok bool) {
	return w.docs.update(path, func(d *document) bool {
		d.Dirty = d.Dirty || text != d.Text
		d.Text, d.Version = text, version
		return true
	})
}

// SaveDocument notes that the editor saved the document: text and disk agree.
func (w *Workspace) SaveDocument(path string) {
	w.docs.update(path, func(d *document) bool {
		d.Dirty = false
		d.disk = markOf(d.real)
		return true
	})
}

// CloseDocument removes an open document.
func (w *Workspace) CloseDocument(path string) {
	w.docs.mu.Lock()
	defer w.docs.mu.Unlock()
	key := samePathKey(filepath.Clean(path))
	w.docs.removeLocked(key)
	w.docs.hashes.forget(key)
}

func (s *documents) update(path string, change func(*document) bool) (Document, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.byPath[samePathKey(filepath.Clean(path))]
	if !ok && s.parent != nil {
		return s.parent.update(path, change)
	}
	if !ok {
		return Document{}, false
	}
	next := *old
	if !change(&next) {
		return old.Document, false
	}
	s.replaceLocked(old, &next)
	return next.Document, true
}

// Document finds an open document by its path, then by resolved path.
func (w *Workspace) Document(abs string) (Document, bool) {
	d, ok := w.docs.find(filepath.Clean(abs))
	if !ok {
		return Document{}, false
	}
	return d.Document, true
}

// Documents returns the open documents, sorted by path.
func (w *Workspace) Documents() []Document {
	if w.parent != nil {
		return w.documentsOver()
	}
	w.docs.mu.RLock()
	defer w.docs.mu.RUnlock()
	out := make([]Document, 0, len(w.docs.byPath))
	for _, d := range w.docs.byPath {
		out = append(out, d.Document)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// diskState says how an open document relates to its file.
type diskState uint8

const (
	diskSame     diskState = iota // nothing happened to the file since they agreed
	diskMissing                   // there is no file
	diskDiffers                   // the file changed behind the document
	diskNotKnown                  // they never agreed: the editor brought other text along
)

// diskState compares the document with its file, by size and time if possible.
func (w *Workspace) diskState(d *document) diskState {
	fi, err := os.Lstat(d.real)
	if err != nil || !fi.Mode().IsRegular() {
		return diskMissing
	}
	if d.disk.known && fi.Size() == d.disk.size && fi.ModTime().Equal(d.disk.mtime) {
		return diskSame
	}
	if mark, same := compareDisk(d.real, d.Text, w.opts.MaxFile); same {
		// Touched, or reloaded by the editor: from now on this is the mark.
		w.docs.update(d.Path, func(now *document) bool {
			if now.Version != d.Version || now.Text != d.Text {
				return false
			}
			now.Dirty, now.disk = false, mark
			return true
		})
		return diskSame
	}
	if !d.disk.known {
		return diskNotKnown
	}
	return diskDiffers
}

// AwaitReload waits until the open document at path agrees with its file (the
// editor reloaded it), at most d. It reports whether that is so, or the document
// was closed.
func (w *Workspace) AwaitReload(ctx context.Context, path string, d time.Duration) bool {
	if w.parent != nil {
		return w.parent.AwaitReload(ctx, path, d)
	}
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	for {
		w.docs.mu.RLock()
		changed := w.docs.changed
		w.docs.mu.RUnlock()
		doc, ok := w.docs.find(filepath.Clean(path))
		if !ok || w.diskState(doc) != diskDiffers {
			return true
		}
		select {
		case <-changed:
		case <-timeout.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func markOf(real string) diskMark {
	fi, err := os.Lstat(real)
	if err != nil || !fi.Mode().IsRegular() {
		return diskMark{}
	}
	return diskMark{known: true, size: fi.Size(), mtime: fi.ModTime()}
}

// compareDisk reports whether the file holds the text, but for what editors
// keep apart from it: byte order mark, line endings, final newline. A file that
// is not UTF-8 cannot be compared and counts as the same.
func compareDisk(real, text string, max int64) (diskMark, bool) {
	mark := markOf(real)
	if !mark.known || mark.size > max {
		return mark, false
	}
	if mark.size > 2*int64(len(text))+16 || int64(len(text)) > 2*mark.size+16 {
		return mark, false // not even with other line endings
	}
	f, fi, err := openRead(real)
	if err != nil {
		return mark, false
	}
	defer f.Close()
	data, err := readAll(f, fi.Size(), max)
	if err != nil {
		return mark, false
	}
	disk := string(data)
	if disk == text || undecodable(disk) != "" {
		return mark, true
	}
	return mark, editorView(disk) == editorView(text)
}

func editorView(s string) string {
	s = strings.TrimPrefix(s, bom)
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.TrimSuffix(s, "\n")
}

// statMode is the mode of the regular file at the real path, 0 if there is none.
func statMode(real string) fs.FileMode {
	fi, err := os.Lstat(real)
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.Mode()
}
