package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// tree makes files in a fresh root; names ending in "/" are folders.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir, files)
	return dir
}

func fill(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func newSpace(t testing.TB, dir string, opts Options) *Workspace {
	t.Helper()
	w, err := New([]Root{{Dir: dir}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// do plans and commits; for open documents it plays an editor that applies.
func do(w *Workspace, op Op) (*Change, error) {
	c, err := w.Plan(op)
	if err != nil {
		return nil, err
	}
	return c, apply(w, c)
}

func apply(w *Workspace, c *Change) error {
	if c.Open && c.Kind == ChangeModify {
		d, _ := w.Document(c.Target.Given)
		if _, ok := w.ReplaceDocument(d.Path, d.Version+1, c.After()); !ok {
			return refuse(CodeInvalid, c.Target.Display, "no such document")
		}
		return nil
	}
	_, err := w.Commit(context.Background(), c)
	return err
}

// disk reads all regular files below dir.
func disk(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, path)
			out[filepath.ToSlash(rel)] = string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameFiles(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	got := disk(t, dir)
	var names []string
	for n := range got {
		names = append(names, n)
	}
	for n := range want {
		if _, ok := got[n]; !ok {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	for _, n := range names {
		g, ok := got[n]
		w, wanted := want[n]
		switch {
		case !ok:
			t.Errorf("%s is missing", n)
		case !wanted:
			t.Errorf("%s should not be there: %q", n, g)
		case g != w:
			t.Errorf("%s is %q, want %q", n, g, w)
		}
	}
}

// kase is one line of testdata/edit-match/cases.jsonl.
type kase struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Input struct {
		Files       map[string]string `json:"files"`
		FilesHex    map[string]string `json:"files_hex"`
		Disk        map[string]string `json:"disk"`
		Symlinks    map[string]string `json:"symlinks"`
		Modes       map[string]string `json:"modes"`
		ReadByModel map[string]string `json:"read_by_model"`
		Buffer      *struct {
			URI     string `json:"uri"`
			Version int32  `json:"version"`
			Text    string `json:"text"`
			Dirty   *bool  `json:"dirty"`
		} `json:"buffer"`
		Op     *kaseOp  `json:"op"`
		Ops    []kaseOp `json:"ops"`
		Paths  []string `json:"paths"`
		Chunks []string `json:"chunks"`
	} `json:"input"`
	Expected struct {
		Outcome       json.RawMessage   `json:"outcome"`
		Match         string            `json:"match"`
		FilesAfter    map[string]string `json:"files_after"`
		FilesAfterHex map[string]string `json:"files_after_hex"`
		Lines         []int             `json:"candidate_lines"`
		Flag          string            `json:"flag"`
		Reason        string            `json:"reason"`
		Results       json.RawMessage   `json:"results"`
	} `json:"expected"`
}

type kaseOp struct {
	Tag   string `json:"tag"`
	Path  string `json:"path"`
	Dest  string `json:"dest"`
	Body  string `json:"body"`
	Edits []struct {
		Old string `json:"old"`
		New string `json:"new"`
	} `json:"edits"`
}

func (o kaseOp) op() Op {
	op := Op{Kind: OpKind(strings.TrimPrefix(o.Tag, "tf-")), Path: o.Path, Dest: o.Dest, Body: o.Body}
	for _, e := range o.Edits {
		op.Pairs = append(op.Pairs, Pair{Old: e.Old, New: e.New})
	}
	return op
}

func loadCases(t testing.TB) map[string]kase {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "edit-match", "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]kase{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var k kase
		if err := json.Unmarshal(sc.Bytes(), &k); err != nil {
			t.Fatalf("%s: %v", sc.Text()[:40], err)
		}
		out[k.ID] = k
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
