package term

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"thinkflow/agent"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestScenarios plays testdata/*.txtar. The section "events" holds one event a
// line (JSON, without number, run and time), or a directive: tick N; progress
// PATH BYTES; size COLS ROWS; snap (the screen as it is goes into "snaps").
// The other sections are what must come out:
//
//	plain   the output where there is no terminal
//	screen  the terminal at the end, as a person sees it
//	snaps   the terminal at each snap
//	ansi    the bytes sent to the terminal, ESC as \e
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			require.NoError(t, err)
			var script string
			for _, f := range arch.Files {
				if f.Name == "events" {
					script = string(f.Data)
				}
			}
			got := map[string]string{
				"plain": play(t, script, false).out.String(),
			}
			live := play(t, script, true)
			got["screen"] = live.screen.String()
			got["snaps"] = live.snaps.String()
			got["ansi"] = strings.ReplaceAll(strings.ReplaceAll(live.out.String(), "\x1b", `\e`), "\r", `\r`) + "\n"
			assert.Empty(t, live.screen.errs)
			assert.False(t, live.screen.hidden, "the cursor was not given back")
			assert.NotContains(t, got["plain"], "\x1b")
			assert.NotContains(t, got["plain"], "\r")
			for i, f := range arch.Files {
				want, ok := got[f.Name]
				if !ok {
					continue
				}
				if *update {
					arch.Files[i].Data = []byte(want)
					continue
				}
				assert.Equal(t, string(f.Data), want, f.Name)
			}
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(arch), 0o644))
			}
		})
	}
}

type played struct {
	out    bytes.Buffer
	screen *emulator
	snaps  strings.Builder
}

type tee struct{ p *played }

func (w tee) Write(b []byte) (int, error) {
	w.p.out.Write(b)
	return w.p.screen.Write(b)
}

func play(t *testing.T, script string, live bool) *played {
	t.Helper()
	p := &played{screen: newEmulator(72, 24)}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := New(Options{
		Out: tee{p}, Live: live, Color: live,
		Size: func() (int, int) { return p.screen.cols, p.screen.rows },
		Now:  func() time.Time { return now },
	})
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "{"):
			var e agent.Event
			require.NoError(t, json.Unmarshal([]byte(line), &e), line)
			r.Event(e)
		case word == "tick":
			n := 1
			_, _ = fmt.Sscan(rest, &n)
			for range n {
				now = now.Add(100 * time.Millisecond)
				r.Tick()
			}
		case word == "progress":
			var path string
			var n int
			_, _ = fmt.Sscan(rest, &path, &n)
			r.Progress(path, n)
		case word == "size":
			_, _ = fmt.Sscan(rest, &p.screen.cols, &p.screen.rows)
		case word == "snap":
			fmt.Fprintf(&p.snaps, "%s[snap %s]\n", p.screen.String(), rest)
		case line != "" && word != "#":
			t.Fatalf("unknown directive %q", line)
		}
	}
	r.Hints([]string{"What it did, command by command:", "  thinkflow ledger list"})
	r.Close()
	return p
}

// TestStatusLineNeverTouchesText plays random runs twice, with and without a
// status line that moves after every few bytes; both must leave the same text.
func TestStatusLineNeverTouchesText(t *testing.T) {
	pieces := []string{"word ", "a longer piece of text, ", "\n", "\n\n", "日本語の文章 ", "é́ ", "👩‍👩‍👧 ", "`code` ", "    indented\n", "```\nx := 1\n```\n", "\t", "supercalifragilisticexpialidocious-and-then-some-more-of-it ", "- item ", "\x1b[2J", "\u202eabc "}
	for seed := range int64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewSource(seed))
			cols, rows := 20+rng.Intn(60), 4+rng.Intn(10)
			var events []agent.Event
			events = append(events, agent.Event{Type: agent.RunStarted, Task: "a task", Dir: "/d"})
			for range 60 {
				switch rng.Intn(8) {
				case 0:
					events = append(events, agent.Event{Type: agent.CommandCompleted, Command: &agent.CommandEvent{ID: 1, Name: "tf-write", Path: "src/a.go", Status: "applied", Added: 3, Diff: "@@ -1,1 +1,2 @@\n a\n+b\n"}})
				case 1:
					events = append(events, agent.Event{Type: agent.ReasoningDelta, Text: pieces[rng.Intn(len(pieces))]})
				case 2:
					events = append(events, agent.Event{Type: agent.CommandStarted, Command: &agent.CommandEvent{ID: 1, Name: "tf-write", Path: "src/日本.go"}})
				default:
					events = append(events, agent.Event{Type: agent.TextDelta, Text: pieces[rng.Intn(len(pieces))]})
				}
			}
			show := func(ticks bool) string {
				em := newEmulator(cols, rows)
				r := New(Options{Out: em, Live: true, Color: true, Size: func() (int, int) { return cols, rows }, Now: func() time.Time { return time.Time{} }})
				for _, e := range events {
					r.Event(e)
					if ticks {
						for range rng.Intn(3) {
							r.Tick()
						}
					} else {
						r.state.active = false
					}
				}
				r.Close()
				assert.Empty(t, em.errs)
				return em.String()
			}
			assert.Equal(t, show(false), show(true))
		})
	}
}

// TestAnySplitOfTextIsTheSame: how deltas are cut changes nothing.
func TestAnySplitOfTextIsTheSame(t *testing.T) {
	text := "Some `code` and 日本語, é́, 👩‍👩‍👧.\r\n\r\n\r\n\r\n# Heading\n- a list item that is long enough to be wrapped at the right margin\n```go\nfunc main() {\n\tx\n}\n```\n\x1b]0;title\x07 end \u202e\n\n"
	show := func(parts []string) string {
		var out bytes.Buffer
		r := New(Options{Out: &out, Live: true, Color: true, Size: func() (int, int) { return 40, 24 }})
		r.mu.Lock()
		for _, p := range parts {
			r.text(blockText, nil, r.pal.code, p)
		}
		r.mu.Unlock()
		r.Close()
		em := newEmulator(40, 24)
		_, _ = em.Write(out.Bytes())
		assert.Empty(t, em.errs)
		return em.String()
	}
	want := show([]string{text})
	for i := 1; i < len(text); i++ {
		// Between the parts of one cluster a split may be seen; not inside a character.
		assert.Equal(t, want, show([]string{text[:i], text[i:]}), "split at %d: %q", i, text[:i])
	}
}

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ name, in, text, inName string }{
		{"plain", "plain", "plain", "plain"},
		{"colour", "\x1b[31mred", "␛[31mred", "␛[31mred"},
		{"title", "\x1b]0;x\x07", "␛]0;x␇", "␛]0;x␇"},
		{"c1", "a\u009bb", "a<U+009B>b", "a<U+009B>b"},
		{"delete", "a\x7f", "a␡", "a␡"},
		{"crlf", "a\r\nb", "a\nb", "a␍␊b"},
		{"lone cr", "a\rb", "a␍b", "a␍b"},
		{"bidi", "a\u202eb\u2066", "a<U+202E>b<U+2066>", "a<U+202E>b<U+2066>"},
		{"zero width", "a\u200bb\ufeff", "a<U+200B>b<U+FEFF>", "a<U+200B>b<U+FEFF>"},
		{"joiner where scripts and emoji need it", "👩\u200d💻 ن\u200cی", "👩\u200d💻 ن\u200cی", "👩<U+200D>💻 ن<U+200C>ی"},
		{"joiner where it hides", "a\u200db", "a<U+200D>b", "a<U+200D>b"},
		{"tags", "a\U000e0041", "a<U+E0041>", "a<U+E0041>"},
		{"invalid", "a\xffb", "a\ufffdb", "a\ufffdb"},
		{"line break", "a\nb\t", "a\nb\t", "a␊b␉"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.text, Visible(tt.in))
			assert.Equal(t, tt.inName, VisibleName(tt.in))
		})
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := New(Options{Out: &out})
	r.Table([]string{"key", "value"}, [][]string{{"a", "1"}, {"日本", "2"}, {"long\x1b[1m", ""}})
	r.Close()
	assert.Equal(t, "key       value\na         1\n日本      2\nlong␛[1m\n", out.String())
}

func TestNoticesAndLogLinesStandApart(t *testing.T) {
	em := newEmulator(40, 10)
	r := New(Options{Out: em, Live: true, Size: func() (int, int) { return 40, 10 }, Now: func() time.Time { return time.Time{} }})
	r.Event(agent.Event{Type: agent.RunStarted, Task: "task"})
	r.Event(agent.Event{Type: agent.TextDelta, Text: "half a "})
	log := r.LogWriter()
	_, _ = log.Write([]byte("level=WARN msg=\"x\"\n"))
	r.Notice("an earlier run was settled")
	r.Event(agent.Event{Type: agent.TextDelta, Text: "sentence"})
	r.Close()
	assert.Equal(t, "▌ task\n\n  half a\n\n! level=WARN msg=\"x\"\n! an earlier run was settled\n\n  sentence\n", em.String())
}

func TestWidths(t *testing.T) {
	assert.Equal(t, "ab…", cut("abcdef", 3))
	assert.Equal(t, "日…", cut("日本語", 4))
	assert.Equal(t, "…c/d.go", cutMiddle("a/b/c/d.go", 7))
	assert.Equal(t, []string{"aaa bbb", "ccc"}, wrapText("aaa bbb ccc", 8))
	assert.Equal(t, []string{"  aaa", "  bbb"}, wrapText("  aaa bbb", 6))
	assert.Equal(t, []string{"abcdef", "gh"}, wrapText("abcdefgh", 6))
	assert.Equal(t, []string{"a", "", "b"}, wrapText("a\n\nb\n", 6))
}

func FuzzText(f *testing.F) {
	f.Add("a `b` \x1b[31m 日本 \u202e\n\t- x", 3, 30)
	f.Fuzz(func(t *testing.T, s string, at, cols int) {
		cols = 20 + int(uint(cols)%100)
		at = min(int(uint(at)%100), len(s))
		em := newEmulator(cols, 10)
		r := New(Options{Out: em, Live: true, Color: true, Size: func() (int, int) { return cols, 10 }})
		r.Event(agent.Event{Type: agent.RunStarted, Task: s, Dir: s, Model: s})
		r.Event(agent.Event{Type: agent.TextDelta, Text: s[:at]})
		r.Tick()
		r.Event(agent.Event{Type: agent.TextDelta, Text: s[at:]})
		r.Event(agent.Event{Type: agent.CommandCompleted, Command: &agent.CommandEvent{Name: s, Path: s, Dest: s, Diff: s, Error: s, Status: s}})
		r.Close()
		if len(em.errs) > 0 {
			t.Fatal(em.errs)
		}
	})
}
