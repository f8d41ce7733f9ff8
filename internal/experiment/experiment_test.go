package experiment

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"thinkflow/internal/need"
)

var quick = Pace{First: 400 * time.Millisecond, Rate: 80, Speed: 1000}

// perform does an action to the folder, as a perfect agent would.
func perform(t *testing.T, dir string, a *Action) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(a.Path))
	text := a.Body
	switch a.Kind {
	case Read, Bash:
		return
	case Edit:
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(data), a.Old) != 1 {
			t.Fatalf("%s: the text to replace occurs %d times: %q", a.Path, strings.Count(string(data), a.Old), a.Old)
		}
		text = strings.Replace(string(data), a.Old, a.New, 1)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestValidators: the folder as it is at the beginning is refused, the one after
// the work is accepted.
func TestValidators(t *testing.T) {
	for _, task := range Tasks() {
		t.Run(task.Name, func(t *testing.T) {
			if task.Name == "frontend" {
				t.Skip("its validator needs npm and the network: make experiment with --front-end")
			}
			if missing := task.missing(); missing != "" {
				need.Missing(t, missing)
			}
			dir := t.TempDir()
			if err := task.Lay(dir); err != nil {
				t.Fatal(err)
			}
			if err := task.Validate(Work{Dir: dir}); err == nil {
				t.Fatal("the untouched folder is accepted")
			}
			for _, s := range task.Stages {
				for _, a := range s.Actions {
					if a.Fix != nil {
						a = *a.Fix
					}
					perform(t, dir, &a)
				}
			}
			if err := task.Validate(Work{Dir: dir, Output: task.Closing}); err != nil {
				t.Fatalf("the work is refused: %v", err)
			}
		})
	}
}

// TestFloors: calls that no agent of this kind can save.
func TestFloors(t *testing.T) {
	want := map[string]int{"novel": 2, "novel-named": 1, "edits": 2, "edits-named": 1, "repair": 3, "repair-named": 2,
		"long": 1, "mixed": 4, "rework": 4, "errands": 7, "survey": 2, "frontend": 2}
	for _, task := range Tasks() {
		f := FloorOf(&task, quick)
		if f.Calls != want[task.Name] {
			t.Errorf("%s: %d calls, want %d", task.Name, f.Calls, want[task.Name])
		}
		if least := f.Calls * (floorPrompt + len(task.Prompt)) / 4; f.Input < least {
			t.Errorf("%s: %d input tokens, less than the prompts alone (%d)", task.Name, f.Input, least)
		}
	}
}

func TestToolsBySchema(t *testing.T) {
	str := schema{Type: "string"}
	def := func(name string, required []string, props map[string]schema) toolDef {
		return toolDef{name: name, schema: schema{Properties: props, Required: required}}
	}
	abs := schema{Type: "string", Description: "The absolute path"}
	edit := &Action{Kind: Edit, Path: "a.txt", Old: "x\n", New: "y\n"}
	for _, c := range []struct {
		name   string
		tool   toolDef
		action *Action
		want   string
	}{
		{"read", def("read_file", nil, map[string]schema{"path": str}), &Action{Kind: Read, Path: "a.txt"}, `{"path":"a.txt"}`},
		{"absolute", def("Read", nil, map[string]schema{"file_path": abs}), &Action{Kind: Read, Path: "a.txt"}, `{"file_path":"/w/a.txt"}`},
		{"write", def("write", nil, map[string]schema{"filePath": str, "content": str}), &Action{Kind: Write, Path: "a.txt", Body: "<b>\n"}, `{"filePath":"a.txt","content":"<b>\n"}`},
		{"edit", def("Edit", nil, map[string]schema{"file_path": str, "old_string": str, "new_string": str}), edit, `{"file_path":"a.txt","old_string":"x\n","new_string":"y\n"}`},
		{"read several", def("read_files", []string{"files"}, map[string]schema{"files": {Type: "array", Items: &schema{Properties: map[string]schema{"path": abs}}}}), &Action{Kind: Read, Path: "a.txt"}, `{"files":[{"path":"/w/a.txt"}]}`},
		{"run several", def("run_commands", nil, map[string]schema{"commands": {Type: "array", Items: &str}}), &Action{Kind: Bash, Cmd: "ls"}, `{"commands":["ls"]}`},
		{"creates", toolDef{name: "editor", about: "creates the file", schema: schema{Properties: map[string]schema{"path": abs, "old_text": str, "new_text": str}, Required: []string{"path", "new_text"}}}, &Action{Kind: Write, Path: "a.txt", Body: "x\n"}, `{"path":"/w/a.txt","new_text":"x\n"}`},
		{"edits", def("edit", nil, map[string]schema{"path": str, "edits": {Type: "array", Items: &schema{Properties: map[string]schema{"oldText": str, "newText": str}}}}), edit, `{"path":"a.txt","edits":[{"oldText":"x\n","newText":"y\n"}]}`},
		{"required", def("bash", []string{"command", "description", "background", "wait"}, map[string]schema{"command": str, "description": str, "background": {Type: "boolean"}, "wait": {Type: "integer"}}), &Action{Kind: Bash, Cmd: "ls"}, `{"background":false,"command":"ls","description":"as the task says","wait":1}`},
		{"argv", def("shell", nil, map[string]schema{"command": {Type: "array"}}), &Action{Kind: Bash, Cmd: "ls"}, `{"command":["bash","-lc","ls"]}`},
		{"read by shell", def("exec_command", nil, map[string]schema{"cmd": str}), &Action{Kind: Read, Path: "a.txt"}, `{"cmd":"cat a.txt"}`},
		{"patch", def("apply_patch", nil, map[string]schema{"input": str}), edit, `{"input":"*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch\n"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rq := request{tools: []toolDef{c.tool}}
			p, err := rq.callFor(c.action, "/w")
			if err != nil || p.args != c.want || p.call != c.tool.name {
				t.Errorf("got %s %s, %v\nwant %s", p.call, p.args, err, c.want)
			}
		})
	}
	rq := request{tools: []toolDef{def("web_search", nil, map[string]schema{"query": str})}}
	if p, err := rq.callFor(edit, "/w"); err == nil {
		t.Errorf("an edit goes to %s", p.call)
	}
}

// TestWires: each form of API takes a request with one tool and one result, and
// streams the call that comes next.
func TestWires(t *testing.T) {
	task := repair(false)
	file := task.Files["server.go"]
	q := plainJSON(file)
	for _, c := range []struct{ name, path, body, want string }{
		{"chat", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"go"},{"role":"tool","tool_call_id":"x","content":` + q + `}],"tools":[{"type":"function","function":{"name":"edit","parameters":{"properties":{"path":{},"old":{},"new":{}}}}}]}`, `"finish_reason":"tool_calls"`},
		{"messages", "/v1/messages", `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":` + q + `}]}],"tools":[{"name":"edit","input_schema":{"properties":{"path":{},"old":{},"new":{}}}}]}`, `"stop_reason":"tool_use"`},
		{"responses", "/v1/responses", `{"model":"m","stream":true,"instructions":"i","input":[{"type":"function_call_output","call_id":"x","output":` + q + `}],"tools":[{"type":"function","name":"edit","parameters":{"properties":{"path":{},"old":{},"new":{}}}}]}`, `"type":"response.completed"`},
		{"gemini", "/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"x","response":{"output":` + q + `}}}]}],"tools":[{"functionDeclarations":[{"name":"edit","parametersJsonSchema":{"properties":{"path":{},"old":{},"new":{}}}}]}]}`, `"finishReason":"STOP"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := simulate(newPlayer(&task, Serial, t.TempDir()), quick)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			res, err := http.Post(s.URL()+c.path, "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			data, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), c.want) {
				t.Errorf("no %s in\n%s", c.want, data)
			}
			calls := s.Calls()
			if len(calls) != 1 || !calls[0].acts || !strings.Contains(calls[0].said, `"path":"server.go"`) || calls[0].Input != tokens(len(c.body)) {
				t.Errorf("recorded: %+v", calls)
			}
			if u := usageIn(data); u.output != calls[0].Output {
				t.Errorf("usage says %d output tokens, %d were counted", u.output, calls[0].Output)
			}
		})
	}
}

func TestUsageAsReported(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         reported
	}{
		{"nothing", "data: {\"choices\":[]}\n\ndata: [DONE]\n", reported{-1, -1, -1}},
		{"chat", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n", reported{7, 3, -1}},
		{"cached", "data: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n", reported{7, 3, 0}},
		{"null", "data: {\"usage\":null}\n", reported{-1, -1, -1}},
		{"whole", `{"usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":4}}`, reported{9, 2, 4}},
		{"messages", "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":30,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n", reported{39, 20, 4}},
		{"both", `{"usage":{"prompt_tokens":9,"completion_tokens":2,"cache_read_input_tokens":6}}`, reported{9, 2, 6}},
		{"thoughts", `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":7}}`, reported{9, 9, -1}},
		{"cache within", `{"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":6}}`, reported{9, 2, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := usageIn([]byte(c.answer)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestUnknownIsNotZero: sums with one part unknown are unknown, and failed runs
// count for nothing but failures.
func TestUnknownIsNotZero(t *testing.T) {
	j := job{live: &Live{}}
	r := Result{Input: -1, Output: -1, Cached: -1, Reuse: -1}
	j.count(&r, []Call{{Input: 5, Output: 1, Cached: -1, Status: 200}, {Input: 7, Output: -1, Cached: -1, Status: 200}}, time.Now())
	if r.Input != 12 || r.Output != -1 || r.Cached != -1 {
		t.Errorf("sums: %+v", r)
	}
	rep := &Report{Tasks: []TaskInfo{{Name: "novel"}}, Floors: map[string]Floor{}, Repeats: 2, Results: []Result{
		{Agent: barAgent, Task: "novel", Model: "m", Repeat: 1, OK: true, Calls: 2, Input: 10, Output: -1, Cached: -1},
		{Agent: barAgent, Task: "novel", Model: "m", Repeat: 2, OK: true, Calls: 4, Input: 30, Output: -1, Cached: -1},
		{Agent: "other", Task: "novel", Model: "m", Repeat: 1, OK: true, Calls: 6, Input: 50, Output: 5, Cached: 0},
		{Agent: "other", Task: "novel", Model: "m", Repeat: 2, Failure: FailValidation, Detail: "too short", Calls: 1, Input: 1},
	}}
	pairs := rep.pairs(barAgent)
	if len(pairs) != 1 || pairs[0].Both != 1 || pairs[0].Left != 1 || pairs[0].Calls != 3 || pairs[0].Input != 5 {
		t.Errorf("pairs: %+v", pairs)
	}
	md := rep.Markdown()
	for _, want := range []string{"not reported", "3 (2–4)", "too short", "20 (10–30)"} {
		if !strings.Contains(md, want) {
			t.Errorf("the report does not say %q:\n%s", want, md)
		}
	}
	html, err := rep.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"src=\"http", "href=\"http", "@import", "<script"} {
		if strings.Contains(string(html), bad) {
			t.Errorf("the page is not self-contained: %s", bad)
		}
	}
}

// TestProxyKeepsTheKey: agents never see the key of the real endpoint.
func TestProxyKeepsTheKey(t *testing.T) {
	var auth, path string
	up, url, err := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth, path = r.Header.Get("Authorization"), r.URL.Path
		fmt.Fprint(w, "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	lv := &Live{BaseURL: url + "/api/v3/", Key: "real"}
	p, err := lv.proxy()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	res, err := http.Post(p.URL()+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if auth != "Bearer real" || path != "/api/v3/chat/completions" {
		t.Errorf("the endpoint saw %q at %s", auth, path)
	}
	if c := p.Calls(); len(c) != 1 || c[0].Input != 9 || c[0].Cached != -1 {
		t.Errorf("calls: %+v", c)
	}
}

// TestOurs: the program as users run it, in each of its ways, on tasks that need
// results, repairs and a shell.
func TestOurs(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("builds the program and runs shell scripts")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "thinkflow")
	build := exec.Command("go", "build", "-o", bin, "thinkflow/cmd/thinkflow")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rep, err := Run(context.Background(), Options{
		Out: dir, Binary: bin, Tasks: []string{"novel-named", "edits", "repair", "mixed"}, Styles: []Style{Serial, Parallel}, Jobs: 4, Prompts: 2,
		Pace: Pace{First: 400 * time.Millisecond, Rate: 80, Speed: 200},
		Only: []string{"thinkflow tags strip", "thinkflow tags stub", "thinkflow tags keep", "thinkflow native"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rep.Results {
		if !r.OK || r.Prompts != 1 {
			t.Errorf("%s, %s, %s: %s after %d prompts: %s", r.Task, r.Agent, r.Style, r.Failure, r.Prompts, r.Detail)
		}
		if runtime.GOOS == "linux" && r.Memory < 1<<20 {
			t.Errorf("%s, %s: %d bytes of memory", r.Task, r.Agent, r.Memory)
		}
		if r.Calls < rep.Floors[r.Task].Calls {
			t.Errorf("%s, %s: %d calls are less than the floor", r.Task, r.Agent, r.Calls)
		}
	}
	var order []string
	for _, x := range rep.rows("edits") {
		order = append(order, x.agent+", "+x.with)
	}
	var want []string
	for _, style := range []Style{Serial, Parallel} {
		for _, a := range Ours() {
			want = append(want, a.Name+", "+string(style))
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("the rows are in the order %q, want %q", order, want)
	}
	for _, b := range rep.Bars() {
		if !b.OK && !strings.Contains(b.What, "wall") { // times are for reading
			t.Errorf("%s: %s, wanted %s", b.What, b.Got, b.Wanted)
		}
	}
	throughTheProxy(t, bin)
	if err := rep.Save(dir); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, rep.Results[0].Artefacts, "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"request":{`) {
		t.Errorf("no request was kept: %.200s", lines.Text())
	}
}

// TestTakeOver: what is taken from an earlier run says so, and only agents and
// tasks that can be compared are taken.
func TestTakeOver(t *testing.T) {
	old := &Report{Simulated: true, Pace: quick, Note: "in a storm", Made: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), Floors: map[string]Floor{},
		Tasks:   []TaskInfo{{"novel", "t", "p"}, {"edits", "t", "another prompt"}},
		Results: []Result{{Agent: "pi", Task: "novel", OK: true, Calls: 3}, {Agent: "pi", Task: "edits", OK: true}, {Agent: barAgent, Ours: true, Task: "novel", OK: true}}}
	dir := t.TempDir()
	if err := old.Save(dir); err != nil {
		t.Fatal(err)
	}
	r := &Report{Simulated: true, Pace: quick, Tasks: []TaskInfo{{"novel", "t", "p"}, {"edits", "t", "p"}}, NotRun: []NotRun{{"pi", "absent"}, {"Codex", "absent"}}}
	file := filepath.Join(dir, "results.json")
	old, err := earlier(file, quick)
	if err != nil {
		t.Fatal(err)
	}
	r.takeOver(old)
	if len(r.Results) != 1 || r.Results[0].Task != "novel" || r.Results[0].Earlier != "4 March 2026, in a storm" || len(r.NotRun) != 1 || r.NotRun[0].What != "Codex" {
		t.Errorf("taken: %+v, not run: %+v", r.Results, r.NotRun)
	}
	slow := quick
	slow.Rate = 1
	if _, err := earlier(file, slow); err == nil {
		t.Error("results at another pace are taken")
	}
}

// throughTheProxy is a run as against a real endpoint, which here is a simulated
// one behind the proxy.
func throughTheProxy(t *testing.T, bin string) {
	t.Helper()
	task := edits(false)
	up, err := simulate(newPlayer(&task, Parallel, ""), quick)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	rep, err := Run(context.Background(), Options{
		Out: t.TempDir(), Binary: bin, Tasks: []string{"edits"}, Only: []string{barAgent}, Prompts: 1,
		Live: &Live{BaseURL: up.URL() + "/v1", Key: "real"}, Models: []string{"some-model"}, Repeats: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := up.Calls()
	if r := rep.Results[0]; !r.OK || r.Calls != 2 || r.Input != seen[0].Input+seen[1].Input || r.Cached != seen[1].Cached || r.Model != "some-model" {
		t.Errorf("through the proxy: %+v", r)
	}
	if md := rep.Markdown(); strings.Contains(md, "simulated**") || !strings.Contains(md, "| some-model | 1/1 | 2 |") {
		t.Errorf("report:\n%s", md)
	}
}
