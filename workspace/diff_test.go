package workspace

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// applyUnified is an independent, strict reader of unified diffs.
func applyUnified(text, diff string) (string, error) {
	lines := splitLines(text)
	in := splitLines(diff)
	var out strings.Builder
	at := 0
	for i := 0; i < len(in); {
		if strings.HasPrefix(in[i], "--- ") || strings.HasPrefix(in[i], "+++ ") {
			i++
			continue
		}
		var a, an, b, bn int
		head := strings.Fields(in[i])
		if len(head) != 4 || head[0] != "@@" {
			return "", fmt.Errorf("no hunk header: %q", in[i])
		}
		parse := func(s string) (int, int) {
			l, c, ok := strings.Cut(s[1:], ",")
			ln, _ := strconv.Atoi(l)
			if !ok {
				return ln, 1
			}
			cn, _ := strconv.Atoi(c)
			return ln, cn
		}
		a, an = parse(head[1])
		b, bn = parse(head[2])
		start := a - 1
		if an == 0 {
			start = a
		}
		for at < start {
			out.WriteString(lines[at])
			at++
		}
		wantB := b - 1
		if bn == 0 {
			wantB = b
		}
		if got := strings.Count(out.String(), "\n"); got != wantB {
			return "", fmt.Errorf("hunk says line %d after, is %d", wantB, got)
		}
		for i++; an > 0 || bn > 0; i++ {
			l := in[i]
			body := l[1:]
			if i+1 < len(in) && strings.HasPrefix(in[i+1], "\\ No newline") {
				body = strings.TrimSuffix(body, "\n")
			}
			if l[0] == ' ' || l[0] == '-' {
				if lines[at] != body {
					return "", fmt.Errorf("line %d is %q, diff says %q", at+1, lines[at], body)
				}
				at++
				an--
			}
			if l[0] == ' ' || l[0] == '+' {
				out.WriteString(body)
				bn--
			}
			if i+1 < len(in) && strings.HasPrefix(in[i+1], "\\ No newline") {
				i++
			}
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String(), nil
}

func checkDiff(t *testing.T, a, b string) {
	t.Helper()
	edits := DiffText(a, b)
	got, err := ApplyEdits(a, edits)
	if err != nil || got != b {
		t.Fatalf("edits %+v of %q give %q, %v; want %q", edits, a, got, err, b)
	}
	for i, e := range edits {
		for _, off := range []int{e.Start, e.End} {
			if off > 0 && off < len(a) && a[off-1] == '\r' && a[off] == '\n' {
				t.Fatalf("edit %+v of %q cuts CR LF", e, a)
			}
		}
		if i > 0 && edits[i-1].End >= e.Start {
			t.Fatalf("edits touch: %+v", edits)
		}
	}
	diff := unified(a, edits, 0)
	got, err = applyUnified(a, diff)
	if err != nil || got != b {
		t.Fatalf("diff of %q and %q:\n%s\ngives %q, %v", a, b, diff, got, err)
	}
	back, err := ApplyEdits(b, invertEdits(a, edits))
	if err != nil || back != a {
		t.Fatalf("inverse gives %q, %v; want %q", back, err, a)
	}
	added, removed := countChanged(a, edits)
	if a != b && countLines(b)-countLines(a) != added-removed {
		t.Fatalf("%q to %q: +%d -%d", a, b, added, removed)
	}
}

func TestDiffTextRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a\n", "b\n", "a b c\n", "\n", "x\r\n", "é\n", "\r", "tail", "}\n", "e\u0301\r\n"}
	text := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	for range 20000 {
		checkDiff(t, text(), text())
	}
}

func FuzzDiffText(f *testing.F) {
	f.Add("a\nb\n", "a\r\nb")
	f.Add("", "x")
	f.Add("a\nb\nc", "c\nb\na\n")
	f.Add("\xff\xfe\n", "\xff\n")
	f.Fuzz(func(t *testing.T, a, b string) { checkDiff(t, a, b) })
}

func TestUnifiedFormat(t *testing.T) {
	rows := []struct{ name, a, b, want string }{
		{"create", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"delete", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"final newline added", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"middle", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
			"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"insert before", "b\n", "a\nb\n", "@@ -1 +1,2 @@\n+a\n b\n"},
		{"append without newline", "a", "a\nb", "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := unified(r.a, DiffText(r.a, r.b), 0); got != r.want {
				t.Errorf("got\n%s\nwant\n%s", got, r.want)
			}
		})
	}
}
