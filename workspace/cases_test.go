package workspace

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// reasons are words that the refusals of the cases must hold.
var reasons = map[string][]string{
	"EM-03": {"old text is empty", "tf-append", "tf-write"},
	"EM-04": {"same", "line 1", "will not help"},
	"EM-05": {"2 places", "2, 5"},
	"EM-06": {"2 places", "overlapping", "1, 2"},
	"EM-13": {"not found", "line 2", "tab indentation", "→"},
	"EM-16": {"not found", "line-number prefix"},
	"EM-17": {"line 3", "placeholder"},
	"EM-19": {"pairs 1 and 2 overlap at line 3", "nothing was changed"},
	"EM-20": {"pair 2", "not found", "as it was before this edit"},
	"EM-24": {"not found"},
	"EM-26": {"not found"},
	"EM-31": {"not found", "line 2", "three levels less"},
	"EM-32": {"not found", "most similar line: 1"},
	"EM-34": {"not found"},
}

// TestEditMatchCases plays all edit-match cases. What an editor or the parser
// has to do with two of them is played at this package's level: EM-27's
// formatter runs after both edits; EM-28 is malformed before it gets here.
func TestEditMatchCases(t *testing.T) {
	n := 0
	for id, k := range loadCases(t) {
		if k.Kind != "edit-match" {
			continue
		}
		n++
		t.Run(id, func(t *testing.T) {
			dir := tree(t, k.Input.Files)
			w := newSpace(t, dir, Options{})
			ops := k.Input.Ops
			if k.Input.Op != nil {
				ops = append(ops, *k.Input.Op)
			}
			if id == "EM-28" {
				ops = []kaseOp{{Tag: "tf-edit", Path: "a.txt"}}
			}
			var outcomes []string
			var said string
			rung := ""
			before := modTimes(t, dir)
			for _, o := range ops {
				op := o.op()
				if text, ok := k.Input.ReadByModel[op.Path]; ok {
					op.KnownEver, op.Known = true, HashText(text)
				}
				c, err := do(w, op)
				r, refused := AsRefusal(err)
				switch {
				case refused:
					outcomes = append(outcomes, "refused")
					said += r.Message + "\n" + r.Nearest
					if k.Expected.Lines != nil && !slices.Equal(r.Lines, k.Expected.Lines) {
						t.Errorf("candidates %v, want %v", r.Lines, k.Expected.Lines)
					}
					if len(r.Nearest) > nearestBytes+nearestWidth {
						t.Errorf("nearest text has %d bytes", len(r.Nearest))
					}
				case err != nil:
					t.Fatal(err)
				default:
					outcomes = append(outcomes, "applied")
					rung = c.Rung
					said += strings.Join(c.Notes, "\n")
					if len(op.Pairs) > 0 {
						checkOutside(t, c)
					}
				}
			}
			want := strings.Trim(string(k.Expected.Outcome), `"`)
			switch {
			case want == "mixed":
				want = "applied refused"
			case len(ops) == 2:
				want += " " + want
			}
			if got := strings.Join(outcomes, " "); got != want {
				t.Errorf("outcome %s, want %s: %s", got, want, said)
			}
			after := k.Expected.FilesAfter
			if id == "EM-27" {
				after = map[string]string{"f.ts": "const a = 'z'\n"}
			}
			if id == "EM-29" {
				after = map[string]string{"big.go": "package big\n"}
			}
			sameFiles(t, dir, after)
			if k.Expected.Match != "" && rung != k.Expected.Match {
				t.Errorf("rung %q, want %q", rung, k.Expected.Match)
			}
			if want == "refused" && !slices.Equal(before, modTimes(t, dir)) {
				t.Error("a refusal touched the file")
			}
			if k.Expected.Flag != "" && !strings.Contains(said, k.Expected.Flag) {
				t.Errorf("flag %q is missing: %s", k.Expected.Flag, said)
			}
			for _, word := range reasons[id] {
				if !strings.Contains(said, word) {
					t.Errorf("%q is missing in: %s", word, said)
				}
			}
		})
	}
	if n != 35 {
		t.Errorf("%d cases, want 35", n)
	}
}

func modTimes(t *testing.T, dir string) []time.Time {
	t.Helper()
	var out []time.Time
	for name := range disk(t, dir) {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fi.ModTime())
	}
	return out
}

// checkOutside checks that the edits leave all other bytes as they are, do not
// cut CR LF and lead back.
func checkOutside(t testing.TB, c *Change) {
	t.Helper()
	got := mustApply(c.Before.Text, c.Edits)
	if got != c.After() || HashText(got) != c.AfterHash {
		t.Errorf("edits %+v do not give the text after", c.Edits)
	}
	for i, e := range c.Edits {
		if i > 0 && c.Edits[i-1].End >= e.Start {
			t.Errorf("edits %+v touch or overlap", c.Edits)
		}
		for _, off := range []int{e.Start, e.End} {
			if off > 0 && off < len(c.Before.Text) && c.Before.Text[off-1:off+1] == "\r\n" {
				t.Errorf("edit %+v cuts CR LF", e)
			}
		}
	}
	if back := mustApply(got, invertEdits(c.Before.Text, c.Edits)); back != c.Before.Text {
		t.Errorf("inverse edits give %q", back)
	}
}

// TestFenceCases are the two tag-stream cases about a fence around the body.
func TestFenceCases(t *testing.T) {
	dir := tree(t, nil)
	w := newSpace(t, dir, Options{})
	c, err := do(w, Op{Kind: OpWrite, Path: "cmd/x.go", Body: "```go\npackage x\n\nvar A = 1\n```\n"})
	if err != nil || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "unwrapped code fence") {
		t.Errorf("notes %q, %v", c.Notes, err)
	}
	readme := "```sh\nmake\n```\n\nThen:\n\n```sh\nmake test\n```\n"
	if _, err := do(w, Op{Kind: OpWrite, Path: "README.md", Body: readme}); err != nil {
		t.Error(err)
	}
	sameFiles(t, dir, map[string]string{"cmd/x.go": "package x\n\nvar A = 1\n", "README.md": readme})
}

// TestEditorCases are the lsp-editor cases as far as this package decides them:
// the text of the buffer, the edits, refusals.
func TestEditorCases(t *testing.T) {
	cases := loadCases(t)
	for _, id := range []string{"LE-01", "LE-03", "LE-04", "LE-05", "LE-06", "LE-15", "LE-16", "LE-17", "LE-19", "LE-22"} {
		k := cases[id]
		t.Run(id, func(t *testing.T) {
			dir := tree(t, k.Input.Files)
			disk := k.Input.Disk
			if id == "LE-22" {
				disk = map[string]string{"k.txt": "old\n"} // the buffer was loaded from this
			}
			fill(t, dir, disk)
			for from, to := range k.Input.Symlinks {
				if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
					t.Fatal(err)
				}
			}
			w := newSpace(t, dir, Options{})
			path := filepath.Join(dir, strings.TrimPrefix(k.Input.Buffer.URI, "file:///ws/"))
			w.OpenDocument(Document{Path: path, URI: k.Input.Buffer.URI, Version: k.Input.Buffer.Version, Text: k.Input.Buffer.Text})
			if id == "LE-22" {
				fill(t, dir, k.Input.Disk)
			}
			c, err := w.Plan(k.Input.Op.op())
			if id == "LE-22" {
				if r, ok := AsRefusal(err); !ok || r.Code != CodeBufferStale || !strings.Contains(r.Message, "differs from the file on disk") {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkOutside(t, c)
			if !c.Open || c.Before.URI != k.Input.Buffer.URI || c.Before.Version != k.Input.Buffer.Version {
				t.Errorf("open %v, uri %s, version %d", c.Open, c.Before.URI, c.Before.Version)
			}
			want := ""
			for _, text := range k.Expected.FilesAfter {
				want = text
			}
			switch id {
			case "LE-05":
				want = "z\n"
			case "LE-06":
				want = "new\n"
			case "LE-15":
				want = "2\n"
			}
			if c.After() != want {
				t.Errorf("text %q, want %q", c.After(), want)
			}
			for _, e := range c.Edits {
				if strings.Contains(strings.ReplaceAll(e.New, "\r\n", ""), "\r") {
					t.Errorf("lone CR in %q", e.New)
				}
			}
			before := c.Before.Text
			switch id {
			case "LE-03":
				if want := []Edit{{4, 4, "c\n"}}; !slices.Equal(c.Edits, want) {
					t.Errorf("edits %v, want %v", c.Edits, want)
				}
			case "LE-04":
				if want := []Edit{{len(before), len(before), "\nc\n"}}; !slices.Equal(c.Edits, want) {
					t.Errorf("edits %v, want %v", c.Edits, want)
				}
			}
		})
	}
}

// TestUndecodableCases are LE-23 (Latin-1) and LE-24 (binary).
func TestUndecodableCases(t *testing.T) {
	cases := loadCases(t)
	for _, id := range []string{"LE-23", "LE-24"} {
		k := cases[id]
		t.Run(id, func(t *testing.T) {
			files := map[string]string{}
			for name, h := range k.Input.FilesHex {
				data, err := hex.DecodeString(h)
				if err != nil {
					t.Fatal(err)
				}
				files[name] = string(data)
			}
			dir := tree(t, files)
			w := newSpace(t, dir, Options{})
			ops := k.Input.Ops
			if k.Input.Op != nil {
				ops = append(ops, *k.Input.Op)
			}
			for _, o := range ops {
				var err error
				if o.Tag == "tf-read" {
					_, err = w.Read(t.Context(), ReadRequest{Path: o.Path})
				} else {
					_, err = do(w, o.op())
				}
				r, ok := AsRefusal(err)
				if !ok || !strings.Contains(r.Message, strings.Split(k.Expected.Reason, ",")[0]) {
					t.Errorf("%s: %v, want %s", o.Tag, err, k.Expected.Reason)
				}
			}
			sameFiles(t, dir, files)
		})
	}
}

// TestHugeLineCase is LE-25.
func TestHugeLineCase(t *testing.T) {
	dir := tree(t, map[string]string{"min.json": "{" + strings.Repeat("a", 3000000) + "}"})
	w := newSpace(t, dir, Options{})
	r, err := w.Read(t.Context(), ReadRequest{Path: "min.json"})
	if err != nil || len(r.Text) != 65536 || !strings.Contains(r.Header, "truncated: bytes 0 to 65535 of 3000002; line 1 is cut") {
		t.Errorf("%d bytes, %q, %v", len(r.Text), r.Header, err)
	}
	r, err = w.Read(t.Context(), ReadRequest{Path: "min.json", Byte: 3000000, Bytes: 100})
	if err != nil || r.Text != "a}" {
		t.Errorf("%q, %q, %v", r.Text, r.Header, err)
	}
}

// TestPathCases are SE-01, SE-02, SE-05, SE-06, SE-15 on a workspace /ws/app.
func TestPathCases(t *testing.T) {
	cases := loadCases(t)
	for _, id := range []string{"SE-01", "SE-02", "SE-05", "SE-06", "SE-15"} {
		k := cases[id]
		t.Run(id, func(t *testing.T) {
			ws := tree(t, map[string]string{"app/": "", "app-secrets/k.txt": "s", "app2/": ""})
			opts := Options{}
			if id == "SE-15" {
				opts.Deny = []string{"secrets/**"}
			}
			w := newSpace(t, filepath.Join(ws, "app"), opts)
			var want []string
			if err := json.Unmarshal(k.Expected.Outcome, &want); err != nil {
				t.Fatal(err)
			}
			for i, path := range k.Input.Paths {
				path = strings.Replace(path, "/ws/app", filepath.Join(ws, "app"), 1)
				target, err := w.Resolve(path, AccessWrite)
				_, refused := AsRefusal(err)
				ok := false
				switch {
				case want[i] == "refused on Windows":
					ok = true
				case strings.HasPrefix(want[i], "refused"):
					ok = refused
				case strings.HasPrefix(want[i], "ask"):
					ok = err == nil && target.Protected
				case strings.HasPrefix(want[i], "applied as "):
					ok = err == nil && target.Rel == strings.TrimPrefix(want[i], "applied as ")
				default:
					ok = err == nil && !target.Protected
				}
				if !ok {
					t.Errorf("%q: %+v, %v; want %s", path, target, err, want[i])
				}
			}
		})
	}
}

// TestLinkCases are SE-03, SE-04, SE-08.
func TestLinkCases(t *testing.T) {
	ws := tree(t, map[string]string{"app/src/": "", "app/safe.txt": "s\n", "other/": "", "outside/": ""})
	link := func(to, from string) {
		if err := os.Symlink(to, filepath.Join(ws, from)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(ws, "other"), "app/out")
	link("src", "app/in")
	link(filepath.Join(ws, "outside/created.txt"), "app/notes.txt")
	w := newSpace(t, filepath.Join(ws, "app"), Options{})
	for _, row := range []struct {
		op   Op
		want Code
	}{
		{Op{Kind: OpWrite, Path: "out/evil.txt", Body: "x"}, CodeOutside},
		{Op{Kind: OpWrite, Path: "in/ok.txt", Body: "x"}, ""},
		{Op{Kind: OpMkdir, Path: "out/new/deep"}, CodeOutside},
		{Op{Kind: OpWrite, Path: "notes.txt", Body: "x"}, CodeOutside},
		{Op{Kind: OpAppend, Path: "notes.txt", Body: "x"}, CodeOutside},
	} {
		c, err := do(w, row.op)
		r, _ := AsRefusal(err)
		if (r == nil) != (row.want == "") || r != nil && r.Code != row.want {
			t.Errorf("%+v: %v, want %q", row.op, err, row.want)
		}
		if r == nil && c.Target.Display != "src/ok.txt" {
			t.Errorf("display %q", c.Target.Display)
		}
	}
	sameFiles(t, ws, map[string]string{"app/src/ok.txt": "x", "app/safe.txt": "s\n"})

	c, err := w.Plan(Op{Kind: OpCopy, Path: "safe.txt", Dest: "safe2.txt"})
	if err != nil {
		t.Fatal(err)
	}
	link("../outside.txt", "app/safe2.txt")
	_, err = w.Commit(t.Context(), c)
	if r, ok := AsRefusal(err); !ok || r.Code != CodeChanged {
		t.Errorf("copy onto a link that appeared: %v", err)
	}
	sameFiles(t, ws, map[string]string{"app/src/ok.txt": "x", "app/safe.txt": "s\n"})
}

// What was approved is what runs: the path may not lead elsewhere by then.
func TestApprovedTarget(t *testing.T) {
	dir := tree(t, map[string]string{"one/a.txt": "1\n", "two/a.txt": "2\n"})
	link := filepath.Join(dir, "cur")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	op := Op{Kind: OpMove, Path: "cur/a.txt", Dest: "cur/b.txt", Approved: []string{filepath.Join(dir, "one/a.txt"), filepath.Join(dir, "one/b.txt")}}
	if _, err := w.Plan(op); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("two", link); err != nil {
		t.Fatal(err)
	}
	_, err := w.Plan(op)
	if r, ok := AsRefusal(err); !ok || r.Code != CodeChanged {
		t.Errorf("%v", err)
	}
}

// TestProtectedCase is SE-07: even where everything is allowed.
func TestProtectedCase(t *testing.T) {
	dir := tree(t, map[string]string{".vscode/settings.json": "{}\n", "notes.json": "{}\n"})
	w := newSpace(t, dir, Options{})
	for _, o := range loadCases(t)["SE-07"].Input.Ops {
		c, err := w.Plan(o.op())
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if !c.Target.Protected && (c.Dest == nil || !c.Dest.Protected) {
			t.Errorf("%+v is not protected", o)
		}
	}
}

// TestSecretCase is SE-14, once with the case's deny patterns and once with the
// built-in list of secrets.
func TestSecretCase(t *testing.T) {
	for _, deny := range [][]string{{".env", ".env.*", "!.env.example"}, nil} {
		t.Run(fmt.Sprint(deny), func(t *testing.T) {
			dir := tree(t, map[string]string{".env": "TOKEN=abc123\n", ".env.example": "TOKEN=\n", "src/.ENV.local": "TOKEN=zzz\n"})
			w := newSpace(t, dir, Options{Deny: deny})
			for _, path := range []string{".env", "./src/../.env", "src/.ENV.local"} {
				if _, err := w.Read(t.Context(), ReadRequest{Path: path}); err == nil {
					t.Errorf("%s was read", path)
				}
			}
			if _, err := w.Plan(Op{Kind: OpCopy, Path: ".env", Dest: "public/e.txt"}); err == nil {
				t.Error(".env was copied")
			}
			if _, err := w.Plan(Op{Kind: OpMove, Path: ".env", Dest: "e.txt"}); err == nil {
				t.Error(".env was moved")
			}
			_, err := w.Plan(Op{Kind: OpEdit, Path: ".env", Pairs: []Pair{{"TOKEN=x", "y"}}})
			if r, ok := AsRefusal(err); !ok || strings.Contains(r.Nearest+r.Message, "abc123") {
				t.Errorf("a failed edit shows the secret: %v", err)
			}
			if r, err := w.Read(t.Context(), ReadRequest{Path: ".env.example"}); err != nil || r.Text != "TOKEN=\n" {
				t.Errorf("%q, %v", r.Text, err)
			}
			res, err := w.Grep(t.Context(), GrepRequest{Pattern: "TOKEN"})
			if err != nil || len(res.Matches) != 1 || res.Matches[0].Path != ".env.example" {
				t.Errorf("%v, %v", res, err)
			}
			if _, err := w.Grep(t.Context(), GrepRequest{Pattern: "TOKEN", Path: ".env"}); err == nil {
				t.Error(".env was searched")
			}
		})
	}
}

// TestMultiRootCase is LE-26.
func TestMultiRootCase(t *testing.T) {
	ws := tree(t, map[string]string{"api/package.json": "{}\n", "web/package.json": "{}\n", "web/only.ts": "1\n"})
	w, err := New([]Root{{Dir: filepath.Join(ws, "api")}, {Dir: filepath.Join(ws, "web")}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path   string
		access Access
		want   string // display, or a part of the refusal
		ok     bool
	}{
		{"package.json", AccessRead, "ambiguous: api/package.json, web/package.json", false},
		{"web/package.json", AccessRead, "web/package.json", true},
		{"only.ts", AccessRead, "web/only.ts", true},
		{"only.ts", AccessWrite, "web/only.ts", true},
		{"new.ts", AccessWrite, "api/, web/", false},
		{"new.ts", AccessRead, "api/, web/", false},
		{"web/new.ts", AccessCreate, "web/new.ts", true},
		{"web", AccessRead, "web", true},
		{filepath.Join(ws, "web/x"), AccessWrite, "web/x", true},
		{"../web/x", AccessWrite, "outside", false},
	} {
		target, err := w.Resolve(row.path, row.access)
		if row.ok && (err != nil || target.Display != row.want) {
			t.Errorf("%s: %q, %v; want %q", row.path, target.Display, err, row.want)
		}
		if !row.ok && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v; want %q", row.path, err, row.want)
		}
	}
}

// TestModeAndLinkCase is LE-27.
func TestModeAndLinkCase(t *testing.T) {
	dir := tree(t, map[string]string{"bin/run.sh": "#!/bin/sh\n", "real.cfg": "a\n"})
	if err := os.Chmod(filepath.Join(dir, "bin/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.cfg", filepath.Join(dir, "app.cfg")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{})
	for _, o := range loadCases(t)["LE-27"].Input.Ops {
		if _, err := do(w, o.op()); err != nil {
			t.Fatal(err)
		}
	}
	sameFiles(t, dir, map[string]string{"bin/run.sh": "#!/bin/sh\nexit 0\n", "real.cfg": "a\nb\n"})
	if fi, _ := os.Stat(filepath.Join(dir, "bin/run.sh")); fi.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", fi.Mode())
	}
	if to, err := os.Readlink(filepath.Join(dir, "app.cfg")); to != "real.cfg" {
		t.Errorf("the link is gone: %v", err)
	}
}

// TestUnsavedCase is LE-21.
func TestUnsavedCase(t *testing.T) {
	dir := tree(t, map[string]string{"u.go": "var A = 1\n"})
	w := newSpace(t, dir, Options{})
	w.OpenDocument(Document{Path: filepath.Join(dir, "u.go"), Version: 9, Text: "var A = 2\n"})
	r, err := w.Read(t.Context(), ReadRequest{Path: "u.go"})
	if err != nil || r.Text != "var A = 2\n" {
		t.Errorf("%q, %v", r.Text, err)
	}
	res, err := w.Grep(t.Context(), GrepRequest{Pattern: "A = 2"})
	if err != nil || len(res.Matches) != 1 || res.Matches[0].Path != "u.go" || res.Matches[0].Line != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if res, _ := w.Grep(t.Context(), GrepRequest{Pattern: "A = 1"}); len(res.Matches) != 0 {
		t.Errorf("the text on disk shows: %+v", res)
	}
}
