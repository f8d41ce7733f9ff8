package workspace

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestHashFrom: going on from the marks of a text that begins alike gives what
// hashing the whole gives.
func TestHashFrom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	before := hashFrom(hashed{}, 0, "")
	for range 300 {
		same := r.IntN(len(before.text) + 1)
		if r.IntN(4) == 0 {
			same = same / hashStep * hashStep
		}
		text := before.text[:same] + strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(3)*r.IntN(2*hashStep))
		after := hashFrom(before, same, text)
		if want := HashText(text); after.hash != want {
			t.Fatalf("%d of %d bytes alike, %d bytes: %s, want %s", same, len(before.text), len(text), after.hash, want)
		}
		if want := len(text) / hashStep; len(after.marks) != want {
			t.Fatalf("%d marks in %d bytes, want %d", len(after.marks), len(text), want)
		}
		if r.IntN(3) > 0 {
			before = after
		}
	}
}

// TestHashesOfDocuments: whatever happened to a document, plans have the hashes
// of its text and of the text after.
func TestHashesOfDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	dir := tree(t, map[string]string{"a.txt": ""})
	path := filepath.Join(dir, "a.txt")
	under := newSpace(t, dir, Options{})
	over := under.Overlay()
	text := strings.Repeat("a line of the file\n", 2000)
	open := func() { under.OpenDocument(Document{Path: path, Version: 1, Text: text}) }
	open()
	for i := range 400 {
		w := under
		if r.IntN(2) == 0 {
			w = over
		}
		switch r.IntN(7) {
		case 0: // a person types
			at := r.IntN(len(text) + 1)
			text = text[:at] + "x" + text[at:]
			under.ReplaceDocument(path, int32(i), text)
		case 1: // the same text from the editor, as bytes of its own
			under.ReplaceDocument(path, int32(i), strings.Clone(text))
		case 2:
			under.CloseDocument(path)
			open()
		case 3: // a proposal in front
			over.Stage(path, "staged "+text, true)
			if s := snapshotOf(t, over); s.Hash != HashText("staged "+text) {
				t.Fatalf("step %d: the hash is not that of the proposal", i)
			}
			over.Unstage(path)
		}
		c, err := w.Plan(Op{Kind: OpAppend, Path: "a.txt", Body: "one more\n"})
		if err != nil {
			t.Fatal(err)
		}
		if c.BeforeHash != HashText(text) || c.AfterHash != HashText(c.After()) || c.Before.Text != text {
			t.Fatalf("step %d: wrong hashes", i)
		}
		if r.IntN(2) == 0 { // it is carried out
			text = strings.Clone(c.After())
			under.ReplaceDocument(path, int32(i), text)
		}
	}
}

func snapshotOf(t *testing.T, w *Workspace) Snapshot {
	t.Helper()
	target, err := w.Resolve("a.txt", AccessRead)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Snapshot(target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
