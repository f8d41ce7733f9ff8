package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fileRow is one operation on a small tree.
type fileRow struct {
	name  string
	op    Op
	kind  ChangeKind
	code  Code
	said  string
	after map[string]string // what differs; "\x00" = gone
	dirs  []string          // folders that must be there afterwards
}

var fileTree = map[string]string{
	"a.txt": "a\n", "dir/b.txt": "b\n", "dir/sub/c.txt": "c\n", "bin.dat": "\x7fELF\x00\x01", "latin.txt": "caf\xe9\n", "empty/": "", "conf/workflows/x.yml": "on: push\n",
}

var fileRows = []fileRow{
	{name: "move a file", op: Op{Kind: OpMove, Path: "a.txt", Dest: "z.txt"}, kind: ChangeMove, after: map[string]string{"a.txt": absent, "z.txt": "a\n"}},
	{name: "move into a new folder", op: Op{Kind: OpMove, Path: "a.txt", Dest: "new/deep/a.txt"}, kind: ChangeMove, after: map[string]string{"a.txt": absent, "new/deep/a.txt": "a\n"}},
	{name: "move a folder", op: Op{Kind: OpMove, Path: "dir", Dest: "lib"}, kind: ChangeMove, after: map[string]string{"dir/b.txt": absent, "dir/sub/c.txt": absent, "lib/b.txt": "b\n", "lib/sub/c.txt": "c\n"}},
	{name: "move a binary", op: Op{Kind: OpMove, Path: "bin.dat", Dest: "x.dat"}, kind: ChangeMove, after: map[string]string{"bin.dat": absent, "x.dat": "\x7fELF\x00\x01"}},
	{name: "move onto a file", op: Op{Kind: OpMove, Path: "a.txt", Dest: "dir/b.txt"}, code: CodeExists, said: "exists already"},
	{name: "move into an existing folder", op: Op{Kind: OpMove, Path: "a.txt", Dest: "dir"}, code: CodeExists, said: "dir/a.txt"},
	{name: "move to a folder spelling", op: Op{Kind: OpMove, Path: "a.txt", Dest: "other/"}, code: CodeIsDirectory, said: "other/a.txt"},
	{name: "move to itself", op: Op{Kind: OpMove, Path: "a.txt", Dest: "./dir/../a.txt"}, code: CodeNoChange},
	{name: "move a folder into itself", op: Op{Kind: OpMove, Path: "dir", Dest: "dir/sub/dir"}, code: CodeInvalid},
	{name: "move what is not there", op: Op{Kind: OpMove, Path: "a.tx", Dest: "z.txt"}, code: CodeNotFound, said: "Similar: a.txt"},
	{name: "move outside", op: Op{Kind: OpMove, Path: "a.txt", Dest: "../z.txt"}, code: CodeOutside},
	{name: "move from outside", op: Op{Kind: OpMove, Path: "/etc/hostname", Dest: "z.txt"}, code: CodeOutside},
	{name: "move the root", op: Op{Kind: OpMove, Path: ".", Dest: "z"}, code: CodeInvalid},
	{name: "move without destination", op: Op{Kind: OpMove, Path: "a.txt"}, code: CodeInvalid, said: "dest is missing"},
	{name: "move to git", op: Op{Kind: OpMove, Path: "a.txt", Dest: ".git/hooks/post-merge"}, code: CodeForbidden},

	{name: "copy", op: Op{Kind: OpCopy, Path: "a.txt", Dest: "new/z.txt"}, kind: ChangeCopy, after: map[string]string{"new/z.txt": "a\n"}},
	{name: "copy a binary", op: Op{Kind: OpCopy, Path: "bin.dat", Dest: "x.dat"}, kind: ChangeCopy, after: map[string]string{"x.dat": "\x7fELF\x00\x01"}},
	{name: "copy another encoding", op: Op{Kind: OpCopy, Path: "latin.txt", Dest: "x.txt"}, kind: ChangeCopy, after: map[string]string{"x.txt": "caf\xe9\n"}},
	{name: "copy a folder", op: Op{Kind: OpCopy, Path: "dir", Dest: "x"}, code: CodeIsDirectory},
	{name: "copy onto a file", op: Op{Kind: OpCopy, Path: "a.txt", Dest: "dir/b.txt"}, code: CodeExists},
	{name: "copy what is not there", op: Op{Kind: OpCopy, Path: "dir/bb.txt", Dest: "x"}, code: CodeNotFound, said: "dir/b.txt"},
	{name: "copy from the wrong folder", op: Op{Kind: OpCopy, Path: "C.txt", Dest: "x"}, code: CodeNotFound, said: "Similar: a.txt"},
	{name: "copy from another folder", op: Op{Kind: OpCopy, Path: "conf/sub/c.txt", Dest: "x"}, code: CodeNotFound, said: "Similar: dir/sub/c.txt"},
	{name: "copy to itself", op: Op{Kind: OpCopy, Path: "a.txt", Dest: "a.txt"}, code: CodeNoChange},
	{name: "copy below a file", op: Op{Kind: OpCopy, Path: "a.txt", Dest: "a.txt/b"}, code: CodeNotFound, said: "is a file"},

	{name: "delete", op: Op{Kind: OpDelete, Path: "a.txt"}, kind: ChangeDelete, after: map[string]string{"a.txt": absent}},
	{name: "delete a binary", op: Op{Kind: OpDelete, Path: "bin.dat"}, kind: ChangeDelete, after: map[string]string{"bin.dat": absent}},
	{name: "delete a folder", op: Op{Kind: OpDelete, Path: "dir"}, code: CodeIsDirectory},
	{name: "delete what is not there", op: Op{Kind: OpDelete, Path: "nothing"}, code: CodeNotFound},
	{name: "delete the root", op: Op{Kind: OpDelete, Path: "."}, code: CodeIsDirectory},

	{name: "mkdir", op: Op{Kind: OpMkdir, Path: "x/y/z"}, kind: ChangeMkdir, dirs: []string{"x/y/z"}},
	{name: "mkdir with slash", op: Op{Kind: OpMkdir, Path: "x/"}, kind: ChangeMkdir, dirs: []string{"x"}},
	{name: "mkdir again", op: Op{Kind: OpMkdir, Path: "dir/sub"}, kind: ChangeNone, dirs: []string{"dir/sub"}},
	{name: "mkdir over a file", op: Op{Kind: OpMkdir, Path: "a.txt"}, code: CodeExists},

	{name: "touch new", op: Op{Kind: OpTouch, Path: "x/y.txt"}, kind: ChangeCreate, after: map[string]string{"x/y.txt": ""}},
	{name: "touch old", op: Op{Kind: OpTouch, Path: "a.txt"}, kind: ChangeTouch},
	{name: "touch a folder", op: Op{Kind: OpTouch, Path: "dir"}, code: CodeIsDirectory},

	{name: "write makes folders", op: Op{Kind: OpWrite, Path: "p/q/r.txt", Body: "r\n"}, kind: ChangeCreate, after: map[string]string{"p/q/r.txt": "r\n"}},
	{name: "write over a folder", op: Op{Kind: OpWrite, Path: "dir", Body: "r\n"}, code: CodeIsDirectory},
	{name: "write over a binary", op: Op{Kind: OpWrite, Path: "bin.dat", Body: "r\n"}, code: CodeBinary},
}

func TestFileRows(t *testing.T) {
	for _, r := range fileRows {
		t.Run(r.name, func(t *testing.T) {
			dir := tree(t, fileTree)
			w := newSpace(t, dir, Options{})
			before, entriesBefore := disk(t, dir), names(t, dir)
			c, err := do(w, r.op)
			if ref, ok := AsRefusal(err); ok {
				if ref.Code != r.code || !strings.Contains(ref.Error(), r.said) {
					t.Errorf("%s: %v; want %q, %q", ref.Code, err, r.code, r.said)
				}
			} else if err != nil || r.code != "" {
				t.Fatalf("%v; want %q", err, r.code)
			}
			want := map[string]string{}
			for name, text := range before {
				want[name] = text
			}
			for name, text := range r.after {
				want[name] = text
				if text == absent {
					delete(want, name)
				}
			}
			sameFiles(t, dir, want)
			for _, d := range r.dirs {
				if fi, err := os.Stat(filepath.Join(dir, d)); err != nil || !fi.IsDir() {
					t.Errorf("%s: %v", d, err)
				}
			}
			if c == nil {
				return
			}
			if c.Kind != r.kind {
				t.Errorf("kind %s, want %s", c.Kind, r.kind)
			}
			if hash, _, err := ProbeFile(c.Target.Abs); err == nil && c.Dest == nil && hash != c.AfterHash {
				t.Errorf("hash after %q, want %q", hash, c.AfterHash)
			}
			u, err := DecodeUndo(c.Undo().Encode())
			if err != nil {
				t.Fatal(err)
			}
			entries := names(t, dir)
			back, err := w.Revert(u)
			if err != nil {
				t.Fatal(err)
			}
			if err := apply(w, back); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, dir, before)
			if got := names(t, dir); !slices.Equal(got, entriesBefore) {
				t.Errorf("entries after the undo: %q", got)
			}
			again, err := w.Revert(back.Undo())
			if err != nil {
				t.Fatal(err)
			}
			if err := apply(w, again); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, dir, want)
			if got := names(t, dir); !slices.Equal(got, entries) {
				t.Errorf("entries %q, want %q", got, entries)
			}
		})
	}
}

// names lists everything below dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A folder may not carry its files into a protected place unasked.
func TestMoveProtected(t *testing.T) {
	dir := tree(t, fileTree)
	fill(t, dir, map[string]string{"keys/.env": "K=1\n", "priv/x.txt": "x\n", "nested/.git/config": "[core]\n", "outer/module/.git": "gitdir: ../../.git/modules/m\n"})
	w := newSpace(t, dir, Options{Deny: []string{"/priv/**"}})
	c, err := w.Plan(Op{Kind: OpMove, Path: "conf", Dest: ".github"})
	if err != nil || !c.Dest.Protected {
		t.Errorf("%+v, %v", c, err)
	}
	for path, code := range map[string]Code{"keys": CodeSecret, "priv": CodeDenied, "nested": CodeForbidden, "outer": CodeForbidden} {
		_, err := w.Plan(Op{Kind: OpMove, Path: path, Dest: "public"})
		if r, ok := AsRefusal(err); !ok || r.Code != code {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
	}
}

func TestSymlinkItself(t *testing.T) {
	dir := tree(t, map[string]string{"real.txt": "r\n"})
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real.txt", link); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	c, err := do(w, Op{Kind: OpDelete, Path: "link"})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, dir, map[string]string{"real.txt": "r\n"})
	if _, err := os.Lstat(link); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is there: %v", err)
	}
	u, err := DecodeUndo(c.Undo().Encode())
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.Revert(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(w, back); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); to != "real.txt" {
		t.Errorf("link to %q, %v", to, err)
	}
	// An own link that points outside may be removed; what it points to not read.
	out := filepath.Join(dir, "out")
	if err := os.Symlink("/etc/hostname", out); err != nil {
		t.Fatal(err)
	}
	if _, err := do(w, Op{Kind: OpDelete, Path: "out"}); err != nil {
		t.Error(err)
	}
}

func TestUndoRefusesWhenTextMovedOn(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "1\n"})
	w := newSpace(t, dir, Options{})
	for _, op := range []Op{
		{Kind: OpWrite, Path: "a.txt", Body: "2\n"},
		{Kind: OpWrite, Path: "new.txt", Body: "n\n"},
		{Kind: OpCopy, Path: "a.txt", Dest: "copy.txt"},
		{Kind: OpMove, Path: "copy.txt", Dest: "moved.txt"},
		{Kind: OpMkdir, Path: "d"},
	} {
		c, err := do(w, op)
		if err != nil {
			t.Fatal(err)
		}
		name := op.Path
		if op.Dest != "" {
			name = op.Dest
		}
		if op.Kind == OpMkdir {
			name = "d/x"
		}
		fill(t, dir, map[string]string{name: "the user was here after " + string(op.Kind)})
		_, err = w.Revert(c.Undo())
		if r, ok := AsRefusal(err); !ok || r.Code != CodeChanged {
			t.Errorf("%s: %v", op.Kind, err)
		}
	}
}

func TestCommitRechecks(t *testing.T) {
	ops := map[string]Op{
		"edit":   {Kind: OpEdit, Path: "a.txt", Pairs: []Pair{{"a", "b"}}},
		"create": {Kind: OpWrite, Path: "new.txt", Body: "n\n"},
		"copy":   {Kind: OpCopy, Path: "a.txt", Dest: "new.txt"},
		"delete": {Kind: OpDelete, Path: "a.txt"},
		"move":   {Kind: OpMove, Path: "a.txt", Dest: "new.txt"},
		"mkdir":  {Kind: OpMkdir, Path: "new.txt"},
	}
	for name, op := range ops {
		for _, what := range []string{"source", "dest", "link"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				dir := tree(t, map[string]string{"a.txt": "a\n", "outside/": ""})
				w := newSpace(t, dir, Options{})
				c, err := w.Plan(op)
				if err != nil {
					t.Fatal(err)
				}
				hit := true
				switch what {
				case "source":
					hit = op.Path == "a.txt"
					fill(t, dir, map[string]string{"a.txt": "user\n"})
				case "dest":
					hit = op.Path == "new.txt" || op.Dest == "new.txt"
					fill(t, dir, map[string]string{"new.txt": "user\n"})
				case "link":
					target := "new.txt"
					if op.Dest == "" && op.Path == "a.txt" {
						target = "a.txt"
						os.Remove(filepath.Join(dir, target))
					}
					if err := os.Symlink("outside/x", filepath.Join(dir, target)); err != nil {
						t.Fatal(err)
					}
				}
				before := disk(t, dir)
				_, err = w.Commit(t.Context(), c)
				if !hit {
					return
				}
				if r, ok := AsRefusal(err); !ok || r.Code != CodeChanged {
					t.Errorf("%v", err)
				}
				sameFiles(t, dir, before)
			})
		}
	}
}

// A folder of the approved path that becomes a link, inside the root or out of
// it, is not followed.
func TestSwappedFolder(t *testing.T) {
	for _, to := range []string{"elsewhere", "../outside"} {
		for _, op := range []Op{
			{Kind: OpWrite, Path: "d/new.txt", Body: "n\n"},
			{Kind: OpWrite, Path: "d/sub/new.txt", Body: "n\n"},
			{Kind: OpAppend, Path: "d/a.txt", Body: "n\n"},
			{Kind: OpDelete, Path: "d/a.txt"},
			{Kind: OpMove, Path: "d/a.txt", Dest: "b.txt"},
			{Kind: OpMove, Path: "c.txt", Dest: "d/b.txt"},
			{Kind: OpMkdir, Path: "d/x"},
			{Kind: OpTouch, Path: "d/a.txt"},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s", to, op.Kind, op.Path), func(t *testing.T) {
				ws := tree(t, map[string]string{"app/d/a.txt": "a\n", "app/c.txt": "c\n", "app/elsewhere/a.txt": "a\n", "outside/a.txt": "a\n"})
				dir := filepath.Join(ws, "app")
				w := newSpace(t, dir, Options{})
				c, err := w.Plan(op)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dir, "d"), filepath.Join(ws, "gone")); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(dir, "d")); err != nil {
					t.Fatal(err)
				}
				before := disk(t, ws)
				if _, err := w.Commit(t.Context(), c); err == nil {
					t.Error("committed through a link")
				}
				sameFiles(t, ws, before)
			})
		}
	}
}

func TestHardLinksStay(t *testing.T) {
	for _, body := range []string{"longer text than before\n", "s\n"} {
		dir := tree(t, map[string]string{"a.txt": "some text\n"})
		if err := os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")); err != nil {
			t.Fatal(err)
		}
		w := newSpace(t, dir, Options{})
		c, err := w.Plan(Op{Kind: OpWrite, Path: "a.txt", Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if u := c.Undo(); !u.Whole || u.Text != "some text\n" || c.Temp != "" {
			t.Errorf("the text before is not in the undo: %+v", u)
		}
		done, err := w.Commit(t.Context(), c)
		if err != nil || !done.InPlace {
			t.Fatalf("%+v, %v", done, err)
		}
		sameFiles(t, dir, map[string]string{"a.txt": body, "b.txt": body})
		back, err := w.Revert(c.Undo())
		if err != nil {
			t.Fatal(err)
		}
		if err := apply(w, back); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, dir, map[string]string{"a.txt": "some text\n", "b.txt": "some text\n"})
	}
}

func TestDiskFull(t *testing.T) {
	for _, linked := range []bool{false, true} {
		for _, fail := range []int{1, 2} {
			dir := tree(t, map[string]string{"f.txt": "good\n"})
			before := map[string]string{"f.txt": "good\n"}
			if linked {
				if err := os.Link(filepath.Join(dir, "f.txt"), filepath.Join(dir, "g.txt")); err != nil {
					t.Fatal(err)
				}
				before["g.txt"] = "good\n"
			}
			w := newSpace(t, dir, Options{})
			n := 0
			w.faults.write = func(int) (int, error) {
				if n++; n >= fail {
					return 4, syscall.ENOSPC
				}
				return 0, nil
			}
			if !linked && fail == 2 {
				continue // one write only
			}
			for _, op := range []Op{
				{Kind: OpWrite, Path: "f.txt", Body: "12345678\n"},
				{Kind: OpWrite, Path: "new/f.txt", Body: "12345678\n"},
			} {
				n = 0
				if linked && op.Path != "f.txt" {
					continue
				}
				_, err := do(w, op)
				if r, ok := AsRefusal(err); !ok || r.Code != CodeIO || !strings.Contains(r.Message, "no space left on device") || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("linked %v, %s: %v", linked, op.Path, err)
				}
				sameFiles(t, dir, before)
				if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
					t.Error("an empty folder stays behind")
				}
			}
		}
	}
}

// The file changes between the look at it and the rename.
func TestChangeAtTheLastMoment(t *testing.T) {
	dir := tree(t, map[string]string{"f.txt": "good\n"})
	w := newSpace(t, dir, Options{})
	w.faults.beforeRename = func() { fill(t, dir, map[string]string{"f.txt": "user's\n"}) }
	_, err := do(w, Op{Kind: OpWrite, Path: "f.txt", Body: "ours\n"})
	if r, ok := AsRefusal(err); !ok || r.Code != CodeChanged {
		t.Errorf("%v", err)
	}
	sameFiles(t, dir, map[string]string{"f.txt": "user's\n"})
}

func TestUnwritable(t *testing.T) {
	dir := tree(t, map[string]string{"ro.txt": "r\n", "d/a.txt": "a\n"})
	if err := os.Chmod(filepath.Join(dir, "ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	_, err := do(w, Op{Kind: OpAppend, Path: "ro.txt", Body: "x"})
	if r, ok := AsRefusal(err); !ok || r.Code != CodeReadOnly || !strings.Contains(r.Message, "0444") {
		t.Errorf("%v", err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	if err := os.Chmod(filepath.Join(dir, "d"), 0o555); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"d/a.txt", "d/b.txt"} {
		_, err = do(w, Op{Kind: OpAppend, Path: path, Body: "x"})
		if r, ok := AsRefusal(err); !ok || r.Code != CodeIO || !strings.Contains(r.Message, "not writable") {
			t.Errorf("%v", err)
		}
	}
}

func TestModeOfNewFiles(t *testing.T) {
	dir := tree(t, map[string]string{"run.sh": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	mode := func(name string) fs.FileMode {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return fi.Mode().Perm()
	}
	if _, err := do(w, Op{Kind: OpCopy, Path: "run.sh", Dest: "copy.sh"}); err != nil {
		t.Fatal(err)
	}
	if mode("copy.sh") != 0o750 {
		t.Errorf("copy has %v", mode("copy.sh"))
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := do(w, Op{Kind: OpWrite, Path: "new", Body: "x"}); err != nil {
		t.Fatal(err)
	}
	if mode("new") != mode("plain") {
		t.Errorf("new file has %v, want %v", mode("new"), mode("plain"))
	}
	c, err := do(w, Op{Kind: OpDelete, Path: "run.sh"})
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.Revert(c.Undo())
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(w, back); err != nil {
		t.Fatal(err)
	}
	if mode("run.sh") != 0o750 {
		t.Errorf("brought back with %v", mode("run.sh"))
	}
}

func TestTouchSetsTime(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "a"), old, old); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	if _, err := do(w, Op{Kind: OpTouch, Path: "a"}); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(filepath.Join(dir, "a")); time.Since(fi.ModTime()) > time.Minute {
		t.Errorf("time %v", fi.ModTime())
	}
}

func TestRemoveTemp(t *testing.T) {
	dir := tree(t, map[string]string{".thinkflow-0123456789abcdef.tmp": "half", "a.txt": "a"})
	w := newSpace(t, dir, Options{})
	if r, err := w.List(t.Context(), ListRequest{}); err != nil || len(r.Entries) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := RemoveTemp(filepath.Join(dir, "a.txt")); err == nil {
		t.Error("removed a foreign file")
	}
	temp := filepath.Join(dir, ".thinkflow-0123456789abcdef.tmp")
	for range 2 {
		if err := RemoveTemp(temp); err != nil {
			t.Error(err)
		}
	}
	sameFiles(t, dir, map[string]string{"a.txt": "a"})
}

func TestCommitCancelled(t *testing.T) {
	dir := tree(t, nil)
	w := newSpace(t, dir, Options{})
	c, err := w.Plan(Op{Kind: OpWrite, Path: "a", Body: "x"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Commit(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	sameFiles(t, dir, nil)
}

// TestSwapRace swaps a folder of the approved path for links, inside the root
// and out of it, while changes are committed. Nothing may land behind a link.
func TestSwapRace(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	ws := tree(t, map[string]string{"app/d/keep.txt": "k\n", "app/elsewhere/": "", "outside/": ""})
	app := filepath.Join(ws, "app")
	d := filepath.Join(app, "d")
	w := newSpace(t, app, Options{})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			to := []string{"elsewhere", "../outside"}[i%2]
			_ = os.Rename(d, filepath.Join(app, "aside"))
			_ = os.Symlink(to, d)
			_ = os.Remove(d)
			_ = os.Rename(filepath.Join(app, "aside"), d)
		}
	}()
	applied := 0
	for i := range rounds {
		for _, op := range []Op{
			{Kind: OpWrite, Path: fmt.Sprintf("d/f%d.txt", i), Body: "x\n"},
			{Kind: OpAppend, Path: "d/keep.txt", Body: "x\n"},
			{Kind: OpMkdir, Path: fmt.Sprintf("d/m%d", i)},
		} {
			c, err := w.Plan(op)
			if err != nil {
				continue
			}
			if c.Target.Rel != op.Path {
				continue // planned while the link was there: another target, shown as such
			}
			if _, err := w.Commit(t.Context(), c); err == nil {
				applied++
			}
		}
	}
	close(stop)
	<-done
	for _, dir := range []string{"app/elsewhere", "outside"} {
		if got := names(t, filepath.Join(ws, dir)); len(got) > 0 {
			t.Errorf("%s holds %q", dir, got)
		}
	}
	t.Logf("%d of %d changes applied", applied, 3*rounds)
}
