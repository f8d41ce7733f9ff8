package parser

import (
	"fmt"
	"strings"
	"testing"
)

// last is a sink that remembers the last text.
type last struct {
	discard
	text     string
	progress string
}

func (l *last) Text(s string)       { l.text += s }
func (l *last) Progress(p Progress) { l.progress += p.Delta }

// TestHoldBack: text waits only while it may be the start of a tag.
func TestHoldBack(t *testing.T) {
	for _, row := range []struct{ in, out string }{
		{"if a <", "if a "},
		{"if a < ", "if a < "},
		{"<t", ""},
		{"<ta", "<ta"},
		{"<tf", ""},
		{"<tf ", "<tf "},
		{"<tf-writ", ""},
		{"<tf-writé", "<tf-writé"},
		{"<tf-write>", "<tf-write>"},
		{"x</", "x"},
		{"x</d", "x</d"},
		{"x</tf-write", "x"},
		{"x</tf-write>", "x</tf-write>"},
		{"<thi", ""},
		{"<thio", "<thio"},
		{"a <think>", "a <think>"},
		{"a </think> ", "a "},
		{"a </think> b", "a </think> b"},
		{"`<tf-write id", "`<tf-write id"},
		{"```\n<tf-write id", "```\n<tf-write id"},
		{"<\u200b", ""},
		{"<—", "<—"},
		{"```", "```"},
		{"a **b", "a **b"},
		{"\ufeff", ""},
		{"<tf-write id=\"1\" path=\"a", ""},
	} {
		var s last
		p := New(Options{}, &s)
		p.Write(row.in)
		if s.text != row.out {
			t.Errorf("after %q: text %q, want %q", row.in, s.text, row.out)
		}
		if idle := p.Idle(); idle != (row.in == row.out || row.in == "\ufeff") {
			t.Errorf("after %q: idle %v", row.in, idle)
		}
	}
}

// TestProgressHoldBack: content of a body waits only while it may be a tag.
func TestProgressHoldBack(t *testing.T) {
	for _, row := range []struct{ in, out string }{
		{"\nx < y", "x < y"},
		{"\nx <", "x "},
		{"\nx </t", "x "},
		{"\nx </td", "x </td"},
		{"\nx </tf-write>", "x "},
		{"\nx </tf-write> ", "x "},
		{"\nx </tf-write> y", "x </tf-write> y"},
		{"\n<tf-write id=\"2\"", ""},
		{"\n<tf-write id=\"2\">", "<tf-write id=\"2\">"},
		{"\r", ""},
		{" ", ""},
		{" x", " x"},
	} {
		var s last
		p := New(Options{}, &s)
		p.Write(`<tf-write id="1" path="a">`)
		p.Write(row.in)
		if s.progress != row.out {
			t.Errorf("after %q: progress %q, want %q", row.in, s.progress, row.out)
		}
		if p.Idle() {
			t.Errorf("after %q: idle in a body", row.in)
		}
	}
}

func TestLine(t *testing.T) {
	for _, row := range []struct {
		in   string
		line int
	}{
		{"", 1},
		{"a\n\nb", 3},
		{"a\n<tf-write\n id", 3},
		{"a\n<tf-write id=\"1\" path=\"a\">\n", 3},
		{"a\n<tf-write id=\"1\" path=\"a\">\n\nb\n", 5},
		{"a\n<tf-write id=\"1\" path=\"a\">\nb\n</tf-write>\n", 5},
		{"<think>\na\n</think>\n\n", 5},
		{"```\n\n```\n", 4},
		{"<tf-foo a=\"b\">\n\n</tf-foo>\n", 4},
	} {
		for _, n := range []int{1, 1000} {
			p := New(Options{}, discard{})
			for s := row.in; s != ""; s = s[min(n, len(s)):] {
				p.Write(s[:min(n, len(s))])
				p.Line()
			}
			if p.Line() != row.line {
				t.Errorf("after %q in %d bytes: line %d, want %d", row.in, n, p.Line(), row.line)
			}
		}
	}
}

// TestStop: nothing is told after Stop, also when the sink calls it.
func TestStop(t *testing.T) {
	stream := `a <tf-touch id="1" path="a"/> b <tf-write id="2" path="b">` + "\nx\n</tf-write>\n<think>y</think>\n```\n<tf-touch id=\"3\" path=\"c\"/>\n```\n</tf-write>\n"
	for n := 1; n < 40; n++ {
		s := &stopper{left: n}
		s.p = New(Options{ReasoningCommands: true}, s)
		s.p.Write(stream)
		s.p.Close("stop")
		if s.after {
			t.Errorf("stopped at event %d: more events followed", n)
		}
	}
}

// TestTextAllocatesNothing: a delta of plain text costs no allocation.
func TestTextAllocatesNothing(t *testing.T) {
	for _, deltas := range [][]string{
		{"plain ", "text, ", "more\n"},
		{"a <", " b <t", "able> <tf", "-w", "hat </", "tf", "x `co", "de` \\` **b**\n"},
		{"```go\n", "x < y\n", "``\n", "```\n"},
		{"- one\n", "  1. ", "two\n", "> three\n"},
		{"<think", "er> </thi", "ng>\n"},
	} {
		p := New(Options{}, discard{})
		for _, d := range deltas {
			p.Write(d)
		}
		if n := testing.AllocsPerRun(100, func() {
			for _, d := range deltas {
				p.Write(d)
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations", deltas, n)
		}
	}
}

// hostile are inputs that make a careless parser quadratic: each is repeated.
var hostile = []struct{ name, before, unit string }{
	{"text of tag starts", "", "<"},
	{"text of half tags", "", "<tf-writ"},
	{"text of half closing tags", "", "</tf-writ"},
	{"text of closing tags", "", "</tf-write> "},
	{"text of orphans", "", "</tf-write>\n"},
	{"text of unknown tags", "", "<tf-foo bar"},
	{"text of quotes in closing tags", "", `</tf-write a="`},
	{"text of think tags", "", "</think> "},
	{"text of zero-width characters", "", "<\u200b"},
	{"backticks", "", "`"},
	{"backtick runs", "", "`` ` ```"},
	{"fences", "", "```\n"},
	{"fenced tags", "x\n```\n", "<tf-write id=\"1\" path=\"a\">\n"},
	{"list markers", "", "- "},
	{"quotes", "", ">"},
	{"commands", "", "<tf-touch id=\"1\" path=\"a\"/>"},
	{"broken commands", "", "<tf-touch id=1 path=\"a\"/>"},
	{"forgotten quotes", "", "<tf-write id=\"1></tf-write>\n"},
	{"quotes of both kinds", "", "<tf-write a=\"<tf-write b='<tf-write c=' d=\" e='\" f=\"'"},
	{"body of tag starts", "W", "<"},
	{"body of half closing tags", "W", "</tf-writ"},
	{"body of closing tags followed by text", "W", "</tf-write>;"},
	{"body of closing tags and blanks", "W", "</tf-write>" + strings.Repeat(" ", 900) + ";"},
	{"body of blanks", "W", " "},
	{"body of nested openings", "W", "<tf-write id=\"1\" path=\"a\">"},
	{"body of half nested openings", "W", "<tf-write id=\""},
	{"body of nested openings with quotes of both kinds", "W", "<tf-write a=\"<tf-write b='<tf-write c=' d=\" e='\" f=\"'"},
	{"body of closing tags with quotes", "W", "</tf-write a=\"'"},
	{"skipped body of half nested openings", "<tf-write path=\"a\">\n", "<tf-write id=\"x' "},
	{"skipped body", "<tf-foo path=\"a\">\n", "</tf-foo>; x\n"},
	{"edit of closing tags", "E", "</old>"},
	{"edit of closing tags and blanks", "E", "</old>" + strings.Repeat(" ", 900) + "<ne"},
	{"edit of pairs", "E", "</old><new></new><old>"},
	{"edit of nested openings", "E", "<old>"},
	{"edit of its own closing tags", "E", "</old> </tf-edit>;"},
	{"edit of nested edits", "E", "</old>" + strings.Repeat(" ", 900) + "<tf-edit id=\"1\" path=\"a\"></tf-edit></tf-edit>;"},
	{"think block of closing tags", "<think>`", "</think>;"},
	{"think block of closing tags in a body", "<think><tf-write id=\"1\" path=\"a\">", "</think>;"},
}

func hostileStream(before, unit string, n int) string {
	switch before {
	case "W":
		before = "<tf-write id=\"1\" path=\"a\">\n"
	case "E":
		before = "<tf-edit id=\"1\" path=\"a\"><old>"
	}
	return before + repeatTo(unit, n)
}

func (p *Parser) allSteps() int {
	n := p.main.steps + p.fence.probe.steps
	if p.think != nil {
		n += p.think.steps
	}
	return n
}

// TestLinear counts how often bytes are looked at: a fixed number of times,
// whatever the input and however it is cut.
func TestLinear(t *testing.T) {
	const size = 96 << 10
	for _, h := range hostile {
		stream := hostileStream(h.before, h.unit, size)
		for _, chunk := range []int{1, 7, 4096, size * 2} {
			p := New(Options{ReasoningCommands: true}, discard{})
			for s := stream; s != ""; s = s[min(chunk, len(s)):] {
				p.Write(s[:min(chunk, len(s))])
			}
			p.Close("")
			if n := p.allSteps(); n > 10*len(stream) {
				t.Errorf("%s in chunks of %d: %d steps for %d bytes", h.name, chunk, n, len(stream))
			}
		}
	}
}

// TestBounds: what is held back stays within its bounds, whatever the input.
func TestBounds(t *testing.T) {
	for _, h := range hostile {
		for _, o := range []Options{{}, {MaxTag: 100, MaxBody: 1000}} {
			p := New(o, discard{})
			for s := hostileStream(h.before, h.unit, 300<<10); s != ""; s = s[min(999, len(s)):] {
				p.Write(s[:min(999, len(s))])
				checkBounds(t, p, 999)
			}
			if t.Failed() {
				t.Fatal(h.name)
			}
		}
	}
}

// TestLongBodies: a body beyond the limit is skipped up to its end in little
// memory, nothing in it runs, and what follows is live. The lines are right.
func TestLongBodies(t *testing.T) {
	filler := strings.Repeat("x < y </tf-write>; <tf-touch id=\"9\" path=\"z\"/>\n<tf-write id=\"8\" path=\"y\">\n</tf-write> z\n", 3000)
	for _, open := range []string{"<tf-write id=\"1\" path=\"a\">\n", "<tf-write path=\"a\">\n", "<tf-write id=\"1\" path=\"a\" end=\"E\">\n"} {
		end := "</tf-write>\n"
		if strings.Contains(open, "end=") {
			end = "</tf-write end=\"E\">\n"
		}
		stream := "a\n" + open + filler + end + "<tf-touch id=1/>\n<tf-touch id=\"2\" path=\"b\"/>\n"
		want := parse(Options{MaxBody: 100 << 10}, "", stream)
		r := &record{}
		p := New(Options{MaxBody: 100 << 10}, r)
		for s := stream; s != ""; s = s[min(777, len(s)):] {
			p.Write(s[:min(777, len(s))])
			checkBounds(t, p, 777)
		}
		p.Close("")
		r.Shown = r.text.String()
		if !r.same(want) {
			t.Errorf("%s: cut into pieces: %s", open, difference(r, want))
		}
		if len(r.Commands) != 1 || r.Commands[0].ID != 2 || len(r.Errors) != 2 || r.Errors[0].Line != 2 ||
			r.Errors[1].Line != strings.Count(stream[:strings.Index(stream, "<tf-touch id=1/>")], "\n")+1 ||
			r.Shown != "a\n\n\n\n" {
			t.Errorf("%s: %s", open, r.dump()[:2000])
		}
	}
}

// TestDefaultLimits: 8 KiB for a tag, 16 MiB for a body, to the byte.
func TestDefaultLimits(t *testing.T) {
	tag := func(n int) string {
		s := `<tf-touch id="1" path="`
		return s + strings.Repeat("p", n-len(s)-len(`"/>`)) + `"/>`
	}
	body := func(n int) string {
		return "<tf-write id=\"1\" path=\"a\">\n" + strings.Repeat("b", n) + "</tf-write>\n"
	}
	for _, row := range []struct {
		name, stream string
		code         Code
	}{
		{"tag", tag(8 << 10), ""},
		{"longer tag", tag(8<<10 + 1), CodeTooLarge},
		{"body", body(16 << 20), ""},
		{"longer body", body(16<<20 + 1), CodeTooLarge},
	} {
		for _, chunk := range []int{1 << 20, 1 << 25} {
			var s tally
			p := New(Options{}, &s)
			for in := row.stream; in != ""; in = in[min(chunk, len(in)):] {
				p.Write(in[:min(chunk, len(in))])
			}
			p.Close("")
			if s.code != row.code || (s.commands == 1) != (row.code == "") {
				t.Errorf("%s: error %q, %d commands", row.name, s.code, s.commands)
			}
		}
	}
}

// tally counts commands and keeps the last error's code.
type tally struct {
	discard
	commands int
	code     Code
}

func (t *tally) Command(*Command) { t.commands++ }
func (t *tally) Error(e *Error)   { t.code = e.Code }

func BenchmarkHostile(b *testing.B) {
	for _, h := range hostile {
		for _, size := range []int{1 << 18, 1 << 21} {
			stream := hostileStream(h.before, h.unit, size)
			b.Run(fmt.Sprintf("%s/%dKiB", strings.ReplaceAll(h.name, " ", "-"), size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					run(stream, 4)
				}
			})
		}
	}
}
