package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// library is a ledger with a few runs for the readers.
func library(t *testing.T) *Ledger {
	t.Helper()
	l := openAt(t, t.TempDir(), func(o *Options) { o.Now = testClock() })
	for _, r := range []Run{{ID: "abc1", Session: "s1"}, {ID: "abd2", Session: "s1"}, {ID: "x", Session: "s2"}, {ID: "xyz", Session: "s2"}} {
		must(t, l.StartRun(r))
		for turn := 1; turn <= 2; turn++ {
			for id := 1; id <= 2; id++ {
				k := key(r.ID, turn, id)
				must(t, l.Intent(ctx, Intent{Key: k, Tool: []string{"tf-write", "tf-edit"}[id-1], Path: fmt.Sprintf("f%d", id), Abs: "/f"}))
				must(t, l.Outcome(Outcome{Key: k, Status: []Status{StatusApplied, StatusFailed}[turn-1]}))
			}
		}
		must(t, l.Intent(ctx, Intent{Key: Key{r.ID, 2, "reasoning", 9}, Tool: "tf-write", Path: "f9", Abs: "/f"}))
		must(t, l.EndRun(r.ID, "done", "", nil))
	}
	return l
}

func TestReferences(t *testing.T) {
	l := library(t)
	n := func(ref string) string {
		d, err := l.Show(ctx, ref)
		must(t, err)
		return fmt.Sprint(d.N)
	}
	for _, c := range []struct {
		ref, want string // want: the key, or a part of the error
		err       bool
	}{
		{"last", "xyz/2/reasoning/9", false},
		{"abc1/1/text/2", "abc1/1/text/2", false},
		{"abc/1/text/2", "abc1/1/text/2", false},
		{"abd/2/1", "abd2/2/text/1", false},
		{"abd/2/9", "abd2/2/reasoning/9", false},
		{"x/1/1", "x/1/text/1", false}, // a whole id, though a prefix too
		{"last/1/2", "xyz/1/text/2", false},
		{"last/9", "xyz/2/reasoning/9", false},
		{n("abc/1/1"), "abc1/1/text/1", false},
		{"#" + n("abc/1/2"), "abc1/1/text/2", false},
		{"ab/1/1", "fits several entries ([abc1 abd2])", true},
		{"abc/1", "fits several entries", true},
		{"abc", "fits several entries", true},
		{"nope", "not found", true},
		{"", "not found", true},
		{"abc/1/1/1/1", "not found", true},
		{"abc/x/1", "not found", true},
		{"999999", "thinkflow ledger list", true},
	} {
		d, err := l.Show(ctx, c.ref)
		switch {
		case c.err && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: got %v, want %q", c.ref, err, c.want)
		case !c.err && (err != nil || d.Key.String() != c.want):
			t.Errorf("%q: got %s %v, want %s", c.ref, d.Key, err, c.want)
		}
	}
	if r, err := l.FindRun(ctx, "abd"); err != nil || r.ID != "abd2" || r.Counts[StatusFailed] != 2 {
		t.Errorf("%+v %v", r, err)
	}
	var amb *AmbiguousError
	if _, err := l.FindRun(ctx, "ab"); !errors.As(err, &amb) || len(amb.Matches) != 2 {
		t.Errorf("%v", err)
	}
}

func TestFilters(t *testing.T) {
	l := library(t)
	all, err := l.List(ctx, Filter{})
	must(t, err)
	must(t, l.Injected(key("abc1", 1, 1)))
	for _, c := range []struct {
		name string
		f    Filter
		want int
	}{
		{"all", Filter{}, 20},
		{"run", Filter{Run: "abc"}, 5},
		{"last run", Filter{Run: Last}, 5},
		{"session", Filter{Session: "s1"}, 10},
		{"turn", Filter{Run: "abc1", Turn: 2}, 3},
		{"path", Filter{Path: "f2"}, 8},
		{"tool", Filter{Tool: "tf-edit"}, 8},
		{"status", Filter{Status: []Status{StatusApplied, StatusIntent}}, 12},
		{"not told", Filter{Run: "abc1", NotInjected: true}, 4},
		{"limit", Filter{Limit: 3}, 3},
		{"last", Filter{Last: 3}, 3},
		{"after", Filter{After: all[16].N}, 3},
		{"since", Filter{Since: all[18].IntentAt}, 2},
		{"nothing", Filter{Path: "none"}, 0},
	} {
		got, err := l.List(ctx, c.f)
		must(t, err)
		if len(got) != c.want {
			t.Errorf("%s: %d, want %d", c.name, len(got), c.want)
		}
		for i := 1; i < len(got); i++ {
			if got[i].N <= got[i-1].N {
				t.Errorf("%s: not oldest first", c.name)
			}
		}
		if c.name == "last" && got[2].N != all[19].N || c.name == "limit" && got[0].N != all[0].N {
			t.Errorf("%s: the wrong end", c.name)
		}
	}
	if _, err := l.List(ctx, Filter{Run: "nope"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	if runs, err := l.Runs(ctx, RunFilter{Session: "s2", Limit: 1}); err != nil || len(runs) != 1 || runs[0].ID != "xyz" || runs[0].Counts[StatusIntent] != 1 {
		t.Errorf("%+v %v", runs, err)
	}
	if events, err := l.Events(ctx, EventFilter{Run: "x"}); err != nil || len(events) != 11 || events[0].Type != EventRunStart {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// Approvals come before their intents, perhaps in another process; Show tells
// of them all the same.
func TestApprovalsBeforeTheIntent(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	k, failed := key("r", 1, 1), key("r", 1, 2)
	must(t, l.StartRun(Run{ID: "r"}))
	must(t, l.Approval(k, Approval{ID: "a", Action: "bash"}))
	must(t, l.Approval(failed, Approval{ID: "b", Action: "bash", Decision: "no"}))
	must(t, l.Close())
	l = openAt(t, dir)
	must(t, l.Approval(k, Approval{ID: "a", Action: "bash", Decision: "once", By: "terminal"}))
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash", Cmd: "make"}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	must(t, l.Record(Command{Key: failed, Status: StatusRejected, Announced: Announced{Tool: "tf-bash", Cmd: "rm"}}))
	for ref, want := range map[string]string{
		"r/1/1": "ledger.approval ledger.approval ledger.intent ledger.outcome",
		"r/1/2": "ledger.approval ledger.record",
	} {
		d, err := l.Show(ctx, ref)
		must(t, err)
		var types []string
		for _, e := range d.Events {
			types = append(types, e.Type)
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
	verify(t, l)
}

// Repeated and missing ids are recorded beside the command that has the key.
func TestRecordsWithTakenKeys(t *testing.T) {
	l := openAt(t, t.TempDir())
	k := key("r", 1, 7)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "a"}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	for range 2 {
		must(t, l.Record(Command{Key: k, Status: StatusFailed, Code: "duplicate_id", Announced: Announced{Tool: "tf-write", Path: "b"}}))
		must(t, l.Record(Command{Key: key("r", 1, 0), Status: StatusFailed, Code: "bad_id", Announced: Announced{Tool: "tf-write"}}))
	}
	c, err := l.Get(ctx, k)
	must(t, err)
	if c.Path != "a" || c.Extra {
		t.Errorf("%+v", c)
	}
	all, err := l.List(ctx, Filter{Status: []Status{StatusFailed}})
	must(t, err)
	if len(all) != 4 {
		t.Errorf("%d", len(all))
	}
	for _, c := range all {
		if !c.Extra {
			t.Errorf("%+v", c)
		}
		if d, err := l.Show(ctx, fmt.Sprint(c.N)); err != nil || d.Code != c.Code || d.OutcomeAt == nil {
			t.Errorf("%+v %v", d, err)
		}
	}
	verify(t, l)
}

func TestTakenBackKeepsWhatWasDone(t *testing.T) {
	l := openAt(t, t.TempDir())
	k := key("r", 1, 1)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Rung: "exact"}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied, Bytes: 10, Added: 2, Notes: []string{"n"}}))
	must(t, l.Injected(k))
	must(t, l.EndRun("r", "done", "", nil))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusUndone, Error: "by a person"}))
	c, err := l.Get(ctx, k)
	must(t, err)
	if c.Status != StatusUndone || c.Bytes != 10 || c.Added != 2 || c.Rung != "exact" || c.Error != "by a person" || len(c.Notes) != 1 || c.Injected != nil {
		t.Errorf("%+v", c)
	}
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied, Bytes: 11})) // undoing was undone
	if err := l.Outcome(Outcome{Key: k, Status: StatusNotApplied}); err == nil {
		t.Error("what was applied cannot be not applied")
	}
	if err := l.Outcome(Outcome{Key: key("r", 1, 99), Status: StatusApplied}); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// Real paths may be any bytes; texts may be too.
func TestBytesThatAreNotUTF8(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	abs, undo := "/caf\xe9/f", []byte("\xff\x00<&>\u2028")
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-write", Path: "f", Abs: abs, AbsDest: abs + "2", Temp: abs + "t", AfterHash: sum("x"), Undo: undo}))
	must(t, l.Close())
	var asked []string
	l = openAt(t, dir, func(o *Options) {
		o.Probe = func(p string) (string, bool, error) { asked = append(asked, p); return "", false, nil }
		o.RemoveTemp = func(p string) error { asked = append(asked, p); return nil }
	})
	if len(asked) != 3 || asked[0] != abs || asked[1] != abs+"2" || asked[2] != abs+"t" {
		t.Errorf("%q", asked)
	}
	d, err := l.Show(ctx, Last)
	must(t, err)
	if string(d.Undo) != string(undo) {
		t.Errorf("%q", d.Undo)
	}
	b, err := json.Marshal(d)
	must(t, err)
	if !strings.Contains(string(b), `"undo":{"base64":"/wA8Jj7igKg="}`) {
		t.Errorf("%s", b)
	}
}

func TestOutputIsCut(t *testing.T) {
	l := openAt(t, t.TempDir())
	k := key("r", 1, 1)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied, Stdout: "begin" + strings.Repeat("é", 100_000) + "end"}))
	c, err := l.Get(ctx, k)
	must(t, err)
	if len(c.Stdout) > maxSummary || !strings.HasPrefix(c.Stdout, "begin") || !strings.HasSuffix(c.Stdout, "end") || !strings.Contains(c.Stdout, "bytes left out") {
		t.Errorf("%d bytes: %.20s … %s", len(c.Stdout), c.Stdout, c.Stdout[len(c.Stdout)-20:])
	}
}

func TestBadCalls(t *testing.T) {
	l := openAt(t, t.TempDir())
	k := key("r", 1, 1)
	for name, err := range map[string]error{
		"no run":              l.Intent(ctx, Intent{Key: key("", 1, 1), Tool: "x"}),
		"no channel":          l.Intent(ctx, Intent{Key: Key{Run: "r", Turn: 1, ID: 1}, Tool: "x"}),
		"no tool":             l.Intent(ctx, Intent{Key: k}),
		"args":                l.Intent(ctx, Intent{Key: k, Tool: "x", Args: json.RawMessage(`{`)}),
		"event body":          l.Event("r", 1, "plan", json.RawMessage(`nope`)),
		"event number":        l.Event("r", 0, "plan", nil),
		"run without id":      l.StartRun(Run{}),
		"session without id":  l.StartSession(Session{}),
		"recorded as intent":  l.Record(Command{Key: k, Status: StatusIntent}),
		"an unknown status":   l.Record(Command{Key: k, Status: "odd"}),
		"usage":               l.EndRun("r", "done", "", json.RawMessage(`x`)),
		"a hash that is none": l.PurgeBlobs(ctx, "xyz"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Open(ctx, Options{}); err == nil {
		t.Error("no folder: no error")
	}
	if rows := verify(t, l); rows != 0 {
		t.Errorf("%d rows", rows)
	}
}

func TestStateDir(t *testing.T) {
	home := t.TempDir()
	t.Setenv(EnvStateDir, home)
	ws := filepath.Join(t.TempDir(), "my project ü")
	a, err := StateDir(ws)
	must(t, err)
	if filepath.Dir(filepath.Dir(a)) != home || !strings.HasPrefix(filepath.Base(a), "my_project") {
		t.Errorf("%s", a)
	}
	b, err := StateDir(ws + string(filepath.Separator) + ".")
	must(t, err)
	if a != b {
		t.Errorf("%s and %s", a, b)
	}
	if c, _ := StateDir(ws + "2"); c == a {
		t.Error("two workspaces, one folder")
	}
	t.Setenv(EnvStateDir, "")
	t.Setenv("XDG_STATE_HOME", "relative")
	if root, err := StateRoot(); err == nil && !filepath.IsAbs(root) {
		t.Errorf("%s", root)
	}
}

func TestRunsGoOn(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	must(t, l.StartRun(Run{ID: "r", Task: "long"}))
	must(t, l.Event("r", 1, "run.started", nil))
	must(t, l.EndRun("r", "suspended", "waits", nil))
	must(t, l.Close())
	l = openAt(t, dir)
	if res, err := l.Prune(ctx, time.Nanosecond, 1); err != nil || res.Runs != 0 {
		t.Errorf("a suspended run was pruned: %+v %v", res, err)
	}
	must(t, l.StartRun(Run{ID: "r"}))
	r, err := l.FindRun(ctx, "r")
	must(t, err)
	if r.State != RunRunning || r.Task != "long" || r.Ended != nil {
		t.Errorf("%+v", r)
	}
	if n, err := l.LastSeq(ctx, "r"); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	verify(t, l)
}
