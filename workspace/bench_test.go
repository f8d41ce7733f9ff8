package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sourceText is about n lines of made-up source, the same at each call.
func sourceText(n int) string {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("value count index buffer return if else for range err nil string int bool func type struct append len make map chan go defer")
	var b strings.Builder
	for i := range n {
		switch r.IntN(8) {
		case 0:
			b.WriteString("\n")
		case 1:
			b.WriteString("\t}\n")
		default:
			b.WriteString(strings.Repeat("\t", 1+r.IntN(3)))
			for range 3 + r.IntN(6) {
				b.WriteString(words[r.IntN(len(words))])
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d\n", i)
		}
	}
	return b.String()
}

func benchPlan(b *testing.B, text string, pair Pair, wantErr bool) {
	dir := tree(b, map[string]string{"a.go": text})
	w := newSpace(b, dir, Options{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, err := w.Plan(Op{Kind: OpEdit, Path: "a.go", Pairs: []Pair{pair}})
		if (err != nil) != wantErr {
			b.Fatal(err)
		}
	}
}

// One exact match in 1 MiB: reading, hashing, matching, counting, hashing.
func BenchmarkExactMatch1MiB(b *testing.B) {
	text := sourceText(45000)
	text = text[:1<<20] + "\nthe unique line\n"
	benchPlan(b, text, Pair{"the unique line\n", "another line\n"}, false)
}

// A match that fails in 20,000 lines, with its explanation.
func BenchmarkFailingMatch20000(b *testing.B) {
	text := sourceText(20000)
	lines := splitLines(text)
	var old strings.Builder
	for _, l := range lines[15000:15030] {
		old.WriteString(strings.Replace(l, "return", "yield", 1))
	}
	benchPlan(b, text, Pair{old.String() + "x\n", "y\n"}, true)
}

func BenchmarkFailingMatch20000CRLF(b *testing.B) {
	text := strings.ReplaceAll(sourceText(20000), "\n", "\r\n")
	benchPlan(b, text, Pair{"\tvalue count index buffer nothing like this 77\n\t}\n", "y\n"}, true)
}

func changedLines(text string, every int, f func(string) string) string {
	lines := splitLines(text)
	for i := every / 2; i < len(lines); i += every {
		lines[i] = f(lines[i])
	}
	return strings.Join(lines, "")
}

func BenchmarkHunks20000(b *testing.B) {
	text := sourceText(20000)
	rev := splitLines(text)
	r := rand.New(rand.NewPCG(3, 3))
	r.Shuffle(len(rev), func(i, j int) { rev[i], rev[j] = rev[j], rev[i] })
	for name, after := range map[string]string{
		"10changes":    changedLines(text, 2000, func(string) string { return "changed\n" }),
		"everySecond":  changedLines(text, 2, func(l string) string { return "x" + l }),
		"allDifferent": changedLines(text, 1, func(l string) string { return "x" + l }),
		"reindented":   changedLines(text, 1, func(l string) string { return "\t" + l }),
		"shuffled":     strings.Join(rev, ""),
		"braces":       strings.Repeat("}\n{\n", 10000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				unified(text, DiffText(text, after), 0)
			}
		})
	}
}

// BenchmarkGrep searches 20,000 files of 100 MB together. The same search by
// ripgrep: `rg -c needle_xyz DIR` on the folder that THINKFLOW_BENCH_TREE names
// (made on first use, kept).
func BenchmarkGrep(b *testing.B) {
	dir := os.Getenv("THINKFLOW_BENCH_TREE")
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, "d00")); err != nil {
		text := sourceText(100000)
		for i := range 20000 {
			at := (i * 977) % (len(text) - 5000)
			body := text[at : at+5000]
			if i%1000 == 500 {
				body = body[:2000] + "needle_xyz" + body[2000:]
			}
			path := filepath.Join(dir, fmt.Sprintf("d%02d/e%02d/f%d.go", i%100, i/100%20, i))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	w := newSpace(b, dir, Options{})
	for name, req := range map[string]GrepRequest{
		"literal":    {Pattern: "needle_xyz"},
		"ignoreCase": {Pattern: "NEEDLE_xyz", IgnoreCase: true},
		"regex":      {Pattern: `needle_\w+`, Regex: true},
		"regexBare":  {Pattern: `[n]eedl[e]_[a-z]{3}`, Regex: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := w.Grep(b.Context(), req)
				if err != nil || len(r.Matches) != 20 {
					b.Fatalf("%d, %v", len(r.Matches), err)
				}
			}
		})
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			r, err := w.Glob(b.Context(), GlobRequest{Pattern: "*.go", Max: 30000})
			if err != nil || len(r.Entries) != 20000 {
				b.Fatalf("%d, %v", len(r.Entries), err)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	dir := tree(b, map[string]string{"a/b/c/d.go": "x"})
	w := newSpace(b, dir, Options{})
	for b.Loop() {
		if _, err := w.Resolve("a/b/c/d.go", AccessWrite); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlanCommit4KiB(b *testing.B) {
	dir := tree(b, nil)
	w := newSpace(b, dir, Options{})
	body := sourceText(100)
	i := 0
	for b.Loop() {
		i++
		if _, err := do(w, Op{Kind: OpWrite, Path: fmt.Sprintf("f%d.txt", i), Body: body}); err != nil {
			b.Fatal(err)
		}
	}
}

// One edit of an open document of 100 KiB.
func BenchmarkPlanOpen100KiB(b *testing.B) {
	text := sourceText(4000)[:100<<10] + "\nthe unique line\n"
	dir := tree(b, map[string]string{"a.go": text})
	w := newSpace(b, dir, Options{})
	w.OpenDocument(Document{Path: filepath.Join(dir, "a.go"), Version: 1, Text: text})
	for b.Loop() {
		if _, err := w.Plan(Op{Kind: OpEdit, Path: "a.go", Pairs: []Pair{{"the unique line", "x"}}}); err != nil {
			b.Fatal(err)
		}
	}
}
