package parser

import (
	"hash/maphash"
	"strconv"
	"strings"
)

// Bounds on attribute values.
const (
	maxIDDigits = 15 // every such number is exact in JSON
	maxToken    = 16 // bytes of end="TOKEN"
)

// open deals with an opening tag that has attributes, well-formed or not. It
// returns the bytes of the tag.
func (l *lane) open(v verdict, raw string) int {
	t := &l.tag
	o := opening{l: l, written: string(t.name[:t.nameLen]), start: l.off, line: l.line}
	o.name, o.index = commandOf(o.written)
	if l.kind == laneThink && v == tagBad && t.gt >= 0 {
		// A forgotten quote must not hide the end of the think block.
		if i := strings.Index(raw[:min(t.end, len(raw))], l.p.think.closing()); i >= 0 {
			t.end, t.selfClosing = i, true
		}
	}
	size := t.end
	raw = raw[:min(size, len(raw))]
	o.raw = raw[:min(len(raw), t.max)]
	o.end = o.start + int64(size)
	l.off = o.end
	l.line += strings.Count(raw, "\n") + l.lost
	l.lost = 0
	l.md.skipTag()
	l.commands++
	if l.kind == laneText {
		l.p.fence.demote()
	}

	o.read(t)
	cmd := o.judge(v, t)
	if l.p.stopped {
		return size
	}
	b := &l.body
	b.begin(&o, cmd)
	if t.selfClosing {
		b.finish(0)
		return size
	}
	l.state = inBody
	return size
}

// opening is an opening tag with its attributes.
type opening struct {
	l         *lane
	written   string // the name as written
	name      Name   // "" when unknown
	index     int    // in known
	raw       string
	start     int64
	end       int64
	line      int
	attrs     []Attr
	id        int
	path      string
	token     string
	forbidden bool // it stands where it may not run
}

// get returns the value of an attribute.
func (o *opening) get(name string) (string, bool) { return attr(o.attrs, name) }

// read takes over the attributes that were understood.
func (o *opening) read(t *tagScanner) {
	for _, a := range t.attrs {
		if a.valueEnd >= len(o.raw) {
			break // beyond the end of a tag that cannot be parsed
		}
		o.attrs = append(o.attrs, Attr{
			Name:  strings.Clone(o.raw[a.name:a.nameEnd]),
			Value: decode(o.raw[a.value:a.valueEnd]),
		})
	}
	if v, ok := o.get("id"); ok {
		o.id, _ = parseNumber(v)
	}
	o.path, _ = o.get("path")
	o.token, _ = o.get("end")
	if o.token == "" && t.why != problemNone {
		o.token = looseToken(o.raw)
	}
}

// judge returns the command that the tag opens, without its body, or nil after
// saying why there is none.
func (o *opening) judge(v verdict, t *tagScanner) *Command {
	l := o.l
	switch l.kind {
	case laneProbe:
		if o.name != "" {
			r := &l.probed
			if r.commands == 0 {
				r.name, r.id = o.name, o.id
			}
			r.commands++
		}
		return nil
	case laneThink, laneReasoning:
		if !l.p.opts.ReasoningCommands || o.name != "" && !o.name.Predictable() {
			o.forbidden = true
			l.note(forbiddenNote(o))
			return nil
		}
	}
	if o.name == "" {
		l.report(o.err(CodeUnknownCommand, ""))
		return nil
	}
	if v == tagBad {
		code, reason := describe(t, o)
		l.report(o.err(code, reason))
		return nil
	}
	cmd, code, reason := o.command()
	if cmd == nil {
		l.report(o.err(code, reason))
		return nil
	}
	if l.ids[cmd.ID].set && l.ids[cmd.ID].open != l.p.hashOpening(cmd) {
		l.report(o.err(CodeDuplicateID, duplicateReason(cmd.ID)))
		return nil
	}
	if !l.p.stopped {
		l.p.sink.Opened(Opening{Name: cmd.Name, ID: cmd.ID, Channel: cmd.Channel, Path: cmd.Path, Dest: cmd.Dest, Start: cmd.Start})
	}
	return cmd
}

// command checks the attributes.
func (o *opening) command() (cmd *Command, code Code, reason string) {
	for i, a := range o.attrs {
		for _, b := range o.attrs[:i] {
			if a.Name == b.Name {
				return nil, CodeMalformedAttribute, "attribute " + a.Name + " is given twice"
			}
		}
	}
	c := &Command{Name: o.name, Channel: o.l.channel, Attrs: o.attrs, Start: o.start}
	id, ok := o.get("id")
	if !ok {
		return nil, CodeMissingAttribute, "attribute id is missing"
	}
	if c.ID, ok = parseNumber(id); !ok {
		return nil, CodeBadID, "id " + strconv.Quote(clip(id)) + " is not a number"
	}
	if c.Path, ok = o.get("path"); c.Path == "" && o.name != Bash {
		return nil, CodeMissingAttribute, missing("path", ok)
	}
	if c.Dest, ok = o.get("dest"); c.Dest == "" && o.name.hasDest() {
		return nil, CodeMissingAttribute, missing("dest", ok)
	}
	if c.Cmd, ok = o.get("cmd"); ok && o.name == Bash && allSpace(c.Cmd) {
		return nil, CodeMissingAttribute, missing("cmd", ok)
	}
	if o.name != Bash {
		c.Cmd = ""
	}
	if token, ok := o.get("end"); ok && !validToken(token) {
		return nil, CodeMalformedAttribute, "attribute end must be 1 to 16 letters and digits, is " + strconv.Quote(clip(token))
	}
	for _, f := range []struct {
		name string
		to   *bool
	}{{"all", &c.All}, {"empty", &c.Empty}, {"need_result", &c.NeedResult}} {
		switch v, ok := o.get(f.name); {
		case !ok || v == "false":
		case v == "true":
			*f.to = true
		default:
			return nil, CodeMalformedAttribute, "attribute " + f.name + ` must be "true" or "false", is ` + strconv.Quote(clip(v))
		}
	}
	if v, ok := o.get("line"); ok && o.name == Edit {
		if c.Line, ok = parseNumber(v); !ok || c.Line == 0 {
			return nil, CodeMalformedAttribute, "attribute line must be a line number from 1, is " + strconv.Quote(clip(v))
		}
	}
	c.Open = strings.Clone(o.raw)
	return c, "", ""
}

// parseNumber reads a number in decimal digits.
func parseNumber(s string) (int, bool) {
	if s == "" || len(s) > maxIDDigits {
		return 0, false
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, strconv.IntSize)
	return int(n), err == nil
}

func validToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// looseToken finds the token in an opening tag that cannot be parsed, so that
// its body still ends where the model meant it to end.
func looseToken(raw string) string {
	for {
		i := strings.Index(raw, "end")
		if i < 0 {
			return ""
		}
		before := i > 0 && isSpace(raw[i-1])
		raw = raw[i+len("end"):]
		rest, ok := strings.CutPrefix(strings.TrimLeft(raw, " \t\r\n"), "=")
		if !before || !ok {
			continue
		}
		rest = strings.TrimLeft(rest, " \t\r\n\"'")
		n := 0
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n])) {
			n++
		}
		return rest[:n]
	}
}

// decode replaces the five XML entities; a bare ampersand stays as it is.
func decode(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return strings.Clone(s)
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "&lt;"):
			b.WriteByte('<')
			s = s[len("&lt;"):]
		case strings.HasPrefix(s, "&gt;"):
			b.WriteByte('>')
			s = s[len("&gt;"):]
		case strings.HasPrefix(s, "&amp;"):
			b.WriteByte('&')
			s = s[len("&amp;"):]
		case strings.HasPrefix(s, "&quot;"):
			b.WriteByte('"')
			s = s[len("&quot;"):]
		case strings.HasPrefix(s, "&apos;"):
			b.WriteByte('\'')
			s = s[len("&apos;"):]
		default:
			b.WriteByte('&')
			s = s[1:]
		}
	}
}

// fingerprint stands for what an id was used for.
type fingerprint struct {
	set        bool
	open, body uint64
}

// hashOpening hashes what the opening tag asks for, however it is written.
func (p *Parser) hashOpening(c *Command) uint64 {
	type key struct {
		name             Name
		path, dest, cmd  string
		all, empty, need bool
		line             int
	}
	cmd, _ := attr(c.Attrs, "cmd") // not the body of tf-bash, which comes later
	return maphash.Comparable(p.hashSeed(), key{c.Name, c.Path, c.Dest, cmd, c.All, c.Empty, c.NeedResult, c.Line})
}

func (p *Parser) hashSeed() maphash.Seed {
	if p.seed == (maphash.Seed{}) {
		p.seed = maphash.MakeSeed()
	}
	return p.seed
}

// attr returns the value of the attribute with that name.
func attr(attrs []Attr, name string) (string, bool) {
	for _, a := range attrs {
		if a.Name == name {
			return a.Value, true
		}
	}
	return "", false
}
