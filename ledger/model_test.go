package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"testing"
	"time"
)

// model is what a ledger should hold, in plain memory.
type model struct {
	cmds  []*modelCmd
	byKey map[Key]*modelCmd
	runs  map[string]string // state
	files map[string]string // hash by path; what the probe sees
	seq   map[string]int64
}

type modelCmd struct {
	key      Key
	tool     string
	path     string
	hash     string
	status   Status
	code     string
	bytes    int64
	extra    bool
	injected bool
	undo     string
	before   string
	after    string
}

func (m *model) run(id string) {
	if _, ok := m.runs[id]; !ok {
		m.runs[id] = RunRunning
	}
}

// Random sequences of calls against the model, with closing and opening again
// (which settles) in between.
func TestAgainstTheModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			m := &model{byKey: map[Key]*modelCmd{}, runs: map[string]string{}, files: map[string]string{}, seq: map[string]int64{}}
			dir := t.TempDir()
			open := func() *Ledger {
				return openAt(t, dir, func(o *Options) {
					o.Log = nil
					o.Probe = func(path string) (string, bool, error) { h, ok := m.files[path]; return h, ok, nil }
					o.FlushAfter = []time.Duration{time.Nanosecond, time.Hour}[r.IntN(2)]
				})
			}
			l := open()
			for range 300 {
				if r.IntN(60) == 0 {
					must(t, l.Close())
					l = open()
					m.settle()
					m.check(t, l)
					continue
				}
				m.step(t, r, l)
			}
			m.check(t, l)
			must(t, l.Close())
			m.settle()
			l = open()
			m.check(t, l)
		})
	}
}

var modelStatuses = []Status{StatusApplied, StatusFailed, StatusUncertain, StatusRolledBack, StatusUndone, StatusSkipped, StatusNotApplied, StatusStaged, StatusRejected, StatusCancelled}

func (m *model) step(t *testing.T, r *rand.Rand, l *Ledger) {
	t.Helper()
	k := Key{Run: fmt.Sprint("run", r.IntN(3)), Turn: 1 + r.IntN(3), Channel: []string{"text", "reasoning"}[r.IntN(2)], ID: 1 + r.IntN(12)}
	c := m.byKey[k]
	switch n := r.IntN(100); {
	case n < 35: // announce
		path := fmt.Sprint("/f", r.IntN(4))
		in := Intent{Key: k, Tool: "tf-edit", Path: path, Abs: path, BeforeHash: sum(fmt.Sprint(r.IntN(3))), AfterHash: sum(fmt.Sprint(r.IntN(3))),
			ContentHash: fmt.Sprint(r.IntN(2)), Staged: r.IntN(6) == 0, Undo: []byte(fmt.Sprint("undo", r.IntN(5)))}
		err := l.Intent(ctx, in)
		m.run(k.Run)
		same := c != nil && c.tool == in.Tool && c.path == in.Path && c.hash == in.ContentHash
		if c != nil && !(same && c.status == StatusStaged && !in.Staged) {
			var dup *DuplicateError
			if !errors.As(err, &dup) || dup.Same != same || dup.Existing.Status != c.status {
				t.Fatalf("intent %s: %v, the model has %+v", k, err, c)
			}
			return
		}
		must(t, err)
		if c == nil {
			c = &modelCmd{key: k}
			m.byKey[k] = c
			m.cmds = append(m.cmds, c)
		}
		status := StatusIntent
		if in.Staged {
			status = StatusStaged
		}
		*c = modelCmd{key: k, tool: in.Tool, path: path, hash: in.ContentHash, status: status, undo: string(in.Undo), before: in.BeforeHash, after: in.AfterHash}
		m.files[path] = []string{in.BeforeHash, in.AfterHash, sum("other")}[r.IntN(3)]
	case n < 65: // outcome
		to := modelStatuses[r.IntN(len(modelStatuses))]
		err := l.Outcome(Outcome{Key: k, Status: to, Code: fmt.Sprint(n), Bytes: int64(n)})
		switch {
		case c == nil:
			if !errors.Is(err, ErrNotFound) {
				t.Fatalf("outcome of nothing: %v", err)
			}
		case !c.status.mayBecome(to):
			if err == nil {
				t.Fatalf("%s became %s", c.status, to)
			}
		default:
			must(t, err)
			if c.status != to {
				c.injected = false
			}
			c.status, c.code = to, fmt.Sprint(n)
			if !to.takesBack() {
				c.bytes = int64(n)
			}
		}
	case n < 75: // record
		must(t, l.Record(Command{Key: k, Status: StatusSkipped, Code: "c", Announced: Announced{Tool: "tf-read", Path: "r"}}))
		m.run(k.Run)
		rec := &modelCmd{key: k, tool: "tf-read", path: "r", status: StatusSkipped, code: "c", extra: c != nil}
		m.cmds = append(m.cmds, rec)
		if c == nil {
			m.byKey[k] = rec
		}
	case n < 85: // event
		m.run(k.Run)
		m.seq[k.Run]++
		must(t, l.Event(k.Run, m.seq[k.Run], "plan", json.RawMessage(fmt.Sprint(n))))
	case n < 90:
		must(t, l.Injected(k))
		if c != nil {
			c.injected = true
		}
	case n < 93:
		must(t, l.Approval(k, Approval{Action: "x", Decision: "once"}))
		m.run(k.Run)
	case n < 96:
		must(t, l.Flush(ctx))
	case n < 98:
		must(t, l.EndRun(k.Run, "done", "", nil))
		m.runs[k.Run] = "done"
	default:
		must(t, l.StartRun(Run{ID: k.Run}))
		m.runs[k.Run] = RunRunning
	}
}

// settle does what Open does to the intents and runs of a dead owner.
func (m *model) settle() {
	var order []*modelCmd
	for _, c := range m.cmds {
		if c.status == StatusIntent {
			order = append(order, c)
		}
	}
	verdict := map[*modelCmd]Status{}
	for i, c := range order {
		if verdict[c] != "" {
			continue
		}
		linked := []*Command{c.command()}
		members := []*modelCmd{c}
		for _, d := range order[i+1:] {
			if d.path == c.path && d.before == members[len(members)-1].after {
				members, linked = append(members, d), append(linked, d.command())
			}
		}
		at := m.files[c.path]
		if len(members) == 1 {
			verdict[c], _ = decide(c.command(), at, "")
			if verdict[c] == StatusUncertain && c.before != c.after && m.laterFound(c) {
				verdict[c] = StatusApplied
			}
			continue
		}
		statuses, _ := decideSeries(linked, at)
		for j, d := range members {
			verdict[d] = statuses[j]
		}
	}
	for c, s := range verdict {
		c.status, c.bytes, c.code, c.injected = s, 0, "", false
	}
	for id, s := range m.runs {
		if s == RunRunning {
			m.runs[id] = RunInterrupted
		}
	}
}

func (c *modelCmd) command() *Command {
	return &Command{Announced: Announced{Tool: c.tool, Path: c.path, Abs: c.path, BeforeHash: c.before, AfterHash: c.after}}
}

func (m *model) laterFound(c *modelCmd) bool {
	later := false
	for _, d := range m.cmds {
		if d == c {
			later = true
		} else if later && d.path == c.path && d.before == c.after && (d.status == StatusApplied || d.status == StatusUndone || d.status == StatusRolledBack) {
			return true
		}
	}
	return false
}

func (m *model) check(t *testing.T, l *Ledger) {
	t.Helper()
	got, err := l.List(ctx, Filter{})
	must(t, err)
	type line struct {
		Key      Key
		Tool     string
		Path     string
		Status   Status
		Code     string
		Bytes    int64
		Extra    bool
		Injected bool
		Undo     string
	}
	var have, want []line
	for _, c := range got {
		undo := ""
		if c.UndoBlob != "" {
			b, err := l.Blob(ctx, c.UndoBlob)
			must(t, err)
			undo = string(b)
		}
		have = append(have, line{c.Key, c.Tool, c.Path, c.Status, c.Code, c.Bytes, c.Extra, c.Injected != nil, undo})
	}
	for _, c := range m.cmds {
		want = append(want, line{c.key, c.tool, c.path, c.status, c.code, c.bytes, c.extra, c.injected, c.undo})
	}
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			t.Fatalf("command %d of %d (want %d):\ngot  %+v\nwant %+v", i, len(have), len(want), have[min(i, len(have)-1)], want[min(i, len(want)-1)])
		}
	}
	runs, err := l.Runs(ctx, RunFilter{})
	must(t, err)
	states := map[string]string{}
	for _, r := range runs {
		states[r.ID] = r.State
	}
	if !reflect.DeepEqual(states, m.runs) {
		t.Fatalf("runs %v, want %v", states, m.runs)
	}
	for id, n := range m.seq {
		last, err := l.LastSeq(ctx, id)
		must(t, err)
		events, err := l.Events(ctx, EventFilter{Run: id, Seq: true})
		must(t, err)
		if last != n || len(events) != int(n) || !sort.SliceIsSorted(events, func(i, j int) bool { return events[i].Seq < events[j].Seq }) {
			t.Fatalf("run %s: last %d, %d events, want %d", id, last, len(events), n)
		}
	}
	verify(t, l)
}
