package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"thinkflow/agent/registry"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// finishCommands does what waited for the queue: reads in parallel, then the
// bash or delete whose window is over. After a failure they are skipped.
func (t *turn) finishCommands() {
	if t.hasFailed() {
		for _, c := range t.reads {
			t.skip(item{cmd: c})
		}
		if t.last != nil {
			t.skip(item{cmd: t.last})
		}
		return
	}
	t.readAll()
	if t.last == nil {
		return
	}
	if t.last.Name == parser.Bash {
		t.bash(t.last)
		return
	}
	t.execute(t.last, ledger.FlowBlocking)
	if !t.hasFailed() && t.why == stopNone && len(t.dropped) == 0 {
		// The message came to its end, nothing stood behind the delete but
		// text, and nothing went wrong: the text stands, and no turn is due.
		t.visible.WriteString(t.window.String())
		t.r.emit.text(TextDelta, t.window.String())
		t.window.Reset()
	}
}

// abandonCommands records what waited when the run was cancelled.
func (t *turn) abandonCommands() {
	for _, c := range t.reads {
		t.cancelled(item{cmd: c})
	}
	if t.last != nil {
		t.cancelled(item{cmd: t.last})
	}
}

// readAll runs the reads of the message in parallel and keeps their results in
// the order of the message. A read that is refused or finds nothing is a
// result, not a failure.
func (t *turn) readAll() {
	if len(t.reads) == 0 {
		return
	}
	results := make([]result, len(t.reads))
	outcomes := make([]outcome, len(t.reads))
	var wg sync.WaitGroup
	for i, c := range t.reads {
		wg.Go(func() { results[i], outcomes[i] = t.readOne(c, t.r.cfg.ResultBudget) })
	}
	wg.Wait()
	for i, c := range t.reads {
		if outcomes[i].code == codeWaiting {
			continue // asked again, or carried out, when the run is resumed
		}
		t.record(c, outcomes[i], ledger.FlowBlocking)
		t.completed(c, outcomes[i])
		t.keepResult(results[i])
	}
}

func (t *turn) readOne(c *parser.Command, budget int) (result, outcome) {
	o := t.outcomeOf(c)
	title := fmt.Sprintf("%d tf-read %s", c.ID, c.Path)
	req := workspace.ReadRequest{Path: c.Path, Line: c.Line, MaxBytes: budget}
	text, got, err := t.r.readFile(o.key, req)
	if err != nil {
		o.status, o.code, o.message = string(ledger.StatusFailed), refusalCode(err), err.Error()
		var denied deniedError
		if errors.As(err, &denied) && denied.waiting != "" {
			o.code = codeWaiting
			t.r.hold(denied.waiting, held{Turn: t.n, Flow: ledger.FlowBlocking, Command: c})
		}
		return result{o.key, title, registry.Text("error: " + err.Error() + "\n")}, o
	}
	o.status, o.bytes, o.output = string(ledger.StatusApplied), int64(len(text)), got
	return result{o.key, fmt.Sprintf("%d tf-read %s", c.ID, got), registry.Output{Text: text, Shrink: t.r.shorterRead(req)}}, o
}

// deniedError is a read that nobody allowed.
type deniedError struct{ message, waiting string }

func (e deniedError) Error() string { return e.message }

// mayRead finds what is to be read and asks for it if need be. Errors are those
// of the workspace, or a deniedError.
func (r *run) mayRead(at ledger.Key, path string) (workspace.Target, error) {
	t, err := r.e.ws.Resolve(path, workspace.AccessRead)
	if err != nil {
		return t, err
	}
	if p := r.permit(at, ActionRead, "read "+t.Display, t.Abs, nil, t); !p.allowed {
		return t, deniedError{p.message, p.waiting}
	}
	return t, nil
}

// readFile reads for the model, with permission.
func (r *run) readFile(at ledger.Key, req workspace.ReadRequest) (text, header string, err error) {
	if _, err := r.mayRead(at, req.Path); err != nil {
		return "", "", err
	}
	return r.readText(req)
}

// readText reads what has been permitted: remembered as known, and with its tags
// in the echo memory. A folder is listed.
func (r *run) readText(req workspace.ReadRequest) (text, header string, err error) {
	t, err := r.e.ws.Resolve(req.Path, workspace.AccessRead)
	if err != nil {
		return "", "", err
	}
	r.noteRules(t)
	if t.IsDir {
		return r.listFiles(workspace.ListRequest{Path: req.Path})
	}
	req.AllowSecret = t.Secret
	got, err := r.e.ws.Read(r.ctx, req)
	if err != nil {
		return "", "", err
	}
	r.s.know(got.Target.Abs, got.Hash)
	r.s.learn(got.Text, got.Target.Display)
	return got.Text, got.Header, nil
}

func refusalCode(err error) string {
	if ref, ok := workspace.AsRefusal(err); ok {
		return string(ref.Code)
	}
	return codePermission
}

// bash runs the command of a tf-bash. Its exit status is a result.
func (t *turn) bash(c *parser.Command) {
	o := t.outcomeOf(c)
	ask, err := shellAskOf(c)
	if err != nil {
		o.status, o.code, o.message = string(ledger.StatusFailed), string(parser.CodeMalformedAttribute), err.Error()
		t.record(c, o, ledger.FlowBlocking)
		t.completed(c, o)
		t.fail(o, signature(c))
		return
	}
	p := t.r.permitShell(o.key, ask)
	if !p.allowed {
		t.denied(c, o, ledger.FlowBlocking, p)
		return
	}
	if t.r.dryRun {
		o.status, o.message = string(ledger.StatusSkipped), "dry run: the command was not run"
		t.completed(c, o)
		t.addResult(o.key, fmt.Sprintf("%d tf-bash", c.ID), o.message+"\n")
		return
	}
	res, err := t.carryOut(c, ask, p.grants)
	if err != nil {
		o.status, o.code, o.message = string(ledger.StatusFailed), codeLedger, callError(err).Message
		t.completed(c, o)
		t.fail(o, signature(c))
		return
	}
	did := res.outcome()
	o.status, o.code, o.message, o.stdout, o.exit = did.status, did.code, did.message, did.stdout, did.exit
	t.completed(c, o)
	t.r.s.learn(res.output, "the output of a command")
	if t.r.ctx.Err() != nil {
		t.r.s.addOutcome(o)
	}
	t.addResult(o.key, fmt.Sprintf("%d tf-bash, %s", c.ID, res.state()), res.output)
}

// carryOut runs the command of a tf-bash as a call of the tool bash does: what
// follows a time-out is decided in one place.
func (t *turn) carryOut(c *parser.Command, ask shellAsk, g sandbox.Grants) (shellResult, error) {
	call := fmt.Sprintf("tf-bash %d", c.ID)
	in := bashIntent(t.key(c), nil, ask)
	in.Tool, in.Flow, in.ContentHash = string(c.Name), ledger.FlowBlocking, contentHash(c, nil)
	j := t.keepJob(call, &shellJob{
		t: t, ask: ask, grants: g, event: ToolEvent{CallID: fmt.Sprint(c.ID), Name: string(c.Name)},
		intent: in,
	})
	raw, err := json.Marshal(bashArgs{Command: c.Cmd, With: ask.wish(), Background: ask.background})
	if err == nil {
		_, err = t.set.tools.Call(t.r.ctx, toolCall{Env: t, ID: call, Name: "bash", Args: raw, Budget: t.r.cfg.ResultBudget}, nil)
	}
	return j.left(err)
}

// shellAskOf reads the attributes with and background of a tf-bash.
func shellAskOf(c *parser.Command) (shellAsk, error) {
	a := shellAsk{line: c.Cmd}
	for _, at := range c.Attrs {
		switch at.Name {
		case "with":
			g, err := parseWith(at.Value)
			if err != nil {
				return a, err
			}
			a.with = g
		case "background":
			a.background = at.Value == "true"
		}
	}
	return a, nil
}
