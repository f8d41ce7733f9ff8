package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"thinkflow/agent"
)

func at(i int) *int { return &i }

// join adds fragments one by one and returns the calls as text, one a line.
func join(fragments []fragment) (string, int) {
	a := calls{newID: ids()}
	var got []agent.ToolCall
	take := func(d agent.CallDelta) {
		for d.Call >= len(got) {
			got = append(got, agent.ToolCall{})
		}
		got[d.Call].ID += d.ID
		got[d.Call].Name += d.Name
		got[d.Call].Arguments += d.Args
	}
	for _, f := range fragments {
		for _, d := range a.add(f) {
			take(d)
		}
	}
	for _, d := range a.finish() {
		take(d)
	}
	var lines []string
	for _, c := range got {
		if c.Name != "" {
			lines = append(lines, c.ID+" "+c.Name+" "+c.Arguments)
		}
	}
	return strings.Join(lines, "\n"), a.orphans
}

func TestCalls(t *testing.T) {
	tests := []struct {
		name      string
		fragments []fragment
		want      string
		orphans   int
	}{
		{"nothing", []fragment{{}, {index: at(0)}, {args: " "}}, "", 0},
		{"no index, no ids, different names", []fragment{{name: "a", args: `{}`}, {name: "b", args: `{"x":`}, {args: `1}`}},
			"made-1 a {}\nmade-2 b {\"x\":1}", 0},
		{"no index, no ids, one name twice", []fragment{{name: "a", args: `{"x":1}`}, {name: "a", args: `{"x":2}`}},
			"made-1 a {\"x\":1}\nmade-2 a {\"x\":2}", 0},
		{"no index, no id, name repeated with each piece", []fragment{{name: "a", args: `{"x":`}, {name: "a", args: `1}`}},
			"made-1 a {\"x\":1}", 0},
		{"no index, name after the id", []fragment{{id: "c1"}, {name: "a"}, {args: `{}`}}, "c1 a {}", 0},
		{"no index, fresh id with each piece", []fragment{{id: "1", name: "a", args: `{"x"`}, {id: "2", args: `:1`}, {id: "3", args: `}`}},
			"1 a {\"x\":1}", 0},
		{"no index, repeated complete arguments", []fragment{{id: "1", name: "a", args: `{"x":1}`}, {id: "1", name: "a", args: `{"x":1}`}, {args: `{"x":1}`}},
			"1 a {\"x\":1}", 0},
		{"one index for all, no ids", []fragment{{index: at(0), name: "a", args: `{}`}, {index: at(0), name: "b", args: ``}, {index: at(0), args: `{"y":1}`}},
			"made-1 a {}\nmade-2 b {\"y\":1}", 0},
		{"one index, two calls of one name with ids", []fragment{{index: at(0), id: "1", name: "a"}, {index: at(0), args: `{}`}, {index: at(0), id: "2", name: "a"}, {index: at(0), args: `{"y":1}`}},
			"1 a {}\n2 a {\"y\":1}", 0},
		{"one index, a call without arguments first", []fragment{{index: at(0), id: "1", name: "a"}, {index: at(0), id: "2", name: "b", args: `{}`}},
			"1 a \n2 b {}", 0},
		{"fresh id and the name with each piece", []fragment{{index: at(0), id: "1", name: "a", args: `{"x"`}, {index: at(0), id: "2", name: "a", args: `:1`}, {index: at(0), id: "3", name: "a", args: `}`}},
			"1 a {\"x\":1}", 0},
		{"one id for two calls", []fragment{{index: at(0), id: "f", name: "f", args: `{"x":1}`}, {index: at(1), id: "f", name: "f", args: `{"x":2}`}},
			"f f {\"x\":1}\nmade-1 f {\"x\":2}", 0},
		{"one id for two calls, arguments later", []fragment{{index: at(0), id: "f", name: "f", args: `{"x":1}`}, {index: at(1), id: "f", name: "f"}, {index: at(1), args: `{"x":2}`}},
			"f f {\"x\":1}\nmade-1 f {\"x\":2}", 0},
		{"the index moves, the id stays", []fragment{{index: at(0), id: "1", name: "a", args: `{"x"`}, {index: at(1), id: "1", args: `:1}`}},
			"1 a {\"x\":1}", 0},
		{"indexes from 1, with a gap", []fragment{{index: at(1), id: "1", name: "a", args: `{}`}, {index: at(4), id: "2", name: "b", args: `{}`}},
			"1 a {}\n2 b {}", 0},
		{"order of indexes reversed", []fragment{{index: at(1), id: "2", name: "b", args: `{}`}, {index: at(0), id: "1", name: "a", args: `{}`}},
			"2 b {}\n1 a {}", 0},
		{"an orphan behind a complete call", []fragment{{index: at(0), id: "1", name: "a", args: `{}`}, {args: `"x"`}}, "1 a {}", 1},
		{"an orphan with an index of its own", []fragment{{index: at(0), id: "1", name: "a", args: `{}`}, {index: at(1), args: `"x"}`}}, "1 a {}", 1},
		{"arguments and name of a second index apart", []fragment{{index: at(0), id: "1", name: "a", args: `{}`}, {index: at(1), args: `{"x":`}, {index: at(1), name: "b", args: `1}`}},
			"1 a {}\nmade-1 b {\"x\":1}", 0},
		{"braces in strings do not complete", []fragment{{index: at(0), id: "1", name: "a", args: `{"x":"}\"`}, {index: at(1), args: `}"}`}},
			`1 a {"x":"}\"}"}`, 0},
		{"what follows complete arguments is kept, and so refused later", []fragment{{index: at(0), id: "1", name: "a", args: `{"y":2}`}, {index: at(0), args: `{"x":1}`}},
			`1 a {"y":2}{"x":1}`, 0},
		{"an empty object before the arguments is none of them", []fragment{{index: at(0), id: "1", name: "a", args: `{}`}, {index: at(0), args: `{"x":`}, {index: at(0), args: `1}`}},
			`1 a {"x":1}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, orphans := join(tt.fragments)
			if got != tt.want || orphans != tt.orphans {
				t.Errorf("got  %q, %d orphans\nwant %q, %d", got, orphans, tt.want, tt.orphans)
			}
		})
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(`[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}},{"function":{"arguments":"x"}},{"index":0,"id":"c2","function":{"name":"f","arguments":"{"}}]`)
	f.Fuzz(func(t *testing.T, s string) {
		var wire []wireCall
		if json.Unmarshal([]byte(s), &wire) != nil {
			return
		}
		a := calls{newID: ids()}
		named, identified, sum := map[int]bool{}, map[int]bool{}, 0
		check := func(d agent.CallDelta) {
			if d.Call < 0 || d.Call >= len(a.list) {
				t.Fatalf("call %d of %d", d.Call, len(a.list))
			}
			if d.Name != "" && named[d.Call] || d.ID != "" && identified[d.Call] {
				t.Fatal("a name or id came twice")
			}
			named[d.Call] = named[d.Call] || d.Name != ""
			identified[d.Call] = identified[d.Call] || d.ID != ""
		}
		for i := range wire {
			fr := wire[i].fragment()
			sum += len(fr.args)
			for _, d := range a.add(fr) {
				check(d)
			}
		}
		for _, d := range a.finish() {
			check(d)
		}
		kept := 0
		for _, c := range a.list {
			kept += c.args.Len()
			if c.name != "" && !identified[c.n] {
				t.Fatal("a call without an id")
			}
		}
		if kept > 3*sum { // half a character becomes U+FFFD, three bytes
			t.Fatalf("%d bytes of arguments from %d", kept, sum)
		}
	})
}
