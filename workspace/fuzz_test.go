package workspace

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzEdit checks an edit against what a plain replacement on the LF view gives,
// that bytes outside the quoted span stay, and that the undo restores all.
func FuzzEdit(f *testing.F) {
	for _, r := range rows {
		if len(r.op.Pairs) == 1 && r.before != absent && len(r.before) < 4096 {
			f.Add(r.before, r.op.Pairs[0].Old, r.op.Pairs[0].New, r.op.All, r.op.Line)
		}
	}
	f.Fuzz(func(t *testing.T, text, old, new string, all bool, line int) {
		if !utf8.ValidString(text) || !utf8.ValidString(old) || !utf8.ValidString(new) || undecodable(text) != "" {
			t.Skip()
		}
		dir := t.TempDir()
		dir, _ = filepath.EvalSymlinks(dir)
		path := filepath.Join(dir, "f.md")
		w := newSpace(t, dir, Options{})
		w.OpenDocument(Document{Path: path, Version: 1, Text: text})
		c, err := w.Plan(Op{Kind: OpEdit, Path: "f.md", Pairs: []Pair{{old, new}}, All: all, Line: max(line, 0)})
		if err != nil {
			r, ok := AsRefusal(err)
			if !ok {
				t.Fatal(err)
			}
			if len(r.Message) > 2000 || len(r.Nearest) > nearestBytes+nearestWidth+8 {
				t.Errorf("the refusal is too long: %d, %d", len(r.Message), len(r.Nearest))
			}
			if r.Line > countLines(text)+1 {
				t.Errorf("line %d of %d", r.Line, countLines(text))
			}
			return
		}
		checkOutside(t, c)
		after := c.After()
		if strings.HasPrefix(text, bom) != strings.HasPrefix(after, bom) && !strings.HasPrefix(new, bom) {
			t.Errorf("byte order mark: %q, %q", text, after)
		}
		if c.Kind == ChangeModify && !all && c.Rung == RungExact {
			lf, o, n := toLF(strings.TrimPrefix(text, bom)), toLF(old), toLF(new)
			if !strings.Contains(lf, o) {
				o, n = strings.TrimPrefix(o, bom), strings.TrimPrefix(n, bom)
			}
			if endsLine(o) && n != "" && !endsLine(n) {
				n += "\n"
			}
			if strings.Count(lf, o) == 1 && !strings.Contains(n, bom) && !strings.Contains(text[min(len(text), 3):], bom) && !strings.Contains(n+lf, "\r") {
				if want := strings.Replace(lf, o, n, 1); toLF(strings.TrimPrefix(after, bom)) != want {
					t.Errorf("got %q, want %q", after, want)
				}
				src := newSource(text)
				at := strings.Index(lf, o)
				start, end := src.rawOffset(at), src.rawOffset(at+len(o))
				for _, e := range c.Edits {
					if e.Start < start || e.End > end {
						t.Errorf("edit %+v outside %d to %d", e, start, end)
					}
				}
			}
		}
		if c.Kind == ChangeModify {
			w.ReplaceDocument(path, 2, after)
			u, err := DecodeUndo(c.Undo().Encode())
			if err != nil {
				t.Fatal(err)
			}
			back, err := w.Revert(u)
			if err != nil || back.After() != text {
				t.Errorf("undo: %v", err)
			}
			if got, err := applyUnified(text, strings.Join(splitLines(c.Diff(0))[2:], "")); err != nil || got != after {
				t.Errorf("diff gives %q, %v; want %q", got, err, after)
			}
		}
	})
}

// FuzzWrite checks that a write gives the body with the file's line ending and
// mark, by edits that lead back.
func FuzzWrite(f *testing.F) {
	f.Add("a\r\nb\r\n", "a\nc\n", false)
	f.Add(bom+"x", "y\r\nz", true)
	f.Add("", "```go\nx\n```", false)
	f.Fuzz(func(t *testing.T, text, body string, app bool) {
		if !utf8.ValidString(text) || undecodable(text) != "" {
			t.Skip()
		}
		dir, _ := filepath.EvalSymlinks(t.TempDir())
		path := filepath.Join(dir, "f.go")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		w := newSpace(t, dir, Options{})
		op := Op{Kind: OpWrite, Path: "f.go", Body: body, Empty: true}
		if app {
			op.Kind = OpAppend
		}
		c, err := w.Plan(op)
		if err != nil {
			if _, ok := AsRefusal(err); !ok {
				t.Fatal(err)
			}
			return
		}
		checkOutside(t, c)
		if strings.HasPrefix(text, bom) && !strings.HasPrefix(c.After(), bom) {
			t.Error("the byte order mark is gone")
		}
		if app && !strings.HasPrefix(c.After(), text) {
			t.Errorf("append changed %q to %q", text, c.After())
		}
		if e := dominantEnding(text); !app && e == "\n" && strings.Contains(c.After(), "\r\n") {
			t.Errorf("CR LF came into %q: %q", text, c.After())
		}
		if _, err := w.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != c.After() {
			t.Errorf("on disk %q, %v; want %q", data, err, c.After())
		}
		back, err := w.Revert(c.Undo())
		if err == nil {
			_, err = w.Commit(t.Context(), back)
		}
		if data, _ := os.ReadFile(path); err != nil && len(undecodable(c.After())) == 0 || err == nil && string(data) != text {
			t.Errorf("undo: %q, %v; want %q", data, err, text)
		}
	})
}

func FuzzDecodeUndo(f *testing.F) {
	f.Add(Undo{Kind: ChangeModify, Path: "/x", Edits: []Edit{{1, 2, "a"}, {5, 5, "b"}}}.Encode())
	f.Add(Undo{Kind: ChangeDelete, Path: "/x", Whole: true, Text: strings.Repeat("text ", 200), Parents: []string{"/a", "/a/b"}}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := DecodeUndo(data)
		if err != nil {
			return
		}
		again, err := DecodeUndo(u.Encode())
		if err != nil || !reflect.DeepEqual(again, u) {
			t.Errorf("%+v, %v; want %+v", again, err, u)
		}
	})
}

// FuzzGuards: the recognisers take any text.
func FuzzGuards(f *testing.F) {
	f.Add("```go\na\n```\n")
	f.Add("// ... rest unchanged ...\n")
	f.Add("  12 | x\n")
	f.Fuzz(func(t *testing.T, s string) {
		if inner, ok := unwrapFence(s); ok && !strings.Contains(s, inner) {
			t.Errorf("%q is not a part of %q", inner, s)
		}
		newPlaceholder(s, "")
		stripLineNumbers(s)
	})
}
