package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChangeDocument(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "abc\n"})
	w := newSpace(t, dir, Options{})
	path := filepath.Join(dir, "a.txt")
	if _, ok := w.ChangeDocument(path, 1, nil); ok {
		t.Error("a document that is not open changed")
	}
	w.OpenDocument(Document{Path: path, URI: "u", Version: 1, Text: "abc\n"})
	if d, ok := w.Document(path); !ok || d.Dirty || d.URI != "u" {
		t.Errorf("%+v, %v", d, ok)
	}
	d, ok := w.ChangeDocument(path, 2, []Edit{{0, 1, "xyz"}, {3, 4, ""}})
	if !ok || d.Text != "xyzc\n" || d.Version != 2 || !d.Dirty {
		t.Errorf("%+v, %v", d, ok)
	}
	for _, bad := range []Edit{{-1, 0, ""}, {0, 99, ""}, {3, 2, ""}} {
		if _, ok := w.ChangeDocument(path, 3, []Edit{{0, 0, "no"}, bad}); ok {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if d, _ := w.Document(path); d.Text != "xyzc\n" || d.Version != 2 {
		t.Errorf("%+v", d)
	}
	w.SaveDocument(path)
	if d, _ := w.Document(path); d.Dirty {
		t.Error("dirty after a save")
	}
	w.CloseDocument(path)
	if len(w.Documents()) != 0 {
		t.Error("still open")
	}
}

// A file open under two paths is found by each, and by the real one.
func TestDocumentPaths(t *testing.T) {
	dir := tree(t, map[string]string{"real/a.txt": "1\n"})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	real, linked := filepath.Join(dir, "real/a.txt"), filepath.Join(dir, "link/a.txt")
	w.OpenDocument(Document{Path: linked, Text: "linked\n"})
	if d, ok := w.Document(real); !ok || d.Text != "linked\n" {
		t.Errorf("%+v, %v", d, ok)
	}
	w.OpenDocument(Document{Path: real, Text: "real\n"})
	for path, text := range map[string]string{real: "real\n", linked: "linked\n"} {
		if d, ok := w.Document(path); !ok || d.Text != text {
			t.Errorf("%s: %+v, %v", path, d, ok)
		}
	}
	if got := w.Documents(); len(got) != 2 || !slices.IsSortedFunc(got, func(a, b Document) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%+v", got)
	}
	w.CloseDocument(real)
	if d, ok := w.Document(real); !ok || d.Text != "linked\n" {
		t.Errorf("%+v, %v", d, ok)
	}
	c, err := w.Plan(Op{Kind: OpEdit, Path: "real/a.txt", Pairs: []Pair{{"linked", "x"}}})
	if err != nil || !c.Open {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestBufferAndDisk(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "old\r\n"})
	path := filepath.Join(dir, "a.txt")
	w := newSpace(t, dir, Options{})
	w.OpenDocument(Document{Path: path, Version: 1, Text: "old\n"}) // the editor's view of it
	op := Op{Kind: OpWrite, Path: "a.txt", Body: "ours\n"}
	if _, err := w.Plan(op); err != nil {
		t.Fatal(err)
	}
	fill(t, dir, map[string]string{"a.txt": "changed\n"})
	_, err := w.Plan(op)
	if r, ok := AsRefusal(err); !ok || r.Code != CodeBufferStale {
		t.Errorf("clean: %v", err)
	}
	if w.AwaitReload(t.Context(), path, time.Millisecond) {
		t.Error("reloaded?")
	}
	done := make(chan bool)
	go func() { done <- w.AwaitReload(t.Context(), path, time.Minute) }()
	w.ReplaceDocument(path, 2, "changed\n")
	if !<-done {
		t.Error("the reload was not seen")
	}
	if _, err := w.Plan(op); err != nil {
		t.Errorf("reloaded: %v", err)
	}
	w.ChangeDocument(path, 3, []Edit{{0, 0, "typed "}})
	if c, err := w.Plan(op); err != nil || len(c.Notes) != 0 {
		t.Errorf("dirty: %v", err)
	}
	fill(t, dir, map[string]string{"a.txt": "changed again\n"})
	if c, err := w.Plan(op); err != nil || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "disk differs") {
		t.Errorf("dirty, disk changed: %v", err)
	}
	// The file goes: the buffer is all there is.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Plan(op); err != nil || !c.Open || c.Kind != ChangeModify {
		t.Errorf("gone: %v", err)
	}
}

func TestDirtyDocuments(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "disk\n", "d/b.txt": "b\n"})
	path := filepath.Join(dir, "a.txt")
	w := newSpace(t, dir, Options{})
	w.OpenDocument(Document{Path: path, Version: 1, Text: "disk\n"})
	w.OpenDocument(Document{Path: filepath.Join(dir, "d/b.txt"), Version: 1, Text: "typed\n"})

	c, err := do(w, Op{Kind: OpCopy, Path: "d/b.txt", Dest: "c.txt"})
	if err != nil || c.Open {
		t.Errorf("%+v, %v", c, err)
	}
	sameFiles(t, dir, map[string]string{"a.txt": "disk\n", "d/b.txt": "b\n", "c.txt": "typed\n"})

	for _, op := range []Op{{Kind: OpDelete, Path: "d/b.txt"}, {Kind: OpMove, Path: "d/b.txt", Dest: "x"}, {Kind: OpMove, Path: "d", Dest: "x"}} {
		c, err := w.Plan(op)
		if err != nil || !c.Open || !c.Before.Dirty {
			t.Fatalf("%+v: %+v, %v", op, c, err)
		}
		_, err = w.Commit(t.Context(), c)
		if r, ok := AsRefusal(err); !ok || r.Code != CodeDirty {
			t.Errorf("%+v: %v", op, err)
		}
	}
	if c, err = w.Plan(Op{Kind: OpDelete, Path: "d/b.txt"}); err != nil || c.Undo().Text != "typed\n" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := do(w, Op{Kind: OpDelete, Path: "a.txt"}); err != nil {
		t.Errorf("clean: %v", err)
	}
	// An edit of an open document is the editor's.
	w.OpenDocument(Document{Path: filepath.Join(dir, "c.txt"), Version: 1, Text: "typed\n"})
	c, err = w.Plan(Op{Kind: OpAppend, Path: "c.txt", Body: "x\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), c); err == nil {
		t.Error("an open document was written on disk")
	}
	// A destination that is open but was never saved is taken.
	w.OpenDocument(Document{Path: filepath.Join(dir, "new.txt"), Version: 1, Text: ""})
	_, err = w.Plan(Op{Kind: OpCopy, Path: "c.txt", Dest: "new.txt"})
	if r, ok := AsRefusal(err); !ok || r.Code != CodeExists {
		t.Errorf("%v", err)
	}
	// Writing to it is an edit of the buffer.
	c, err = w.Plan(Op{Kind: OpWrite, Path: "new.txt", Body: "a\r\nb\r\n"})
	if err != nil || !c.Open || c.After() != "a\nb\n" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLatinOpenInEditor(t *testing.T) {
	dir := tree(t, map[string]string{"l.txt": "caf\xe9\n"})
	w := newSpace(t, dir, Options{})
	w.OpenDocument(Document{Path: filepath.Join(dir, "l.txt"), Version: 1, Text: "café\n"})
	c, err := w.Plan(edit("café", "cafe").at("l.txt"))
	if err != nil || !c.Open || c.After() != "cafe\n" {
		t.Errorf("%+v, %v", c, err)
	}
}

func (o Op) at(path string) Op {
	o.Path = path
	return o
}
