package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"thinkflow/agent/registry"
	"thinkflow/ledger"
)

// answer is one native call of an answer, and what became of it.
type answer struct {
	call PreparedCall
	out  toolOutput
}

// runCalls executes the native calls of the answer that have not been executed
// while it streamed: reads in parallel, everything else alone and in order.
func (t *turn) runCalls(calls []PreparedCall) []*answer {
	answers := make([]*answer, len(calls))
	for i, c := range calls {
		answers[i] = &answer{call: c}
	}
	for from := 0; from < len(answers); {
		to := t.group(answers, from)
		why := t.callsBarred()
		for _, a := range answers[from:to] {
			if out, ok := t.nativeResult(a.call); ok {
				a.out = out
			} else if why != "" {
				a.out = registry.Text(why)
				t.recordBarred(a.call, why)
			}
		}
		if why == "" {
			t.callGroup(answers[from:to])
			t.settleUsage()
		}
		from = to
	}
	return answers
}

// writeAnswers puts the results into the history, each once and in the order of
// the calls. It reports whether there were any: then a turn must follow.
func (t *turn) writeAnswers(answers []*answer) bool {
	var told []ledger.Key
	for _, a := range answers {
		text := a.out.Text
		if text == "" {
			text = "(no output)"
		}
		t.r.s.learn(text, "the result of "+a.call.Name)
		t.r.s.append(Message{Role: RoleTool, ToolCallID: a.call.History.ID, Content: text})
		told = append(told, t.lastKey(a.call))
	}
	t.r.injected(told)
	return len(answers) > 0
}

// shareBudget makes all that the model asked to see fit into one budget.
func (t *turn) shareBudget(answers []*answer) {
	var outs []*toolOutput
	for _, a := range answers {
		outs = append(outs, &a.out)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.results {
		outs = append(outs, &t.results[i].out)
	}
	share(t.r.resultBudget(t.set, t.r.cfg.ResultBudget, resultShare), outs)
}

// callsBarred says why no further call of this answer is executed.
func (t *turn) callsBarred() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.r.isSuspended():
		return "not executed: an earlier call waits for the user's approval; send it again if it is still wanted"
	case t.r.ctx.Err() != nil:
		return "not executed: cancelled by the user"
	case t.failed != nil && t.failed.o.channel == ChannelNative:
		return fmt.Sprintf("not executed: %s (%s of your answer) failed before it", t.failed.o.tool(), t.failed.o.nth())
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

// group is the end of the run of calls that go in parallel, from inclusive; one
// that must go alone is a group of its own, and so is one that has run.
func (t *turn) group(answers []*answer, from int) int {
	alone := func(a *answer) bool {
		return t.isCommand(a.call) || t.set.tools.Alone(a.call.Name, a.call.Arguments)
	}
	to := from + 1
	if alone(answers[from]) {
		return to
	}
	for to < len(answers) && !alone(answers[to]) {
		to++
	}
	return to
}

// callGroup runs calls in parallel and tells of them in their order.
func (t *turn) callGroup(group []*answer) {
	var todo []*answer
	for _, a := range group {
		switch {
		case a.out.Text != "": // it has run
		case t.isCommand(a.call):
			a.out = t.runCommand(a.call)
		default:
			todo = append(todo, a)
		}
	}
	box := t.set.tools
	for _, a := range todo {
		if !box.facts[a.call.Name].quiet {
			t.r.emit.emit(Event{Type: ToolStarted, Tool: &ToolEvent{CallID: a.call.History.ID, Name: a.call.Name, Arguments: string(a.call.Arguments)}})
		}
	}
	start := t.r.e.now()
	errs := make([]error, len(todo))
	var wg sync.WaitGroup
	for i, a := range todo {
		wg.Go(func() { a.out, errs[i] = box.call(t.r.ctx, t, a.call, t.r.cfg.ResultBudget) })
	}
	wg.Wait()
	for i, a := range todo {
		if errs[i] != nil && callError(errs[i]).Message == waitingMessage { // carried out, and recorded, later
			a.out = registry.Text(waitingMessage)
			continue
		}
		done := t.callDone(a.call, &a.out, errs[i])
		t.r.e.tracer.Tool(t.r.ctx, TracedTool{Name: a.call.Name, CallID: done.CallID, Start: start, End: t.r.e.now(), Status: done.Status, Code: done.Code})
	}
}

// callDone tells and records what became of a call. An error becomes its result.
func (t *turn) callDone(c PreparedCall, out *toolOutput, err error) ToolEvent {
	done := ToolEvent{CallID: c.History.ID, Name: c.Name, Status: "ok", Bytes: len(out.Text), Summary: oneLine(summarise(c), 80)}
	var after registry.Verdict
	if err != nil {
		e := callError(err)
		after = e.After
		done.Status, done.Code, done.Error = "error", string(e.Code), e.Message
		*out = registry.Text("error " + e.Error())
		t.callFailed(c, firstLine(e.Message))
	}
	if !t.set.tools.facts[c.Name].quiet || err != nil {
		t.r.emit.emit(Event{Type: ToolCompleted, Tool: &done})
	}
	t.recordCall(c, done, after, out.Text)
	return done
}

// callError is what the model and people are told of an error of a call.
func callError(err error) *registry.Error {
	if e, ok := err.(*registry.Error); ok { //nolint:errorlint // Call returns it bare
		return e
	}
	return registry.Errorf(registry.Execution, "not finished: %v", err) // the run ended
}

// callFailed notes a failed call, for the stop at identical failures.
func (t *turn) callFailed(c PreparedCall, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.badCalls = append(t.badCalls, c.Name+" "+c.History.Arguments)
	t.lastBad = c.Name + ": " + message
}

// statusAfter is how the ledger has a call: done, or what was found out about one
// that ran into a time-out, or failed.
func statusAfter(ok bool, after registry.Verdict) ledger.Status {
	switch {
	case ok:
		return ledger.StatusApplied
	case after == registry.NotExecuted:
		return ledger.StatusNotApplied
	case after == registry.VerdictUnknown:
		return ledger.StatusUncertain
	}
	return ledger.StatusFailed
}

// callKey is the key of native call n of the turn, from 1.
func (t *turn) callKey(n int) ledger.Key {
	return t.ledgerKey(string(ChannelNative), n)
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
