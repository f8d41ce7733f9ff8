package term

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"thinkflow/agent"
)

// inlineScreen is a renderer above an input line, and what it wrote.
func inlineScreen(cols int, color bool) (*Renderer, *bytes.Buffer) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	return New(Options{Out: &out, Inline: true, Color: color, Asks: true, Size: func() (int, int) { return cols, 24 }, Now: func() time.Time { return now }}), &out
}

// stream gives a text to the renderer in pieces of n bytes.
func stream(r *Renderer, typ agent.EventType, text string, n int) {
	for text != "" {
		k := min(n, len(text))
		r.Event(agent.Event{Type: typ, Text: text[:k]})
		text = text[k:]
	}
}

func TestMarkdownAsItStreams(t *testing.T) {
	tests := []struct {
		name, in, want string
		cols           int // 0 = 60
	}{
		{"paragraphs", "One two.\n\nThree.\n", "  One two.\n\n  Three.\n", 0},
		{"emphasis", "a **bold** and *slanted* and __b__ and _s_ ~~gone~~ word", "  a bold and slanted and b and s gone word\n", 0},
		{"emphasis in a word", "snake_case_name, 2*3*4, a**b, **/*.go, __init__.py", "  snake_case_name, 2*3*4, a**b, **/*.go, init.py\n", 0},
		{"emphasis that never ends", "a **bold that goes on\nnext", "  a **bold that goes on\n  next\n", 0},
		{"nested emphasis", "**bold with `code*` and *more***", "  bold with `code*` and more\n", 0},
		{"escapes", `1 \* 2 \_x\_`, "  1 * 2 _x_\n", 0},
		{"code keeps its marks without colour", "call `f(*args, **kw)` now", "  call `f(*args, **kw)` now\n", 0},
		{"link", "see [the docs](https://x.org/a_b_c) and [1] and a[i](x", "  see the docs (https://x.org/a_b_c) and [1] and a[i](x\n", 0},
		{"headings", "# One\ntext\n## Two ##\n#tag", "  One\n  text\n  Two ##\n  #tag\n", 0},
		{"lists", "- a\n- b\n  - c\n* d\n1. one\n10) ten", "  • a\n  • b\n    • c\n  • d\n  1. one\n  10. ten\n", 0},
		{"numbers that are none", "3.14 is pi\n1984 was\n5", "  3.14 is pi\n  1984 was\n  5\n", 0},
		{"a list item wraps below itself", "- one two three four five six", "  • one two three\n    four five six\n", 21},
		{"code", "So:\n```go\nfunc f() {\n\n\tx := \"*a*\"\n}\n```\nafter", "  So:\n\n    func f() {\n\n        x := \"*a*\"\n    }\n\n  after\n", 0},
		{"code in code", "````\n```\n````\n", "    ```\n", 0},
		{"code that is cut off", "```\nabc", "    abc\n", 0},
		{"a long line of code breaks hard", "```\nabcdefghijklmnopqrstuvwxyz\n```", "    abcdefghijklmnop\n    qrstuvwxyz\n", 21},
		{"rule", "a\n\n---\n\nb", "  a\n\n  " + strings.Repeat("─", 57) + "\n\n  b\n", 0},
		{"quote", "> said\nso", "  │ said\n  so\n", 0},
		{"table", "| a | b |\n|---|:-:|\n| `x` | **y** |\n| long cell | |\n\nafter", "  a         │ b\n  ──────────┼──\n  `x`       │ y\n  long cell │\n\n  after\n", 0},
		{"table without outer bars", "a|b\n-|-\n1|2\n", "  a|b\n  -|-\n  1|2\n", 0},
		{"a narrow table wraps", "| name | what |\n|-|-|\n| x | one two three four |\n", "  name │ what\n  ─────┼────────────\n  x    │ one two\n       │ three four\n", 21},
		{"no room for a table", "| aaaaaaaaaa | bbbbbbbbbb | cccccccccc |\n|-|-|-|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |\n", "  aaaaaaaaaa: 1\n  bbbbbbbbbb: 2\n  cccccccccc: 3\n\n  aaaaaaaaaa: 4\n  bbbbbbbbbb: 5\n  cccccccccc: 6\n", 21},
		{"bars that are no table", "|x| is the size\nof x", "  |x| is the size\n  of x\n", 0},
		{"wide characters", "世界世界世界世界世界世界", "  世界世界世界世界世\n  界世界\n", 21},
		{"what would steer the terminal", "a\x1b[31mb \x07 [x\x1b](y\x9b) `\x1b]0;t\x07`\n```\n\x1b[2J\n```\n", "  a␛[31mb ␇ x␛ (y<U+FFFD>) `␛]0;t␇`\n\n    ␛[2J\n", 0},
		{"CRLF", "a\r\n\r\nb\r\n", "  a\n\n  b\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cols == 0 {
				tt.cols = 60
			}
			for _, n := range []int{1, 2, 3, 7, 1000} {
				r, out := inlineScreen(tt.cols, false)
				stream(r, agent.TextDelta, tt.in, n)
				r.Close()
				got := strings.ReplaceAll(out.String(), "�", "<U+FFFD>")
				assert.Equal(t, tt.want, got, "in pieces of %d bytes", n)
			}
		})
	}
}

// FuzzInline: the same text gives the same lines however it is cut; nothing but
// colours gets through, and no line is wider than the terminal.
func FuzzInline(f *testing.F) {
	f.Add("# a\n- **b** `c`\n```\nd\n```\n| e | f |\n|-|-|\n| g | h |\n", uint8(3), uint8(40))
	f.Add("*a _b_ ~~c [d](e \\* > | 1. --- \x1b[2J\r\n\xff世", uint8(1), uint8(20))
	f.Fuzz(func(t *testing.T, text string, n, cols uint8) {
		width := max(21, int(cols))
		whole, a := inlineScreen(width, true)
		stream(whole, agent.TextDelta, text, len(text)+1)
		whole.Close()
		cut, b := inlineScreen(width, true)
		stream(cut, agent.TextDelta, text, max(1, int(n)))
		cut.Close()
		if stripSGR(a.String()) != stripSGR(b.String()) {
			t.Errorf("whole: %q\ncut:   %q", a, b)
		}
		for line := range strings.SplitSeq(stripSGR(a.String()), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return hidden(r, false) && r != '\t' }) {
				t.Errorf("%q would steer the terminal", line)
			}
			if cells(line) >= width {
				t.Errorf("%q is wider than %d", line, width-1)
			}
		}
	})
}

func TestReasoningIsFolded(t *testing.T) {
	r, out := inlineScreen(60, false)
	stream(r, agent.ReasoningDelta, "First\nthen\nthat.\n", 4)
	assert.Empty(t, out.String())
	assert.Equal(t, []string{"  then", "  that."}, r.Pending(2))
	stream(r, agent.TextDelta, "Answer.\n", 3)
	assert.Empty(t, r.Pending(3))
	assert.True(t, r.ToggleReasoning())
	stream(r, agent.TextDelta, "More.", 3)
	r.Event(agent.Event{Type: agent.TurnStarted, Turn: 2})
	stream(r, agent.ReasoningDelta, "Open now.", 4)
	assert.False(t, r.ToggleReasoning())
	r.Close()
	assert.Equal(t, `∴ reasoned for 0.1 ms, 3 lines · ctrl-o shows

  Answer.
  More.

  First
  then
  that.

  turn 2

  Open now.
`, out.String())
}

func TestQuestionHoldsEventsBack(t *testing.T) {
	r, out := inlineScreen(60, false)
	stream(r, agent.TextDelta, "Before.\n", 100)
	r.Ask(agent.ApprovalEvent{Action: "delete", Target: "/p/a\x1b.txt", Rule: "deleting asks", Diff: "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"})
	stream(r, agent.TextDelta, "After.\n", 100)
	assert.NotContains(t, out.String(), "After")
	r.Answered("✓", "yes, once")
	r.Close()
	assert.Equal(t, "  Before.\n\n? The model wants to delete\n    /p/a␛.txt\n  deleting asks\n       - x\n  ✓ yes, once\n\n  After.\n", out.String())
}
