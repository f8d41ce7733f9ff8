package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// testClock gives times that never repeat.
func testClock() func() time.Time {
	t := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	n := 0
	return func() time.Time { n++; return t.Add(time.Duration(n) * time.Millisecond) }
}

// probeFile is what the workspace gives as Probe.
func probeFile(path string) (string, bool, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if fi.IsDir() {
		return "", true, nil
	}
	b, err := os.ReadFile(path)
	return sum(string(b)), true, err
}

func removeTemp(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func openAt(t testing.TB, dir string, change ...func(*Options)) *Ledger {
	t.Helper()
	o := Options{Dir: dir, Workspace: "/ws", Probe: probeFile, RemoveTemp: removeTemp, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, c := range change {
		c(&o)
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, l *Ledger) int64 {
	t.Helper()
	n, err := l.Verify(context.Background())
	must(t, err)
	return n
}

var ctx = context.Background()

func key(run string, turn, id int) Key { return Key{Run: run, Turn: turn, Channel: "text", ID: id} }

func TestEveryFieldComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := openAt(t, dir, func(o *Options) { o.Now = testClock() })
	must(t, l.StartSession(Session{ID: "s1", Title: "a talk"}))
	must(t, l.StartRun(Run{ID: "r1", Session: "s1", Task: "do it", Model: "m", Dir: "/ws"}))
	must(t, l.StartTurn("r1", 1))
	at := time.Date(2026, 7, 1, 9, 0, 0, 123000, time.UTC)
	in := Intent{
		Key: Key{"r1", 1, "text", 3}, Tool: "tf-move", Path: "a.txt", Dest: "b.txt", Cmd: "", Abs: "/ws/a.txt", AbsDest: "/ws/b.txt",
		BeforeHash: sum("a"), AfterHash: sum("a"), DestBefore: "", NeedResult: true, Flow: FlowStreamed, Via: ViaEditor, Risk: "low",
		Rung: "exact", Temp: "/ws/.tmp", Undo: []byte("undo it"), Content: []byte("new text"), ContentHash: "ch", Summary: "1 line",
		Args: json.RawMessage(`{"x":1}`), At: at,
	}
	must(t, l.Intent(ctx, in))
	exit := 3
	must(t, l.Outcome(Outcome{Key: in.Key, Status: StatusApplied, Code: "c", Error: "e", Bytes: 7, Added: 1, Removed: 2, Rung: "trailing",
		Stdout: "out", Stderr: "err", ExitCode: &exit, Notes: []string{"n1", "n2"}, At: at.Add(time.Second)}))
	must(t, l.Event("r1", 1, "command.completed", json.RawMessage(`{"id":3}`)))
	must(t, l.Approval(in.Key, Approval{ID: "ap", Action: "move", Decision: "once", By: "editor"}))
	must(t, l.Injected(in.Key))
	must(t, l.EndTurn("r1", 1, "stop", json.RawMessage(`{"in":1}`)))
	must(t, l.EndRun("r1", "done", "", json.RawMessage(`{"in":2}`)))

	check := func(l *Ledger) {
		t.Helper()
		d, err := l.Show(ctx, "last")
		must(t, err)
		got := d.Command
		if got.Injected == nil || got.OutcomeAt == nil || !got.IntentAt.Equal(at) || !got.OutcomeAt.Equal(at.Add(time.Second)) {
			t.Errorf("times: %+v", got)
		}
		got.Injected, got.OutcomeAt, got.IntentAt = nil, nil, time.Time{}
		want := Command{N: got.N, Key: in.Key, Announced: Announced{Tool: "tf-move", Path: "a.txt", Dest: "b.txt", Abs: "/ws/a.txt", AbsDest: "/ws/b.txt",
			BeforeHash: sum("a"), AfterHash: sum("a"), NeedResult: true, Flow: FlowStreamed, Via: ViaEditor, Risk: "low", Rung: "trailing",
			Temp: "/ws/.tmp", UndoBlob: sum("undo it"), Content: sum("new text"), ContentSum: "ch", Summary: "1 line", Args: json.RawMessage(`{"x":1}`)},
			Status: StatusApplied, Code: "c", Error: "e", Bytes: 7, Added: 1, Removed: 2,
			Stdout: "out", Stderr: "err", ExitCode: &exit, Notes: []string{"n1", "n2"}, LastEvent: got.LastEvent}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if string(d.Undo) != "undo it" || string(d.ContentText) != "new text" {
			t.Errorf("texts %q %q", d.Undo, d.ContentText)
		}
		var types []string
		for _, e := range d.Events {
			types = append(types, e.Type)
		}
		if s := strings.Join(types, " "); s != "ledger.intent ledger.outcome ledger.approval ledger.injected" {
			t.Errorf("events %s", s)
		}
		runs, err := l.Runs(ctx, RunFilter{})
		must(t, err)
		if len(runs) != 1 || runs[0].State != "done" || runs[0].Turns != 1 || runs[0].Counts[StatusApplied] != 1 || string(runs[0].Usage) != `{"in":2}` {
			t.Errorf("runs %+v", runs)
		}
		events, err := l.Events(ctx, EventFilter{Run: "r1", Seq: true})
		must(t, err)
		if len(events) != 1 || events[0].Type != "command.completed" || string(events[0].Body) != `{"id":3}` || events[0].Run != "r1" {
			t.Errorf("events %+v", events)
		}
		verify(t, l)
	}
	check(l)
	must(t, l.Close())
	check(openAt(t, dir))
}

// LR-10 and LR-11: the key is (run, turn, channel, id).
func TestKeys(t *testing.T) {
	first := Intent{Key: key("r", 1, 7), Tool: "tf-append", Path: "l.txt", ContentHash: sum("b")}
	with := func(f func(*Intent)) Intent { in := first; f(&in); return in }
	for _, c := range []struct {
		name   string
		second Intent
		dup    bool
		same   bool
	}{
		{"same id, same content: already done", first, true, true},
		{"same id, other content: refused", with(func(in *Intent) { in.ContentHash = sum("c") }), true, false},
		{"same id, other path: refused", with(func(in *Intent) { in.Path = "b.txt" }), true, false},
		{"same id, other tool: refused", with(func(in *Intent) { in.Tool = "tf-write" }), true, false},
		{"ids start anew in each turn", with(func(in *Intent) { in.Turn = 2 }), false, false},
		{"and in each run", with(func(in *Intent) { in.Run = "q" }), false, false},
		{"not across channels", with(func(in *Intent) { in.Channel = "reasoning" }), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openAt(t, t.TempDir())
			must(t, l.Intent(ctx, first))
			must(t, l.Outcome(Outcome{Key: first.Key, Status: StatusApplied}))
			err := l.Intent(ctx, c.second)
			var dup *DuplicateError
			if errors.As(err, &dup) != c.dup || c.dup && dup.Same != c.same {
				t.Fatalf("got %v", err)
			}
			if c.dup && (dup.Existing.Status != StatusApplied || dup.Existing.Path != "l.txt") {
				t.Errorf("existing %+v", dup.Existing)
			}
			if !c.dup {
				must(t, err)
			}
			verify(t, l)
		})
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits on Windows")
	}
	dir := filepath.Join(t.TempDir(), "a", "state")
	l := openAt(t, dir)
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-bash"}))
	for path, want := range map[string]os.FileMode{
		filepath.Dir(dir): 0o700, dir: 0o700, l.Path(): 0o600, l.Path() + "-wal": 0o600, l.Path() + "-shm": 0o600,
		filepath.Join(dir, ownersDir): 0o700,
	} {
		fi, err := os.Stat(path)
		must(t, err)
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, fi.Mode().Perm(), want)
		}
	}
}
