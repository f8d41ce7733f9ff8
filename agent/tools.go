package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// Codes of tool errors. With the first four the handler never ran.
const (
	ToolUnknown     = "UNKNOWN_TOOL"
	ToolInvalid     = "INVALID_ARGUMENT"
	ToolUnavailable = "TOOL_UNAVAILABLE"
	ToolPermission  = "PERMISSION_DENIED"
	ToolTimeout     = "TIMEOUT"
	ToolExecution   = "EXECUTION_ERROR"
)

// toolError is a failed call: data for the model.
type toolError struct {
	code    string
	message string
}

func (e *toolError) Error() string { return e.code + ": " + e.message }

// tool is one native tool.
type tool struct {
	spec   Tool
	schema *jsonschema.Resolved
	// class must be allowed for the tool to be offered; "" = always.
	class config.Class
	run   func(ctx context.Context, t *turn, args json.RawMessage, budget int) (string, error)
}

// toolbox is the native tools in the order in which they are offered.
type toolbox struct {
	tools []tool
}

func newToolbox(*Engine) *toolbox {
	return &toolbox{tools: []tool{
		define("read_file", "Read a text file, whole or from a line on.", "", readFileTool),
		define("list_files", "List a folder, or find files by a glob pattern such as **/*.go.", "", listFilesTool),
		define("grep", "Search file contents. Returns path, line number and line.", "", grepTool),
		define("bash", "Run a shell command in the workspace; the result is its output and exit status.", config.AllowBash, bashTool),
	}}
}

type readFileArgs struct {
	Path  string `json:"path"`
	Line  int    `json:"line,omitempty" jsonschema:"first line, from 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"number of lines"`
}

type listFilesArgs struct {
	Path string `json:"path,omitempty" jsonschema:"folder; default: the workspace"`
	Glob string `json:"glob,omitempty"`
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Regex      bool   `json:"regex,omitempty" jsonschema:"RE2; default: literal"`
	Path       string `json:"path,omitempty" jsonschema:"file or folder"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
}

type bashArgs struct {
	Command string `json:"command"`
}

// define makes a tool of a typed handler: the schema comes from the type and is
// what arguments are validated against.
func define[T any](name, description string, class config.Class, run func(context.Context, *turn, T, int) (string, error)) tool {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		panic("tool " + name + ": " + err.Error()) // a fault of this file
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic("tool " + name + ": " + err.Error())
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic("tool " + name + ": " + err.Error())
	}
	return tool{
		spec: Tool{Name: name, Description: description, Parameters: raw}, schema: resolved, class: class,
		run: func(ctx context.Context, t *turn, raw json.RawMessage, budget int) (string, error) {
			var args T
			if err := json.Unmarshal(raw, &args); err != nil {
				return "", &toolError{ToolInvalid, err.Error()}
			}
			return run(ctx, t, args, budget)
		},
	}
}

// offer lists the tools for the next request.
func (b *toolbox) offer(r *run) []Tool {
	var out []Tool
	for _, t := range b.tools {
		if t.class == "" || r.s.perms.allows(t.class) {
			out = append(out, t.spec)
		}
	}
	return out
}

func (b *toolbox) find(name string) *tool {
	for i := range b.tools {
		if b.tools[i].spec.Name == name {
			return &b.tools[i]
		}
	}
	return nil
}

// answerCalls executes the native calls of the answer, reads in parallel, and
// writes each result once, in the order of the calls. It reports whether there
// were any: then a turn must follow.
func (t *turn) answerCalls(calls []PreparedCall) bool {
	if len(calls) == 0 {
		return false
	}
	texts := make([]string, len(calls))
	if why := t.callsBarred(); why != "" {
		for i := range texts {
			texts[i] = why
		}
	} else {
		budget := max(t.r.cfg.ResultBudget/len(calls), 2<<10)
		for group := range groups(calls) {
			t.callGroup(calls[group.from:group.to], texts[group.from:group.to], budget)
		}
	}
	for i, c := range calls {
		if texts[i] == "" {
			texts[i] = "(no output)"
		}
		t.r.s.learn(texts[i], "the result of "+c.Name)
		t.r.s.append(Message{Role: RoleTool, ToolCallID: c.History.ID, Content: texts[i]})
	}
	return true
}

// callsBarred says why no call of this answer is executed.
func (t *turn) callsBarred() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.r.ctx.Err() != nil:
		return "not executed: cancelled by the user"
	case t.failed != nil && t.failed.o.id != 0:
		return fmt.Sprintf("not executed: command %d failed", t.failed.o.id)
	case t.failed != nil:
		return "not executed: a command failed"
	case t.err != nil:
		return "not executed: your answer broke off"
	case t.last != nil:
		return fmt.Sprintf("not executed: it came after command %d, whose result you had not seen", t.last.ID)
	}
	return ""
}

// span is a run of calls, from inclusive, to exclusive.
type span struct{ from, to int }

// groups cuts the calls into runs of reads, which go in parallel, and calls
// with side effects, which go alone and in order.
func groups(calls []PreparedCall) func(func(span) bool) {
	return func(yield func(span) bool) {
		for from := 0; from < len(calls); {
			to := from + 1
			for calls[from].Name != "bash" && to < len(calls) && calls[to].Name != "bash" {
				to++
			}
			if !yield(span{from, to}) {
				return
			}
			from = to
		}
	}
}

// callGroup runs calls in parallel and tells of them in their order.
func (t *turn) callGroup(calls []PreparedCall, texts []string, budget int) {
	for _, c := range calls {
		t.r.emit.emit(Event{Type: ToolStarted, Tool: &ToolEvent{CallID: c.History.ID, Name: c.Name, Arguments: string(c.Arguments)}})
	}
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { texts[i], errs[i] = t.callHandler(c, budget) })
	}
	wg.Wait()
	for i, c := range calls {
		done := ToolEvent{CallID: c.History.ID, Name: c.Name, Status: "ok", Bytes: len(texts[i]), Summary: oneLine(summarise(c), 80)}
		if errs[i] != nil {
			te, ok := errs[i].(*toolError) //nolint:errorlint // handlers return it bare
			if !ok {
				te = &toolError{ToolExecution, errs[i].Error()}
			}
			done.Status, done.Code, done.Error = "error", te.code, te.message
			texts[i] = "error " + te.Error()
			t.mu.Lock()
			t.badCalls = append(t.badCalls, c.Name+" "+c.History.Arguments)
			t.lastBad = c.Name + ": " + te.message
			t.mu.Unlock()
		}
		t.r.emit.emit(Event{Type: ToolCompleted, Tool: &done})
		t.recordCall(c, done)
	}
}

func (t *turn) callHandler(c PreparedCall, budget int) (string, error) {
	tl := t.r.e.tools.find(c.Name)
	switch {
	case tl == nil:
		var known []string
		for _, o := range t.r.e.tools.offer(t.r) {
			known = append(known, o.Name)
		}
		return "", &toolError{ToolUnknown, "there is no tool " + oneLine(c.Name, 60) + "; known tools: " + strings.Join(known, ", ")}
	case c.Problem != "":
		return "", &toolError{ToolInvalid, c.Problem}
	case tl.class != "" && !t.r.s.perms.allows(tl.class):
		return "", &toolError{ToolPermission, "not permitted in this run"}
	}
	var v any
	if err := json.Unmarshal(c.Arguments, &v); err != nil {
		return "", &toolError{ToolInvalid, err.Error()}
	}
	if err := tl.schema.Validate(v); err != nil {
		return "", &toolError{ToolInvalid, strings.TrimPrefix(err.Error(), "validating root: ")}
	}
	return tl.run(t.r.ctx, t, c.Arguments, budget)
}

func (t *turn) recordCall(c PreparedCall, ev ToolEvent) {
	if t.r.dryRun || c.Name == "bash" && ev.Code == "" {
		return
	}
	led, err := t.r.ledger()
	if err != nil {
		return
	}
	status := ledger.StatusApplied
	if ev.Status != "ok" {
		status = ledger.StatusFailed
	}
	err = led.Record(ledger.Command{
		Key: t.callKey(), Tool: c.Name, Args: c.Arguments, NeedResult: true, Flow: ledger.FlowNative,
		Status: status, Code: ev.Code, Error: ev.Error, Bytes: int64(ev.Bytes), IntentAt: t.r.e.now(),
	})
	if err != nil {
		t.r.e.log.Warn("ledger: tool call not recorded", "tool", c.Name, "err", err)
	}
}

// callKey numbers the native calls of a turn.
func (t *turn) callKey() ledger.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callNo++
	return ledger.Key{Run: t.r.id, Turn: t.n, Channel: "native", ID: t.callNo}
}

// summarise says in a few words what a call is about.
func summarise(c PreparedCall) string {
	var m map[string]any
	if json.Unmarshal(c.Arguments, &m) != nil {
		return ""
	}
	var parts []string
	for _, k := range []string{"pattern", "path", "glob", "command"} {
		if s, ok := m[k].(string); ok && s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " in ")
}

func readFileTool(_ context.Context, t *turn, a readFileArgs, budget int) (string, error) {
	text, header, err := t.r.readFile(workspace.ReadRequest{Path: a.Path, Line: a.Line, Lines: a.Lines, MaxBytes: budget})
	if err != nil {
		return "", asToolError(err)
	}
	return header + "\n" + text, nil
}

func listFilesTool(_ context.Context, t *turn, a listFilesArgs, budget int) (string, error) {
	var text, header string
	var err error
	if a.Glob != "" {
		var got workspace.ListResult
		got, err = t.r.e.ws.Glob(t.r.ctx, workspace.GlobRequest{Pattern: a.Glob, Path: a.Path})
		text, header = renderList(got), "files that match "+a.Glob
	} else {
		text, header, err = t.r.listFiles(workspace.ListRequest{Path: a.Path})
	}
	if err != nil {
		return "", asToolError(err)
	}
	return header + "\n" + bound(text, budget), nil
}

func (r *run) listFiles(req workspace.ListRequest) (text, header string, err error) {
	got, err := r.e.ws.List(r.ctx, req)
	if err != nil {
		return "", "", err
	}
	name := req.Path
	if name == "" {
		name = "workspace"
	}
	return renderList(got), fmt.Sprintf("%s: %d entries", name, len(got.Entries)), nil
}

func renderList(l workspace.ListResult) string {
	var b strings.Builder
	for _, e := range l.Entries {
		b.WriteString(e.Path)
		if e.IsLink {
			b.WriteString(" (link)")
		}
		b.WriteByte('\n')
	}
	if l.Truncated {
		b.WriteString("… and more; narrow it down\n")
	}
	return b.String()
}

func grepTool(ctx context.Context, t *turn, a grepArgs, budget int) (string, error) {
	got, err := t.r.e.ws.Grep(ctx, workspace.GrepRequest{
		Pattern: a.Pattern, Regex: a.Regex, Path: a.Path, Glob: a.Glob, IgnoreCase: a.IgnoreCase, MaxBytes: budget,
	})
	if err != nil {
		return "", asToolError(err)
	}
	if len(got.Matches) == 0 {
		return "no match", nil
	}
	return got.String(), nil
}

// bashTool is the native form of tf-bash.
func bashTool(_ context.Context, t *turn, a bashArgs, budget int) (string, error) {
	if strings.TrimSpace(a.Command) == "" {
		return "", &toolError{ToolInvalid, "command is empty"}
	}
	if t.r.dryRun {
		return "dry run: the command was not run", nil
	}
	led, err := t.r.ledger()
	if err != nil {
		return "", &toolError{ToolUnavailable, "the ledger could not record it, so it was not run: " + err.Error()}
	}
	key := t.callKey()
	in := ledger.Intent{Key: key, Tool: "bash", Cmd: a.Command, NeedResult: true, Flow: ledger.FlowNative, Risk: "high", ContentHash: workspace.HashText(a.Command)}
	if err := led.Intent(t.r.effectCtx(), in); err != nil {
		return "", &toolError{ToolUnavailable, "the ledger could not record it, so it was not run: " + err.Error()}
	}
	res := t.r.shell(a.Command, func(out string) {
		t.r.emit.emit(Event{Type: ToolOutput, Text: out, Tool: &ToolEvent{Name: "bash"}})
	})
	o := outcome{status: string(ledger.StatusApplied), stdout: res.output, exit: res.exit}
	if res.killed != "" {
		o.status, o.code, o.message = string(ledger.StatusUncertain), "killed", res.killed
	}
	t.settleOutcome(led, key, o)
	return res.state() + "\n" + bound(res.output, budget), nil
}

func asToolError(err error) error {
	ref, ok := workspace.AsRefusal(err)
	if !ok {
		return &toolError{ToolExecution, err.Error()}
	}
	code := ToolExecution
	switch ref.Code {
	case workspace.CodeBadPath, workspace.CodeOutside, workspace.CodeAmbiguousPath, workspace.CodeInvalid:
		code = ToolInvalid
	case workspace.CodeForbidden, workspace.CodeDenied, workspace.CodeSecret:
		code = ToolPermission
	}
	return &toolError{code, ref.Error()}
}

// FirstRequestBytes is the size of the system prompt and the tool schemas: what
// every request pays.
func (e *Engine) FirstRequestBytes() int {
	n := len(promptText)
	for _, t := range e.tools.tools {
		n += len(t.spec.Name) + len(t.spec.Description) + len(t.spec.Parameters)
	}
	return n
}
