package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settled opens a ledger whose owner is gone and returns the one settlement.
func settled(t *testing.T, dir string) Settlement {
	t.Helper()
	l := openAt(t, dir)
	if n := len(l.Settled()); n != 1 {
		t.Fatalf("%d settlements", n)
	}
	verify(t, l)
	s := l.Settled()[0]
	c, err := l.Get(ctx, s.Key)
	must(t, err)
	if c.Status != s.Status || !c.Recovered || c.Error != s.Reason || c.OutcomeAt == nil {
		t.Errorf("the ledger says %+v, the settlement %+v", c, s)
	}
	runs, err := l.Runs(ctx, RunFilter{})
	must(t, err)
	if len(runs) != 1 || runs[0].State != RunInterrupted {
		t.Errorf("runs %+v", runs)
	}
	must(t, l.Close())
	if again := openAt(t, dir); len(again.Settled()) != 0 {
		t.Errorf("settled twice: %+v", again.Settled())
	}
	return s
}

// write makes files; a nil text is a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// The settlement table: LR-01, LR-02, LR-03, the kill points of LR-16, and what
// move, copy, delete, mkdir and the editor add.
func TestSettlement(t *testing.T) {
	a, ab := sum("a\n"), sum("a\nb\n")
	text := Intent{Tool: "tf-append", Path: "l.txt", BeforeHash: a, AfterHash: ab}
	via := func(in Intent, v Via) Intent { in.Via = v; return in }
	move := Intent{Tool: "tf-move", Path: "a", Dest: "b", BeforeHash: a, AfterHash: a}
	moveDir := Intent{Tool: "tf-move", Path: "a", Dest: "b", BeforeHash: Dir, AfterHash: Dir}
	moveOver := move
	moveOver.DestBefore = ab
	cp := Intent{Tool: "tf-copy", Path: "a", Dest: "b", BeforeHash: a, AfterHash: a}
	del := Intent{Tool: "tf-delete", Path: "a", BeforeHash: a, AfterHash: ""}
	mkdir := Intent{Tool: "tf-mkdir", Path: "d", AfterHash: Dir}
	create := Intent{Tool: "tf-write", Path: "n.txt", AfterHash: ab}
	for _, c := range []struct {
		name  string
		in    Intent
		files map[string]string
		want  Status
	}{
		{"LR-01 after the effect: applied, not run again", text, map[string]string{"l.txt": "a\nb\n"}, StatusApplied},
		{"LR-02 before the effect: not applied", text, map[string]string{"l.txt": "a\n"}, StatusNotApplied},
		{"LR-03 neither: uncertain", text, map[string]string{"l.txt": "a\nuser line\n"}, StatusUncertain},
		{"the file is gone: uncertain", text, nil, StatusUncertain},
		{"a folder stands there: uncertain", text, map[string]string{"l.txt/": ""}, StatusUncertain},
		{"bash is always uncertain", Intent{Tool: "tf-bash", Cmd: "make"}, nil, StatusUncertain},
		{"bash, even with a path", Intent{Tool: "tf-bash", Cmd: "make", Path: "l.txt", AfterHash: a}, map[string]string{"l.txt": "a\n"}, StatusUncertain},
		{"a native tool without a file", Intent{Tool: "mcp_do"}, nil, StatusUncertain},
		{"a read has no effect", Intent{Tool: "tf-read", Path: "l.txt"}, nil, StatusCancelled},
		{"nothing to change: applied", Intent{Tool: "tf-touch", Path: "l.txt", BeforeHash: a, AfterHash: a}, map[string]string{"l.txt": "a\n"}, StatusApplied},

		{"create: there", create, map[string]string{"n.txt": "a\nb\n"}, StatusApplied},
		{"create: not there", create, nil, StatusNotApplied},
		{"create: half a text", create, map[string]string{"n.txt": "a\n"}, StatusUncertain},

		{"editor: saved", via(text, ViaEditor), map[string]string{"l.txt": "a\nb\n"}, StatusApplied},
		{"editor: the disk as before says nothing", via(text, ViaEditor), map[string]string{"l.txt": "a\n"}, StatusUncertain},

		{"delete: gone", del, nil, StatusApplied},
		{"delete: still there", del, map[string]string{"a": "a\n"}, StatusNotApplied},
		{"delete: another text", del, map[string]string{"a": "x"}, StatusUncertain},

		{"mkdir: there", mkdir, map[string]string{"d/": ""}, StatusApplied},
		{"mkdir: not there", mkdir, nil, StatusNotApplied},
		{"mkdir: a file", mkdir, map[string]string{"d": "x"}, StatusUncertain},

		{"move: done", move, map[string]string{"b": "a\n"}, StatusApplied},
		{"move: not done", move, map[string]string{"a": "a\n"}, StatusNotApplied},
		{"move: half-way, both there", move, map[string]string{"a": "a\n", "b": "a\n"}, StatusUncertain},
		{"move: both gone", move, nil, StatusUncertain},
		{"move: the target has another text", move, map[string]string{"b": "x"}, StatusUncertain},
		{"move over a file: done", moveOver, map[string]string{"b": "a\n"}, StatusApplied},
		{"move over a file: not done", moveOver, map[string]string{"a": "a\n", "b": "a\nb\n"}, StatusNotApplied},
		{"move of a folder: done", moveDir, map[string]string{"b/": ""}, StatusApplied},
		{"move of a folder: not done", moveDir, map[string]string{"a/": ""}, StatusNotApplied},

		{"copy: done", cp, map[string]string{"a": "a\n", "b": "a\n"}, StatusApplied},
		{"copy: done, and the source changed since", cp, map[string]string{"a": "x", "b": "a\n"}, StatusApplied},
		{"copy: not done", cp, map[string]string{"a": "a\n"}, StatusNotApplied},
		{"copy: half a target", cp, map[string]string{"a": "a\n", "b": "a"}, StatusUncertain},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, root := t.TempDir(), t.TempDir()
			write(t, root, c.files)
			in := c.in
			in.Key = key("r", 1, 1)
			if in.Path != "" {
				in.Abs = filepath.Join(root, in.Path)
			}
			if in.Dest != "" {
				in.AbsDest = filepath.Join(root, in.Dest)
			}
			in.Temp = filepath.Join(root, ".tmp-1")
			write(t, root, map[string]string{".tmp-1": "half"})
			l := openAt(t, dir)
			must(t, l.StartRun(Run{ID: "r"}))
			must(t, l.Intent(ctx, in))
			must(t, l.Close())
			s := settled(t, dir)
			if s.Status != c.want {
				t.Errorf("got %s (%s), want %s", s.Status, s.Reason, c.want)
			}
			if s.Reason == "" {
				t.Error("no reason")
			}
			if _, err := os.Lstat(in.Temp); !errors.Is(err, os.ErrNotExist) {
				t.Error("the temp file is still there")
			}
			for name, text := range c.files {
				if b, err := os.ReadFile(filepath.Join(root, name)); !strings.HasSuffix(name, "/") && (err != nil || string(b) != text) {
					t.Errorf("%s changed: %q %v", name, b, err)
				}
			}
		})
	}
}

// A batch that was sent together is settled by how far it got.
func TestSettlementOfASeries(t *testing.T) {
	texts := []string{"0", "1", "2", "3"}
	for _, c := range []struct {
		name string
		now  string // "-" = no file
		via  Via
		want string
	}{
		{"none", "0", ViaDisk, "not_applied not_applied not_applied"},
		{"one", "1", ViaDisk, "applied not_applied not_applied"},
		{"two", "2", ViaDisk, "applied applied not_applied"},
		{"all", "3", ViaDisk, "applied applied applied"},
		{"another text", "x", ViaDisk, "uncertain uncertain uncertain"},
		{"gone", "-", ViaDisk, "uncertain uncertain uncertain"},
		{"editor, one saved", "1", ViaEditor, "applied uncertain uncertain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, root := t.TempDir(), t.TempDir()
			path := filepath.Join(root, "f")
			if c.now != "-" {
				write(t, root, map[string]string{"f": c.now})
			}
			l := openAt(t, dir)
			for i := range 3 {
				must(t, l.Intent(ctx, Intent{Key: key("r", 1, i+1), Tool: "tf-edit", Path: "f", Abs: path, Via: c.via,
					BeforeHash: sum(texts[i]), AfterHash: sum(texts[i+1])}))
			}
			must(t, l.Close())
			var got []string
			for i, s := range openAt(t, dir).Settled() {
				if s.ID != i+1 {
					t.Errorf("settlement %d is of command %d", i, s.ID)
				}
				got = append(got, string(s.Status))
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("got %s, want %s", g, c.want)
			}
		})
	}
}

// The result of a dead owner's command was found by a later one of another
// process that was alive all the time.
func TestSettlementByALaterCommand(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	path := filepath.Join(root, "f")
	write(t, root, map[string]string{"f": "2"})
	dead, other := openAt(t, dir), openAt(t, dir)
	must(t, dead.Intent(ctx, Intent{Key: key("r1", 1, 1), Tool: "tf-edit", Path: "f", Abs: path, BeforeHash: sum("0"), AfterHash: sum("1")}))
	k := key("r2", 1, 1)
	must(t, other.Intent(ctx, Intent{Key: k, Tool: "tf-edit", Path: "f", Abs: path, BeforeHash: sum("1"), AfterHash: sum("2")}))
	must(t, other.Outcome(Outcome{Key: k, Status: StatusApplied}))
	must(t, other.Close())
	must(t, dead.Close())
	l := openAt(t, dir)
	if s := l.Settled(); len(s) != 1 || s[0].Status != StatusApplied {
		t.Fatalf("%+v", s)
	}
}

func TestNoProbeLeavesIntents(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}))
	must(t, l.Close())
	blind := openAt(t, dir, func(o *Options) { o.Probe = nil })
	if len(blind.Settled()) != 0 {
		t.Fatal("settled without looking")
	}
	must(t, blind.Close())
	if s := openAt(t, dir).Settled(); len(s) != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestProbeThatFailsIsUncertain(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-write", Path: "f", Abs: "/x/f", AfterHash: sum("a"), Temp: "/x/t"}))
	must(t, l.Close())
	l = openAt(t, dir, func(o *Options) {
		o.Probe = func(string) (string, bool, error) { return "", false, errors.New("no permission") }
		o.RemoveTemp = func(string) error { return errors.New("busy") }
	})
	s := l.Settled()
	if len(s) != 1 || s[0].Status != StatusUncertain || !strings.Contains(s[0].Reason, "no permission") || !strings.Contains(s[0].Reason, "busy") {
		t.Fatalf("%+v", s)
	}
}

// A staged proposal has no effect yet; as an intent it is settled, whatever its
// number.
func TestStagedThenIntent(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	in := Intent{Key: key("r", 1, 1), Tool: "tf-write", Path: "f", Abs: filepath.Join(root, "f"), AfterHash: sum("x"), ContentHash: "c", Staged: true}
	l := openAt(t, dir)
	must(t, l.Intent(ctx, in))
	for i := 2; i < 5; i++ {
		k := key("r", 1, i)
		must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
		must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	}
	must(t, l.Close())
	l = openAt(t, dir)
	if len(l.Settled()) != 0 {
		t.Fatalf("%+v", l.Settled())
	}
	other := in
	other.Staged, other.ContentHash = false, "another"
	var dup *DuplicateError
	if err := l.Intent(ctx, other); !errors.As(err, &dup) || dup.Same {
		t.Fatalf("%v", err)
	}
	in.Staged = false
	must(t, l.Intent(ctx, in))
	must(t, l.Close())
	l = openAt(t, dir)
	if s := l.Settled(); len(s) != 1 || s[0].ID != 1 || s[0].Status != StatusNotApplied {
		t.Fatalf("%+v", s)
	}
	d, err := l.Show(ctx, "r/1/1")
	must(t, err)
	if len(d.Events) != 3 {
		t.Errorf("events %+v", d.Events)
	}
	verify(t, l)
}

// FuzzDecide: whatever is found, the ledger never claims what the files deny.
func FuzzDecide(f *testing.F) {
	tools := []string{"tf-write", "tf-append", "tf-edit", "tf-touch", "tf-mkdir", "tf-delete", "tf-move", "tf-copy", "tf-bash", "mcp"}
	hashes := []string{"", Dir, sum("1"), sum("2"), sum("3")}
	for i := range tools {
		f.Add(uint8(i), uint8(2), uint8(3), uint8(0), uint8(3), uint8(0), false)
		f.Add(uint8(i), uint8(0), uint8(1), uint8(2), uint8(0), uint8(4), true)
	}
	f.Fuzz(func(t *testing.T, tool, before, after, destBefore, at, dest uint8, editor bool) {
		pick := func(n uint8) string { return hashes[int(n)%len(hashes)] }
		c := Command{Announced: Announced{Tool: tools[int(tool)%len(tools)], Path: "p", Dest: "d", Abs: "/p", BeforeHash: pick(before), AfterHash: pick(after), DestBefore: pick(destBefore)}}
		if editor {
			c.Via = ViaEditor
		}
		s, why := decide(&c, pick(at), pick(dest))
		if why == "" {
			t.Fatal("no reason")
		}
		result := pick(at)
		if c.Tool == "tf-move" || c.Tool == "tf-copy" {
			result = pick(dest)
		}
		switch s {
		case StatusApplied:
			if result != c.AfterHash || c.Tool == "tf-bash" || c.Tool == "tf-move" && pick(at) != "" {
				t.Fatalf("applied, but %+v at %q dest %q", c, pick(at), pick(dest))
			}
		case StatusNotApplied:
			if c.Tool != "tf-copy" && pick(at) != c.BeforeHash || c.Tool == "tf-copy" && pick(dest) != c.DestBefore || editor {
				t.Fatalf("not applied, but %+v at %q dest %q", c, pick(at), pick(dest))
			}
		case StatusUncertain:
		default:
			t.Fatalf("status %s", s)
		}
	})
}

// FuzzSeries: the decisions about a batch are of the form applied… then
// not_applied…, and agree with what stands there.
func FuzzSeries(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(2))
	f.Add([]byte{1, 0, 1}, uint8(1))
	f.Add([]byte{0}, uint8(9))
	f.Fuzz(func(t *testing.T, steps []byte, at uint8) {
		if len(steps) == 0 || len(steps) > 20 {
			return
		}
		state := func(n uint8) string { return fmt.Sprint(n % 5) }
		now := state(at)
		last := "0"
		var cmds []*Command
		for _, s := range steps {
			cmds = append(cmds, &Command{Announced: Announced{Tool: "tf-edit", Path: "p", Abs: "/p", BeforeHash: last, AfterHash: state(s)}})
			last = state(s)
		}
		statuses, reasons := decideSeries(cmds, now)
		text, changed := "0", false
		for i, s := range statuses {
			if reasons[i] == "" {
				t.Fatal("no reason")
			}
			switch s {
			case StatusApplied:
				if changed {
					t.Fatalf("applied after one that was not: %v", statuses)
				}
				text = cmds[i].AfterHash
			case StatusNotApplied:
				changed = true
			case StatusUncertain:
				return
			}
		}
		if text != now {
			t.Fatalf("%v leads to %s, but %s stands there", statuses, text, now)
		}
	})
}
