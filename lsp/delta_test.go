package lsp

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// rebuilt makes the current text from the old one and the delta.
func rebuilt(old, cur string, d delta) string {
	var b strings.Builder
	at := 0
	for _, h := range d {
		b.WriteString(old[at:h.from])
		b.WriteString(cur[h.curFrom:h.curTo])
		at = h.to
	}
	b.WriteString(old[at:])
	return b.String()
}

// FuzzDelta: whatever edits come, outside of the hunks both texts are the same,
// and hunks are sorted and do not touch.
func FuzzDelta(f *testing.F) {
	f.Add("hello world\n", uint64(1), 5)
	f.Add("", uint64(2), 3)
	f.Add(strings.Repeat("ab\n", 50), uint64(3), 200)
	f.Fuzz(func(t *testing.T, old string, seed uint64, n int) {
		if n > 300 || len(old) > 4000 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 7))
		cur := old
		var d delta
		for range n {
			start := rng.IntN(len(cur) + 1)
			end := min(len(cur), start+rng.IntN(4))
			e := edit{start, end, strings.Repeat("x", rng.IntN(4))}.trim(cur)
			d = d.add(e)
			cur = applyEdits(cur, []edit{e})
			if got := rebuilt(old, cur, d); got != cur {
				t.Fatalf("after %+v: rebuilt %q, want %q (%+v)", e, got, cur, d)
			}
			for i, h := range d {
				if h.from > h.to || h.curFrom > h.curTo || i > 0 && (d[i-1].curTo >= h.curFrom || d[i-1].to > h.from) {
					t.Fatalf("bad hunks %+v", d)
				}
			}
		}
	})
}

// TestDeltaIsBounded: a delta that grows too long is merged, and still right.
func TestDeltaIsBounded(t *testing.T) {
	old := strings.Repeat("abc\n", 2*maxHunks)
	cur := old
	var d delta
	for i := range maxHunks + 10 {
		at := i * 5
		e := edit{at, at, "x"}
		d = d.add(e)
		cur = applyEdits(cur, []edit{e})
	}
	if len(d) > maxHunks || rebuilt(old, cur, d) != cur {
		t.Errorf("%d hunks, rebuilt right: %v", len(d), rebuilt(old, cur, d) == cur)
	}
}

func TestTrim(t *testing.T) {
	rows := []struct {
		name, old string
		in, want  edit
	}{
		{"nothing in common", "abc", edit{0, 3, "xyz"}, edit{0, 3, "xyz"}},
		{"prefix", "abc", edit{0, 3, "abX"}, edit{2, 3, "X"}},
		{"suffix", "abc", edit{0, 3, "Xbc"}, edit{0, 1, "X"}},
		{"both", "abc", edit{0, 3, "aXc"}, edit{1, 2, "X"}},
		{"same", "abc", edit{0, 3, "abc"}, edit{3, 3, ""}},
		{"repeated", "aa", edit{0, 2, "aaa"}, edit{2, 2, "a"}},
		{"long", strings.Repeat("a", 100) + "b", edit{0, 101, strings.Repeat("a", 100) + "c"}, edit{100, 101, "c"}},
	}
	for _, row := range rows {
		if got := row.in.trim(row.old); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}
