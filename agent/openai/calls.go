package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"thinkflow/agent"
)

// fragment is one element of a delta's tool_calls. Empty strings mean absent
// (TC-05); index is nil when the server left it out (TC-01).
type fragment struct {
	index          *int
	id, name, args string
	extra          string // JSON that goes back with the call
}

// calls sorts the fragments of an answer's native calls. Servers disagree about
// index and id; the rules follow reports about each (cases TC-01 to TC-11).
type calls struct {
	list    []*call
	byIndex map[int]*call
	byID    map[string]*call
	newID   func() string
	orphans int // fragments that belong to no call
}

// call is one native call being received.
type call struct {
	n        int // dense number, from 0
	id, name string
	args     strings.Builder
	scan     jsonScan
	join     joiner
	named    bool // the name was given out: it is whole once arguments come
	blank    bool // {} came in one piece, and was not given out
}

// complete tells whether the arguments are a whole JSON value.
func (c *call) complete() bool { return c.scan.complete || c.blank }

// begun tells whether a value has begun that is not complete.
func (c *call) begun() bool { return c.scan.begun && !c.scan.complete }

// repeated tells whether args are the complete arguments once more (TC-11),
// whatever the blanks between its tokens.
func (c *call) repeated(args string) bool {
	if !c.complete() {
		return false
	}
	have := c.args.String()
	if c.blank {
		have = "{}"
	}
	return compact(args) == compact(have)
}

func compact(s string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return strings.TrimSpace(s)
	}
	return b.String()
}

// takeName takes a name that a piece came with: names come whole, in pieces, or as
// the whole so far; once there are arguments the name is whole.
func (c *call) takeName(name string) {
	switch {
	case name == "" || c.named || c.scan.begun || c.blank:
		if c.name == "" {
			c.name = name
		}
	case strings.HasPrefix(name, c.name):
		c.name = name
	case c.name != name:
		c.name += name
	}
}

// giveName gives the name out, once.
func (c *call) giveName() string {
	if c.named || c.name == "" {
		return ""
	}
	c.named = true
	return c.name
}

// giveBlank gives out arguments that stayed {}.
func (c *call) giveBlank() string {
	if !c.blank {
		return ""
	}
	c.blank = false
	c.args.WriteString("{}")
	c.scan.feed("{}")
	return "{}"
}

// add takes a fragment and returns what is new in it, and in the call before it
// when this one begins another.
func (a *calls) add(f fragment) (out []agent.CallDelta) {
	before := a.last()
	c := a.find(f)
	if c == nil {
		if strings.TrimSpace(f.args) != "" {
			a.orphans++
		}
		return nil
	}
	if before != nil && a.last() != before {
		out = a.close(before, out)
	}
	if d := a.feed(c, f); d != (agent.CallDelta{Call: c.n}) {
		out = append(out, d)
	}
	return out
}

// close gives out what was kept back of a call that is over.
func (a *calls) close(c *call, out []agent.CallDelta) []agent.CallDelta {
	d := agent.CallDelta{Call: c.n, Name: c.giveName(), Args: c.giveBlank()}
	if d != (agent.CallDelta{Call: c.n}) {
		out = append(out, d)
	}
	return out
}

// feed takes a fragment of a call.
func (a *calls) feed(c *call, f fragment) (d agent.CallDelta) {
	if f.index != nil {
		a.byIndex[*f.index] = c
	}
	if f.id != "" && a.byID[f.id] == nil {
		a.byID[f.id] = c // later ids of a call lead to it too (TC-04)
	}
	d.Call = c.n
	if c.id == "" && f.id != "" { // set once, never appended (TC-03)
		c.id = f.id
		if a.byID[f.id] != c { // two calls under one id: the history needs two
			c.id = a.newID()
		}
		d.ID = c.id
	}
	d.Extra = f.extra
	c.takeName(f.name)
	if c.scan.begun {
		d.Name = c.giveName()
	}
	args := c.join.add(f.args)
	if args == "" || c.repeated(args) {
		return d
	}
	if c.args.Len() == 0 && !c.blank && compact(args) == "{}" {
		// Some servers begin every call with {} and send the arguments behind it.
		c.blank = true
		return d
	}
	if c.blank {
		if strings.HasPrefix(strings.TrimSpace(args), "{") {
			c.blank = false
		} else if strings.TrimSpace(args) != "" {
			d.Args = c.giveBlank()
		} else {
			return d
		}
	}
	if d.Name == "" {
		d.Name = c.giveName()
	}
	c.args.WriteString(args)
	c.scan.feed(args)
	d.Args += args
	return d
}

// finish gives an id to each call that came without one.
func (a *calls) finish() (out []agent.CallDelta) {
	for _, c := range a.list {
		out = a.close(c, out)
		if c.id == "" && c.name != "" {
			c.id = a.newID()
			out = append(out, agent.CallDelta{Call: c.n, ID: c.id})
		}
		if c.name == "" {
			a.orphans++
		}
	}
	return out
}

func (a *calls) create() *call {
	if a.byIndex == nil {
		a.byIndex, a.byID = map[int]*call{}, map[string]*call{}
	}
	c := &call{n: len(a.list)}
	a.list = append(a.list, c)
	return c
}

func (a *calls) last() *call {
	if len(a.list) == 0 {
		return nil
	}
	return a.list[len(a.list)-1]
}

// find returns the call that the fragment belongs to, a new one if need be, and
// nil when there is none.
func (a *calls) find(f fragment) *call {
	known := a.byID[f.id]
	if f.id == "" {
		known = nil
	}
	if f.index != nil {
		if c := a.byIndex[*f.index]; c != nil {
			known = c // key by index when it is there (TC-06)
		}
	}
	if known != nil {
		if startsNew(known, f, f.index != nil && a.byIndex[*f.index] == nil) {
			return a.create()
		}
		return known
	}
	last := a.last()
	blank := strings.TrimSpace(f.args) == ""
	switch {
	case f.name != "":
		if f.id == "" && f.index == nil && last != nil && !startsNew(last, f, false) {
			return last
		}
		return a.create()
	case f.id != "":
		// A fresh id without a name and index: a continuation, unless a call starts.
		if f.index == nil && last != nil && last.begun() && !blank {
			return last
		}
		return a.create() // the name comes later (TC-08)
	case blank:
		return nil
	case last == nil:
		return a.create()
	case !last.complete() || last.repeated(f.args):
		return last // (TC-07)
	case f.index != nil:
		return a.create() // the name may still come; without one it is dropped
	}
	return nil
}

// startsNew tells whether a fragment that points at a call starts another one.
// moved: the fragment has an index that was not seen before.
func startsNew(c *call, f fragment, moved bool) bool {
	if f.name == "" || c.name == "" {
		return false
	}
	args := strings.TrimSpace(f.args)
	object := strings.HasPrefix(args, "{")
	if f.name != c.name && !c.scan.begun && !c.blank && !moved && (f.index != nil || f.id != "") && (f.id == "" || f.id == c.id) && (!object || strings.HasPrefix(f.name, c.name)) {
		return false // the name comes in pieces
	}
	if f.id != "" && c.id != "" && f.id != c.id {
		// New id with a name: a new call (TC-02), but for servers that renew the
		// id and repeat the name with every piece.
		return f.name != c.name || !c.begun() || args == "" || object
	}
	if !c.complete() {
		return f.name != c.name && object
	}
	if f.name == c.name && c.repeated(args) {
		return false
	}
	return object || f.name != c.name || moved
}

// jsonScan follows a JSON text just far enough to know when its value is whole.
type jsonScan struct {
	depth            int
	inString, escape bool
	begun, complete  bool
}

func (s *jsonScan) feed(text string) {
	for i := 0; i < len(text) && !s.complete; i++ {
		switch b := text[i]; {
		case s.escape:
			s.escape = false
		case s.inString:
			switch b {
			case '\\':
				s.escape = true
			case '"':
				s.inString = false
				s.complete = s.depth == 0
			}
		case b == '"':
			s.inString, s.begun = true, true
		case b == '{' || b == '[':
			s.depth++
			s.begun = true
		case b == '}' || b == ']':
			s.depth--
			s.complete = s.depth <= 0
		case b != ' ' && b != '\n' && b != '\t' && b != '\r':
			s.begun = true
		}
	}
}
