package lsp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strings"
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
	"thinkflow/workspace"
)

// snapshot is an open document at one moment. It is immutable and may be kept.
type snapshot struct {
	text
	uri      string // as the client spelled it
	key      string // see docKey
	path     string // absolute; "" when the document is no file
	language string
	version  int32 // as the client counts; may jump, Neovim's changedtick does
	// lost says that a change could not be followed, so that text is not what
	// the editor shows, until the next whole text.
	lost error

	hash *lazyHash
}

// lazyHash computes the hash of a text when somebody first asks.
type lazyHash struct {
	once sync.Once
	hex  string
}

// Hash is the SHA-256 of the text in hex.
func (s *snapshot) Hash() string {
	s.hash.once.Do(func() {
		sum := sha256.Sum256([]byte(s.s))
		s.hash.hex = hex.EncodeToString(sum[:])
	})
	return s.hash.hex
}

// cause is why a document changes.
type cause uint8

// The causes: the four text document notifications.
const (
	opened cause = iota
	changed
	saved
	closed
)

// modification is one change of the set of open documents. Every notification
// becomes one and goes through [documents.apply]: there is no other way in.
type modification struct {
	cause    cause
	uri      uri.URI
	spelled  string // opened: the URI as the client wrote it
	language string // opened
	version  int32  // opened, changed
	text     string // opened
	changes  []contentChange
}

// contentChange replaces the whole text or a range of it.
type contentChange struct {
	whole bool
	span  protocol.Range
	text  string
}

// docEvent tells a watcher what happened to its document.
type docEvent struct {
	cause cause
	// now is the document afterwards; nil when it was closed.
	now *snapshot
	// edits lead from the text before to the text now, one after the other;
	// each is trimmed to what it really changes.
	edits []edit
	// remade: the text was set anew and edits do not tell how (didOpen).
	remade bool
}

// Documents is what package workspace offers for open documents; its
// *workspace.Workspace has these methods.
type Documents interface {
	OpenDocument(d workspace.Document)
	ReplaceDocument(path string, version int32, text string) (workspace.Document, bool)
	SaveDocument(path string)
	CloseDocument(path string)
	SetRoots(roots []workspace.Root) error
}

// documents holds what is open in the editor.
type documents struct {
	enc encoding // set by initialize, before any document comes

	mu       sync.Mutex // guards what follows
	open     map[string]*snapshot
	watchers map[string][]*watcher
	sink     Documents // nil until the engine stands
}

// watcher is called for every event of one document, in order, with the lock
// of documents held: it must be quick and must not call back.
type watcher struct{ f func(docEvent) }

func newDocuments() *documents {
	return &documents{enc: utf16Units, open: map[string]*snapshot{}, watchers: map[string][]*watcher{}}
}

// get returns the current snapshot of an open document.
func (d *documents) get(key string) (*snapshot, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.open[key]
	return s, ok
}

// feed names the workspace that is told of all documents from now on, and tells
// it of those that are open already.
func (d *documents) feed(sink Documents) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sink = sink
	keys := make([]string, 0, len(d.open))
	for k := range d.open {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if s := d.open[k]; s.path != "" {
			sink.OpenDocument(s.document())
		}
	}
}

func (s *snapshot) document() workspace.Document {
	return workspace.Document{Path: s.path, URI: s.uri, Version: s.version, Text: s.s}
}

// watch calls f for every event of the document from now on, and returns the
// snapshot from which the events lead on; nil when it is not open.
func (d *documents) watch(key string, f func(docEvent)) (now *snapshot, stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &watcher{f}
	d.watchers[key] = append(d.watchers[key], w)
	return d.open[key], func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		list := d.watchers[key]
		for i, x := range list {
			if x == w {
				d.watchers[key] = append(list[:i:i], list[i+1:]...)
			}
		}
		if len(d.watchers[key]) == 0 {
			delete(d.watchers, key)
		}
	}
}

// apply is the one door for changes of documents. An error means that the
// editor and we disagree; the document stays, marked as lost where its text can
// no longer be known.
func (d *documents) apply(m modification) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := docKey(m.uri)
	was, isOpen := d.open[key]
	if !isOpen && m.cause != opened {
		return fmt.Errorf("%s: the document is not open", m.uri)
	}
	ev := docEvent{cause: m.cause}
	var err error
	switch m.cause {
	case opened:
		ev.now = &snapshot{
			text: newText(strings.Clone(m.text)), uri: strings.Clone(m.spelled), key: key, path: docPath(m.uri),
			language: strings.Clone(m.language), version: m.version, hash: new(lazyHash),
		}
		ev.remade = true
	case changed:
		next := *was
		next.version, next.hash = m.version, new(lazyHash)
		next.text, ev.edits, next.lost = was.text.change(m.changes, d.enc, was.lost)
		if next.lost != nil {
			err = fmt.Errorf("%s version %d: %w", m.uri, m.version, next.lost)
		}
		ev.remade = was.lost != nil
		ev.now = &next
	case saved:
		ev.now = was
	}
	if ev.now != nil {
		d.open[key] = ev.now
	} else {
		delete(d.open, key)
	}
	d.tell(was, ev)
	for _, w := range d.watchers[key] {
		w.f(ev)
	}
	return err
}

// tell passes the event on to the workspace, for files only.
func (d *documents) tell(was *snapshot, ev docEvent) {
	if d.sink == nil {
		return
	}
	switch {
	case ev.cause == opened && ev.now.path != "":
		d.sink.OpenDocument(ev.now.document())
	case ev.cause == closed && was.path != "":
		d.sink.CloseDocument(was.path)
	case ev.cause == saved && was.path != "":
		d.sink.SaveDocument(was.path)
	case ev.cause == changed && ev.now.path != "" && ev.now.lost == nil:
		d.sink.ReplaceDocument(ev.now.path, ev.now.version, ev.now.s)
	}
}

// change applies content changes one after the other, as LSP defines them, and
// returns the edits they amount to. lost is the error so far: a document that
// is lost stays so until a whole text comes.
func (t text) change(changes []contentChange, enc encoding, lost error) (text, []edit, error) {
	if edits, ok := t.resolveDescending(changes, enc, lost); ok {
		up := make([]edit, len(edits))
		for i, e := range edits {
			up[len(edits)-1-i] = e
		}
		return newText(applyEdits(t.s, up)), edits, nil
	}
	var edits []edit
	for _, c := range changes {
		var e edit
		switch {
		case c.whole:
			e = edit{0, len(t.s), c.text}
			lost = nil
		case lost != nil:
			continue
		default:
			start, err := t.offset(c.span.Start, enc)
			if err == nil {
				e.end, err = t.offset(c.span.End, enc)
			}
			if err == nil && e.end < start {
				err = fmt.Errorf("%w: the range ends before it starts", errPosition)
			}
			if err != nil {
				lost = err
				continue
			}
			e.start, e.repl = start, c.text
		}
		e = e.trim(t.s)
		edits = append(edits, e)
		t = t.replace(e.start, e.end, e.repl)
	}
	return t, edits, lost
}

// manyChanges is from how many changes on one pass is tried.
const manyChanges = 8

// resolveDescending handles the usual form of many changes at once (VS Code
// sends them from the last to the first): none touches the text before those
// that follow, so all of them can be resolved against t and applied in one
// pass, instead of copying the text for each.
func (t text) resolveDescending(changes []contentChange, enc encoding, lost error) ([]edit, bool) {
	if len(changes) < manyChanges || lost != nil {
		return nil, false
	}
	edits := make([]edit, len(changes))
	for i, c := range changes {
		if c.whole {
			return nil, false
		}
		start, err1 := t.offset(c.span.Start, enc)
		end, err2 := t.offset(c.span.End, enc)
		if err1 != nil || err2 != nil || end < start || i > 0 && end > edits[i-1].start {
			return nil, false
		}
		edits[i] = edit{start, end, c.text}
	}
	for i, e := range edits {
		edits[i] = e.trim(t.s)
	}
	return edits, true
}
