package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Whatever is changed behind the ledger's back, Verify names the first row that
// does not fit.
func TestVerifyNamesTheBrokenRow(t *testing.T) {
	for _, c := range []struct {
		name string
		stmt string
		row  int64  // 0 = any
		say  string // part of the reason
	}{
		{"a body", "UPDATE events SET body = replace(body, 'tf-write', 'tf-touch') WHERE seq = 3", 3, "changed"},
		{"a time", "UPDATE events SET at = at + 1 WHERE seq = 5", 5, "changed"},
		{"a type", "UPDATE events SET type = 'ledger.outcome' WHERE seq = 2", 2, "changed"},
		{"a run", "UPDATE events SET run = 99 WHERE seq = 3", 3, "changed"},
		{"a hash", "UPDATE events SET hash = zeroblob(32) WHERE seq = 6", 6, "changed"},
		{"a row removed", "DELETE FROM events WHERE seq = 5", 5, "missing"},
		{"the first row removed", "DELETE FROM events WHERE seq = 1", 1, "missing"},
		{"rows swapped", "UPDATE events SET seq = CASE seq WHEN 4 THEN 104 ELSE seq END WHERE seq IN (4)", 4, "missing"},
		{"the last rows removed", "DELETE FROM events WHERE seq > 5", 0, "status"},
		{"a body dropped", "UPDATE events SET body = NULL WHERE seq = 4", 4, "digest"},
		{"a status in the projection", "UPDATE commands SET status = 'failed' WHERE id = 2", 0, "status"},
		{"a tool in the projection", "UPDATE commands SET tool = 'tf-bash' WHERE id = 2", 0, "announced"},
		{"a path in the projection", "UPDATE commands SET path = 'other' WHERE id = 2", 0, "announced"},
		{"a run's id", "UPDATE runs SET id = 'x'", 2, "began"},
		{"a stored text", "UPDATE blobs SET data = CAST('forged' AS BLOB) WHERE n = (SELECT undo FROM commands WHERE id = 3)", 0, "text"},
		{"a false anchor", "INSERT INTO meta VALUES ('anchor_seq', '3'), ('anchor_hash', printf('%064d', 0))", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l := openAt(t, dir)
			must(t, l.StartSession(Session{ID: "s"}))
			must(t, l.Close())
			filled(t, dir, 4)
			l = openAt(t, dir)
			if n := verify(t, l); n != 1+1+8+1 {
				t.Fatalf("%d rows", n)
			}
			must(t, l.Close())
			tamper(t, dir, c.stmt)
			_, err := openAt(t, dir).Verify(ctx)
			var b *BrokenError
			if !errors.As(err, &b) || c.row != 0 && b.Row != c.row || !strings.Contains(b.Reason, c.say) {
				t.Fatalf("got %v, want row %d: %s", err, c.row, c.say)
			}
		})
	}
}

// runAt records a run with commands at a time.
func runAt(t *testing.T, l *Ledger, id string, at time.Time, commands int, end bool) {
	t.Helper()
	must(t, l.StartRun(Run{ID: id, Session: "s-" + id, Started: at}))
	must(t, l.StartTurn(id, 1))
	for i := range commands {
		k := key(id, 1, i+1)
		must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-write", Path: "f", Abs: "/f", Undo: []byte(strings.Repeat(id+fmt.Sprint(i), 500)), At: at}))
		must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied, At: at}))
		must(t, l.Event(id, int64(i+1), "text.delta", json.RawMessage(`{"text":"secret words of `+id+`"}`)))
	}
	if end {
		must(t, l.EndRun(id, "done", "", nil))
	}
}

// Pruning removes what is old and keeps the chain whole, again and again.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := now
	l := openAt(t, dir, func(o *Options) { o.Now = func() time.Time { return clock } })
	runAt(t, l, "first", clock, 3, true)
	runAt(t, l, "open", clock, 2, false) // an old run that still runs
	clock = clock.Add(24 * time.Hour)
	runAt(t, l, "second", clock, 3, true)
	clock = clock.Add(24 * time.Hour)
	runAt(t, l, "third", clock, 3, true)
	k := key("third", 1, 1)
	must(t, l.Outcome(Outcome{Key: k, Status: StatusUncertain}))
	clock = clock.Add(time.Hour)
	rows := verify(t, l)

	res, err := l.Prune(ctx, 36*time.Hour, 0) // first only
	must(t, err)
	if res.Runs != 1 || res.Commands != 3 || res.Blobs != 3 || res.Events == 0 {
		t.Errorf("%+v", res)
	}
	n := verify(t, l)
	if n != rows-int64(res.Events)+1 {
		t.Errorf("%d rows of %d, %d removed", n, rows, res.Events)
	}
	// second ended a day after open began: its rows stay without their bodies.
	res, err = l.Prune(ctx, 20*time.Hour, 0)
	must(t, err)
	if res.Runs != 1 {
		t.Errorf("%+v", res)
	}
	if v := verify(t, l); v != n+1 {
		t.Errorf("%d rows, want %d", v, n+1)
	}
	events, err := l.Events(ctx, EventFilter{})
	must(t, err)
	pruned := 0
	for _, e := range events {
		if strings.Contains(string(e.Body), "words of second") || strings.Contains(string(e.Body), "words of first") {
			t.Errorf("row %d is still there: %s", e.Row, e.Body)
		}
		if e.Pruned {
			pruned++
		}
	}
	if pruned != res.Events {
		t.Errorf("%d bodies dropped, %d said", pruned, res.Events)
	}
	// third is uncertain: kept, whatever its age; once settled it goes.
	clock = clock.Add(1000 * time.Hour)
	res, err = l.Prune(ctx, time.Hour, 0)
	must(t, err)
	if res.Runs != 0 {
		t.Errorf("%+v", res)
	}
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	must(t, l.EndRun("open", "done", "", nil))
	clock = clock.Add(1000 * time.Hour)
	res, err = l.Prune(ctx, time.Hour, 0)
	must(t, err)
	if res.Runs != 2 || res.BytesAfter >= res.BytesBefore {
		t.Errorf("%+v", res)
	}
	if v := verify(t, l); v != 1 {
		t.Errorf("%d rows, want the prune's own", v)
	}
	// The chain goes on, here and after opening again.
	runAt(t, l, "fourth", clock, 2, true)
	verify(t, l)
	must(t, l.Close())
	l = openAt(t, dir)
	runAt(t, l, "fifth", clock, 2, true)
	verify(t, l)
	runs, err := l.Runs(ctx, RunFilter{})
	must(t, err)
	if len(runs) != 2 {
		t.Errorf("%+v", runs)
	}
	must(t, l.Close())
	tamper(t, dir, "UPDATE meta SET value = printf('%064d', 1) WHERE key = 'anchor_hash'")
	if _, err := openAt(t, dir).Verify(ctx); err == nil {
		t.Error("a forged anchor was not seen")
	}
}

func TestPruneBySize(t *testing.T) {
	l := openAt(t, t.TempDir())
	text := make([]byte, 50_000)
	for i := range 20 {
		run := fmt.Sprintf("r%02d", i)
		must(t, l.StartRun(Run{ID: run}))
		copy(text, run)
		must(t, l.Intent(ctx, Intent{Key: key(run, 1, 1), Tool: "tf-write", Abs: "/f", Undo: text}))
		must(t, l.Outcome(Outcome{Key: key(run, 1, 1), Status: StatusApplied}))
		must(t, l.EndRun(run, "done", "", nil))
	}
	res, err := l.Prune(ctx, 0, 500_000)
	must(t, err)
	if res.BytesAfter > 500_000 || res.BytesAfter < 300_000 || res.Runs < 10 || res.Runs > 15 {
		t.Errorf("%+v", res)
	}
	runs, err := l.Runs(ctx, RunFilter{})
	must(t, err)
	if len(runs) != 20-res.Runs || runs[0].ID != "r19" || runs[len(runs)-1].ID != fmt.Sprintf("r%02d", res.Runs) {
		t.Errorf("%d left, first %s, last %s", len(runs), runs[0].ID, runs[len(runs)-1].ID)
	}
	verify(t, l)
	if res, err = l.Prune(ctx, 0, 500_000); err != nil || res.Runs != 0 {
		t.Errorf("again: %+v %v", res, err)
	}
}

// Keeping a change to a secret file removes its texts, from the file itself too.
func TestSecretsArePurged(t *testing.T) {
	const secret = "TOKEN=do-not-find-me-0123456789"
	l := openAt(t, t.TempDir())
	k := key("r", 1, 1)
	must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-edit", Path: ".env", Abs: "/.env", Undo: []byte(secret + strings.Repeat(" old", 2000)),
		Content: []byte(secret + "new"), Secret: true}))
	must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	plain := key("r", 1, 2)
	must(t, l.Intent(ctx, Intent{Key: plain, Tool: "tf-edit", Path: "f", Abs: "/f", Undo: []byte("plain")}))
	must(t, l.Review(k, Review{Action: ReviewKeep, By: "person"}))
	must(t, l.Review(plain, Review{Action: ReviewKeep}))
	d, err := l.Show(ctx, "r/1/1")
	must(t, err)
	if d.Undo != nil || d.ContentText != nil || d.UndoBlob == "" || len(d.Events) != 4 {
		t.Errorf("%+v", d)
	}
	if _, err := l.Blob(ctx, d.UndoBlob); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "purged") {
		t.Errorf("%v", err)
	}
	if d, err := l.Show(ctx, "r/1/2"); err != nil || string(d.Undo) != "plain" {
		t.Errorf("%q %v", d.Undo, err)
	}
	verify(t, l)
	// By hand too, and what is stored again is there again.
	must(t, l.PurgeBlobs(ctx, sum("plain")))
	if _, err := l.Blob(ctx, sum("plain")); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	must(t, l.Intent(ctx, Intent{Key: key("r", 1, 3), Tool: "tf-edit", Abs: "/f", Undo: []byte("plain")}))
	if b, err := l.Blob(ctx, sum("plain")); err != nil || string(b) != "plain" {
		t.Errorf("%q %v", b, err)
	}
	verify(t, l)
	for _, suffix := range []string{"", "-wal"} {
		if b, err := os.ReadFile(l.Path() + suffix); err == nil && strings.Contains(string(b), "do-not-find-me") {
			t.Errorf("the secret is still in the file%s", suffix)
		}
	}
}
