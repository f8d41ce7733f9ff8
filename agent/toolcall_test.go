package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPrepareCall(t *testing.T) {
	tests := []struct {
		name, tool, args, finish       string
		want, problem, history, hisTip string // hisTip: name in the history
	}{
		{name: "object", args: `{"q":"x"}`, want: `{"q":"x"}`},
		{name: "blanks around", args: " {\"q\":1}\n", want: `{"q":1}`},
		{name: "TC-09 blank is an empty object", args: "", want: `{}`},
		{name: "TC-09 white space too", args: " \n", want: `{}`},
		{name: "TC-24 null is an empty object", args: "null", want: `{}`},
		{name: "TC-24 object in a string", args: `"{\"q\":\"x\"}"`, want: `{"q":"x"}`},
		{name: "TC-24 only one level", args: `"\"{}\""`, problem: "arguments must be an object"},
		{name: "TC-24 array", args: `["x"]`, problem: "arguments must be an object, like {\"name\": \"value\"}, not an array", history: `{"invalid_arguments":"[\"x\"]"}`},
		{name: "number", args: `7`, problem: "arguments must be an object, like {\"name\": \"value\"}, not 7"},
		{name: "plain string", args: `"x"`, problem: "not a string"},
		{name: "broken JSON in a string", args: `"{\"q\":"`, problem: "not a string"},
		{name: "TC-10 broken JSON names the position", args: `{"q": "a b", }`,
			problem: "arguments are not valid JSON: invalid character '}' looking for beginning of object key string at character 14, after `{\"q\": \"a b\", `; send the call again with valid JSON",
			history: `{"invalid_arguments":"{\"q\": \"a b\", }"}`},
		{name: "positions count characters", args: `{"é": x}`, problem: "at character 7, after `{\"é\": `"},
		{name: "two values", args: `{}{}`, problem: "after top-level value at character 3"},
		{name: "cut off", args: `{"q":"func`, finish: "stop", problem: "it ends too early, at character 10, after `{\"q\":\"func`"},
		{name: "TC-23 cut off by the output limit", args: `{"q":"func`, finish: "length",
			problem: "not executed: the response hit the output limit; send a shorter call"},
		{name: "TC-23 complete at the output limit runs", args: `{"q":"done"}`, finish: "length", want: `{"q":"done"}`},
		{name: "TC-23 broken, not cut, at the output limit", args: `{"q":}`, finish: "length", problem: "not valid JSON: invalid character"},
		{name: "TC-25 name with another syntax in it", tool: "read_file\" path=\"a.txt", args: "{}", want: "{}", hisTip: "invalid_tool"},
		{name: "name too long", tool: strings.Repeat("a", 65), args: "{}", want: "{}", hisTip: "invalid_tool"},
		{name: "blanks around the name", tool: " grep ", args: "{}", want: "{}", hisTip: "grep"},
		{name: "TC-20 escapes are decoded once", args: `{"q":"\ud83d\ude00 \n\u00e9"}`, want: `{"q":"\ud83d\ude00 \n\u00e9"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.tool == "" {
				tt.tool, tt.hisTip = "search", "search"
			}
			p := PrepareCall(ToolCall{ID: "c1", Name: tt.tool, Arguments: tt.args}, tt.finish)
			if string(p.Arguments) != tt.want {
				t.Errorf("arguments %q, want %q", p.Arguments, tt.want)
			}
			if (tt.problem == "") != (p.Problem == "") || !strings.Contains(p.Problem, tt.problem) {
				t.Errorf("problem %q, want %q", p.Problem, tt.problem)
			}
			if tt.history == "" {
				tt.history = tt.want
			}
			if tt.history != "" && p.History.Arguments != tt.history {
				t.Errorf("history arguments %q, want %q", p.History.Arguments, tt.history)
			}
			if p.History.Name != tt.hisTip || p.History.ID != "c1" || p.Name != strings.TrimSpace(tt.tool) {
				t.Errorf("history %+v, name %q", p.History, p.Name)
			}
		})
	}
}

func TestCallList(t *testing.T) {
	var l callList
	for _, d := range []CallDelta{
		{Call: 0, ID: "c1", Name: "read_file"},
		{Call: 1, ID: "c2", Args: `{"q":`},
		{Call: 0, Args: `{"path":"a"}`},
		{Call: 1, Name: "search", Args: `1`},
		{Call: 2, ID: "c3", Args: `{}`},
	} {
		l.add(d)
	}
	l.add(CallDelta{Call: 1, Args: "}"})
	var calls []ToolCall
	for n := range l.calls {
		if c, ok := l.at(n); ok {
			calls = append(calls, c)
		}
	}
	got, _ := json.Marshal(calls)
	want := `[{"id":"c1","name":"read_file","arguments":"{\"path\":\"a\"}"},{"id":"c2","name":"search","arguments":"{\"q\":1}"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s (the call without a name is dropped)", got, want)
	}
}

func FuzzPrepareCall(f *testing.F) {
	for _, s := range []string{``, `null`, `{"a":1}`, `"{\"q\":\"x\"}"`, `["x"]`, `{"q": "a b", }`, `{"q":"\ud83`, "\xff", `"\ud800"`} {
		f.Add("search", s, "length")
	}
	f.Fuzz(func(t *testing.T, name, args, finish string) {
		p := PrepareCall(ToolCall{Name: name, Arguments: args}, finish)
		if (p.Problem == "") != (p.Arguments != nil) {
			t.Fatalf("problem %q and arguments %q", p.Problem, p.Arguments)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(p.History.Arguments), &object); err != nil || object == nil {
			t.Fatalf("history arguments %q are no object: %v", p.History.Arguments, err)
		}
		if HistoryToolName(p.History.Name) != p.History.Name {
			t.Fatalf("history name %q", p.History.Name)
		}
	})
}
