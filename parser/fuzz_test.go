package parser

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// fuzzOptions turns a byte into options; some have limits that short inputs reach.
func fuzzOptions(b byte) Options {
	o := Options{ReasoningCommands: b&1 == 0, Legacy: b&2 != 0, StartInThink: b&4 != 0}
	if b&8 != 0 {
		o.Channel = ChannelReasoning
	}
	if b&16 != 0 {
		o.MaxTag = 48
	}
	if b&32 != 0 {
		o.MaxBody = 20
	}
	return o
}

func addSeeds(f *testing.F) {
	for _, file := range []string{"cases.jsonl", "extra.jsonl"} {
		for i, c := range loadCases(f, file) {
			f.Add(strings.Join(c.chunks(f), ""), uint64(i), byte(i))
		}
	}
}

// FuzzSplit: any bytes, cut in any way, give the same result.
func FuzzSplit(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, stream string, seed uint64, opts byte) {
		o := fuzzOptions(opts)
		whole := parse(o, "", stream)
		if len(whole.bad) > 0 {
			t.Fatalf("%q: %v\n%s", stream, whole.bad, whole.dump())
		}
		rnd := rand.New(rand.NewPCG(seed, 7))
		for _, chunks := range [][]string{singleBytes(stream), randomSplit(rnd, stream), randomSplit(rnd, stream)} {
			if r := parse(o, "", chunks...); !r.same(whole) || len(r.bad) > 0 {
				t.Fatalf("%q\n%s", chunks, difference(r, whole))
			}
		}
	})
}

// FuzzNoPanic: any bytes, with Stop called from the sink at any point.
func FuzzNoPanic(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, stream string, stopAfter uint64, opts byte) {
		s := &stopper{left: int(stopAfter % 64)}
		s.p = New(fuzzOptions(opts), s)
		for i := 0; i < len(stream); i += 3 {
			s.p.Write(stream[i:min(len(stream), i+3)])
			if s.p.Line() < 1 || s.stopped && s.after {
				t.Fatalf("%q: event after Stop", stream)
			}
			s.p.Idle()
		}
		s.p.Close("length")
		if s.after {
			t.Fatalf("%q: event after Stop", stream)
		}
	})
}

// stopper calls Stop after some events.
type stopper struct {
	p              *Parser
	left           int
	stopped, after bool
}

func (s *stopper) event() {
	s.after = s.after || s.stopped
	if s.left--; s.left == 0 {
		s.stopped = true
		s.p.Stop()
	}
}

func (s *stopper) Text(string)       { s.event() }
func (s *stopper) Reasoning(string)  { s.event() }
func (s *stopper) Opened(Opening)    { s.event() }
func (s *stopper) Progress(Progress) { s.event() }
func (s *stopper) Command(*Command)  { s.event() }
func (s *stopper) Error(*Error)      { s.event() }
func (s *stopper) Note(Note)         { s.event() }

// FuzzBounded: what is held back and what is stored stay within their bounds.
func FuzzBounded(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, stream string, repeat uint64, opts byte) {
		o := fuzzOptions(opts)
		p := New(o, discard{})
		for range 1 + repeat%50 {
			p.Write(stream)
			checkBounds(t, p, len(stream))
		}
		p.Close("")
	})
}

// checkBounds looks at the memory of a parser between two writes, the last of
// which had chunk bytes.
func checkBounds(t *testing.T, p *Parser, chunk int) {
	t.Helper()
	lanes := []*lane{&p.main, &p.fence.probe}
	if p.think != nil {
		lanes = append(lanes, &p.think.lane)
	}
	for _, l := range lanes {
		if n := len(l.hold); n > p.opts.MaxTag+maxBlanks {
			t.Errorf("%d bytes of text are held back", n)
		}
		if l.state != inBody {
			continue
		}
		b := &l.body
		if n := b.text.Len() - b.mark; n > p.opts.MaxTag+4<<10 {
			t.Errorf("%d bytes of a body are held back", n)
		}
		limit := 2*b.text.Len() + 3*maxPiece
		if !b.keep {
			limit = 2 * (trimAt + 3*maxPiece)
		}
		if b.text.Cap() > limit || b.text.Len() > p.opts.MaxBody+p.opts.MaxTag+3*maxPiece {
			t.Errorf("storage of %d for %d bytes of body", b.text.Cap(), b.text.Len())
		}
	}
}

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Text(string)       {}
func (discard) Reasoning(string)  {}
func (discard) Opened(Opening)    {}
func (discard) Progress(Progress) {}
func (discard) Command(*Command)  {}
func (discard) Error(*Error)      {}
func (discard) Note(Note)         {}

// fragments are pieces of streams; strung together at random they reach the
// corners that single bytes do not.
var fragments = []string{
	"<tf-write id=\"1\" path=\"a\">", "<tf-write id=\"2\" path=\"b\" end=\"T\">", "<tf-write id='N' path='x'>", "<tf-write>", "<tf-write ...>",
	"</tf-write>", "</tf-write end=\"T\">", "</tf-write >", "<tf-write", "</tf-wri", "<tf-edit id=\"3\" path=\"e\">", "<tf-edit id=\"3\" path=\"e\" end='T'>", "</tf-edit>", "</tf-edit end=\"T\">",
	"<old>", "</old>", "<new>", "</new>", "<old>a</old><new>b</new>", "<tf-touch id=\"4\" path=\"t\"/>", "<tf-touch id=\"5\"\n path='u' / >",
	"<tf-bash id=\"6\">", "</tf-bash>", "<tf-bash id=\"7\" cmd=\"ls > x\n y\"/>", "<tf-read id=8 path=q>", "<tf-foo a=\"b\">", "</tf-foo>", "<tf-foo/>", "<tf-foo bar baz>",
	"<think>", "</think>", "<thinking>", "</thinking>", "```", "```xml", "~~~", "`", "``", "    ", "- ", "> ", "1. ", "\n", "\n", "\n", "\r\n", " ", "\t", "x", "text ", "<", "</", "\"", "'", ">", "/>", "=",
	"\\", "\u200b", "\ufeff", "é", "<write id=\"1\" path=\"a\">", "</write>", "<write>", "<tf-write path=\"p>\n", "id=\"9\"", "<t\u200bf-write id=\"1\">",
	"<tf-write id=\"1\" path=\"a\">\nbody\n</tf-write>\n", "</tf-write>\n", "```\n", "<tf-edit id=\"10\" path=\"e\">\n<old>\nx\n</old>\n<new>\ny\n</new>\n</tf-edit>\n",
	strings.Repeat(" ", maxBlanks-1), strings.Repeat(" ", maxBlanks), strings.Repeat("a", 30),
}

// TestFragments strings fragments together and cuts them in many ways.
func TestFragments(t *testing.T) {
	rounds := 8000
	if testing.Short() {
		rounds = 2000
	}
	rnd := rand.New(rand.NewPCG(3, 5))
	for range rounds {
		var b strings.Builder
		few := make([]string, 1+rnd.IntN(9)) // so that the same ones meet often
		for i := range few {
			few[i] = fragments[rnd.IntN(len(fragments))]
		}
		for range 1 + rnd.IntN(14) {
			b.WriteString(few[rnd.IntN(len(few))])
		}
		o := fuzzOptions(byte(rnd.IntN(64)))
		stream := b.String()
		whole := parse(o, "", stream)
		if len(whole.bad) > 0 {
			t.Fatalf("%q %+v: %v\n%s", stream, o, whole.bad, whole.dump())
		}
		for _, chunks := range [][]string{singleBytes(stream), randomSplit(rnd, stream), randomSplit(rnd, stream)} {
			if r := parse(o, "", chunks...); !r.same(whole) || len(r.bad) > 0 {
				t.Fatalf("%+v: %q\n%s", o, chunks, difference(r, whole))
			}
		}
	}
}
