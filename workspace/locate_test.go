package workspace

import (
	"strings"
	"testing"
)

// What an undo does when the text has moved on since the change.
func TestRevertMerges(t *testing.T) {
	const text = "package a\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 2\n}\n"
	edit := func(old, new string) Op {
		return Op{Kind: OpEdit, Path: "a.go", Pairs: []Pair{{Old: old, New: new}}}
	}
	rows := []struct {
		name string
		op   Op
		user func(string) string // what became of the text after the change
		want string              // after the undo; "" = refused
	}{
		{"lines above", edit("\treturn 1\n", "\treturn 10\n"), func(s string) string { return "// top\n" + s }, "// top\n" + text},
		{"another function", edit("\treturn 1\n", "\treturn 10\n"), func(s string) string { return strings.Replace(s, "return 2", "return 22", 1) },
			strings.Replace(text, "return 2", "return 22", 1)},
		{"the change itself edited", edit("\treturn 1\n", "\treturn 10\n"), func(s string) string { return strings.Replace(s, "return 10", "return 11", 1) }, ""},
		{"the change copied", edit("\treturn 1\n", "\tx := 1\n\treturn x\n"), func(s string) string {
			return s + "\nfunc three() int {\n\tx := 1\n\treturn x\n}\n\nfunc two() int {\n\treturn 2\n}\n"
		}, text + "\nfunc three() int {\n\tx := 1\n\treturn x\n}\n\nfunc two() int {\n\treturn 2\n}\n"},
		{"the surroundings copied too", edit("\treturn 1\n", "\tx := 1\n\treturn x\n"), func(s string) string { return s + "\n" + s }, ""},
		{"removed lines", edit("func one() int {\n\treturn 1\n}\n\n", ""), func(s string) string { return s + "// end\n" }, text + "// end\n"},
		{"removed lines, surroundings changed", edit("func one() int {\n\treturn 1\n}\n\n", ""), func(s string) string { return strings.Replace(s, "func two", "func deux", 1) }, ""},
		{"appended", Op{Kind: OpAppend, Path: "a.go", Body: "\nvar added = true\n"}, func(s string) string { return "// top\n" + s + "// end\n" }, "// top\n" + text + "// end\n"},
		{"overwritten", Op{Kind: OpWrite, Path: "a.go", Body: strings.ReplaceAll(text, "return", "return 100 +")}, func(s string) string { return s + "// end\n" }, text + "// end\n"},
		{"all gone", edit("\treturn 1\n", "\treturn 10\n"), func(string) string { return "nothing\n" }, ""},
		{"a short line in another place", edit("\treturn 1\n", "\tx()\n"), func(s string) string {
			return "package a\n\nfunc other() {\n\tx()\n\ty()\n}\n"
		}, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"a.go": text})
			w := newSpace(t, dir, Options{})
			c, err := do(w, r.op)
			if err != nil {
				t.Fatal(err)
			}
			moved := r.user(c.After())
			fill(t, dir, map[string]string{"a.go": moved})
			u, err := DecodeUndo(c.Undo().Encode())
			if err != nil {
				t.Fatal(err)
			}
			back, err := w.Revert(u)
			if r.want == "" {
				if ref, ok := AsRefusal(err); !ok || ref.Code != CodeChanged {
					t.Fatalf("not refused: %v, %q", err, back.After())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if back.After() != r.want || len(back.Notes) == 0 {
				t.Fatalf("got %q, notes %q", back.After(), back.Notes)
			}
			if err := apply(w, back); err != nil { // and the undo is undoable
				t.Fatal(err)
			}
			again, err := w.Revert(back.Undo())
			if err != nil || again.After() != moved {
				t.Fatalf("undo of the undo: %q, %v", again.After(), err)
			}
		})
	}
}

func TestMapEdits(t *testing.T) {
	e := func(a, b int, s string) Edit { return Edit{a, b, s} }
	rows := []struct {
		name           string
		edits, through []Edit
		want           []Edit // nil = refused
	}{
		{"before", []Edit{e(10, 12, "x")}, []Edit{e(0, 1, "abc")}, []Edit{e(12, 14, "x")}},
		{"behind", []Edit{e(10, 12, "x")}, []Edit{e(12, 13, "abc")}, []Edit{e(10, 12, "x")}},
		{"around both", []Edit{e(4, 5, "x"), e(10, 12, "y")}, []Edit{e(0, 2, ""), e(6, 6, "123"), e(20, 21, "")}, []Edit{e(2, 3, "x"), e(11, 13, "y")}},
		{"over", []Edit{e(4, 8, "x")}, []Edit{e(7, 9, "")}, nil},
		{"inside", []Edit{e(4, 8, "x")}, []Edit{e(5, 5, "a")}, nil},
		{"at its start", []Edit{e(4, 8, "x")}, []Edit{e(4, 4, "a")}, []Edit{e(5, 9, "x")}},
		{"two insertions at one place", []Edit{e(4, 4, "x")}, []Edit{e(4, 4, "a")}, nil},
	}
	for _, r := range rows {
		got, ok := MapEdits(r.edits, r.through)
		if ok != (r.want != nil) {
			t.Errorf("%s: ok %v, %v", r.name, ok, got)
			continue
		}
		for i := range r.want {
			if got[i] != r.want[i] {
				t.Errorf("%s: %+v, want %+v", r.name, got, r.want)
			}
		}
	}
}

// An overlay shows what was staged, and nothing of it reaches the disk.
func TestOverlay(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "one\n", "gone.txt": "bye\n", "d/b.txt": "two\n"})
	under := newSpace(t, dir, Options{})
	w := under.Overlay()
	stage := func(name, text string, exists bool) {
		target, err := w.Resolve(name, AccessWrite)
		if err != nil {
			t.Fatal(err)
		}
		w.Stage(target.Abs, text, exists)
	}
	stage("a.txt", "one staged\n", true)
	stage("new.txt", "new staged\n", true)
	stage("gone.txt", "", false)

	read := func(w *Workspace, name string) string {
		r, err := w.Read(t.Context(), ReadRequest{Path: name})
		if err != nil {
			return "error"
		}
		return r.Text
	}
	for name, want := range map[string][2]string{
		"a.txt": {"one\n", "one staged\n"}, "new.txt": {"error", "new staged\n"}, "gone.txt": {"bye\n", "error"}, "d/b.txt": {"two\n", "two\n"},
	} {
		if got := [2]string{read(under, name), read(w, name)}; got != want {
			t.Errorf("%s reads as %q, want %q", name, got, want)
		}
	}
	found, err := w.Grep(t.Context(), GrepRequest{Pattern: "e"})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range found.Matches {
		lines = append(lines, f.Path)
	}
	if got := strings.Join(lines, " "); got != "a.txt new.txt" {
		t.Errorf("found in %q", got)
	}
	list, err := w.List(t.Context(), ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list.Entries {
		names = append(names, e.Path)
	}
	if got := strings.Join(names, " "); strings.Contains(got, "gone") || !strings.Contains(got, "new.txt") {
		t.Errorf("listed %q", got)
	}
	// Plans build on what is staged; a second write of a missing file is none.
	c, err := w.Plan(Op{Kind: OpEdit, Path: "a.txt", Pairs: []Pair{{Old: "staged", New: "twice"}}})
	if err != nil || c.After() != "one twice\n" {
		t.Fatalf("%v, %+v", err, c)
	}
	if c, err = w.Plan(Op{Kind: OpWrite, Path: "gone.txt", Body: "again\n"}); err != nil || c.Kind != ChangeCreate {
		t.Fatalf("%v, %+v", err, c)
	}
	if c, err = w.Plan(Op{Kind: OpDelete, Path: "new.txt"}); err != nil || c.Before.Text != "new staged\n" {
		t.Fatalf("%v, %+v", err, c)
	}
	// A document that is open under it stays the editor's.
	under.OpenDocument(Document{Path: dir + "/d/b.txt", Text: "typed\n", Version: 3})
	if got := read(w, "d/b.txt"); got != "typed\n" {
		t.Errorf("the buffer reads as %q", got)
	}
	stage("d/b.txt", "typed and staged\n", true)
	if n := len(w.Documents()); n != 3 {
		t.Errorf("%d documents, want the staged three", n)
	}
	target, _ := w.Resolve("d/b.txt", AccessRead)
	w.Unstage(target.Abs)
	if got := read(w, "d/b.txt"); got != "typed\n" {
		t.Errorf("not staged any more, it reads as %q", got)
	}
	if got := read(under, "a.txt"); got != "one\n" {
		t.Errorf("the disk has %q", got)
	}
}
