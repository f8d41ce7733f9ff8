package lsp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"thinkflow/agent"
	userconfig "thinkflow/internal/config"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

var update = flag.Bool("update", false, "write what the scenarios give into their files")

// TestScenarios plays every testdata/lsp/*.txtar as every client. A file holds
// the files of the workspace, "model" if the real engine is to work (what it says,
// turn by turn, with a line === between them), "script" (one step a line, see steps) and "want":
// what it prints. Clients that come out differently have a "want NAME…" of their
// own. At the end of each, server and editor must agree on every open document.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdataDir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sc := parseScenario(ar)
			got := map[string]string{}
			for _, p := range fakeeditor.Profiles() {
				t.Run(p.Name, func(t *testing.T) {
					got[p.Name] = sc.play(t, p.Name)
					if want := sc.want(p.Name); !*update && got[p.Name] != want {
						t.Errorf("got:\n%swant:\n%s", got[p.Name], want)
					}
				})
			}
			if *update && !t.Failed() {
				sc.save(t, file, ar, got)
			}
		})
	}
}

// scenario is one file.
type scenario struct {
	comment string
	files   []txtar.File
	script  []string
	model   []string     // turns; nil = no engine works
	wants   []txtar.File // "want" first
}

func parseScenario(ar *txtar.Archive) *scenario {
	sc := &scenario{comment: string(ar.Comment)}
	for _, f := range ar.Files {
		switch {
		case f.Name == "script":
			for _, l := range strings.Split(string(f.Data), "\n") {
				if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
					sc.script = append(sc.script, l)
				}
			}
		case f.Name == "model":
			sc.model = strings.Split(string(f.Data), "===\n")
		case f.Name == "want" || strings.HasPrefix(f.Name, "want "):
			sc.wants = append(sc.wants, f)
		default:
			sc.files = append(sc.files, f)
		}
	}
	return sc
}

func (sc *scenario) want(client string) string {
	for _, w := range sc.wants {
		if slices.Contains(strings.Fields(w.Name)[1:], client) {
			return string(w.Data)
		}
	}
	for _, w := range sc.wants {
		if w.Name == "want" {
			return string(w.Data)
		}
	}
	return ""
}

// save writes the outputs back: the most frequent one as "want".
func (sc *scenario) save(t *testing.T, file string, ar *txtar.Archive, got map[string]string) {
	clients := map[string][]string{}
	for _, p := range fakeeditor.Profiles() {
		clients[got[p.Name]] = append(clients[got[p.Name]], p.Name)
	}
	outs := make([]string, 0, len(clients))
	for out := range clients {
		outs = append(outs, out)
	}
	sort.Slice(outs, func(i, j int) bool {
		a, b := clients[outs[i]], clients[outs[j]]
		return len(a) > len(b) || len(a) == len(b) && a[0] < b[0]
	})
	next := &txtar.Archive{Comment: ar.Comment}
	for _, f := range ar.Files {
		if f.Name != "want" && !strings.HasPrefix(f.Name, "want ") {
			next.Files = append(next.Files, f)
		}
	}
	for i, out := range outs {
		name := "want"
		if i > 0 {
			name += " " + strings.Join(clients[out], " ")
		}
		next.Files = append(next.Files, txtar.File{Name: name, Data: []byte(out)})
	}
	if err := os.WriteFile(file, txtar.Format(next), 0o644); err != nil {
		t.Fatal(err)
	}
}

// player plays one scenario as one client.
type player struct {
	*session
	out   strings.Builder
	names []string // opened files
	hash  string   // of the file that was asked for last

	mu     sync.Mutex // guards what follows
	onEdit [][]string // steps of the person when the next applyEdit arrives
	reply  string     // how the editor lies about the next edit
	shown  int        // messages to the person that were printed
}

func (sc *scenario) play(t *testing.T, client string) string {
	root := t.TempDir()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sc.files {
		path := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := strings.ReplaceAll(string(f.Data), "<CR>", "\r")
		data = strings.ReplaceAll(data, "<NOEOL>\n", "")
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := &player{}
	c := config{profile: client, root: root, editor: fakeeditor.Options{OnEdit: p.person, Lie: p.lie}}
	if sc.model != nil {
		c.backend = realEngine(t, root, t.TempDir(), &speech{turns: slices.Clone(sc.model)}, userconfig.ReviewAfter)
	}
	p.session = start(t, c)
	for _, line := range sc.script {
		args, err := fields(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		p.step(args)
	}
	p.drain()
	for _, name := range p.names {
		if doc := p.document(name); doc.Text != p.Text(name) {
			t.Errorf("%s: the server has %q, the editor %q", name, doc.Text, p.Text(name))
		}
	}
	return p.out.String()
}

// fields splits a line into words, Go-quoted strings and JSON objects.
func fields(line string) ([]string, error) {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] == '{' {
			dec := json.NewDecoder(strings.NewReader(line))
			var object json.RawMessage
			if err := dec.Decode(&object); err != nil {
				return nil, err
			}
			out, line = append(out, string(object)), line[dec.InputOffset():]
			continue
		}
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			out, line = append(out, word), rest
			continue
		}
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, err
		}
		s, err := strconv.Unquote(q)
		if err != nil {
			return nil, err
		}
		out, line = append(out, s), line[len(q):]
	}
	return out, nil
}

// steps are what a script can say.
//
//	open FILE                     the editor opens it
//	type FILE BEFORE TEXT         the person types TEXT in front of BEFORE
//	replace FILE OLD NEW          the person replaces
//	flush FILE / save FILE / close FILE / readonly FILE
//	wait                          all waiting time passes
//	during STEP…                  a step of the person when the next edit arrives, before it is looked at
//	reply true|false|null|error   how the next edit is answered, whatever happens to it
//	edit FILE OLD NEW […]         the agent edits, matching again when stale
//	append FILE TEXT / write FILE TEXT   the agent does
//	late                          what became of uncertain edits
//	print FILE                    the text in the editor
//	disk FILE                     the text on disk
//	request METHOD {PARAMS} PATH…   prints these fields of the result: files.path is
//	                              that of all files; $hash stands for the one told last
//	command NAME {ARGUMENT}       executes a command of the server
//	shown                         the messages that came meanwhile
func (p *player) step(args []string) {
	p.t.Helper()
	switch cmd, args := args[0], args[1:]; cmd {
	case "open":
		p.Open(args[0])
		p.names = append(p.names, args[0])
	case "type":
		p.Type(args[0], args[1], args[2])
	case "replace":
		p.Replace(args[0], args[1], args[2])
	case "flush":
		p.Flush(args[0])
	case "save":
		p.Save(args[0])
	case "close":
		p.Close(args[0])
		p.names = slices.DeleteFunc(p.names, func(n string) bool { return n == args[0] })
	case "readonly":
		p.SetReadOnly(args[0])
	case "wait":
		p.drain()
	case "during":
		p.mu.Lock()
		p.onEdit = append(p.onEdit, args)
		p.mu.Unlock()
	case "reply":
		p.mu.Lock()
		p.reply = args[0]
		p.mu.Unlock()
	case "edit":
		op := workspace.Op{Kind: workspace.OpEdit, Path: args[0]}
		for i := 1; i < len(args); i += 2 {
			op.Pairs = append(op.Pairs, workspace.Pair{Old: args[i], New: args[i+1]})
		}
		p.agent(op)
	case "append":
		p.agent(workspace.Op{Kind: workspace.OpAppend, Path: args[0], Body: args[1]})
	case "write":
		p.agent(workspace.Op{Kind: workspace.OpWrite, Path: args[0], Body: args[1]})
	case "late":
		p.drain()
		fmt.Fprintf(&p.out, "later: %v\n", p.engine.lateVerdicts())
	case "print":
		fmt.Fprintf(&p.out, "%s: %q\n", args[0], p.Text(args[0]))
	case "disk":
		text, err := os.ReadFile(filepath.Join(p.root, args[0]))
		if err != nil {
			text = []byte("(none)")
		}
		fmt.Fprintf(&p.out, "%s on disk: %q\n", args[0], text)
	case "request":
		p.request(args[0], args[1], args[2:])
	case "command":
		var arg any = args[1]
		if args[1][0] == '{' {
			arg = json.RawMessage(args[1])
		}
		var result json.RawMessage
		err := p.Try("workspace/executeCommand", map[string]any{"command": args[0], "arguments": []any{arg}}, &result)
		p.print(args[0], result, err, args[2:])
	case "shown":
		p.Await("a message", func() bool { return len(p.Received("window/showMessage")) > p.shown })
		for _, m := range p.Received("window/showMessage")[p.shown:] {
			var said struct{ Message string }
			_ = json.Unmarshal(m.Params, &said)
			fmt.Fprintf(&p.out, "shown: %s\n", said.Message)
			p.shown++
		}
	default:
		p.t.Fatalf("unknown step %q", cmd)
	}
}

func (p *player) request(method, params string, paths []string) {
	p.t.Helper()
	var result json.RawMessage
	err := p.Try(method, json.RawMessage(strings.ReplaceAll(params, "$hash", p.hash)), &result)
	var told struct{ Files []struct{ Hash string } }
	if err == nil && json.Unmarshal(result, &told) == nil && len(told.Files) == 1 {
		p.hash = told.Files[0].Hash
	}
	p.print(method, result, err, paths)
}

// print prints fields of a result, or the error.
func (p *player) print(what string, result json.RawMessage, err error, paths []string) {
	fmt.Fprintf(&p.out, "%s:", what)
	if err != nil {
		fmt.Fprintf(&p.out, " error %v", err)
	}
	for _, path := range paths {
		var all any
		_ = json.Unmarshal(result, &all)
		text, err := json.Marshal(pick(all, strings.Split(path, ".")))
		if err != nil {
			p.t.Fatal(err)
		}
		fmt.Fprintf(&p.out, " %s=%s", path, text)
	}
	p.out.WriteByte('\n')
}

// pick goes down a path; of a list it picks from every entry.
func pick(v any, path []string) any {
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i, e := range list {
			out[i] = pick(e, path)
		}
		return out
	}
	if len(path) == 0 {
		return v
	}
	if object, ok := v.(map[string]any); ok {
		return pick(object[path[0]], path[1:])
	}
	return nil
}

// agent does what the engine does: plan, apply, and again up to three times
// when the document was stale.
func (p *player) agent(op workspace.Op) {
	p.t.Helper()
	p.editorSide()
	fmt.Fprintf(&p.out, "%s %s:", op.Kind, op.Path)
	for range 3 {
		p.Sync()
		c, err := p.ws.Plan(op)
		if err != nil {
			fmt.Fprintf(&p.out, " no plan: %v\n", err)
			return
		}
		out, err := p.apply(c)
		fmt.Fprintf(&p.out, " %s", out.Verdict)
		if out.Verdict != agent.EditStale {
			if out.Reason != "" {
				fmt.Fprintf(&p.out, " (%s)", out.Reason)
			}
			if err != nil {
				fmt.Fprintf(&p.out, " error: %v", err)
			}
			break
		}
	}
	p.out.WriteByte('\n')
}

// person does what was to happen when an edit arrives.
func (p *player) person() {
	p.mu.Lock()
	var next []string
	if len(p.onEdit) > 0 {
		next, p.onEdit = p.onEdit[0], p.onEdit[1:]
	}
	p.mu.Unlock()
	if next != nil {
		p.step(next)
	}
}

// lie answers the next edit as the script says.
func (p *player) lie() (any, *fakeeditor.Error, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	say := p.reply
	p.reply = ""
	switch say {
	case "":
		return nil, nil, false
	case "null":
		return nil, nil, true
	case "error":
		return nil, &fakeeditor.Error{Code: -32603, Message: "boom"}, true
	}
	return map[string]any{"applied": say == "true"}, nil, true
}
