package parser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// record collects what a parser says. Text is joined, so that two records of
// the same stream are equal however it was cut.
type record struct {
	Text, Reasoning strings.Builder
	Opened          []Opening
	Commands        []Command
	Errors          []Error
	Notes           []Note
	Parts           []part // the progress of each open part, joined
	Order           []string
	fresh           bool     // the next progress is of another command
	bad             []string // broken promises
}

// part is the joined progress of one part of one command.
type part struct {
	ID, Pair int
	Part     Part
	Text     string
	Closed   bool
}

func (r *record) order(s string) {
	if n := len(r.Order); n > 0 && r.Order[n-1] == s && (s == "text" || s == "reasoning" || strings.HasPrefix(s, "progress")) {
		return
	}
	r.Order = append(r.Order, s)
}

func (r *record) broken(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

func (r *record) Text_(s string) {
	if s == "" {
		r.broken("empty text event")
	}
	r.Text.WriteString(s)
	r.order("text")
}

// sinkOf makes a record a Sink; its fields have the names of the methods.
type sinkOf struct{ *record }

func (s sinkOf) Text(t string) { s.record.Text_(t) }

func (s sinkOf) Reasoning(t string) {
	if t == "" {
		s.broken("empty reasoning event")
	}
	s.record.Reasoning.WriteString(t)
	s.order("reasoning")
}

func (s sinkOf) Opened(o Opening) {
	s.record.Opened = append(s.record.Opened, o)
	s.fresh = true
	s.order(fmt.Sprint("opened ", o.ID))
}

func (s sinkOf) Progress(p Progress) {
	if p.Delta == "" && !p.Closed {
		s.broken("progress without news")
	}
	n := len(s.Parts)
	if n == 0 || s.fresh || s.Parts[n-1].Closed || s.Parts[n-1].ID != p.ID || s.Parts[n-1].Part != p.Part || s.Parts[n-1].Pair != p.Pair {
		s.Parts = append(s.Parts, part{ID: p.ID, Part: p.Part, Pair: p.Pair})
		n++
		s.fresh = false
	}
	last := &s.Parts[n-1]
	last.Text += p.Delta
	last.Closed = p.Closed
	if p.Total != len(last.Text) {
		s.broken("progress of %d: total %d after %d bytes", p.ID, p.Total, len(last.Text))
	}
	s.order(fmt.Sprint("progress ", p.ID, p.Part, p.Pair))
}

func (s sinkOf) Command(c *Command) {
	s.Commands = append(s.Commands, *c)
	s.order(fmt.Sprint("command ", c.ID))
}

func (s sinkOf) Error(e *Error) {
	s.Errors = append(s.Errors, *e)
	s.order(fmt.Sprint("error ", e.Code, e.ID))
}

func (s sinkOf) Note(n Note) {
	s.Notes = append(s.Notes, n)
	s.order(fmt.Sprint("note ", n.Kind))
}

// dump is everything in the record as text, for comparing.
func (r *record) dump() string {
	b, err := json.MarshalIndent(map[string]any{
		"text": r.Text.String(), "reasoning": r.Reasoning.String(),
		"textHex": fmt.Sprintf("%x", r.Text.String()), "opened": r.Opened, "commands": r.Commands,
		"errors": r.Errors, "notes": r.Notes, "parts": r.Parts, "order": r.Order,
	}, "", " ")
	if err != nil {
		panic(err)
	}
	var hex strings.Builder
	for _, c := range r.Commands {
		fmt.Fprintf(&hex, "%x %x\n", c.Body, c.Pairs)
	}
	return string(b) + hex.String()
}

// parse runs a parser over the chunks.
func parse(o Options, finish string, chunks ...string) *record {
	r, _ := parseSteps(o, finish, chunks...)
	return r
}

func parseSteps(o Options, finish string, chunks ...string) (*record, *Parser) {
	r := &record{}
	p := New(o, sinkOf{r})
	for _, c := range chunks {
		p.Write(c)
	}
	p.Close(finish)
	p.Write("<tf-touch id=\"99\" path=\"after the end\"/>")
	p.Close(finish)
	r.check(strings.Join(chunks, ""))
	return r, p
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
