package review

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"thinkflow/workspace"
)

// model is a file with its texts as they must be.
type model struct {
	t    testing.TB
	f    *File
	last ID
	gone map[ID]bool
	log  []string
}

func newModel(t testing.TB, text string) *model {
	m := &model{t: t, gone: map[ID]bool{}}
	m.f = NewFile(text, func() ID { m.last++; return m.last })
	return m
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\n%s\ntext %q\nbase %q\nhunks %+v", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"), m.f.Text(), m.f.Base(), m.f.Hunks())
}

// step does something and checks what must hold after anything.
func (m *model) step(what string, do func()) {
	m.t.Helper()
	m.log = append(m.log, what)
	before := map[ID]bool{}
	for _, h := range m.f.Hunks() {
		before[h.ID] = true
	}
	highest := m.last
	do()
	now := map[ID]bool{}
	base, text := m.f.Base(), m.f.Text()
	at := 0
	for i, h := range m.f.Hunks() {
		switch {
		case now[h.ID] || m.gone[h.ID]:
			m.fail("%s: id %s again", what, h.ID)
		case !before[h.ID] && h.ID <= highest:
			m.fail("%s: id %s is not new", what, h.ID)
		case h.Old == h.New:
			m.fail("%s: hunk %s changes nothing", what, h.ID)
		case i > 0 && h.Start <= at:
			m.fail("%s: hunk %s meets the one before", what, h.ID)
		case text[h.Start:h.End] != h.New || base[h.BaseStart:h.BaseEnd] != h.Old:
			m.fail("%s: hunk %s is not where it says", what, h.ID)
		case !atLine(text, h.Start) || !atLine(base, h.BaseStart):
			m.fail("%s: hunk %s begins inside a line", what, h.ID)
		case !(atLine(text, h.End) && atLine(base, h.BaseEnd)) && !(h.End == len(text) && h.BaseEnd == len(base)):
			m.fail("%s: hunk %s ends inside a line", what, h.ID)
		}
		at, now[h.ID] = h.End, true
	}
	for id := range before {
		if !now[id] {
			m.gone[id] = true
		}
	}
}

func (m *model) agent(key string, edits ...workspace.Edit) {
	m.t.Helper()
	base := m.f.Base()
	m.step(fmt.Sprintf("agent %+v", edits), func() {
		now, err := workspace.ApplyEdits(m.f.Text(), edits)
		if err != nil {
			m.fail("%v", err)
		}
		m.f.Agent(edits, now, key)
		if m.f.Text() != now {
			m.fail("the text is not the agent's")
		}
		if m.f.Base() != base {
			m.fail("the agent changed the base, was %q", base)
		}
	})
}

func (m *model) user(e workspace.Edit, sync bool) {
	m.t.Helper()
	base, text, hunks := m.f.Base(), m.f.Text(), m.f.Hunks()
	want := []string{base}
	where := "outside"
	mapped := e
	for _, h := range hunks {
		switch {
		case h.End < e.Start:
			mapped.Start += len(h.Old) - len(h.New)
			mapped.End += len(h.Old) - len(h.New)
		case h.Start > e.End:
		case h.Start < e.Start && e.End < h.End:
			where = "inside"
		default:
			where = "at"
		}
	}
	outside := ""
	if where == "outside" {
		outside = splice(base, mapped)
		want = []string{outside}
	}
	m.step(fmt.Sprintf("user %+v %s sync %v", e, where, sync), func() {
		now := splice(text, e)
		if sync {
			m.f.Sync(now)
			if where != "outside" || strings.Contains(text[e.Start:e.End]+e.New, "\n") {
				where = "at" // the difference may show in another place
			}
		} else {
			m.f.User([]workspace.Edit{e}, now)
		}
		if m.f.Text() != now {
			m.fail("the text is not the user's")
		}
		if where != "at" && !slices.Contains(want, m.f.Base()) {
			m.fail("base after the user's edit, want %q", want)
		}
	})
}

func splice(s string, e workspace.Edit) string { return s[:e.Start] + e.New + s[e.End:] }

// randomText is a few short lines, many of them alike.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		b.WriteByte("abcx\n\n"[r.IntN(6)])
	}
	return b.String()
}

func randomEdit(r *rand.Rand, text string) workspace.Edit {
	a, b := r.IntN(len(text)+1), 0
	if r.IntN(3) > 0 {
		a = strings.LastIndexByte(text[:a], '\n') + 1
	}
	b = min(len(text), a+r.IntN(4)*r.IntN(3))
	e := workspace.Edit{Start: a, End: b, New: randomText(r, 6)}
	if r.IntN(3) == 0 && e.New != "" {
		e.New += "\n"
	}
	return e
}

func randomEdits(r *rand.Rand, text string) []workspace.Edit {
	a, b := randomEdit(r, text), randomEdit(r, text)
	switch {
	case a.End < b.Start:
		return []workspace.Edit{a, b}
	case b.End < a.Start:
		return []workspace.Edit{b, a}
	}
	return []workspace.Edit{a}
}

// play is a random life of a file.
func play(t testing.TB, seed uint64, steps int) {
	r := rand.New(rand.NewPCG(seed, 7))
	m := newModel(t, randomText(r, 40))
	m.log = append(m.log, fmt.Sprintf("seed %d text %q", seed, m.f.Text()))
	for i := range steps {
		switch hunks := m.f.Hunks(); r.IntN(7) {
		case 0, 1:
			m.agent(fmt.Sprint("k", i), randomEdits(r, m.f.Text())...)
		case 2, 3:
			m.user(randomEdit(r, m.f.Text()), false)
		case 4:
			if edits := randomEdits(r, m.f.Text()); len(edits) > 1 && r.IntN(2) == 0 {
				now, _ := workspace.ApplyEdits(m.f.Text(), edits)
				m.step(fmt.Sprintf("user %+v", edits), func() { m.f.User(edits, now) })
				continue
			}
			m.user(randomEdit(r, m.f.Text()), true)
		case 5:
			if len(hunks) == 0 {
				continue
			}
			h := hunks[r.IntN(len(hunks))]
			base, text := m.f.Base(), m.f.Text()
			m.step("keep "+h.ID.String(), func() {
				if !m.f.Keep(h.ID) {
					m.fail("no hunk %s", h.ID)
				}
				if m.f.Text() != text || m.f.Base() != base[:h.BaseStart]+h.New+base[h.BaseEnd:] {
					m.fail("keep moved more than the base of its hunk")
				}
			})
		case 6:
			if len(hunks) == 0 {
				continue
			}
			h := hunks[r.IntN(len(hunks))]
			base := m.f.Base()
			m.step("undo "+h.ID.String(), func() {
				e, _ := m.f.Undo(h.ID)
				now := splice(m.f.Text(), e)
				if r.IntN(2) == 0 {
					m.f.Agent([]workspace.Edit{e}, now, "")
				} else {
					m.f.Sync(now) // as an editor's own undo shows it
				}
				if len(m.f.Hunks()) != len(hunks)-1 || m.f.Base() != base {
					m.fail("undo of %s did more or less, base was %q", h.ID, base)
				}
			})
		}
	}
	base := m.f.Base()
	for len(m.f.Hunks()) > 0 {
		e, _ := m.f.Undo(m.f.Hunks()[0].ID)
		m.agent("", e)
	}
	if m.f.Text() != base {
		m.fail("undoing all gives %q, want the base %q", m.f.Text(), base)
	}
}

func TestProperty(t *testing.T) {
	for seed := range uint64(10_000) {
		play(t, seed, 12)
	}
}

// TestJoiningIsLinear counts what joining looks at: hunks that meet cost what they
// hold, and a hunk that grows costs what it grows by.
func TestJoiningIsLinear(t *testing.T) {
	const n = 500
	key := func(i int) string { return fmt.Sprintf("run/%d/text/1", i) }
	upper := func(f *File, line, i int) {
		at := strings.Index(f.text, fmt.Sprintf("line %d x", line))
		e := workspace.Edit{Start: at, End: at + 4, New: "LINE"}
		f.Agent([]workspace.Edit{e}, splice(f.text, e), key(i))
	}
	for _, c := range []struct {
		name  string
		hunks int
		do    func(f *File)
	}{
		{"each behind the last", 1, func(f *File) {
			for i := range n {
				upper(f, i, i)
			}
		}},
		{"each before the last", 1, func(f *File) {
			for i := range n {
				upper(f, n-i, i)
			}
		}},
		{"gaps are filled", 1, func(f *File) {
			for i := range n {
				upper(f, 2*i, i)
			}
			for i := range n - 1 {
				upper(f, 2*i+1, n+i)
			}
		}},
		{"gaps are filled, the last first", 1, func(f *File) {
			for i := range n {
				upper(f, 2*i, i)
			}
			for i := range n - 1 {
				upper(f, 2*(n-1-i)-1, n+i)
			}
		}},
		{"the same commands again and again", n, func(f *File) {
			for i := range n {
				upper(f, 2*i, i%3)
			}
		}},
		{"a person removes all", 1, func(f *File) {
			for i := range n {
				upper(f, 2*i, i)
			}
			f.Sync("")
		}},
		{"the agent rewrites all", 1, func(f *File) {
			for i := range n {
				upper(f, 2*i, i)
			}
			f.Agent([]workspace.Edit{{End: len(f.text)}}, "", "all")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var last ID
			f := NewFile(bigText(2*n, "x"), func() ID { last++; return last })
			c.do(f)
			if got := f.Hunks(); len(got) != c.hunks {
				t.Fatalf("%d hunks, want %d", len(got), c.hunks)
			}
			if limit := 8 * n; f.steps > limit {
				t.Errorf("%d steps for %d hunks, want at most %d", f.steps, n, limit)
			}
		})
	}
}

func FuzzFile(f *testing.F) {
	for _, seed := range []uint64{1, 2, 3, 1 << 40} {
		f.Add(seed, uint8(20))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) { play(t, seed, int(steps)) })
}
