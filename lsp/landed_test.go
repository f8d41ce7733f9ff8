package lsp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// replaced makes edits of pairs, each of the first place in s.
func replaced(t *testing.T, s string, pairs ...string) []edit {
	t.Helper()
	var out []edit
	for i := 0; i < len(pairs); i += 2 {
		at := strings.Index(s, pairs[i])
		if at < 0 {
			t.Fatalf("%q is not in %q", pairs[i], s)
		}
		out = append(out, edit{at, at + len(pairs[i]), pairs[i+1]})
	}
	return out
}

func TestLanded(t *testing.T) {
	const old = "one\ntwo\nthree\nfour\n"
	type steps []string // pairs: the first place of old in the text then, and its replacement
	rows := []struct {
		name string
		old  string
		ours steps
		then steps // what the client reports, one after the other
		want landing
	}{
		{"nothing reported", old, steps{"two", "2"}, nil, untouched},
		{"ours", old, steps{"two", "2"}, steps{"two", "2"}, complete},
		{"ours, then typing elsewhere", old, steps{"two", "2"}, steps{"two", "2", "four", "4"}, complete},
		{"typing elsewhere, then ours", old, steps{"two", "2"}, steps{"one", "1!", "two", "2"}, complete},
		{"only typing elsewhere", old, steps{"two", "2"}, steps{"one", "1!"}, untouched},
		{"only typing right before", old, steps{"two", "2"}, steps{"two", "xtwo"}, untouched},
		{"only typing right behind", old, steps{"two", "2"}, steps{"two", "twox"}, untouched},
		{"typing inside our target", old, steps{"two", "2"}, steps{"two", "txwo"}, other},
		{"target deleted by the person", old, steps{"two", "2"}, steps{"two\n", ""}, other},
		{"ours, then typing right behind", old, steps{"two", "deux"}, steps{"two", "deux", "deux", "deuxieme"}, complete},
		{"ours, then typing right before", old, steps{"two", "deux"}, steps{"two", "deux", "deux", "les deux"}, complete},
		{"ours, then typing inside", old, steps{"two", "deux"}, steps{"two", "deux", "deux", "deXux"}, other},
		{"ours, then undone", old, steps{"two", "2"}, steps{"two", "2", "2", "two"}, untouched},
		{"one of two", old, steps{"one", "1", "four", "4"}, steps{"one", "1"}, partly},
		{"two of two in one report", old, steps{"one", "1", "four", "4"}, steps{old, "1\ntwo\nthree\n4\n"}, complete},
		{"two of two and typing between, in one report", old, steps{"one", "uno", "four", "quattro"}, steps{old, "uno\ntwo!\nthree\nquattro\n"}, complete},
		{"none, typing on both sides, in one report", old, steps{"two", "2"}, steps{old, "one!\ntwo\nthree!\nfour\n"}, untouched},
		{"ours, typing on both sides, in one report", old, steps{"two", "deux"}, steps{old, "one!\ndeux\nthree!\nfour\n"}, complete},
		{"deletion", old, steps{"two\n", ""}, steps{"two\n", ""}, complete},
		{"deletion and typing in its place", old, steps{"two\n", ""}, steps{"two\n", "", "three", "xthree"}, complete},
		{"no deletion, typing behind", old, steps{"two", ""}, steps{"two", "two!"}, untouched},
		{"insertion", old, steps{"two", "two\nand a half"}, steps{"two\n", "two\nand a half\n"}, complete},
		{"insertion of a repeated line, reported below", "x\nx\ny\n", steps{"x\n", "x\nx\n"}, steps{"x\ny", "x\nx\ny"}, complete},
		{"insertion of a repeated line, reported above", "y\nx\nx\n", steps{"x\nx\n", "x\nx\nx\n"}, steps{"y\n", "y\nx\n"}, complete},
		{"deletion of a repeated line, reported elsewhere", "x\nx\nx\ny\n", steps{"x\n", ""}, steps{"x\ny", "y"}, complete},
		{"cr lf made lf", "a\nb\n", steps{"b\n", "b\r\nc\r\n"}, steps{"b\n", "b\nc\n"}, complete},
		{"lone cr made lf", "a\n", steps{"a", "a\rb"}, steps{"a", "a\nb"}, complete},
		{"final line break added", "a\nb\n", steps{"a\nb\n", "z"}, steps{"a\nb\n", "z\n"}, complete},
		{"line break added in the middle is not ours", "a\nb\n", steps{"a", "z"}, steps{"a", "z\n"}, complete},
		{"garbled", old, steps{"two", "deux"}, steps{"two", "tdwoeux"}, other},
		{"whole document anew", old, steps{"two", "2"}, steps{old, "something else\n"}, other},
		{"in an empty text", "", steps{"", "new\n"}, steps{"", "new\n"}, complete},
		{"in an empty text, somebody typed", "", steps{"", "new\n"}, steps{"", "mine\n"}, untouched},
		{"same text typed by the person", old, steps{"two", "2"}, steps{"one", "2"}, untouched},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			ours := replaced(t, row.old, row.ours...)
			cur := row.old
			var d delta
			for i := 0; i < len(row.then); i += 2 {
				e := replaced(t, cur, row.then[i:i+2]...)[0].trim(cur)
				d = d.add(e)
				cur = applyEdits(cur, []edit{e})
			}
			if got := landed(row.old, ours, d, cur); got != row.want {
				t.Errorf("got %d, want %d; %+v", got, row.want, d)
			}
		})
	}
}

// TestLandedWithTypist: our edit and a person's typing on other lines, in any
// order and in any form of report, are told apart: with ours it landed, without
// it did not.
func TestLandedWithTypist(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for round := range 3000 {
		var lines []string
		for i := range 12 {
			lines = append(lines, fmt.Sprintf("line %d of %d", i, rng.IntN(3)))
		}
		old := strings.Join(lines, "\n") + "\n"
		k := rng.IntN(12)
		oursTo := []string{"changed", "", "line", lines[k] + "!", lines[(k+1)%12], "a\nb\nc"}[rng.IntN(6)]
		at := strings.Index(old, lines[k])
		ours := []edit{{at, at + len(lines[k]), oursTo}}
		if oursTo == lines[k] {
			continue
		}

		apply := rng.IntN(2) == 0
		cur := old
		var d delta
		do := func(e edit) {
			d = d.add(e.trim(cur))
			cur = applyEdits(cur, []edit{e})
		}
		when := rng.IntN(4)
		line := k // where line k stands now
		for i := range 4 {
			if apply && i == when {
				start := nthLine(cur, line)
				do(edit{start, start + len(lines[k]), oursTo})
				line = -1
				continue
			}
			// A person types on a line that is neither ours nor next to it.
			other := (k + 3 + rng.IntN(6)) % 12
			if other == k || other == k-1 || other == k+1 || line < 0 {
				continue
			}
			start := nthLine(cur, other)
			do(edit{start, start, "typed "})
		}
		want := untouched
		if apply {
			want = complete
		}
		if rng.IntN(3) == 0 { // all in one report
			d = delta{}.add(edit{0, len(old), cur}.trim(old))
		}
		if got := landed(old, ours, d, cur); got != want && !(got == complete && strings.Count(cur, oursTo) > 0 && oursTo == "") {
			t.Fatalf("round %d: got %d, want %d\nold %q\ncur %q\nours %+v\n%+v", round, got, want, old, cur, ours, d)
		}
	}
}

func nthLine(s string, n int) int {
	off, _ := newText(s).lineStart(n)
	return off
}
