package agent

import (
	"context"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// bashTool is the native form of tf-bash. A command that ran into bash_timeout
// is not tried again: what it did is unknown, and its output so far says more
// than a probe could.
func bashTool(_ context.Context, c toolCall, a bashArgs) (toolOutput, error) {
	t := c.Env
	if strings.TrimSpace(a.Command) == "" {
		return toolOutput{}, registry.Errorf(registry.Invalid, "command is empty")
	}
	if t.r.dryRun {
		return registry.Text("dry run: the command was not run"), nil
	}
	led, err := t.r.ledger()
	if err != nil {
		return toolOutput{}, registry.Errorf(registry.Unavailable, "the ledger could not record it, so it was not run: %v", err)
	}
	key := t.callKey(c.N)
	in := ledger.Intent{Key: key, Tool: "bash", Cmd: a.Command, NeedResult: true, Flow: ledger.FlowNative, Risk: "high", ContentHash: workspace.HashText(a.Command)}
	if err := led.Intent(t.r.effectCtx(), in); err != nil {
		return toolOutput{}, registry.Errorf(registry.Unavailable, "the ledger could not record it, so it was not run: %v", err)
	}
	res := t.r.shell(a.Command, func(out string) {
		t.r.emit.emit(Event{Type: ToolOutput, Text: out, Tool: &ToolEvent{CallID: c.ID, Name: "bash"}})
	})
	o := outcome{status: string(ledger.StatusApplied), stdout: res.output, exit: res.exit}
	if res.killed != "" {
		o.status, o.code, o.message = string(ledger.StatusUncertain), "killed", res.killed
	}
	t.settleOutcome(led, key, o)
	t.r.s.ran(a.Command, res)
	if res.killed != "" {
		return toolOutput{}, registry.Errorf(registry.Timeout, "%s\n%s", res.state(), res.output)
	}
	return registry.Output{
		Text:   res.state() + "\n" + res.output,
		Shrink: func(most int) string { return res.state() + "\n" + middle(res.output, most-len(res.state())-1) },
	}, nil
}

// middle leaves out the middle of s so that about most bytes stay: the end of an
// output tells what became of it, the beginning where it came from.
func middle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := max(most/3, 0), max(most-most/3, 0)
	a := strings.ToValidUTF8(s[:head], "")
	b := strings.ToValidUTF8(s[len(s)-tail:], "")
	return a + "\n… left out …\n" + b
}
