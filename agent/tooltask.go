package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// A sub-agent is a run inside a run. It has a session of its own (history,
// memory, what it knows of files), the tools but task, and a budget; only its
// report enters the caller's history. Everything that is the user's it shares
// with its caller: the mode, permissions, approvals, the clock, and the run in
// the ledger. Its commands stand there under keys of the caller's run and turn,
// with a channel that begins with the call: task2.3.text is the text of the
// third answer of the sub-agent that the second call began.

// taskEntry is the tool that begins a sub-agent.
func taskEntry() entry {
	return entry{
		registry.Define(registry.Tool[*turn]{
			Name: "task", Description: "Give a self-contained part of the work to a sub-agent; you get its report only.", Effects: true, Grace: taskGrace, Probe: probeTask,
			Alone: func(raw json.RawMessage) bool {
				var a taskArgs
				return json.Unmarshal(raw, &a) != nil || !a.ReadOnly
			},
		}, taskTool),
		toolFacts{from: config.ModeAsk, offer: func(r *run, _ *setup) bool { return r.parent == nil }},
	}
}

// taskGrace is how long a cancelled sub-agent may take to end.
const taskGrace = 1800 * time.Millisecond

type taskArgs struct {
	Task     string `json:"task" jsonschema:"complete: the sub-agent sees nothing of this conversation"`
	ReadOnly bool   `json:"read_only,omitempty" jsonschema:"it looks and reports, changes nothing; several run in parallel"`
}

// parent is what a sub-agent knows of the call that began it.
type parent struct {
	*turn
	call     int // number of the call, from 1
	callID   string
	readOnly bool
}

// reportRules stand behind the task of a sub-agent.
const reportRules = "\n\nYou are a sub-agent: another agent gave you this task and sees nothing but your last answer. End with a report of what you found or did, with files and lines, short and complete. Do not ask anything back."

func taskTool(_ context.Context, c toolCall, a taskArgs) (toolOutput, error) {
	caller := c.Env
	if strings.TrimSpace(a.Task) == "" {
		return toolOutput{}, registry.Errorf(registry.Invalid, "task is empty")
	}
	if caller.r.parent != nil {
		return toolOutput{}, registry.Errorf(registry.Permission, "a sub-agent cannot begin another one")
	}
	sub := caller.subAgent(parent{caller, c.N, c.ID, a.ReadOnly}, a.Task)
	defer sub.cancel(nil)
	clock := newWallClock(sub.cfg.TaskTimeout, func() { sub.cancel(errTaskTime) })
	clock.outer, sub.wall = caller.r.wall, clock
	res := sub.loop(RunRequest{Task: a.Task + reportRules})
	clock.stop()
	caller.tookOver(sub, res)
	if caller.r.ctx.Err() != nil {
		return toolOutput{}, caller.r.ctx.Err()
	}
	if errors.Is(context.Cause(sub.ctx), errTaskTime) {
		caller.keepTask(c.ID, taskEnd{res, sub.usage.OutputTokens > 0 || res.Applied+res.Failed > 0})
		return toolOutput{}, &registry.Late{Says: fmt.Sprintf("the sub-agent's time was over after %s (task_timeout)", sub.cfg.TaskTimeout)}
	}
	if res.State != StateDone {
		return toolOutput{}, registry.Errorf(registry.Execution, "the sub-agent ended early: %s", report(res))
	}
	return registry.Text(report(res)), nil
}

// report is what the caller hears of a sub-agent.
func report(res RunResult) string {
	head := fmt.Sprintf("%s after %d turns", res.State, res.Turns)
	if res.Reason != "" {
		head = oneLine(res.Reason, 300)
	}
	if len(res.Files) > 0 {
		head += "; changed " + strings.Join(res.Files, ", ")
	}
	text := strings.TrimSpace(res.Text)
	if text == "" {
		text = "(no report)"
	}
	return head + "\n" + text
}

// taskEnd is what is known of a sub-agent whose time was over.
type taskEnd struct {
	res   RunResult
	began bool // its model answered something, or a command was tried
}

// probeTask tells what became of a sub-agent whose time was over: it had given its
// report at that moment, its model never answered, or it is in the middle, with
// what it changed and said so far.
func probeTask(_ context.Context, c toolCall) (registry.Verdict, toolOutput) {
	c.Env.mu.Lock()
	end, ok := c.Env.tasks[c.ID]
	c.Env.mu.Unlock()
	switch {
	case !ok:
		return registry.VerdictUnknown, toolOutput{}
	case end.res.State == StateDone:
		return registry.Succeeded, registry.Text(report(end.res))
	case !end.began:
		return registry.NotExecuted, toolOutput{}
	}
	return registry.VerdictUnknown, registry.Text("What it did until then: " + report(end.res))
}

func (t *turn) keepTask(call string, e taskEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks == nil {
		t.tasks = map[string]taskEnd{}
	}
	t.tasks[call] = e
}

// subAgent makes the run of a sub-agent.
func (t *turn) subAgent(p parent, task string) *run {
	r := t.r
	s := newSession(r.s.id, &r.cfg)
	s.perms, s.procs, s.key = r.s.perms, r.s.procs, r.s.key
	cfg := r.cfg
	cfg.MaxTurns, cfg.Verify = cfg.TaskTurns, config.VerifyOff
	cfg.MaxTokens = least(cfg.TaskTokens, left(cfg.MaxTokens, r.usage.InputTokens+r.usage.OutputTokens))
	if cfg.MaxCost > 0 {
		cfg.MaxCost = max(cfg.MaxCost-r.usage.Cost, 1e-9)
	}
	sub := &run{
		e: r.e, cfg: cfg, rules: r.rules, model: r.model, s: s, id: r.id, task: task, dryRun: r.dryRun, started: r.e.now(), parent: &p,
		files: map[string]int{}, failures: map[string]int{}, suspension: suspending{over: make(chan struct{})},
		approvals: r.approvals, wall: r.wall, ledger: r.ledger, journal: r.journal,
	}
	var ctx context.Context
	ctx, sub.traced = r.e.tracer.Run(r.ctx, TracedRun{Run: r.id, Session: r.s.id, Model: sub.settings().Model, SubAgent: true})
	sub.ctx, sub.cancel = context.WithCancelCause(ctx)
	sub.emit = newEmitter(r.id, sub.pass, r.e.now)
	sub.previews = newPreviewer(r.id, nil, r.e.now)
	sub.emit.safe, sub.previews.safe = r.e.redact, r.e.redact
	return sub
}

// left is what remains of a bound; 0 stays "no bound".
func left(bound, used int) int {
	if bound == 0 {
		return 0
	}
	return max(bound-used, 1)
}

// least is the smaller of two bounds of which 0 means none.
func least(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// pass hands on what people should see of a sub-agent: its commands, tools,
// thoughts and questions, and its words as output of the call.
func (r *run) pass(ev Event) {
	p := r.parent
	out := Event{Type: ev.Type, Command: ev.Command, Tool: ev.Tool, Approval: ev.Approval, Changes: ev.Changes, Text: ev.Text, Thinking: ev.Thinking, Reason: ev.Reason}
	switch ev.Type {
	case CommandStarted, CommandCompleted, CommandSkipped:
		c := *ev.Command
		c.Channel = p.channel(int(r.turnNo.Load()), c.Channel)
		out.Command = &c
	case ToolStarted, ToolCompleted, ToolOutput:
		c := *ev.Tool
		c.CallID = p.callID + "/" + c.CallID
		out.Tool = &c
	case TextDelta:
		out.Type, out.Tool = ToolOutput, &ToolEvent{CallID: p.callID, Name: "task"}
	case Thought, ApprovalRequested, ChangesUpdated, TurnRestarted, Compaction:
	default:
		return
	}
	p.r.emit.emit(out)
}

// channel names a channel of the sub-agent in the caller's run.
func (p *parent) channel(turn int, channel string) string {
	return fmt.Sprintf("task%d.%d.%s", p.call, turn, channel)
}

// ledgerKey is the key of a command of this turn.
func (t *turn) ledgerKey(channel string, id int) ledger.Key {
	k := ledger.Key{Run: t.r.id, Turn: t.n, Channel: channel, ID: id}
	if p := t.r.parent; p != nil {
		k.Turn, k.Channel = p.n, p.channel(t.n, channel)
	}
	return k
}

// owns tells whether a key is one of this turn's.
func (t *turn) owns(k ledger.Key) bool {
	own := t.ledgerKey("", 0)
	return k.Run == own.Run && k.Turn == own.Turn && strings.HasPrefix(k.Channel, own.Channel)
}

// tookOver adds what a sub-agent did and used to its caller's account.
func (t *turn) tookOver(sub *run, res RunResult) {
	r := t.r
	r.mu.Lock()
	r.applied += res.Applied
	r.failed += res.Failed
	r.skipped += res.Skipped
	r.mu.Unlock()
	if sub.refusal != "" {
		r.refuse(sub.refusal, false)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subUsage = append(t.subUsage, sub.usage)
}

// settleUsage accounts the sub-agents that have ended. Loop's goroutine only.
func (t *turn) settleUsage() {
	t.mu.Lock()
	subs := t.subUsage
	t.subUsage = nil
	t.mu.Unlock()
	if len(subs) == 0 {
		return
	}
	for _, u := range subs {
		t.r.usage.add(u)
	}
	u := t.r.usage
	t.r.emit.emit(Event{Type: UsageReported, Usage: &u})
}

// add counts another run's usage too.
func (u *Usage) add(o Usage) {
	u.Requests += o.Requests
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CachedTokens += o.CachedTokens
	u.ReasoningTokens += o.ReasoningTokens
	u.RequestBytes += o.RequestBytes
	u.ReusedBytes += o.ReusedBytes
	u.Estimated = u.Estimated || o.Estimated
	u.Cost += o.Cost
}

// limit is the mode of a sub-agent: its caller's, or ask when it only looks.
func (p *parent) limit(mode config.Mode) config.Mode {
	if p.readOnly && slices.Index(config.Modes, mode) > slices.Index(config.Modes, config.ModeAsk) {
		return config.ModeAsk
	}
	return mode
}

// changedBySub lets the caller know what a sub-agent changed.
func (r *run) changedBySub(ch *workspace.Change) {
	if r.parent != nil {
		r.parent.r.changed(ch)
	}
}
