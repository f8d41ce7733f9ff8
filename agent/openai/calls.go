package openai

import (
	"strings"

	"thinkflow/agent"
)

// fragment is one element of a delta's tool_calls. Empty strings mean absent
// (TC-05); index is nil when the server left it out (TC-01).
type fragment struct {
	index          *int
	id, name, args string
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
}

// complete tells whether the arguments are a whole JSON value.
func (c *call) complete() bool { return c.scan.complete }

// begun tells whether a value has begun that is not complete.
func (c *call) begun() bool { return c.scan.begun && !c.scan.complete }

// repeated tells whether args are the complete arguments once more (TC-11).
func (c *call) repeated(args string) bool {
	return c.complete() && strings.TrimSpace(args) == strings.TrimSpace(c.args.String())
}

// add takes a fragment and returns what is new in it; ok is false when nothing is.
func (a *calls) add(f fragment) (d agent.CallDelta, ok bool) {
	c := a.find(f)
	if c == nil {
		if strings.TrimSpace(f.args) != "" {
			a.orphans++
		}
		return d, false
	}
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
	if c.name == "" && f.name != "" {
		c.name, d.Name = f.name, f.name
	}
	if f.args != "" && !c.repeated(f.args) {
		c.args.WriteString(f.args)
		c.scan.feed(f.args)
		d.Args = f.args
	}
	return d, d.ID != "" || d.Name != "" || d.Args != ""
}

// finish gives an id to each call that came without one.
func (a *calls) finish() (out []agent.CallDelta) {
	for _, c := range a.list {
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
	if f.id != "" && c.id != "" && f.id != c.id {
		// New id with a name: a new call (TC-02), but for servers that renew the
		// id and repeat the name with every piece.
		return f.name != c.name || !c.begun() || args == "" || object
	}
	if !c.complete() {
		return f.name != c.name && object
	}
	if c.repeated(args) {
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
