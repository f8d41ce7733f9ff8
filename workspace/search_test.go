package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"thinkflow/internal/need"
)

func entryPaths(r ListResult) []string {
	var out []string
	for _, e := range r.Entries {
		out = append(out, e.Path)
	}
	return out
}

func TestList(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.go": "", "src/b.go": "", "src/deep/c.go": "", "node_modules/x/y.js": "", ".gitignore": "node_modules/\n*.log\n!keep.log\n",
		"x.log": "", "keep.log": "", ".git/config": "", ".env": "S=1\n", "src/.gitignore": "/deep\n", "empty/": "",
		"bare/HEAD": "", "bare/objects/": "", "bare/refs/": "", "bare/config": "", "secrets/k": "",
	})
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{Deny: []string{"secrets"}})
	w.OpenDocument(Document{Path: filepath.Join(dir, "src/unsaved.go"), Text: "package x\n"})
	for _, row := range []struct {
		req  ListRequest
		want []string
	}{
		{ListRequest{}, []string{".env", ".gitignore", "a.go", "bare/", "empty/", "keep.log", "link", "src/"}},
		{ListRequest{Depth: -1}, []string{".env", ".gitignore", "a.go", "bare/", "empty/", "keep.log", "link", "src/", "src/.gitignore", "src/b.go", "src/unsaved.go"}},
		{ListRequest{Path: "src"}, []string{"src/.gitignore", "src/b.go", "src/unsaved.go"}},
		{ListRequest{Path: "src", Ignored: true}, []string{"src/.gitignore", "src/b.go", "src/deep/", "src/unsaved.go"}},
		{ListRequest{Path: "src/deep"}, []string{"src/deep/c.go"}},
		{ListRequest{Path: "node_modules", Depth: 2}, []string{"node_modules/x/", "node_modules/x/y.js"}},
		{ListRequest{Path: "a.go"}, []string{"a.go"}},
		{ListRequest{MaxEntries: 2}, []string{".env", ".gitignore"}},
	} {
		r, err := w.List(t.Context(), row.req)
		if err != nil || !slices.Equal(entryPaths(r), row.want) {
			t.Errorf("%+v: %q, %v; want %q", row.req, entryPaths(r), err, row.want)
		}
		if r.Truncated != (row.req.MaxEntries == 2) {
			t.Errorf("%+v: truncated %v", row.req, r.Truncated)
		}
	}
	for path, code := range map[string]Code{"nothing": CodeNotFound, ".git": CodeForbidden, "link": CodeOutside, "secrets": CodeDenied, "bare/objects": CodeForbidden} {
		_, err := w.List(t.Context(), ListRequest{Path: path})
		if r, ok := AsRefusal(err); !ok || r.Code != code {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
	}
}

func TestGlob(t *testing.T) {
	dir := tree(t, map[string]string{"a.go": "", "b.txt": "", "src/c.go": "", "src/x/d.go": "", "src/x/e_test.go": "", "{odd}.go": ""})
	w := newSpace(t, dir, Options{})
	for _, row := range []struct {
		req  GlobRequest
		want string
	}{
		{GlobRequest{Pattern: "*.go"}, "a.go src/c.go src/x/d.go src/x/e_test.go {odd}.go"},
		{GlobRequest{Pattern: "./*.go"}, "a.go src/c.go src/x/d.go src/x/e_test.go {odd}.go"},
		{GlobRequest{Pattern: "src/*.go"}, "src/c.go"},
		{GlobRequest{Pattern: "src/**/*.go"}, "src/c.go src/x/d.go src/x/e_test.go"},
		{GlobRequest{Pattern: "**/*_test.go"}, "src/x/e_test.go"},
		{GlobRequest{Pattern: "{a,b}.*"}, "a.go b.txt"},
		{GlobRequest{Pattern: "x/*.go", Path: "src"}, "src/x/d.go src/x/e_test.go"},
		{GlobRequest{Pattern: "*.go", Path: "src/x"}, "src/x/d.go src/x/e_test.go"},
		{GlobRequest{Pattern: "src/"}, "src/c.go src/x/d.go src/x/e_test.go"},
		{GlobRequest{Pattern: "*.rs"}, ""},
	} {
		r, err := w.Glob(t.Context(), row.req)
		if got := strings.Join(entryPaths(r), " "); err != nil || got != row.want {
			t.Errorf("%+v: %q, %v; want %q", row.req, got, err, row.want)
		}
	}
	if _, err := w.Glob(t.Context(), GlobRequest{Pattern: "[a"}); err == nil {
		t.Error("a bad pattern is accepted")
	}
}

func TestMultiRootSearch(t *testing.T) {
	ws := tree(t, map[string]string{"api/x.go": "needle\n", "web/y.go": "needle\n", "web/src/z.go": "needle\n"})
	w, err := New([]Root{{Dir: filepath.Join(ws, "api")}, {Dir: filepath.Join(ws, "web")}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for req, want := range map[GrepRequest]string{
		{}:                       "api/x.go web/src/z.go web/y.go",
		{Path: "web"}:            "web/src/z.go web/y.go",
		{Glob: "web/**"}:         "web/src/z.go web/y.go",
		{Glob: "src/*"}:          "web/src/z.go",
		{Path: "web/src/z.go"}:   "web/src/z.go",
		{Path: "web", Glob: "*"}: "web/src/z.go web/y.go",
	} {
		req.Pattern = "needle"
		r, err := w.Grep(t.Context(), req)
		var got []string
		for _, m := range r.Matches {
			got = append(got, m.Path)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, %v; want %q", req, got, err, want)
		}
	}
	for depth, want := range map[int]string{0: "api/ web/", 2: "api/ api/x.go web/ web/src/ web/y.go"} {
		r, err := w.List(t.Context(), ListRequest{Depth: depth})
		if got := strings.Join(entryPaths(r), " "); err != nil || got != want {
			t.Errorf("depth %d: %q, %v; want %q", depth, got, err, want)
		}
	}
}

func TestGrep(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt":        "one\ntwo Needle here\nthree\nfour\nneedle at the end",
		"b/c.txt":      "no\r\nneedle with CR\r\n",
		"bin":          "needle\x00\n",
		"long.txt":     strings.Repeat("é", 3000) + "needle" + strings.Repeat("x", 3000) + "\n",
		"ignored.log":  "needle\n",
		".gitignore":   "*.log\n",
		".git/x":       "needle\n",
		"latin.txt":    "caf\xe9 needle\n",
		".hidden/d.md": "needle\n",
	})
	w := newSpace(t, dir, Options{})
	for _, row := range []struct {
		req  GrepRequest
		want []string // path:line:column
	}{
		{GrepRequest{Pattern: "needle"}, []string{".hidden/d.md:1:0", "a.txt:5:0", "b/c.txt:2:0", "latin.txt:1:5", "long.txt:1:6000"}},
		{GrepRequest{Pattern: "NEEDLE", IgnoreCase: true, Path: "a.txt"}, []string{"a.txt:2:4", "a.txt:5:0"}},
		{GrepRequest{Pattern: `^needle\b.*CR$`, Regex: true}, []string{"b/c.txt:2:0"}},
		{GrepRequest{Pattern: `[nN]eed\w+`, Regex: true, Glob: "a.*"}, []string{"a.txt:2:4", "a.txt:5:0"}},
		{GrepRequest{Pattern: `n.e.d.l`, Regex: true, IgnoreCase: true, Path: "a.txt"}, nil},
		{GrepRequest{Pattern: `(?i)NEEDLE here`, Regex: true}, []string{"a.txt:2:4"}},
		{GrepRequest{Pattern: "É", IgnoreCase: true, Glob: "long.txt"}, []string{"long.txt:1:0"}},
		{GrepRequest{Pattern: "needle.*", Glob: "*"}, nil},
		{GrepRequest{Pattern: "needle", Ignored: true, Glob: "*.log"}, []string{"ignored.log:1:0"}},
		{GrepRequest{Pattern: "needle", Path: "ignored.log"}, []string{"ignored.log:1:0"}},
		{GrepRequest{Pattern: `^$`, Regex: true}, nil},
		{GrepRequest{Pattern: "e", Path: "a.txt", MaxMatches: 2}, []string{"a.txt:1:2", "a.txt:2:5"}},
	} {
		r, err := w.Grep(t.Context(), row.req)
		var got []string
		for _, m := range r.Matches {
			got = append(got, fmt.Sprintf("%s:%d:%d", m.Path, m.Line, m.Column))
			if len(m.Text) > maxMatchLine+10 || m.Cut != (m.Path == "long.txt") {
				t.Errorf("%+v: %d bytes, cut %v", row.req, len(m.Text), m.Cut)
			}
			if m.Path == "long.txt" && row.req.Pattern == "needle" && !strings.Contains(m.Text, "needle") {
				t.Errorf("the match is cut off: %s", m.Text)
			}
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%+v: %q, %v; want %q", row.req, got, err, row.want)
		}
		if r.Truncated != (row.req.MaxMatches == 2) {
			t.Errorf("%+v: truncated %v", row.req, r.Truncated)
		}
	}
	for _, req := range []GrepRequest{{}, {Pattern: "a\nb"}, {Pattern: "(", Regex: true}, {Pattern: "a", Glob: "["}, {Pattern: "a", Path: ".git"}, {Pattern: "a", Path: "none"}, {Pattern: "a", Path: "bin"}} {
		if _, err := w.Grep(t.Context(), req); err == nil {
			t.Errorf("%+v is accepted", req)
		}
	}
	r, err := w.Grep(t.Context(), GrepRequest{Pattern: "three", Context: 1})
	if err != nil || r.String() != "a.txt\n2- two Needle here\n3: three\n4- four\n" {
		t.Errorf("%q, %v", r.String(), err)
	}
}

// Context of close matches is neither doubled nor out of order.
func TestGrepContext(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1\nx\n3\nx\n5\n6\n7\n8\nx\n"})
	w := newSpace(t, dir, Options{})
	r, err := w.Grep(t.Context(), GrepRequest{Pattern: "x", Context: 2})
	want := "a\n1- 1\n2: x\n3- 3\n4: x\n5- 5\n6- 6\n7- 7\n8- 8\n9: x\n"
	if err != nil || r.String() != want {
		t.Errorf("%s%v", r.String(), err)
	}
	r, err = w.Grep(t.Context(), GrepRequest{Pattern: "x", Context: 1})
	want = "a\n1- 1\n2: x\n3- 3\n4: x\n5- 5\n--\n8- 8\n9: x\n"
	if err != nil || r.String() != want {
		t.Errorf("%s%v", r.String(), err)
	}
}

// What a bound keeps does not depend on timing.
func TestGrepDeterministic(t *testing.T) {
	files := map[string]string{}
	for i := range 600 {
		files[fmt.Sprintf("d%d/f%d.txt", i%17, i)] = strings.Repeat("x\n", i%7)
	}
	dir := tree(t, files)
	w := newSpace(t, dir, Options{})
	var first string
	for range 20 {
		r, err := w.Grep(t.Context(), GrepRequest{Pattern: "x", MaxMatches: 50})
		if err != nil || !r.Truncated || len(r.Matches) != 50 {
			t.Fatalf("%d matches, %v", len(r.Matches), err)
		}
		if first == "" {
			first = r.String()
		}
		if r.String() != first {
			t.Fatalf("%s\nis not\n%s", r.String(), first)
		}
	}
}

// The walk leaves out what git ignores: compared with git itself on random
// patterns.
func TestIgnoreLikeGit(t *testing.T) {
	need.Program(t, "git")
	r := rand.New(rand.NewPCG(5, 5))
	comps := []string{"a", "b", "foo", "bar.txt", "x.log", "build", "a b", "{c}", "#h", "!n", "deep"}
	pats := []string{"a", "/a", "a/", "*.log", "!x.log", "foo/**", "**/foo", "a/**/b", "b?r.txt", "[ab]", "[!a]", "/build/", "foo/*", "!foo/bar.txt",
		"a\\ b", "{c}", "\\#h", "\\!n", "# comment", "", "  ", "*", "!*/", "!*.txt", "deep/", "**", "a/b", "**/build/**", "*.txt ", "/*/b", "foo*", "*o", "a**b", "x.*"}
	for i := range 150 {
		files := map[string]string{}
		for range 25 {
			var parts []string
			for range 1 + r.IntN(4) {
				parts = append(parts, comps[r.IntN(len(comps))])
			}
			files[strings.Join(parts, "/")] = "x"
		}
		// no path may be both file and folder
		for name := range files {
			for other := range files {
				if strings.HasPrefix(other, name+"/") {
					delete(files, name)
				}
			}
		}
		ignore := func() string {
			var lines []string
			for range 1 + r.IntN(4) {
				lines = append(lines, pats[r.IntN(len(pats))])
			}
			return strings.Join(lines, "\n") + "\n"
		}
		dir := tree(t, files)
		fill(t, dir, map[string]string{".gitignore": ignore()})
		for _, sub := range []string{"a", "foo"} {
			if fi, err := os.Stat(filepath.Join(dir, sub)); err == nil && fi.IsDir() && r.IntN(2) == 0 {
				fill(t, dir, map[string]string{sub + "/.gitignore": ignore()})
			}
		}
		git := func(args ...string) string {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			return string(out)
		}
		git("init", "-q")
		fill(t, dir, map[string]string{".git/info/exclude": "bar.txt\n"})
		want := strings.Split(strings.TrimSuffix(git("ls-files", "-z", "-o", "--exclude-standard"), "\x00"), "\x00")
		sort.Strings(want)
		w := newSpace(t, dir, Options{})
		res, err := w.Glob(t.Context(), GlobRequest{Pattern: "**"})
		if err != nil {
			t.Fatal(err)
		}
		got := entryPaths(res)
		if len(got) == 0 {
			got = []string{""}
		}
		if !slices.Equal(got, want) {
			root, _ := os.ReadFile(filepath.Join(dir, ".gitignore"))
			a, _ := os.ReadFile(filepath.Join(dir, "a/.gitignore"))
			foo, _ := os.ReadFile(filepath.Join(dir, "foo/.gitignore"))
			t.Fatalf("run %d: patterns\n%s--a:\n%s--foo:\n%s\ngot  %q\nwant %q", i, root, a, foo, got, want)
		}
		// The same from a folder inside, as if it were the root.
		if fi, err := os.Stat(filepath.Join(dir, "a")); err == nil && fi.IsDir() {
			var below []string
			for _, p := range want {
				if s, ok := strings.CutPrefix(p, "a/"); ok {
					below = append(below, s)
				}
			}
			w := newSpace(t, filepath.Join(dir, "a"), Options{})
			res, err := w.Glob(t.Context(), GlobRequest{Pattern: "**"})
			if err != nil {
				t.Fatal(err)
			}
			if got := entryPaths(res); len(below) > 0 && !slices.Equal(got, below) {
				t.Fatalf("run %d: from a: got %q, want %q", i, got, below)
			}
		}
	}
}

func TestRead(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "1\n2\n3\n4\n5", "mark.txt": bom + "m\n", "empty": "", "é.txt": "ééé\nééé\n"})
	w := newSpace(t, dir, Options{})
	for _, row := range []struct {
		req          ReadRequest
		text, header string
	}{
		{ReadRequest{Path: "a.txt"}, "1\n2\n3\n4\n5", "a.txt: lines 1-5 of 5"},
		{ReadRequest{Path: "a.txt", Line: 2, Lines: 2}, "2\n3\n", "a.txt: lines 2-3 of 5"},
		{ReadRequest{Path: "a.txt", Line: 4, Lines: 20}, "4\n5", "a.txt: lines 4-5 of 5"},
		{ReadRequest{Path: "a.txt", Line: 5}, "5", "a.txt: lines 5-5 of 5"},
		{ReadRequest{Path: "a.txt", MaxBytes: 5}, "1\n2\n", "a.txt: lines 1-2 of 5, truncated: bytes 0 to 3 of 9; continue with line 3"},
		{ReadRequest{Path: "a.txt", Byte: 2, Bytes: 3}, "2\n3", "a.txt: bytes 2 to 4 of 9, from line 2"},
		{ReadRequest{Path: "é.txt", Byte: 1, Bytes: 4}, "é", "é.txt: bytes 2 to 3 of 14, from line 1"},
		{ReadRequest{Path: "é.txt", MaxBytes: 3}, "é", "é.txt: truncated: bytes 0 to 1 of 14; line 1 is cut; continue with a byte range from 2"},
		{ReadRequest{Path: "mark.txt"}, "m\n", "mark.txt: lines 1-1 of 1"},
		{ReadRequest{Path: "empty"}, "", "empty: empty file"},
	} {
		r, err := w.Read(t.Context(), row.req)
		if err != nil || r.Text != row.text || r.Header != row.header {
			t.Errorf("%+v: %q, %q, %v", row.req, r.Text, r.Header, err)
		}
	}
	for req, code := range map[ReadRequest]Code{
		{Path: "a.txt", Line: 6}:   CodeInvalid,
		{Path: "a.txt", Byte: 9}:   CodeInvalid,
		{Path: "."}:                CodeIsDirectory,
		{Path: "b.txt"}:            CodeNotFound,
		{Path: "../x"}:             CodeOutside,
		{Path: ".git/config"}:      CodeForbidden,
		{Path: "a.txt/b"}:          CodeNotFound,
		{Path: "id_rsa.pub/../.."}: CodeOutside,
	} {
		_, err := w.Read(t.Context(), req)
		if r, ok := AsRefusal(err); !ok || r.Code != code {
			t.Errorf("%+v: %v, want %s", req, err, code)
		}
	}
}
