package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// ChannelNative is the channel of commands that come as native calls (protocol
// native). Their ids are the numbers of the calls in the answer, from 1.
const ChannelNative parser.Channel = "native"

// The arguments of the commands as native tools. The order of the fields is the
// one in which models write them: the path first, so that the growing text can
// be shown where it belongs.
type (
	writeArgs struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Empty   bool   `json:"empty,omitempty" jsonschema:"true if the file is meant to be empty"`
	}
	appendArgs struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	editArgs struct {
		Path  string     `json:"path"`
		Edits []pairArgs `json:"edits"`
		All   bool       `json:"all,omitempty" jsonschema:"replace every place"`
		Line  int        `json:"line,omitempty" jsonschema:"picks the place that starts near this line"`
	}
	pairArgs struct {
		Old string `json:"old" jsonschema:"exact text of the file, whole lines, occurring once"`
		New string `json:"new"`
	}
	pathArgs struct {
		Path string `json:"path"`
	}
	destArgs struct {
		Path string `json:"path"`
		Dest string `json:"dest"`
	}
)

// nativeArgs is how arguments become a command.
type nativeArgs interface{ command() parser.Command }

func (a writeArgs) command() parser.Command {
	return parser.Command{Path: a.Path, Body: a.Content, Empty: a.Empty}
}

func (a appendArgs) command() parser.Command {
	return parser.Command{Path: a.Path, Body: a.Content}
}

func (a editArgs) command() parser.Command {
	c := parser.Command{Path: a.Path, All: a.All, Line: a.Line}
	for _, p := range a.Edits {
		c.Pairs = append(c.Pairs, parser.Pair{Old: p.Old, New: p.New})
	}
	return c
}

func (a pathArgs) command() parser.Command { return parser.Command{Path: a.Path} }

func (a destArgs) command() parser.Command { return parser.Command{Path: a.Path, Dest: a.Dest} }

// commandTools are the commands as native tools.
func commandTools() []entry {
	return []entry{
		commandTool[writeArgs](parser.Write, "write_file", "Create or replace a whole file. Missing folders are made."),
		commandTool[editArgs](parser.Edit, "edit_file", "Replace text in a file. The edits are applied together or not at all, all against the file as it is before."),
		commandTool[appendArgs](parser.Append, "append_file", "Add text at the end of a file."),
		commandTool[pathArgs](parser.Mkdir, "make_dir", "Make a folder."),
		commandTool[pathArgs](parser.Touch, "touch_file", "Make an empty file."),
		commandTool[destArgs](parser.Copy, "copy_file", "Copy a file."),
		commandTool[destArgs](parser.Move, "move_file", "Move or rename a file or folder."),
		commandTool[pathArgs](parser.Delete, "delete_file", "Delete a file."),
	}
}

func commandTool[A nativeArgs](name parser.Name, tool, description string) entry {
	return entry{
		registry.Define(registry.Tool[*turn]{Name: tool, Description: description, Effects: true},
			func(context.Context, toolCall, A) (toolOutput, error) {
				return toolOutput{}, errors.New("commands go through the queue") // see runCommand
			}),
		toolFacts{
			from: config.ModeEdit, command: name, offer: func(_ *run, set *setup) bool { return set.native },
			decode: func(raw json.RawMessage) (parser.Command, error) {
				var a A
				err := json.Unmarshal(raw, &a)
				return a.command(), err
			},
		},
	}
}

// isCommand tells whether the call is a command, in a turn that takes them.
func (t *turn) isCommand(c PreparedCall) bool { return t.commandOf(c.Name) != "" }

func (t *turn) commandOf(tool string) parser.Name {
	if !t.set.native {
		return ""
	}
	return t.set.tools.facts[strings.TrimSpace(tool)].command
}

// growing follows one native command while its arguments arrive.
type growing struct {
	scan    jsonScan
	opening parser.Opening
	shown   bool // command.started was sent
	field   string
	pair    int
	total   int
	path    strings.Builder
	over    bool // it went to the queue
}

// takeCall takes a piece of a native call: it is shown while it grows, and
// executed as soon as it is complete and all calls before it are done.
func (t *turn) takeCall(d CallDelta) {
	t.calls.add(d)
	if !t.set.native {
		return
	}
	g := t.grow(d.Call)
	if g != nil && !g.over {
		args := d.Args
		if d.Name != "" { // what came before the name counts as well
			args = string(t.calls.calls[d.Call].args)
		}
		g.scan.feed(args)
	}
	t.advance()
}

// grow returns the state of a call that is a command, nil for any other.
func (t *turn) grow(n int) *growing {
	if g := t.growing[n]; g != nil {
		return g
	}
	name := t.commandOf(t.calls.calls[n].name)
	if name == "" {
		return nil
	}
	g := &growing{opening: parser.Opening{Name: name, ID: n + 1, Channel: ChannelNative}}
	g.scan.begin = func(where []jsonStep) bool { return t.stringBegins(g, where) }
	g.scan.piece = func(text string) { t.stringGrows(g, text, false) }
	g.scan.end = func() { t.stringGrows(g, "", true) }
	if t.growing == nil {
		t.growing = map[int]*growing{}
	}
	t.growing[n] = g
	return g
}

func (t *turn) stringBegins(g *growing, where []jsonStep) bool {
	g.field, g.pair, g.total = "", 0, 0
	switch {
	case len(where) == 1 && !where[0].array:
		switch where[0].key {
		case "path", "content", "dest":
			g.field = where[0].key
		}
	case len(where) == 3 && where[0].key == "edits" && where[1].array && (where[2].key == "old" || where[2].key == "new"):
		g.field, g.pair = where[2].key, where[1].index
	}
	return g.field != ""
}

func (t *turn) stringGrows(g *growing, text string, closed bool) {
	switch g.field {
	case "path":
		g.path.WriteString(text)
		if closed {
			g.opening.Path = g.path.String()
			t.showStart(g)
		}
		return
	case "dest":
		return
	}
	t.showStart(g)
	g.total += len(text)
	p := parser.Progress{ID: g.opening.ID, Pair: g.pair, Delta: text, Total: g.total, Closed: closed}
	switch g.field {
	case "old":
		p.Part = parser.PartOld
	case "new":
		p.Part = parser.PartNew
	}
	t.r.preview(t.n, &g.opening, p)
}

func (t *turn) showStart(g *growing) {
	if g.shown {
		return
	}
	g.shown = true
	o := &g.opening
	t.r.emit.emit(Event{Type: CommandStarted, Command: &CommandEvent{ID: o.ID, Channel: string(o.Channel), Name: string(o.Name), Path: o.Path}})
}

// advance queues the next calls, as long as they are complete, predictable
// commands: the queue keeps the order, so all before one are done when it runs.
// A call of another kind waits for the end of the answer, and so does what
// comes behind it.
func (t *turn) advance() {
	for t.nextCall < len(t.calls.calls) && t.phase != halted {
		g := t.growing[t.nextCall]
		if g == nil || !g.scan.complete || !g.opening.Name.Predictable() {
			return
		}
		raw, ok := t.calls.at(t.nextCall)
		if !ok {
			return
		}
		p := PrepareCall(raw, "")
		p.N = t.nextCall + 1
		t.nextCall++
		g.over = true
		t.showStart(g)
		c, err := t.toCommand(p)
		if err != nil {
			t.halt(stopFailure)
			t.push(item{cmd: c, bad: err})
			return
		}
		t.noteArrival(c)
		t.push(item{cmd: c, bytes: len(c.Body) + pairBytes(c.Pairs)})
	}
}

// toCommand makes the command of a call. The error says what is wrong with the
// arguments; the command is good enough to record it.
func (t *turn) toCommand(p PreparedCall) (*parser.Command, *registry.Error) {
	name := t.commandOf(p.Name)
	c := &parser.Command{Name: name, ID: p.N, Channel: ChannelNative}
	if g := t.growing[p.N-1]; g != nil {
		c.Path = g.opening.Path
	}
	if p.Problem != "" {
		return c, registry.Errorf(registry.Invalid, "%s", p.Problem)
	}
	tool := strings.TrimSpace(p.Name)
	if err := t.set.tools.Find(tool).Validate(p.Arguments); err != nil {
		return c, callError(err)
	}
	full, err := t.set.tools.facts[tool].decode(p.Arguments)
	if err != nil {
		return c, registry.Errorf(registry.Invalid, "%v", err)
	}
	full.Name, full.ID, full.Channel = c.Name, c.ID, c.Channel
	switch {
	case full.Path == "":
		return &full, registry.Errorf(registry.Invalid, "path is empty")
	case name == parser.Edit && len(full.Pairs) == 0:
		return &full, registry.Errorf(registry.Invalid, "edits is empty: give at least one old and new")
	}
	return &full, nil
}

// runCommand executes a command that waited for the end of the answer.
func (t *turn) runCommand(p PreparedCall) toolOutput {
	g := t.growing[p.N-1]
	if g != nil {
		g.over = true
		t.showStart(g)
	}
	c, err := t.toCommand(p)
	if err != nil {
		t.badArguments(c, err)
	} else {
		t.noteArrival(c)
		t.execute(c, ledger.FlowNative)
	}
	out, _ := t.nativeResult(p)
	return out
}

// badArguments is a command whose arguments cannot be used: it fails as any
// other would.
func (t *turn) badArguments(c *parser.Command, e *registry.Error) {
	o := t.outcomeOf(c)
	o.status, o.code, o.message = string(ledger.StatusFailed), string(e.Code), e.Message
	t.record(c, o, ledger.FlowNative)
	t.completed(c, o)
	t.fail(o, "native "+string(c.Name)+" "+e.Message)
}

// keepOutcome keeps what became of a command until the model is told: of a
// native one that is the result of its call.
func (t *turn) keepOutcome(o outcome) {
	if o.channel != ChannelNative {
		t.r.s.addOutcome(o)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.native == nil {
		t.native = map[int]outcome{}
	}
	t.native[o.id] = o
}

// nativeResult is the result of a command that was tried; ok is false for a call
// that is none, or that was not.
func (t *turn) nativeResult(p PreparedCall) (toolOutput, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.native[p.N]
	if !ok {
		return toolOutput{}, false
	}
	text := strings.TrimPrefix(o.line(), o.nth()+", ") + "\n"
	switch o.status {
	case string(ledger.StatusApplied), string(ledger.StatusStaged):
		if o.name == string(parser.Edit) && o.rung != "exact" {
			text += bound(o.diff, diffPerEdit)
		}
	case string(ledger.StatusFailed), string(ledger.StatusRejected), string(ledger.StatusUncertain), string(ledger.StatusNotApplied):
		text = fmt.Sprintf("%s: %s [%s]: %s\n", strings.TrimSpace(o.tool()+" "+o.path), strings.TrimPrefix(o.fate(), "was "), o.code, o.said(o.message))
		if o.nearest != "" {
			text += fenceData("nearest text in the file", o.nearest)
		}
	}
	return registry.Text(text), true
}

// dropGrowing tells of commands that were begun and will never be complete.
func (t *turn) dropGrowing() {
	if t.stopped() == stopNone && t.err == nil {
		return // the answer is whole: what is not complete is told as a failure
	}
	for n := range len(t.calls.calls) {
		g := t.growing[n]
		if g == nil || !g.shown || g.over || g.scan.complete {
			continue
		}
		g.over = true
		o := &g.opening
		t.r.emit.emit(Event{Type: CommandSkipped, Reason: "the answer was stopped before this command was complete", Command: &CommandEvent{
			ID: o.ID, Channel: string(o.Channel), Name: string(o.Name), Path: o.Path,
		}})
	}
}

// flowOf is the flow of a command that runs while the model is streaming.
func flowOf(c *parser.Command) ledger.Flow {
	if c.Channel == ChannelNative {
		return ledger.FlowNative
	}
	return ledger.FlowStreamed
}
