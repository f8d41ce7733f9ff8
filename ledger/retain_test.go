package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// record makes runs of three commands each that end after what is given.
func record(t *testing.T, l *Ledger, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, l.StartSession(Session{ID: "s-" + id}))
		must(t, l.StartRun(Run{ID: id, Session: "s-" + id}))
		for i := range 3 {
			k := key(id, 1, i+1)
			must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "f", Abs: "/nowhere/f", Undo: []byte(fmt.Sprint("before ", id, i)), Content: []byte("the same for all")}))
			must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
		}
		must(t, l.EndRun(id, "done", "", nil))
	}
}

func runIDs(t *testing.T, l *Ledger) []string {
	t.Helper()
	runs, err := l.Runs(ctx, RunFilter{})
	must(t, err)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestRetentionByItself: what is too old goes when a process that did something
// ends, once a day; what still runs, waits or is uncertain stays, and so does
// what others have in common with what goes.
func TestRetentionByItself(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1e9, 0)
	open := func() *Ledger {
		return openAt(t, dir, func(o *Options) { o.KeepFor, o.Now = 30*24*time.Hour, func() time.Time { return now } })
	}
	l := open()
	record(t, l, "old1", "waits", "old2", "uncertain")
	must(t, l.EndRun("waits", "suspended", "", nil))
	must(t, l.Intent(ctx, Intent{Key: key("uncertain", 2, 1), Tool: "tf-bash"}))
	must(t, l.Outcome(Outcome{Key: key("uncertain", 2, 1), Status: StatusUncertain}))
	must(t, l.Close())

	now = now.Add(20 * 24 * time.Hour)
	l = open()
	record(t, l, "newer")
	must(t, l.Close())
	now = now.Add(20 * 24 * time.Hour)
	l = open() // reads only: it tidies nothing
	verify(t, l)
	must(t, l.Close())
	l = open()
	if got := runIDs(t, l); len(got) != 5 {
		t.Fatalf("%v", got)
	}
	record(t, l, "now")
	must(t, l.Close())

	l = open()
	if got := fmt.Sprint(runIDs(t, l)); got != "[newer now uncertain waits]" {
		t.Errorf("kept: %s", got)
	}
	verify(t, l)
	for _, c := range []struct {
		text string
		want bool
	}{{"before old10", false}, {"before newer0", true}, {"the same for all", true}} {
		if _, err := l.Blob(ctx, newText([]byte(c.text)).hex()); (err == nil) != c.want {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	now = now.Add(11 * 24 * time.Hour)
	res, err := l.retain(ctx)
	must(t, err)
	if res.Runs != 1 { // newer
		t.Errorf("%+v", res)
	}
	now = now.Add(23 * time.Hour)
	if res, err = l.retain(ctx); err != nil || res.Runs != 0 {
		t.Errorf("twice a day: %+v, %v", res, err)
	}
	verify(t, l)
}

// TestRetentionBesideCommands: by size, in steps, while commands come from this
// ledger and another process's; nothing of theirs goes, and the chain holds.
func TestRetentionBesideCommands(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir, func(o *Options) { o.KeepBytes = 1 })
	other := openAt(t, dir)
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("r%02d", i))
	}
	record(t, l, ids...)
	must(t, l.StartRun(Run{ID: "live"}))
	must(t, other.StartRun(Run{ID: "theirs"}))
	must(t, other.Flush(ctx))
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	counts := [2]int{}
	for i, w := range []*Ledger{l, other} {
		wg.Go(func() {
			for n := 1; stop.Err() == nil || n < 5; n++ {
				k := key([]string{"live", "theirs"}[i], 1, n)
				// The texts of runs that go are wanted again.
				if err := w.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "f", Abs: "/nowhere/f", Undo: []byte(fmt.Sprintf("before r%02d0", n%40))}); err != nil {
					t.Error(err)
					return
				}
				if err := w.Outcome(Outcome{Key: k, Status: StatusApplied}); err != nil {
					t.Error(err)
				}
				counts[i] = n
			}
		})
	}
	res, err := l.retain(ctx)
	cancel()
	wg.Wait()
	must(t, err)
	if res.Runs != 40 || res.Commands != 120 {
		t.Errorf("%+v", res)
	}
	if got := fmt.Sprint(runIDs(t, l)); got != "[live theirs]" {
		t.Errorf("kept: %s", got)
	}
	must(t, other.Flush(ctx))
	cmds, err := l.List(ctx, Filter{})
	must(t, err)
	if len(cmds) != counts[0]+counts[1] {
		t.Errorf("%d commands, %v were made", len(cmds), counts)
	}
	for i := range cmds {
		if _, err := l.Blob(ctx, cmds[i].UndoBlob); err != nil {
			t.Errorf("%s: %v", cmds[i].Key, err)
		}
	}
	verify(t, l)
}
