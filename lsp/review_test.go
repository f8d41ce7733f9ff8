package lsp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thinkflow/agent"
	userconfig "thinkflow/internal/config"
	"thinkflow/internal/fakeeditor"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/lsp"
	"thinkflow/workspace"
)

// speech is a model that says one thing after the other.
type speech struct {
	mu    sync.Mutex // guards turns
	turns []string
	chunk int // bytes per delta; 0 = all at once
}

// Models is what the endpoint offers.
func (m *speech) Models(context.Context) ([]agent.ModelInfo, error) {
	return []agent.ModelInfo{{ID: "large", ContextTokens: 100_000}, {ID: "small"}}, nil
}

func (m *speech) Stream(context.Context, *agent.Request) (agent.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.turns) == 0 {
		return &spoken{text: "Done."}, nil
	}
	s := &spoken{text: m.turns[0], chunk: m.chunk}
	m.turns = m.turns[1:]
	return s, nil
}

type spoken struct {
	text  string
	chunk int
	ended bool
}

func (s *spoken) Recv() (agent.Delta, error) {
	if s.text == "" {
		if s.ended {
			return agent.Delta{}, io.EOF
		}
		s.ended = true
		return agent.Delta{Finish: "stop"}, nil
	}
	n := len(s.text)
	if s.chunk > 0 {
		n = min(n, s.chunk)
	}
	d := agent.Delta{Text: s.text[:n]}
	s.text = s.text[n:]
	return d, nil
}

func (s *spoken) Close() error { return nil }

// real is a session over the real engine with a model that says what it is told.
type real struct {
	*session
	model *speech
	state string // folder of the ledger
}

func startReal(t *testing.T, profile string, o fakeeditor.Options, review userconfig.Review, files map[string]string) *real {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &real{model: &speech{}, state: t.TempDir()}
	r.session = start(t, config{profile: profile, root: root, editor: o, backend: realEngine(t, root, r.state, r.model, review)})
	return r
}

// realEngine makes the real engine over a model of the test. state is the folder
// of its ledger, and of what is trusted.
func realEngine(t *testing.T, root, state string, model agent.Model, review userconfig.Review) func(lsp.Setup, *workspace.Workspace) *lsp.Backend {
	t.Helper()
	loaded, err := userconfig.Load(userconfig.Options{File: filepath.Join(t.TempDir(), "none.toml"), Env: func(string) (string, bool) { return "", false }})
	if loaded == nil {
		t.Fatal(err)
	}
	cfg := loaded.Config
	cfg.Model, cfg.Review, cfg.MaxTurns = "m", review, 10
	return func(setup lsp.Setup, ws *workspace.Workspace) *lsp.Backend {
		e := agent.New(agent.Options{
			Config: cfg, Model: model, Workspace: ws, Editor: setup.Editor, Approver: setup.Approver, Trust: trust.Open(state, nil),
			Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
				return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: root, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
			},
		})
		return &lsp.Backend{Engine: e, Documents: ws, Settled: e.Settled, Close: e.Close}
	}
}

// drive does f while the editor's time goes on with each edit that arrives.
func (r *real) drive(f func()) {
	r.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	handled := len(r.Edits())
	for {
		seen := r.Seen()
		if n := len(r.Edits()); n > handled {
			handled = n
			r.log.await(r.t.Context(), r.Replies())
			r.Sync()
			r.clock.Advance(600 * time.Millisecond)
			r.Sync()
			continue
		}
		select {
		case <-done:
			return
		case <-seen:
		}
	}
}

// request is Request while the editor lives on.
func (r *real) request(method string, params, result any) error {
	var err error
	r.drive(func() { err = r.Try(method, params, result) })
	return err
}

func (r *real) say(text string) agent.RunResult {
	r.t.Helper()
	r.model.mu.Lock()
	r.model.turns = append(r.model.turns, text)
	r.model.mu.Unlock()
	var res agent.RunResult
	if err := r.request("thinkflow/run", map[string]any{"task": "do it", "session": "s"}, &res); err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *real) uri(name string) string { return fakeeditor.FileURI(filepath.Join(r.root, name)) }

// changes lists what waits, a line each.
func (r *real) changes() string {
	r.t.Helper()
	var res struct{ Files []agent.FileChanges }
	if err := r.request("thinkflow/changes", map[string]any{}, &res); err != nil {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range res.Files {
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, "%s %s %d-%d", f.Path, h.Kind, h.StartLine, h.EndLine)
			if f.Staged {
				b.WriteString(" staged")
			}
			fmt.Fprintf(&b, " %q > %q\n", h.Old, h.New)
		}
	}
	return b.String()
}

// action runs the code action at the line whose title begins so.
func (r *real) action(name string, line int, title string) {
	r.t.Helper()
	var list []struct {
		Title, Command string
		Arguments      []json.RawMessage
	}
	pos := map[string]any{"line": line, "character": 0}
	err := r.request("textDocument/codeAction", map[string]any{
		"textDocument": map[string]any{"uri": r.uri(name)}, "range": map[string]any{"start": pos, "end": pos}, "context": map[string]any{"diagnostics": []any{}},
	}, &list)
	if err != nil {
		r.t.Fatal(err)
	}
	var titles []string
	for _, a := range list {
		titles = append(titles, a.Title)
		if strings.HasPrefix(a.Title, "ThinkFlow: "+title) {
			if err := r.request("workspace/executeCommand", map[string]any{"command": a.Command, "arguments": a.Arguments}, nil); err != nil {
				r.t.Fatal(err)
			}
			return
		}
	}
	r.t.Fatalf("no action %q at line %d of %s: %q", title, line, name, titles)
}

const twoEdits = `<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>
<tf-edit id="2" path="a.txt"><old>five</old><new>FIVE</new></tf-edit>
<tf-edit id="3" path="closed.txt"><old>x</old><new>y</new></tf-edit>
Done.
`

// Review in an open document, as every client, with code actions and commands
// alone.
func TestReviewInEditors(t *testing.T) {
	for _, p := range fakeeditor.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			r := startReal(t, p.Name, fakeeditor.Options{}, userconfig.ReviewAfter, map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "closed.txt": "x\n"})
			r.editorSide()
			r.Open("a.txt")
			r.Sync()
			if res := r.say(twoEdits); res.State != agent.StateDone || res.Applied != 3 {
				t.Fatalf("%+v", res)
			}
			r.Type("a.txt", "one", "zero\n")
			r.Replace("a.txt", "FIVE", "FIVE!")
			r.drain()
			want := "a.txt edit 2-3 \"two\\n\" > \"TWO\\n\"\na.txt edit 5-6 \"five\\n\" > \"FIVE!\\n\"\nclosed.txt edit 0-1 \"x\\n\" > \"y\\n\"\n"
			if got := r.changes(); got != want {
				t.Fatalf("changes:\n%swant:\n%s", got, want)
			}
			r.action("a.txt", 2, "undo this change")
			if got := r.Text("a.txt"); got != "zero\none\ntwo\nthree\nfour\nFIVE!\n" {
				t.Fatalf("after the undo: %q", got)
			}
			r.action("a.txt", 5, "keep this change")
			if got := r.changes(); got != "closed.txt edit 0-1 \"x\\n\" > \"y\\n\"\n" {
				t.Fatalf("left: %s", got)
			}
			var place struct{ URI string }
			if err := r.request("workspace/executeCommand", map[string]any{"command": "thinkflow.server.nextHunk", "arguments": []any{map[string]any{"uri": r.uri("a.txt"), "line": 0}}}, &place); err == nil && place.URI != r.uri("closed.txt") {
				t.Errorf("next change in %q", place.URI)
			}
			var res agent.Reviewed
			if err := r.request("thinkflow/undo", map[string]any{"all": true}, &res); err != nil || res.Hunks != 1 {
				t.Fatalf("%v %+v", err, res)
			}
			if data, _ := os.ReadFile(filepath.Join(r.root, "closed.txt")); string(data) != "x\n" {
				t.Errorf("closed.txt: %q", data)
			}
			if got := r.Text("a.txt"); got != "zero\none\ntwo\nthree\nfour\nFIVE!\n" {
				t.Errorf("a.txt: %q", got)
			}
		})
	}
}

// Proposals reach neither buffer nor disk before they are accepted.
func TestProposalsInEditors(t *testing.T) {
	for _, p := range fakeeditor.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			r := startReal(t, p.Name, fakeeditor.Options{}, userconfig.ReviewBefore, map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "closed.txt": "x\n"})
			r.editorSide()
			r.Open("a.txt")
			r.Sync()
			r.say(twoEdits)
			if len(r.Edits()) != 0 || r.Text("a.txt") != "one\ntwo\nthree\nfour\nfive\n" {
				t.Fatalf("the buffer has %q", r.Text("a.txt"))
			}
			r.Type("a.txt", "one", "zero\n")
			r.drain()
			if got := r.changes(); strings.Count(got, "staged") != 3 {
				t.Fatalf("changes:\n%s", got)
			}
			r.action("a.txt", 2, "accept this change")
			if got := r.Text("a.txt"); got != "zero\none\nTWO\nthree\nfour\nfive\n" {
				t.Fatalf("accepted: %q", got)
			}
			r.action("a.txt", 5, "reject this change")
			var res agent.Reviewed
			if err := r.request("thinkflow/keep", map[string]any{"all": true, "staged": true}, &res); err != nil || len(res.Problems) > 0 {
				t.Fatalf("%v %+v", err, res)
			}
			if data, _ := os.ReadFile(filepath.Join(r.root, "closed.txt")); string(data) != "y\n" {
				t.Errorf("closed.txt: %q", data)
			}
			if got := r.Text("a.txt"); got != "zero\none\nTWO\nthree\nfour\nfive\n" {
				t.Errorf("a.txt: %q", got)
			}
			if got := r.changes(); got != "" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

// TestSoak: a thousand edits in a row to one open document of 1 MiB, with a
// person who types in it all the time: none is lost, none misplaced, all of the
// typing is the person's, and the ledger stays small.
func TestSoak(t *testing.T) {
	const edits = 1000
	count := edits
	if testing.Short() {
		count = 100
	}
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "line %05d of a document that is long enough to be slow\n", i)
	}
	text := b.String()
	lines := strings.Count(text, "\n")
	var r *real
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(1, 2))
	typed := 0
	last := false
	person := func() {
		mu.Lock()
		defer mu.Unlock()
		if last = !last && rng.IntN(2) == 0; !last { // never twice in a row: an edit is tried three times
			return
		}
		typed++
		at := fmt.Sprintf("line %05d", lines-1-rng.IntN(lines/4)) // not where the agent works
		r.Replace("a.txt", at, fmt.Sprintf("typed %d\n", typed)+at)
	}
	r = startReal(t, "strict", fakeeditor.Options{OnEdit: person}, userconfig.ReviewAfter, map[string]string{"a.txt": text})
	r.editorSide()
	r.Open("a.txt")
	r.Sync()
	var say strings.Builder
	for i := range count {
		n := i * (lines * 3 / 4) / count
		fmt.Fprintf(&say, "<tf-edit id=\"%d\" path=\"a.txt\"><old>line %05d of</old><new>LINE %05d of</new></tf-edit>\n", i+1, n, n)
	}
	r.model.chunk = 4096
	res := r.say(say.String())
	if res.State != agent.StateDone || res.Applied != count {
		t.Fatalf("%s: applied %d of %d, %s", res.State, res.Applied, count, res.Reason)
	}
	got := r.Text("a.txt")
	for i := range count {
		n := i * (lines * 3 / 4) / count
		if strings.Count(got, fmt.Sprintf("LINE %05d of", n)) != 1 || strings.Contains(got, fmt.Sprintf("line %05d of", n)) {
			t.Fatalf("edit %d is lost or misplaced", i+1)
		}
	}
	for i := range typed {
		if strings.Count(got, fmt.Sprintf("typed %d\n", i+1)) != 1 {
			t.Fatalf("what was typed as %d is lost", i+1)
		}
	}
	if doc := r.document("a.txt"); doc.Text != got {
		t.Fatal("server and editor disagree")
	}
	var ch struct{ Files []agent.FileChanges }
	if err := r.request("thinkflow/changes", map[string]any{}, &ch); err != nil {
		t.Fatal(err)
	}
	for _, h := range ch.Files[0].Hunks {
		if strings.Contains(h.New, "typed") || strings.Contains(h.Old, "typed") || h.Edited {
			t.Fatalf("the person's typing shows as the agent's: %+v", h)
		}
	}
	var content struct{ Text string }
	if err := r.request("thinkflow/content", map[string]any{"uri": r.uri("a.txt"), "side": "base"}, &content); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(got, "LINE", "line"); content.Text != want {
		t.Fatal("the base is not the text without the agent's edits")
	}
	r.Request("shutdown", nil, nil)
	r.Notify("exit", nil)
	<-r.code
	var size int64
	_ = filepath.WalkDir(r.state, func(path string, d os.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil && !d.IsDir() {
			size += info.Size()
		}
		return nil
	})
	t.Logf("%d edits, %d pieces typed, ledger %d bytes", count, typed, size)
	if size >= 10<<20 {
		t.Errorf("the ledger has %d bytes", size)
	}
}
