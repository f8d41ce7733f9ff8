package agent

import (
	"context"
	"strings"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
)

type bashArgs struct {
	Command    string `json:"command"`
	With       string `json:"with,omitempty" jsonschema:"net, git or both: asks the user to open the network or .git for this command"`
	Background bool   `json:"background,omitempty" jsonschema:"go on while it runs; see process"`
}

func (a bashArgs) ask() (shellAsk, error) {
	with, err := parseWith(a.With)
	return shellAsk{line: a.Command, with: with, background: a.Background}, err
}

type processArgs struct {
	ID   string `json:"id"`
	Wait int    `json:"wait,omitempty" jsonschema:"seconds to wait for its end"`
	Stop bool   `json:"stop,omitempty"`
}

// bashTool is the native form of tf-bash, and what carries that out.
func bashTool(_ context.Context, c toolCall, a bashArgs) (toolOutput, error) {
	t := c.Env
	ask, err := a.ask()
	if err != nil {
		return toolOutput{}, registry.Errorf(registry.Invalid, "%v", err)
	}
	if strings.TrimSpace(a.Command) == "" {
		return toolOutput{}, registry.Errorf(registry.Invalid, "command is empty")
	}
	if t.r.dryRun {
		return registry.Text("dry run: the command was not run"), nil
	}
	j := t.shellJob(c.ID)
	if j == nil {
		j = t.keepJob(c.ID, &shellJob{
			t: t, ask: ask, grants: t.takeOpened(ask.hash()), event: ToolEvent{CallID: c.ID, Name: "bash"},
			intent: bashIntent(t.callKey(c.N), c.Args, ask),
		})
	}
	return j.run(c.Attempt)
}

// probeBash tells what became of a command whose time was over: its shell knows
// whether it had come to its end, was never begun, or was killed in the middle.
func probeBash(_ context.Context, c toolCall) (registry.Verdict, toolOutput) {
	j := c.Env.shellJob(c.ID)
	if j == nil {
		return registry.VerdictUnknown, toolOutput{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.res.fate == registry.Succeeded {
		return registry.Succeeded, shellOutput(j.res)
	}
	return j.res.fate, registry.Text(j.res.output)
}

// runShell runs a permitted command, or starts it when it goes to the background.
func (r *run) runShell(at ledger.Key, a shellAsk, g sandbox.Grants, live func(string)) shellResult {
	if !a.background {
		return r.shellWith(at, a.line, g, live)
	}
	p, err := r.startProcess(at, a.line, g)
	if err != nil {
		return shellResult{output: "could not be started: " + err.Error() + "\n"}
	}
	p.wait(r.ctx, startWait)
	return shellResult{background: p.id, output: p.report(), process: p}
}

// processTool tells the output of a background command, and ends it.
func processTool(ctx context.Context, c toolCall, a processArgs) (toolOutput, error) {
	p, err := c.Env.r.s.procs.find(strings.TrimSpace(a.ID))
	if err != nil {
		return toolOutput{}, registry.Errorf(registry.Invalid, "%v", err)
	}
	if a.Stop {
		p.stop()
	} else if a.Wait > 0 {
		p.wait(ctx, min(time.Duration(a.Wait)*time.Second, c.Env.r.cfg.BashTimeout))
	}
	text := p.report()
	return registry.Output{Text: text, Shrink: func(most int) string { return middle(text, most) }}, nil
}

// keepOpened keeps what a person opened for a command until it runs.
func (t *turn) keepOpened(hash string, g sandbox.Grants) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened == nil {
		t.opened = map[string]sandbox.Grants{}
	}
	t.opened[hash] = g
}

func (t *turn) takeOpened(hash string) sandbox.Grants {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.opened[hash]
	delete(t.opened, hash)
	return g
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
