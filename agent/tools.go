package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// Short names for what package registry calls a call of ours.
type (
	toolCall   = registry.Call[*turn]
	toolOutput = registry.Output
)

// toolbox is the native tools in the order in which they are offered.
type toolbox struct {
	*registry.Registry[*turn]
	facts map[string]toolFacts
}

// toolFacts is what the loop knows of a tool beyond how it is called.
type toolFacts struct {
	// from is the first mode in which the tool is there, in the order ask, plan,
	// edit, auto.
	from config.Mode
	// offer says whether the tool is shown to the model; nil = always.
	offer func(r *run, set *setup) bool
	// permit asks for what a call needs; nil = nothing.
	permit func(t *turn, at ledger.Key, args json.RawMessage) error
	// quiet tools show what they do in events of their own, without a tool's name.
	quiet bool
	// command is the tag that the tool stands for (protocol native), decode makes
	// one of arguments.
	command parser.Name
	decode  func(json.RawMessage) (parser.Command, error)
}

// entry is a tool with its facts, for the list below.
type entry struct {
	tool  registry.Tool[*turn]
	facts toolFacts
}

func newToolbox() *toolbox {
	reg, err := registry.New[*turn]()
	if err != nil {
		panic(err)
	}
	b := &toolbox{reg, map[string]toolFacts{}}
	for _, list := range [][]entry{readTools(), commandTools(), effectTools(), mindTools()} {
		for _, e := range list {
			if err := reg.Add(e.tool); err != nil {
				panic(err) // a fault of the lists
			}
			b.facts[e.tool.Name] = e.facts
		}
	}
	return b
}

// effectTools are the tools that do something besides reading.
func effectTools() []entry {
	return []entry{
		{registry.Define(registry.Tool[*turn]{
			Name: "bash", Description: "Run a shell command in the workspace; the result is its output and exit status.", Effects: true,
			Grace: shellGrace, Probe: probeBash,
		}, bashTool), toolFacts{from: config.ModeEdit, offer: offerBash, permit: permitBash}},
		{registry.Define(registry.Tool[*turn]{
			Name: "process", Description: "New output and state of a background command; can wait for its end or stop it.", Effects: true,
		}, processTool), toolFacts{from: config.ModeEdit, offer: offerBash}},
	}
}

// offer lists the tools for the next request.
func (b *toolbox) offer(r *run, set *setup) []Tool {
	if set.profile.NoTools {
		return nil
	}
	var out []Tool
	for _, t := range b.Tools() {
		if b.offered(r, set, t.Name) {
			out = append(out, Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return out
}

// offered tells whether the model is shown the tool.
func (b *toolbox) offered(r *run, set *setup, name string) bool {
	f := b.facts[name]
	return inMode(f.from, set.Mode) && (f.offer == nil || f.offer(r, set)) && !slices.Contains(r.cfg.ToolsOff, name)
}

// inMode tells whether what is there from a mode on is there in this one.
func inMode(from, mode config.Mode) bool {
	return slices.Index(config.Modes, mode) >= slices.Index(config.Modes, from)
}

// call does one native call.
func (b *toolbox) call(ctx context.Context, t *turn, c PreparedCall, budget int) (toolOutput, error) {
	name := strings.TrimSpace(c.Name)
	known := b.Find(name) != nil && !slices.Contains(t.r.cfg.ToolsOff, name)
	switch {
	case !known:
		return toolOutput{}, registry.Errorf(registry.Unknown, "there is no tool %s; known tools: %s", oneLine(c.Name, 60), toolNames(b.offer(t.r, t.set)))
	case c.Problem != "":
		return toolOutput{}, registry.Errorf(registry.Invalid, "%s", c.Problem)
	}
	call := toolCall{Env: t, ID: c.History.ID, N: c.N, Name: name, Args: c.Arguments, Budget: budget}
	out, err := b.Call(ctx, call, func(*registry.Tool[*turn]) error {
		err := b.permit(t, name, c)
		var denied deniedError
		if errors.As(err, &denied) && denied.waiting != "" {
			t.r.hold(denied.waiting, held{Turn: t.n, Flow: ledger.FlowNative, Call: &c})
			t.stageCall(c)
			return registry.Errorf(registry.Permission, "%s", waitingMessage)
		}
		return err
	})
	t.settleCall(call.ID, out, err)
	return out, err
}

// permit says why the call is not permitted. The mode counts as it is now, not
// as it was when the request was made.
func (b *toolbox) permit(t *turn, name string, c PreparedCall) error {
	f := b.facts[name]
	if mode := t.r.settings().Mode; !inMode(f.from, mode) {
		return fmt.Errorf("not in mode %s: %s is there from mode %s on, which only the user can switch to", mode, name, f.from)
	}
	if f.permit == nil {
		return nil
	}
	return f.permit(t, t.callKey(c.N), c.Arguments)
}

// offerBash: where nobody can say yes, the tool is not shown.
func offerBash(r *run, set *setup) bool {
	return r.e.approver != nil || set.Mode == config.ModeAuto || r.mayRunShell()
}

func permitBash(t *turn, at ledger.Key, raw json.RawMessage) error {
	var a bashArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	ask, err := a.ask()
	if err != nil {
		return registry.Errorf(registry.Invalid, "%v", err)
	}
	p := t.r.permitShell(at, ask)
	if p.allowed {
		t.keepOpened(ask.hash(), p.grants)
	}
	return p.err()
}

// err is the refusal as an error, nil when it is allowed.
func (p permit) err() error {
	if p.allowed {
		return nil
	}
	return deniedError{p.message, p.waiting}
}
