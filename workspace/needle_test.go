package workspace

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestNeedle: it finds what strings.Index finds, in texts in which much is alike.
func TestNeedle(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 4000 {
		word := func(n int) string {
			var b strings.Builder
			for range n {
				b.WriteByte("aaab\t\n"[r.IntN(6)])
			}
			return b.String()
		}
		s := strings.Repeat(word(1+r.IntN(40)), 1+r.IntN(400)) + word(r.IntN(20))
		old := word(1 + r.IntN(30))
		if at := r.IntN(len(s)); r.IntN(2) == 0 {
			old = s[at:min(len(s), at+1+r.IntN(200))]
		}
		if got, want := newNeedle(s, old).index(s), strings.Index(s, old); got != want {
			t.Fatalf("%q in %q: %d, want %d", old, s, got, want)
		}
	}
}

// TestFindIsRemembered: what was found in an open document is used again only for
// the same question about the same text.
func TestFindIsRemembered(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": ""})
	w := newSpace(t, dir, Options{})
	for i, c := range []struct {
		text, old string
		all       bool
		line      int
		at        int // of the first edit; -1: refused
	}{
		{"one\ntwo\n", "two", false, 0, 4},
		{"one\ntwo\n", "two", false, 0, 4},
		{"two\none\n", "two", false, 0, 0},
		{"two\none\n", "one", false, 0, 4},
		{"two\ntwo\n", "two", false, 0, -1},
		{"two\ntwo\n", "two", true, 0, 0},
		{"two\ntwo\n", "two", false, 0, -1},
	} {
		w.OpenDocument(Document{Path: filepath.Join(dir, "a.txt"), Version: int32(i), Text: c.text})
		op := Op{Kind: OpEdit, Path: "a.txt", Pairs: []Pair{{c.old, "2"}}, All: c.all, Line: c.line}
		for range 2 {
			_, _ = w.PlanPlaces(op)
			ch, err := w.Plan(op)
			at := -1
			if err == nil {
				at = ch.Edits[0].Start
			}
			if at != c.at {
				t.Errorf("row %d: at %d, want %d: %v", i, at, c.at, err)
			}
		}
	}
}
