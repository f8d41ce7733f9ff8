package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// ExtraTool is a native tool from outside of this package: of an MCP server, of a
// skill. It is called, validated, permitted, timed, recorded and told like any
// other; see package registry for the steps and for what a probe and a check are.
type ExtraTool struct {
	// Name has 1 to 64 of the characters A-Z a-z 0-9 _ -; it must not be that of
	// another tool.
	Name, Description string
	// Parameters is the JSON schema of the arguments, an object's; null = any
	// object.
	Parameters json.RawMessage
	// Effects: the tool changes something. Its calls run alone and in order, stand
	// in the ledger before they begin, and are never simply repeated.
	Effects bool
	// Mode is the first mode in which the tool is there, in the order ask, plan,
	// edit, auto; "" = edit with Effects, ask without.
	Mode config.Mode
	// Class is what is asked for before each call, as rules and --allow name it:
	// net, tool:NAME. "" = the tool by its name if it has Effects, nothing
	// otherwise.
	Class config.Class
	// Timeout bounds one attempt; 0 = the run's own end only.
	Timeout time.Duration

	// Handle does the work and returns the result for the model. It must return
	// soon after its context ends. A *registry.Error is a failure that can be
	// expected; any other error counts as trouble with the tool itself.
	Handle func(context.Context, ExtraCall) (string, error)
	// Probe finds out, without side effects, what became of an attempt that ran
	// into Timeout, with the result if it succeeded; nil = nobody knows.
	Probe func(context.Context, ExtraCall) (registry.Verdict, string)
	// Check finds out, without side effects, whether a tool that was in trouble
	// works again; nil = the next call shows it.
	Check func(context.Context) error
}

// ExtraCall is one call of an ExtraTool.
type ExtraCall struct {
	Run, Session string
	ID           string          // of the call, as the model's server gave it
	Arguments    json.RawMessage // an object that fits the schema
	Attempt      int             // from 1; 2 after a probe said that nothing was done
	Budget       int             // bytes of result that are of use
}

// toolbox returns the tools of the next request: the built-in ones, and what
// Options.Tools offers at this moment. What cannot be used is told once.
func (e *Engine) toolbox(ctx context.Context) *toolbox {
	if e.extra == nil {
		return e.tools
	}
	list := e.extra(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.extended
	box := &toolbox{e.tools.Registry.Clone(), map[string]toolFacts{}}
	for name, f := range e.tools.facts {
		box.facts[name] = f
	}
	for i := range list {
		x := &list[i]
		err := x.usable()
		if err == nil {
			// A breaker outlives the turn: it is the tool's, not the request's.
			err = box.AddAs(x.tool(), before)
		}
		if err != nil {
			e.unusable(x.Name, err)
			continue
		}
		box.facts[x.Name] = x.facts()
	}
	e.extended = box.Registry
	return box
}

// unusable tells once that a tool is left out. e.mu is held.
func (e *Engine) unusable(name string, err error) {
	if slices.Contains(e.toldTools, name) {
		return
	}
	e.toldTools = append(e.toldTools, name)
	go e.notice(fmt.Sprintf("the tool %s is left out: %v", oneLine(name, 80), err)) // a notice may need the engine
}

func (x *ExtraTool) usable() error {
	switch {
	case HistoryToolName(x.Name) != x.Name || x.Name == InvalidToolName:
		return fmt.Errorf("a name has 1 to 64 of the characters A-Z a-z 0-9 _ -")
	case x.Handle == nil:
		return fmt.Errorf("it has no handler")
	case x.Mode != "" && !slices.Contains(config.Modes, x.Mode):
		return fmt.Errorf("there is no mode %q", x.Mode)
	}
	return nil
}

func (x *ExtraTool) facts() toolFacts {
	f := toolFacts{from: x.Mode}
	switch {
	case f.from != "":
	case x.Effects:
		f.from = config.ModeEdit
	default:
		f.from = config.ModeAsk
	}
	class := x.Class
	if class == "" && x.Effects {
		class = config.Class(policy.Tool(x.Name))
	}
	if class != "" {
		f.permit = func(t *turn, at ledger.Key, args json.RawMessage) error {
			return t.r.permitExtra(at, x.Name, class, args)
		}
	}
	return f
}

// permitExtra asks for a call of an ExtraTool. An answer "for this session" is for
// the class, whatever the arguments.
func (r *run) permitExtra(at ledger.Key, name string, class config.Class, args json.RawMessage) error {
	subject := name + " " + string(args)
	c := checked{r: r, hash: workspace.HashText(subject)}
	c.decide(policy.Request{Action: policy.Action(class), Hash: c.hash}, "calls of "+name+" ask")
	return r.permitNeeds(at, Action(class), subject, c, nil, nil).err()
}

// tool is how package registry has it.
func (x *ExtraTool) tool() registry.Tool[*turn] {
	t := registry.Tool[*turn]{
		Name: x.Name, Description: x.Description, Parameters: x.Parameters, Effects: x.Effects, Timeout: x.Timeout,
		Handle: func(ctx context.Context, c toolCall) (toolOutput, error) {
			if c.Env.r.dryRun && x.Effects {
				return registry.Text("dry run: it was not called"), nil
			}
			if x.Effects {
				if err := c.Env.announce(c); err != nil {
					return toolOutput{}, registry.Errorf(registry.Unavailable, "the ledger could not record it, so it was not called: %v", err)
				}
			}
			text, err := x.Handle(ctx, x.call(c))
			return registry.Text(text), err
		},
	}
	if len(t.Parameters) == 0 {
		t.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	if x.Probe != nil {
		t.Probe = func(ctx context.Context, c toolCall) (registry.Verdict, toolOutput) {
			v, text := x.Probe(ctx, x.call(c))
			return v, registry.Text(text)
		}
	}
	if x.Check != nil {
		t.Check = func(ctx context.Context, _ *turn) error { return x.Check(ctx) }
	}
	return t
}

func (x *ExtraTool) call(c toolCall) ExtraCall {
	r := c.Env.r
	return ExtraCall{Run: r.id, Session: r.s.id, ID: c.ID, Arguments: c.Args, Attempt: c.Attempt, Budget: c.Budget}
}

// announce puts the intent of an attempt into the ledger. That there is another
// attempt means that the one before did nothing.
func (t *turn) announce(c toolCall) error {
	led, err := t.r.ledger()
	if err != nil {
		return err
	}
	key := t.callKey(c.N)
	if c.Attempt > 1 {
		t.settleOutcome(led, t.announced(c.ID), outcome{status: string(ledger.StatusNotApplied), code: string(registry.Timeout)})
		key = retryKey(key, c.Attempt-1)
	}
	err = led.Intent(t.r.effectCtx(), ledger.Intent{
		Key: key, Tool: c.Name, Args: c.Args, NeedResult: true, Flow: ledger.FlowNative, Risk: "high",
		ContentHash: workspace.HashText(c.Name + "\x00" + string(c.Args)), Summary: oneLine(summarise(PreparedCall{Arguments: c.Args}), 120),
	})
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.intents == nil {
			t.intents = map[string]ledger.Key{}
		}
		t.intents[c.ID] = key
	}
	return err
}

// announced is the key of the call's last intent, the zero key without one.
func (t *turn) announced(call string) ledger.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.intents[call]
}

// settleCall says in the ledger what became of an announced call.
func (t *turn) settleCall(call string, out toolOutput, err error) {
	key := t.announced(call)
	if key == (ledger.Key{}) {
		return
	}
	led, lerr := t.r.ledger()
	if lerr != nil {
		return
	}
	o := outcome{bytes: int64(len(out.Text)), output: cameBack(out.Text)}
	var after registry.Verdict
	if err != nil {
		e := callError(err)
		after, o.code, o.message = e.After, string(e.Code), e.Message
		if t.r.ctx.Err() != nil {
			after, o.code = registry.VerdictUnknown, codeCancelled // in the middle
		}
	}
	o.status = string(statusAfter(err == nil, after))
	t.settleOutcome(led, key, o)
}

// toolNames are the names of tools, for messages.
func toolNames(list []Tool) string {
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}
