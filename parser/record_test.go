package parser

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// record collects what a parser says. Text is joined, so that two records of
// the same stream are equal however it was cut.
type record struct {
	text, reasoning strings.Builder
	result
	fresh bool     // the next progress is of another command
	bad   []string // broken promises
}

type result struct {
	Shown, Thought string // text and reasoning, once the stream has ended
	Openings       []Opening
	Commands       []Command
	Errors         []Error
	Notes          []Note
	Parts          []part // the progress of each part, joined
	Order          []string
}

// part is the joined progress of one part of one command.
type part struct {
	ID, Pair int
	Part     Part
	Text     string
	Closed   bool
}

// in notes the order of events; a run of text or of one part's progress is one.
func (r *record) in(kind string, id int) {
	e := fmt.Sprint(kind, " ", id)
	if n := len(r.Order); n > 0 && r.Order[n-1] == e && (id < 0 || kind == "progress") {
		return
	}
	r.Order = append(r.Order, e)
}

func (r *record) broken(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

func (r *record) Text(s string) {
	if s == "" {
		r.broken("empty text event")
	}
	r.text.WriteString(s)
	r.in("text", -1)
}

func (r *record) Reasoning(s string) {
	if s == "" {
		r.broken("empty reasoning event")
	}
	r.reasoning.WriteString(s)
	r.in("reasoning", -1)
}

func (r *record) Opened(o Opening) {
	r.Openings = append(r.Openings, o)
	r.fresh = true
	r.in("opened", o.ID)
}

func (r *record) Progress(p Progress) {
	if p.Delta == "" && !p.Closed {
		r.broken("progress without news")
	}
	n := len(r.Parts)
	if n == 0 || r.fresh || r.Parts[n-1].Closed || r.Parts[n-1].ID != p.ID || r.Parts[n-1].Part != p.Part || r.Parts[n-1].Pair != p.Pair {
		r.Parts = append(r.Parts, part{ID: p.ID, Part: p.Part, Pair: p.Pair})
		n++
		r.fresh = false
	}
	last := &r.Parts[n-1]
	last.Text += p.Delta
	last.Closed = p.Closed
	if p.Total != len(last.Text) {
		r.broken("progress of %d: total %d after %d bytes", p.ID, p.Total, len(last.Text))
	}
	r.in("progress", p.ID)
}

func (r *record) Command(c *Command) {
	r.Commands = append(r.Commands, *c)
	r.in("command", c.ID)
}

func (r *record) Error(e *Error) {
	r.Errors = append(r.Errors, *e)
	r.in(string(e.Code), e.ID)
}

func (r *record) Note(n Note) {
	r.Notes = append(r.Notes, n)
	r.in(string(n.Kind), n.ID)
}

func (r *record) same(other *record) bool { return reflect.DeepEqual(r.result, other.result) }

// dump is everything in the record as text.
func (r *record) dump() string {
	b, err := json.MarshalIndent(r.result, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// difference shows where two records begin to differ.
func difference(got, want *record) string {
	g, w := got.dump(), want.dump()
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	from := max(0, i-300)
	return fmt.Sprintf("%v\ngot ...%s\nwant ...%s", got.bad, g[from:min(len(g), i+300)], w[from:min(len(w), i+300)])
}

// parse runs a parser over the chunks.
func parse(o Options, finish string, chunks ...string) *record {
	r := &record{}
	p := New(o, r)
	for _, c := range chunks {
		p.Write(c)
	}
	p.Close(finish)
	p.Write("<tf-touch id=\"99\" path=\"after the end\"/>")
	p.Close(finish)
	r.Shown, r.Thought = r.text.String(), r.reasoning.String()
	r.check(strings.Join(chunks, ""))
	return r
}

// check looks at what holds for every stream: offsets, progress and commands agree.
func (r *record) check(all string) {
	for _, c := range r.Commands {
		if c.Start < 0 || c.End > int64(len(all)) || c.Start >= c.End {
			r.broken("command %d: offsets %d to %d", c.ID, c.Start, c.End)
			continue
		}
		raw := all[c.Start:c.End]
		if !strings.HasPrefix(raw, c.Open) || !strings.HasPrefix(raw, "<") || !strings.HasSuffix(raw, ">") {
			r.broken("command %d: %q is not its tag", c.ID, raw)
		}
		if c.Body != "" && !strings.Contains(raw, c.Body) {
			r.broken("command %d: body is not in its tag", c.ID)
		}
	}
	for _, e := range r.Errors {
		if e.Start < 0 || e.End > int64(len(all)) || e.Start > e.End {
			r.broken("error %s: offsets %d to %d of %d", e.Code, e.Start, e.End, len(all))
		} else if e.Code != CodeFenced && all[e.Start] != '<' {
			r.broken("error %s: starts at %q", e.Code, all[e.Start:e.End])
		}
		if e.Message == "" || strings.HasSuffix(e.Message, ".") {
			r.broken("error %s: message %q", e.Code, e.Message)
		}
	}
	for _, c := range r.Commands {
		switch c.Name {
		case Write, Append:
			if !c.Repeated && c.Body != "" && !slices.ContainsFunc(r.Parts, func(p part) bool { return p.ID == c.ID && p.Closed && p.Text == c.Body }) {
				r.broken("command %d: progress is not its body", c.ID)
			}
		case Edit:
			for i, pair := range c.Pairs {
				for _, want := range []part{{c.ID, i, PartOld, pair.Old, true}, {c.ID, i, PartNew, pair.New, true}} {
					if !slices.Contains(r.Parts, want) {
						r.broken("command %d: no progress %+v", c.ID, want)
					}
				}
			}
		}
	}
}
