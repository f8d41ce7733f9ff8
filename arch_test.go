package thinkflow_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"thinkflow/agent"
)

// module is the path that our own imports begin with.
const module = "thinkflow"

// layer is what one package may import besides the standard library. A prefix
// that ends in "/..." covers everything below it.
type layer struct {
	own        []string // packages of this module, without the module's path
	thirdParty []string
}

// layers is the import table: imports go down only. A package that is not
// listed is an error, so a new one is a decision.
var layers = map[string]layer{
	"parser":           {},
	"workspace":        {thirdParty: []string{"github.com/sergi/go-diff/...", "golang.org/x/text/...", "golang.org/x/sys/...", "golang.org/x/sync/...", "github.com/sabhiram/go-gitignore", "github.com/bmatcuk/doublestar/v4", "github.com/klauspost/compress/s2"}},
	"ledger":           {thirdParty: []string{"modernc.org/sqlite/...", "github.com/gofrs/flock", "golang.org/x/sys/..."}},
	"workspace/review": {own: []string{"workspace"}},
	"agent": {
		own:        []string{"parser", "workspace", "workspace/review", "ledger", "agent/profile", "agent/registry", "agent/thinking", "internal/config", "internal/policy", "internal/redact", "internal/sandbox", "internal/shellrules", "internal/trust"},
		thirdParty: []string{"github.com/rs/xid", "github.com/klauspost/compress/s2", "github.com/google/jsonschema-go/...", "github.com/cenkalti/backoff/v5", "github.com/dustin/go-humanize", "golang.org/x/sync/...", "golang.org/x/sys/..."},
	},
	"agent/profile":  {},
	"agent/registry": {thirdParty: []string{"github.com/google/jsonschema-go/...", "github.com/sony/gobreaker/v2"}},
	"agent/thinking": {},
	"agent/openai":   {own: []string{"agent"}, thirdParty: []string{"github.com/sashabaranov/go-openai/..."}},
	"lsp": {
		own:        []string{"agent", "workspace"},
		thirdParty: []string{"go.lsp.dev/...", "github.com/go-json-experiment/json/..."},
	},
	"cmd/thinkflow": {
		own:        []string{"agent", "agent/openai", "lsp", "workspace", "ledger", "internal/..."},
		thirdParty: []string{"github.com/alecthomas/kong", "github.com/dustin/go-humanize"},
	},
	"internal/config": {thirdParty: []string{"github.com/pelletier/go-toml/v2/...", "github.com/dustin/go-humanize"}},
	"internal/term":   {own: []string{"agent", "internal/redact"}, thirdParty: []string{"github.com/fatih/color", "github.com/rivo/uniseg", "github.com/dustin/go-humanize", "github.com/mattn/go-colorable", "golang.org/x/term", "golang.org/x/sys/..."}},
	// The terminal session; only the command chat uses it.
	"internal/chat":        {own: []string{"agent", "workspace", "internal/config", "internal/term"}, thirdParty: []string{"charm.land/bubbletea/v2", "charm.land/bubbles/v2/...", "charm.land/lipgloss/v2", "github.com/charmbracelet/x/ansi"}},
	"internal/scripted":    {thirdParty: []string{"golang.org/x/tools/txtar"}},
	"internal/sandbox":     {thirdParty: []string{"github.com/landlock-lsm/go-landlock/...", "golang.org/x/net/bpf", "golang.org/x/sys/..."}},
	"internal/shellrules":  {own: []string{"internal/sandbox"}, thirdParty: []string{"mvdan.cc/sh/v3/..."}},
	"internal/policy":      {own: []string{"workspace", "internal/shellrules"}},
	"internal/redact":      {},
	"internal/notify":      {own: []string{"agent"}},
	"internal/serve":       {own: []string{"agent", "ledger"}, thirdParty: []string{"github.com/google/jsonschema-go/..."}},
	"internal/report":      {own: []string{"agent", "ledger", "internal/redact"}, thirdParty: []string{"github.com/dustin/go-humanize"}},
	"internal/telemetry":   {own: []string{"agent"}, thirdParty: []string{"go.opentelemetry.io/otel/..."}},
	"internal/trust":       {thirdParty: []string{"github.com/gofrs/flock"}},
	"internal/secretstore": {thirdParty: []string{"github.com/zalando/go-keyring"}},
	"internal/attacks":     {},                                                            // tests only
	"internal/need":        {},                                                            // for tests
	"agent/agenttest":      {own: []string{"agent", "internal/need", "internal/sandbox"}}, // for tests
	// The experiment starts agents as programs; it knows nothing of their insides.
	"internal/experiment":                          {thirdParty: []string{"golang.org/x/tools/txtar"}},
	"internal/experiment/cmd/thinkflow-experiment": {own: []string{"internal/experiment"}},
	// The fake editor is an LSP client for tests; no program imports it.
	"internal/fakeeditor": {thirdParty: []string{"go.lsp.dev/..."}},
	// A browser for the tests of pages.
	"internal/chromium": {},
}

// apart are packages that do not import each other even in their tests.
var apart = []string{"parser", "workspace", "ledger"}

// long are the files of more than maxLines lines, with the reason.
var long = map[string]string{}

const maxLines = 600

// source is one Go file of ours.
type source struct {
	path string // relative, with /
	dir  string
	test bool
	data []byte
	ast  *ast.File
}

// sources reads every Go file of the module, whatever its build constraints.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, p, data, parser.ParseComments)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		out = append(out, source{slash, path.Dir(slash), strings.HasSuffix(name, "_test.go"), data, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func imports(f *ast.File) []string {
	var out []string
	for _, i := range f.Imports {
		out = append(out, strings.Trim(i.Path.Value, `"`))
	}
	return out
}

func covered(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(l string) bool {
		base, deep := strings.CutSuffix(l, "/...")
		return pkg == base || deep && strings.HasPrefix(pkg, base+"/")
	})
}

func TestImportTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.dir == "." || strings.HasPrefix(s.dir, "editors/") || strings.HasPrefix(s.dir, "scripts/") {
			continue
		}
		l, ok := layers[s.dir]
		if !ok {
			if !seen[s.dir] {
				t.Errorf("package %s is not in the import table", s.dir)
			}
			seen[s.dir] = true
			continue
		}
		seen[s.dir] = true
		for _, imp := range imports(s.ast) {
			own, isOwn := strings.CutPrefix(imp, module+"/")
			switch {
			case s.test:
				if isOwn && slices.Contains(apart, s.dir) && slices.Contains(apart, own) && own != s.dir {
					t.Errorf("%s: %s must not know %s, not even in a test", s.path, s.dir, own)
				}
			case isOwn:
				if own != s.dir && !covered(l.own, own) {
					t.Errorf("%s: %s must not import %s", s.path, s.dir, own)
				}
			case strings.Contains(strings.SplitN(imp, "/", 2)[0], "."):
				if !covered(l.thirdParty, imp) {
					t.Errorf("%s: %s must not import %s", s.path, s.dir, imp)
				}
			}
		}
	}
	for dir := range layers {
		if !seen[dir] {
			t.Errorf("the import table lists %s, which does not exist", dir)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	docs, files := map[string][]string{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test || s.dir == "." {
			continue
		}
		files[s.dir]++
		if s.ast.Doc == nil {
			continue
		}
		want := "Package " + s.ast.Name.Name + " "
		if s.ast.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(s.ast.Doc.Text(), want) {
			t.Errorf("%s: the package comment must begin with %q", s.path, want)
		}
		docs[s.dir] = append(docs[s.dir], s.path)
	}
	for dir, n := range files {
		switch d := docs[dir]; {
		case len(d) != 1:
			t.Errorf("package %s has %d package comments, want one", dir, len(d))
		case n > 1 && path.Base(d[0]) != "doc.go":
			t.Errorf("%s: the package comment belongs in doc.go", d[0])
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: func %s has no comment", s.path, d.Name.Name)
				}
				if d.Name.Name == "init" && d.Recv == nil {
					t.Errorf("%s: no init functions", s.path)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: type %s has no comment", s.path, ts.Name.Name)
					}
					if vs, ok := spec.(*ast.ValueSpec); ok && vs.Names[0].IsExported() && d.Doc == nil && vs.Doc == nil && vs.Comment == nil {
						t.Errorf("%s: %s has no comment", s.path, vs.Names[0].Name)
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether the function is no method, or one of an
// exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	switch d.Name.Name { // what the standard interfaces say of them is enough
	case "Error", "Unwrap", "String", "Write", "Read", "Close", "Len", "Less", "Swap":
		return false
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		n := bytes.Count(s.data, []byte("\n"))
		_, excused := long[s.path]
		if n > maxLines && !excused {
			t.Errorf("%s has %d lines; over %d needs a reason in this test", s.path, n, maxLines)
		}
		if n <= maxLines && excused {
			t.Errorf("%s has %d lines and needs no reason any longer", s.path, n)
		}
	}
}

// maxFile bounds a file of the tree, in bytes: what is larger was built, not
// written.
const maxFile = 256 << 10

// TestNothingBuiltIsKept: apart from what .gitignore names, no file is large.
func TestNothingBuiltIsKept(t *testing.T) {
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == "node_modules" || name == ".git" || name == "dist" || p == "bin"):
			return filepath.SkipDir
		case d.IsDir() || p == "thinkflow" || p == "thinkflow.exe" || strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".out"):
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Size() > maxFile {
			t.Errorf("%s has %d bytes; over %d nothing belongs into the tree", filepath.ToSlash(p), info.Size(), maxFile)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoForbiddenPackageNames: a package is called after what it provides.
func TestNoForbiddenPackageNames(t *testing.T) {
	for _, s := range sources(t) {
		switch s.ast.Name.Name {
		case "util", "utils", "common", "helpers", "misc":
			t.Errorf("%s: package %s says nothing", s.path, s.ast.Name.Name)
		}
	}
}

// TestLinksInDocuments: every relative link in a Markdown file leads somewhere.
func TestLinksInDocuments(t *testing.T) {
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".md") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, link := range links(string(data)) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), filepath.FromSlash(link))); err != nil {
				t.Errorf("%s: link to %s leads nowhere", p, link)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// links are the targets of inline links that are files of ours.
func links(md string) []string {
	var out []string
	fence := false
	for line := range strings.SplitSeq(md, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fence = !fence
		}
		for rest := line; !fence; {
			_, after, ok := strings.Cut(rest, "](")
			if !ok {
				break
			}
			link, tail, ok := strings.Cut(after, ")")
			if !ok {
				break
			}
			rest = tail
			link, _, _ = strings.Cut(link, "#")
			if link != "" && !strings.Contains(link, ":") {
				out = append(out, link)
			}
		}
	}
	return out
}

// TestTheMapIsWhole: ARCHITECTURE.md names every folder that holds packages.
func TestTheMapIsWhole(t *testing.T) {
	data, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layers {
		top, _, _ := strings.Cut(dir, "/")
		if !bytes.Contains(data, []byte("`"+top)) {
			t.Errorf("ARCHITECTURE.md does not mention `%s`", top)
		}
	}
}

var update = flag.Bool("update", false, "rewrite generated documents")

// TestScriptFormatIsFresh: docs/script-format.md is the comment of package
// scripted. Rewrite it with: go test . -run TestScriptFormatIsFresh -update
func TestScriptFormatIsFresh(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "internal/scripted/doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pr := comment.Printer{HeadingLevel: 2, HeadingID: func(*comment.Heading) string { return "" }, DocLinkURL: func(*comment.DocLink) string { return "" }}
	var p comment.Parser
	want := "# Scripts of the scripted model\n\n<!-- Generated from internal/scripted/doc.go; do not edit. -->\n\n" + strings.NewReplacer("\\`", "`", `\[`, "`", "Failures]", "Failures`", "Requests]", "Requests`", "PrefixOf]", "PrefixOf`").
		Replace(string(pr.Markdown(p.Parse(f.Doc.Text()))))
	const file = "docs/script-format.md"
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Error("docs/script-format.md is not fresh; run: go test . -run TestScriptFormatIsFresh -update")
	}
}

// TestEventsAreDocumented: docs/events.md has a row for every event type and
// names every field of an event.
func TestEventsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range agent.EventTypes {
		if !bytes.Contains(data, fmt.Appendf(nil, "\n| `%s` |", typ)) {
			t.Errorf("docs/events.md has no row for %s", typ)
		}
	}
	for _, v := range []any{agent.Event{}, agent.CommandEvent{}, agent.ToolEvent{}, agent.ApprovalEvent{}, agent.PlanItem{}, agent.ThoughtEvent{}, agent.Usage{}, agent.RunResult{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			switch name {
			case "type", "time": // in the example
				continue
			}
			if !bytes.Contains(data, []byte("`"+name+"`")) {
				t.Errorf("docs/events.md does not name the field %s of %s", name, typ.Name())
			}
		}
	}
}
