package review

import (
	"fmt"
	"strings"
	"testing"

	"thinkflow/workspace"
)

// What belongs to the agent and what to the person, by place of the typing. The
// agent has changed "two" to "TWO" in line 2 and removed the line "four".
func TestTyping(t *testing.T) {
	const base, text = "one\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfive\n"
	rows := []struct {
		name, now, base string
		edited          string // text inside of the first hunk, when changed
		hunks           int
	}{
		{"above", "zero\n" + text, "zero\n" + base, "", 2},
		{"below", text + "six\n", base + "six\n", "", 2},
		{"between", "one\nTWO\n3\nfive\n", "one\ntwo\n3\nfour\nfive\n", "", 2},
		{"inside", "one\nTWO more\nthree\nfive\n", base, "TWO more\n", 2},
		{"a line before the change", "one\nnew\nTWO\nthree\nfive\n", "one\nnew\ntwo\nthree\nfour\nfive\n", "", 2},
		{"a line behind the change", "one\nTWO\nnew\nthree\nfive\n", "one\ntwo\nnew\nthree\nfour\nfive\n", "", 2},
		{"at the start of its line", "one\n> TWO\nthree\nfive\n", base, "> TWO\n", 2},
		{"where lines were removed", "one\nTWO\nthree\nnew\nfive\n", "one\ntwo\nthree\nfour\nnew\nfive\n", "", 2},
		{"the removed line again", "one\nTWO\nthree\nfour\nfive\n", base, "", 1},
		{"the change taken back", "one\ntwo\nthree\nfive\n", base, "", 1},
		{"the change removed", "one\nthree\nfive\n", base, "", 2},
		{"what lies between removed", "one\nTWO\nfive\n", "one\ntwo\nfour\nfive\n", "", 1},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var last ID
			f := NewFile(base, func() ID { last++; return last })
			f.Agent(workspace.DiffText(base, text), text, "k")
			f.Sync(r.now)
			if f.Text() != r.now || f.Base() != r.base {
				t.Errorf("text %q\nbase %q\nwant %q", f.Text(), f.Base(), r.base)
			}
			hunks := f.Hunks()
			if len(hunks) != r.hunks {
				t.Fatalf("%d hunks: %+v", len(hunks), hunks)
			}
			if r.edited != "" && (!hunks[0].Edited || hunks[0].New != r.edited) {
				t.Errorf("the first hunk is %+v", hunks[0])
			}
		})
	}
}

// say lists what waits in a tracker.
func say(t *Tracker) string {
	var out []string
	for _, p := range t.Paths() {
		for _, c := range t.Changes(p) {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %q>%q %s", c.Path, c.Kind, c.Old, c.New, c.From)))
		}
	}
	return strings.Join(out, "; ")
}

// TestIdsStayWithTheFile: what becomes of a change has the id of the oldest part
// of it, and all of its commands.
func TestIdsStayWithTheFile(t *testing.T) {
	tr := NewTracker()
	tr.Agent(Applied{Key: "1", Kind: workspace.ChangeMove, Path: "a", Dest: "b", Before: "x\n"})
	moved := tr.Changes("b")[0]
	tr.Agent(Applied{Key: "2", Kind: workspace.ChangeDelete, Path: "b", Before: "x\n"})
	got := tr.Changes("a")
	if len(got) != 1 || got[0].ID != moved.ID || fmt.Sprint(got[0].Keys) != "[1 2]" || len(got[0].Merged) > 0 {
		t.Errorf("moved as %s, deleted as %+v", moved.ID, got)
	}
}

// Files that come, go and move.
func TestTracker(t *testing.T) {
	create := func(k, p, text string) Applied {
		return Applied{Key: k, Kind: workspace.ChangeCreate, Path: p, After: text}
	}
	remove := func(k, p, text string) Applied {
		return Applied{Key: k, Kind: workspace.ChangeDelete, Path: p, Before: text}
	}
	move := func(k, p, d, text string) Applied {
		return Applied{Key: k, Kind: workspace.ChangeMove, Path: p, Dest: d, Before: text}
	}
	edit := func(k, p, before, after string) Applied {
		return Applied{Key: k, Kind: workspace.ChangeModify, Path: p, Before: before, After: after, Edits: workspace.DiffText(before, after)}
	}
	rows := []struct {
		name  string
		steps []Applied
		want  string
	}{
		{"created, edited", []Applied{create("1", "a", "x\n"), edit("2", "a", "x\n", "y\n")}, `a create "">"y\n"`},
		{"created, deleted", []Applied{create("1", "a", "x\n"), remove("2", "a", "x\n")}, ""},
		{"created, moved", []Applied{create("1", "a", "x\n"), move("2", "a", "b", "x\n")}, `b create "">"x\n"`},
		{"edited, deleted", []Applied{edit("1", "a", "x\n", "y\n"), remove("2", "a", "y\n")}, `a delete "x\n">""`},
		{"deleted, created otherwise", []Applied{remove("1", "a", "x\n"), create("2", "a", "y\n")}, `a edit "x\n">"y\n"`},
		{"deleted, created again", []Applied{remove("1", "a", "x\n"), create("2", "a", "x\n")}, ""},
		{"moved and edited", []Applied{move("1", "a", "b", "x\n"), edit("2", "b", "x\n", "y\n")}, `b move "">"" a; b edit "x\n">"y\n"`},
		{"moved there and back", []Applied{move("1", "a", "b", "x\n"), move("2", "b", "a", "x\n")}, ""},
		{"moved, moved on", []Applied{move("1", "a", "b", "x\n"), move("2", "b", "c", "x\n")}, `c move "">"" a`},
		{"moved, edited, deleted", []Applied{move("1", "a", "b", "x\n"), edit("2", "b", "x\n", "y\n"), remove("3", "b", "y\n")}, `a delete "x\n">""`},
		{"edited and back", []Applied{edit("1", "a", "x\n", "y\n"), edit("2", "a", "y\n", "x\n")}, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			tr := NewTracker()
			for _, s := range r.steps {
				tr.Agent(s)
			}
			if got := say(tr); got != r.want {
				t.Errorf("got  %s\nwant %s", got, r.want)
			}
		})
	}
}

// A proposal's base is the real file: what a person does there carries over.
func TestSyncBase(t *testing.T) {
	tr := NewTracker()
	tr.Agent(Applied{Key: "1", Kind: workspace.ChangeModify, Path: "a", Before: "one\ntwo\nthree\n", After: "one\nTWO\nthree\n", Edits: []workspace.Edit{{Start: 4, End: 7, New: "TWO"}}})
	tr.SyncBase("a", "zero\none\ntwo\nthree\n", true)
	if text, _, _ := tr.Text("a"); text != "zero\none\nTWO\nthree\n" {
		t.Errorf("the proposal is %q", text)
	}
	tr.SyncBase("a", "zero\none\nTWO\nthree\n", true) // made real by hand
	if got := say(tr); got != "" {
		t.Errorf("left %s", got)
	}
	tr.Agent(Applied{Key: "1", Kind: workspace.ChangeCreate, Path: "n", After: "mine\n"})
	tr.SyncBase("n", "yours\n", true)
	if got := say(tr); got != `n edit "yours\n">"mine\n"` {
		t.Errorf("a file that came in between: %s", got)
	}
	if _, err := tr.Find("h99"); err == nil {
		t.Error("a hunk that never was is found")
	}
}
