package lsp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

func fileURI(s *session, name string) string { return fakeeditor.FileURI(filepath.Join(s.root, name)) }

// TestNoOp: an edit that changes nothing is never sent.
func TestNoOp(t *testing.T) {
	s := start(t, config{})
	s.OpenText(fileURI(s, "a.txt"), "x\n")
	c := s.change("a.txt", "x", "y")
	c.Edits[0].New = "x"
	if out, err := s.apply(c); err != nil || out.Verdict != agent.EditApplied || len(s.Edits()) != 0 {
		t.Errorf("%+v, %v, %d edits", out, err, len(s.Edits()))
	}
}

// TestStaleBeforeSending: the document moved between plan and send.
func TestStaleBeforeSending(t *testing.T) {
	s := start(t, config{profile: "helix"})
	s.OpenText(fileURI(s, "a.txt"), "x\n")
	c := s.change("a.txt", "x", "y")
	s.Type("a.txt", "x", "z")
	s.Sync()
	if out, err := s.apply(c); err != nil || out.Verdict != agent.EditStale || out.Version != 1 || len(s.Edits()) != 0 {
		t.Errorf("%+v, %v, %d edits", out, err, len(s.Edits()))
	}
	s.Close("a.txt")
	s.Sync()
	if out, err := s.apply(c); err != nil || out.Verdict != agent.EditRefused || !strings.Contains(out.Reason, "not open") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestNoApplyEdit: a client that cannot.
func TestNoApplyEdit(t *testing.T) {
	s := start(t, config{profile: "minimal", raw: true})
	s.Request("initialize", map[string]any{"processId": nil, "rootUri": fakeeditor.FileURI(s.root), "capabilities": map[string]any{}}, nil)
	s.Notify("initialized", map[string]any{})
	s.OpenText(fileURI(s, "a.txt"), "x\n")
	if out, err := s.apply(s.change("a.txt", "x", "y")); err != nil || out.Verdict != agent.EditRefused || !strings.Contains(out.Reason, "workspace/applyEdit") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestLostDocument: after a change that cannot be followed the text is unknown,
// until the client sends a whole one.
func TestLostDocument(t *testing.T) {
	s := start(t, config{})
	uri := fileURI(s, "a.txt")
	s.OpenText(uri, "x\n")
	c := s.change("a.txt", "x", "y")
	change := func(version int, changes ...any) {
		s.Notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri, "version": version}, "contentChanges": changes})
		s.Sync()
	}
	change(2, map[string]any{"range": fakeeditor.Range{Start: fakeeditor.Position{Line: 7}, End: fakeeditor.Position{Line: 8}}, "text": "?"})
	if out, _ := s.apply(c); out.Verdict != agent.EditRefused || !strings.Contains(out.Reason, "could not be followed") {
		t.Errorf("%+v", out)
	}
	if !s.log.logged("a notification failed", "invalid position: line 7 of a text of 2 lines") {
		t.Error("nothing was logged")
	}
	change(3, map[string]any{"range": fakeeditor.Range{}, "text": "still lost"})
	change(4, map[string]any{"text": "x\nwhole\n"})
	if doc := s.document("a.txt"); doc.Text != "x\nwhole\n" || doc.Version != 4 {
		t.Errorf("%+v", doc)
	}
}

// TestCancelDuringEdit: the verdict is uncertain, and the later change settles
// it.
func TestCancelDuringEdit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := start(t, config{profile: "eglot-30", editor: fakeeditor.Options{OnEdit: cancel}})
	s.OpenText(fileURI(s, "a.txt"), "x\n")
	out, err := s.editorSide().Editor.ApplyEdit(ctx, s.change("a.txt", "x", "y"))
	if err != nil || out.Verdict != agent.EditUncertain || !strings.Contains(out.Reason, "cancelled") {
		t.Fatalf("%+v, %v", out, err)
	}
	s.Await("the reply", func() bool { return s.Replies() == 1 })
	s.log.await(t.Context(), 1)
	s.clock.Advance(600 * time.Millisecond) // eglot reports
	s.log.awaitLine(t.Context(), "an uncertain edit is settled", "verdict=applied")
	// And one that is cancelled before it was sent.
	if out, err := s.editorSide().Editor.ApplyEdit(ctx, s.change("a.txt", "y", "z")); err != nil || out.Verdict != agent.EditRefused || len(s.Edits()) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestClosedDuringEdit: the buffer is closed before the edit is reported.
func TestClosedDuringEdit(t *testing.T) {
	for _, row := range []struct {
		profile string
		want    agent.EditVerdict
	}{
		{"helix", agent.EditUncertain}, // says applied: true, the buffer was opened anew
		{"vscode", agent.EditRefused},
	} {
		t.Run(row.profile, func(t *testing.T) {
			var s *session
			s = start(t, config{profile: row.profile, editor: fakeeditor.Options{OnEdit: func() { s.Close("a.txt") }, Ignore: row.profile == "helix"}})
			s.OpenText(fileURI(s, "a.txt"), "x\n")
			if out, err := s.apply(s.change("a.txt", "x", "y")); err != nil || out.Verdict != row.want {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// TestNeverAnswered: an editor that shows a dialog.
func TestNeverAnswered(t *testing.T) {
	hold := make(chan struct{})
	s := start(t, config{editor: fakeeditor.Options{OnEdit: func() { <-hold }}})
	s.OpenText(fileURI(s, "a.txt"), "x\n")
	c := s.change("a.txt", "x", "y")
	done := make(chan agent.EditOutcome, 1)
	go func() {
		out, _ := s.editorSide().Editor.ApplyEdit(t.Context(), c)
		done <- out
	}()
	for {
		if s.clock.Step() {
			break
		}
		s.Sync()
	}
	out := <-done
	if out.Verdict != agent.EditUncertain || !strings.Contains(out.Reason, "30s") || s.clock.Now() != 30*time.Second {
		t.Errorf("%+v after %v", out, s.clock.Now())
	}
	close(hold) // the person answers at last
	s.log.await(t.Context(), 1)
	s.clock.Advance(10 * time.Millisecond)
	s.log.awaitLine(t.Context(), "an uncertain edit is settled", "verdict=applied")
}

// TestTimes: how long the person waits at most, in virtual time.
func TestTimes(t *testing.T) {
	no := func() (any, *fakeeditor.Error, bool) { return map[string]any{"applied": false}, nil, true }
	yes := func() (any, *fakeeditor.Error, bool) { return map[string]any{"applied": true}, nil, true }
	rows := []struct {
		name, profile string
		opts          fakeeditor.Options
		typing        bool
		want          agent.EditVerdict
		most          time.Duration
	}{
		{"vscode applies", "vscode", fakeeditor.Options{}, false, agent.EditApplied, 2 * time.Millisecond},
		{"helix applies", "helix", fakeeditor.Options{}, false, agent.EditApplied, 0},
		{"neovim applies", "nvim-0.10", fakeeditor.Options{}, false, agent.EditApplied, 150 * time.Millisecond},
		{"eglot applies", "eglot-30", fakeeditor.Options{}, false, agent.EditApplied, 500 * time.Millisecond},
		{"refused, nothing moved", "vscode", fakeeditor.Options{Ignore: true, Lie: no}, false, agent.EditRefused, time.Second},
		{"said to be applied, nothing moved", "vscode", fakeeditor.Options{Ignore: true, Lie: yes}, false, agent.EditUncertain, 3 * time.Second},
		{"vscode refuses stale", "vscode", fakeeditor.Options{}, true, agent.EditStale, 2 * time.Millisecond},
		{"helix refuses stale", "helix", fakeeditor.Options{}, true, agent.EditStale, 0},
		{"neovim skips stale", "nvim-0.10", fakeeditor.Options{}, true, agent.EditStale, 400 * time.Millisecond},
		{"eglot refuses stale", "eglot-30", fakeeditor.Options{}, true, agent.EditStale, 500 * time.Millisecond},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var s *session
			if row.typing {
				row.opts.OnEdit = func() { s.Type("a.txt", "second", "typed ") }
			}
			s = start(t, config{profile: row.profile, editor: row.opts})
			s.OpenText(fileURI(s, "a.txt"), "first\nsecond\n")
			out, err := s.apply(s.change("a.txt", "first", "1st"))
			if err != nil || out.Verdict != row.want || s.clock.Now() > row.most {
				t.Errorf("%+v, %v after %v; want %s within %v", out, err, s.clock.Now(), row.want, row.most)
			}
		})
	}
}

// TestKeepsTyping: a person who goes on typing does not put the verdict off.
func TestKeepsTyping(t *testing.T) {
	for _, row := range []struct {
		profile string
		most    time.Duration
	}{{"nvim-0.10", 600 * time.Millisecond}, {"vscode", 10 * time.Millisecond}, {"eglot-30", 2200 * time.Millisecond}} {
		t.Run(row.profile, func(t *testing.T) {
			var s *session
			var key func()
			key = func() {
				s.Type("a.txt", "second", "x")
				if s.clock.Now() < 1500*time.Millisecond {
					s.clock.AfterFunc(100*time.Millisecond, key)
				}
			}
			s = start(t, config{profile: row.profile, editor: fakeeditor.Options{OnEdit: func() { key() }}})
			s.OpenText(fileURI(s, "a.txt"), "first\nsecond\n")
			out, err := s.apply(s.change("a.txt", "first", "1st"))
			if err != nil || out.Verdict != agent.EditStale || s.clock.Now() > row.most {
				t.Errorf("%+v, %v after %v", out, err, s.clock.Now())
			}
		})
	}
}

// TestApplyEditor: setting apply: editor, for files that are not open.
func TestApplyEditor(t *testing.T) {
	for _, p := range fakeeditor.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			s := start(t, config{profile: p.Name})
			if err := os.WriteFile(filepath.Join(s.root, "old.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := s.apply(s.plan(workspace.Op{Kind: workspace.OpEdit, Path: "old.txt", Pairs: []workspace.Pair{{Old: "two", New: "2"}}}))
			if err != nil || out.Verdict != agent.EditApplied || s.Text("old.txt") != "one\n2\n" {
				t.Errorf("edit: %+v, %v, %q", out, err, s.Text("old.txt"))
			}
			out, err = s.apply(s.plan(workspace.Op{Kind: workspace.OpWrite, Path: "dir/new.txt", Body: "hi\n"}))
			if err != nil || out.Verdict != agent.EditApplied || s.Text("dir/new.txt") != "hi\n" {
				t.Errorf("create: %+v, %v", out, err)
			}
			if disk, _ := os.ReadFile(filepath.Join(s.root, "old.txt")); string(disk) != "one\ntwo\n" {
				t.Errorf("the disk was written: %q", disk)
			}
		})
	}
	t.Run("somebody made the file meanwhile", func(t *testing.T) {
		s := start(t, config{profile: "helix"})
		c := s.plan(workspace.Op{Kind: workspace.OpWrite, Path: "new.txt", Body: "hi\n"})
		if err := os.WriteFile(filepath.Join(s.root, "new.txt"), []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, _ := s.apply(c); out.Verdict != agent.EditStale || len(s.Edits()) != 0 {
			t.Errorf("%+v", out)
		}
	})
}

// TestMoveAndDelete: of open documents, through the client where it can.
func TestMoveAndDelete(t *testing.T) {
	for _, row := range []struct {
		profile string
		want    agent.EditVerdict
	}{{"vscode", agent.EditApplied}, {"nvim-0.10", agent.EditApplied}, {"eglot-30", agent.EditRefused}} {
		t.Run(row.profile, func(t *testing.T) {
			s := start(t, config{profile: row.profile})
			for _, name := range []string{"a.txt", "b.txt"} {
				if err := os.WriteFile(filepath.Join(s.root, name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
				s.Open(name)
			}
			out, err := s.editorSide().Editor.ApplyEdit(t.Context(), s.plan(workspace.Op{Kind: workspace.OpMove, Path: "a.txt", Dest: "sub/c.txt"}))
			if err != nil || out.Verdict != row.want {
				t.Errorf("move: %+v, %v", out, err)
			}
			out, err = s.editorSide().Editor.ApplyEdit(t.Context(), s.plan(workspace.Op{Kind: workspace.OpDelete, Path: "b.txt"}))
			if err != nil || out.Verdict != row.want {
				t.Errorf("delete: %+v, %v", out, err)
			}
			_, gone := os.Stat(filepath.Join(s.root, "b.txt"))
			if done := row.want == agent.EditApplied; os.IsNotExist(gone) != done {
				t.Errorf("b.txt: %v", gone)
			}
		})
	}
}

// TestEncodings: the same edit in each encoding (LE-02).
func TestEncodings(t *testing.T) {
	for _, row := range []struct {
		listed []string
		chosen string
		from   int
	}{
		{[]string{"utf-8", "utf-16"}, "utf-16", 16},
		{[]string{"utf-8"}, "utf-8", 22},
		{[]string{"utf-32", "utf-8"}, "utf-32", 14},
		{[]string{}, "utf-16", 16},
	} {
		t.Run(strings.Join(row.listed, " "), func(t *testing.T) {
			s := start(t, config{profile: "strict", editor: fakeeditor.Options{Encodings: row.listed}})
			if got := s.Result.Capabilities.PositionEncoding; got != row.chosen {
				t.Errorf("%s, want %s", got, row.chosen)
			}
			s.OpenText(fileURI(s, "e.go"), "a := \"😀🏳️\" // old\n")
			if out, err := s.apply(s.change("e.go", "old", "new")); err != nil || out.Verdict != agent.EditApplied {
				t.Fatalf("%+v, %v", out, err)
			}
			var sent sentEdit
			_ = json.Unmarshal(s.Edits()[0], &sent)
			var edits []struct{ Range fakeeditor.Range }
			_ = json.Unmarshal(sent.Edit.DocumentChanges[0].Edits, &edits)
			if r := edits[0].Range; r.Start.Character != row.from || r.End.Character != row.from+3 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestSpellingKept: the URI of the client is used (LE-13), whatever its form.
func TestSpellingKept(t *testing.T) {
	s := start(t, config{profile: "strict"})
	spelled := "file://" + filepath.ToSlash(s.root) + "/a(1)!.txt" // not as we would encode it
	s.OpenText(spelled, "x\n")
	if out, err := s.apply(s.change("a(1)!.txt", "x", "y")); err != nil || out.Verdict != agent.EditApplied {
		t.Fatalf("%+v, %v", out, err)
	}
	if !strings.Contains(string(s.Edits()[0]), `"`+spelled+`"`) {
		t.Errorf("%s", s.Edits()[0])
	}
}

// TestOtherSchemes: untitled: and git: documents never become files.
func TestOtherSchemes(t *testing.T) {
	s := start(t, config{})
	s.editorSide()
	for _, uri := range []string{"untitled:" + filepath.Join(s.root, "u.txt"), "git:" + filepath.Join(s.root, "g.txt") + "?HEAD"} {
		s.OpenText(uri, "text\n")
	}
	s.Sync()
	if docs := s.ws.Documents(); len(docs) != 0 {
		t.Errorf("the workspace has %+v", docs)
	}
}

// TestHugeDocument: 50 MB and small changes.
func TestHugeDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	s := start(t, config{profile: "helix"})
	line := strings.Repeat("x", 49) + "\n"
	text := strings.Repeat(line, 1<<20)
	s.OpenText(fileURI(s, "huge.txt"), text+"end\n")
	for range 5 {
		s.Replace("huge.txt", "end\n", strings.Repeat("y", 1000)+"\nend\n")
	}
	if out, err := s.apply(s.change("huge.txt", "end", "fin")); err != nil || out.Verdict != agent.EditApplied {
		t.Errorf("%+v, %v", out, err)
	}
	if doc := s.document("huge.txt"); doc.Text != s.Text("huge.txt") {
		t.Error("the texts differ")
	}
}
