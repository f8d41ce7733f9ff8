package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// toHistory closes the answer: the assistant's message without executed tags,
// and the native calls in the form that providers take back. Calls that were
// not complete when the answer was stopped leave the history.
func (t *turn) toHistory() []PreparedCall {
	var calls []PreparedCall
	whole := t.stopped() == stopNone && t.err == nil
	for i := range t.calls.calls {
		c, ok := t.calls.at(i)
		if !ok {
			continue // no name: not even an error could be told
		}
		p := PrepareCall(c, t.finish)
		p.N = i + 1
		if !whole && !json.Valid([]byte(c.Arguments)) {
			continue // blank or cut: more would have come
		}
		if p.History.ID == "" {
			p.History.ID = fmt.Sprintf("call_%d_%d", t.n, i)
		}
		calls = append(calls, p)
	}
	m := Message{Role: RoleAssistant, Content: t.historyText()}
	if t.set.sendReasoning {
		m.Reasoning = t.thinking.String()
	}
	for _, p := range calls {
		m.ToolCalls = append(m.ToolCalls, p.History)
	}
	if strings.TrimSpace(m.Content) == "" {
		if !t.accepted {
			return nil
		}
		m.Content = ""
		switch {
		case len(calls) > 0:
		case t.set.native:
			m.Content = onlyThinking
		default:
			m.Content = onlyCommands
		}
	}
	t.r.s.append(m)
	t.r.s.rememberSaid(m)
	return calls
}

// historyText is the text of the answer as the conversation keeps it.
func (t *turn) historyText() string {
	switch t.r.cfg.History {
	case config.HistoryKeep:
		raw := t.raw.String()
		if t.stopped() != stopNone || t.err != nil {
			raw = raw[:min(int(t.safeEnd), len(raw))]
		}
		return raw
	case config.HistoryStub:
		return strings.TrimSpace(t.stubbed.String())
	}
	return strings.TrimSpace(t.visible.String())
}

// stub leaves one line for a command in the history (history: stub).
func (t *turn) stub(c *parser.Command) {
	if c.Channel == parser.ChannelText {
		fmt.Fprintf(&t.stubbed, "[%s %d %s]", c.Name, c.ID, c.Path)
		t.safeEnd = c.End
	}
}

// tell puts what the model must hear into one message of the history and
// reports whether a turn must follow because of it: failures, results, and
// commands that were dropped. Success alone never costs a turn; its outcomes
// wait for the next request (due says that one comes anyway).
func (t *turn) tell(due bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	if t.failed != nil {
		t.r.s.failedCommand(t.failed.o)
	}
	var told []ledger.Key
	if t.failed != nil && t.failed.o.channel != ChannelNative { // a native call has its result
		t.r.s.toldElsewhere(t.failed.o.key)
		b.WriteString(errorMessage(t.failed, t.applied, t.skipped))
	}
	if len(t.results) > 0 {
		b.WriteString(headResult + "\n")
		for _, res := range t.results {
			b.WriteString(fenceData(res.title, res.out.Text))
			told = append(told, res.key)
		}
		if t.why == stopResult {
			b.WriteString("Your answer was stopped there; what you wrote after it was not looked at.\n")
		}
	}
	if len(t.dropped) > 0 {
		fmt.Fprintf(&b, "Not executed, because it came after a command whose result you had not seen: %s.\n", strings.Join(t.dropped, "; "))
	} else if t.failed == nil && strings.TrimSpace(t.window.String()) != "" {
		b.WriteString("Text that you wrote after that command was dropped: it was written before its result was known.\n")
	}
	switch {
	case t.err != nil:
		fmt.Fprintf(&b, "%s\nThe connection broke in the middle of your answer (%s). What was applied stays applied; %s.\n", headError, oneLine(t.err.Error(), 200), t.set.onward())
	case t.finish == "length" && t.failed == nil:
		b.WriteString(headError + "\nYour answer hit the output limit. Go on where it stopped; do not repeat what stands above.\n")
	}
	own := b.String()
	if own == "" && !due {
		return false
	}
	t.r.tellPendingWith(own, append(told, t.recordDropped()...)...)
	return own != ""
}

// tellPending puts outcomes and notes that the model has not heard of into the
// history.
func (r *run) tellPending() { r.tellPendingWith("") }

// tellPendingWith puts them in front of own; about are commands that own tells of.
func (r *run) tellPendingWith(own string, about ...ledger.Key) {
	r.e.tellEdits(r.s)
	outcomes, notes := r.s.takePending()
	var parts []string
	if m := ledgerMessage(outcomes); m != "" {
		parts = append(parts, m)
	}
	if len(notes) > 0 {
		parts = append(parts, headNote+"\n"+strings.Join(notes, "\n")+"\n")
	}
	if own != "" {
		parts = append(parts, own)
	}
	if len(parts) == 0 {
		return
	}
	text := strings.Join(parts, "\n")
	r.s.learn(text, "a message about your commands")
	r.s.append(Message{Role: RoleUser, Content: text})
	for _, o := range outcomes {
		about = append(about, o.key)
	}
	r.injected(about)
}

// failedSignatures are the calls of this turn that failed.
func (t *turn) failedSignatures() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sigs := t.badCalls
	if t.failed != nil {
		sigs = append(sigs, t.failed.signature)
	}
	return sigs
}

func (t *turn) failureText() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		return fmt.Sprintf("%s %s: %s", t.failed.o.name, t.failed.o.path, firstLine(t.failed.o.message))
	}
	return t.lastBad
}
