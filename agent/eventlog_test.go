package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"thinkflow/agent"
)

// eventLog renders events in an order that does not depend on timing: in each
// turn first what the stream brought, then what became of its commands, by
// channel and id. The order of effects shows in the ledger section.
type eventLog struct {
	b      strings.Builder
	stream []string
	worker []workerLine
	text   string // text of one kind, joined: how it is coalesced depends on time
	kind   agent.EventType
}

type workerLine struct{ key, line string }

func (l *eventLog) String() string { return l.b.String() }

func (l *eventLog) add(r *rig, ev agent.Event) {
	switch ev.Type {
	case agent.Compaction:
		r.mu.Lock()
		r.compacted = true
		r.mu.Unlock()
	}
	switch ev.Type {
	case agent.UsageReported, agent.ToolOutput, agent.ChangesUpdated:
		return
	case agent.TextDelta, agent.ReasoningDelta:
		if ev.Type != l.kind {
			l.endText()
		}
		l.kind, l.text = ev.Type, l.text+ev.Text
		return
	case agent.CommandCompleted, agent.CommandSkipped, agent.ApprovalRequested:
		key := "~" // approvals last
		if c := ev.Command; c != nil {
			key = fmt.Sprintf("%s %06d", c.Channel, c.ID)
		}
		l.worker = append(l.worker, workerLine{key, r.line(ev)})
		return
	case agent.CommandStarted:
		l.endText()
		l.stream = append(l.stream, r.line(ev))
		return
	}
	l.flush()
	l.b.WriteString(r.line(ev) + "\n")
}

func (l *eventLog) endText() {
	if l.text != "" {
		l.stream = append(l.stream, string(l.kind)+" "+quoteJSON(l.text))
	}
	l.text = ""
}

func (l *eventLog) flush() {
	l.endText()
	slices.SortStableFunc(l.worker, func(a, b workerLine) int { return strings.Compare(a.key, b.key) })
	for _, s := range l.stream {
		l.b.WriteString(s + "\n")
	}
	for _, w := range l.worker {
		l.b.WriteString(w.line + "\n")
	}
	l.stream, l.worker = nil, nil
}

// line is one event in one line.
func (r *rig) line(ev agent.Event) string {
	line := string(ev.Type)
	switch {
	case ev.Type == agent.RunStarted:
		line += " " + ev.Task
	case ev.Type == agent.TurnStarted:
		line += fmt.Sprintf(" %d", ev.Turn)
	case ev.Command != nil:
		c := ev.Command
		line += fmt.Sprintf(" %s/%d %s %s", c.Channel, c.ID, c.Name, strings.TrimSpace(c.Path+" "+c.Dest+" "+c.Cmd))
		if c.Status != "" {
			line += " " + c.Status
		}
		for _, s := range []string{c.Code, c.Rung} {
			if s != "" {
				line += " [" + s + "]"
			}
		}
		if c.Added+c.Removed > 0 {
			line += fmt.Sprintf(" +%d -%d", c.Added, c.Removed)
		}
		for _, n := range c.Notes {
			line += "; " + n
		}
		if c.Error != "" {
			line += ": " + firstLineOf(c.Error)
		}
		if ev.Reason != "" {
			line += ": " + ev.Reason
		}
	case ev.Tool != nil:
		line += fmt.Sprintf(" %s %s %s", ev.Tool.Name, ev.Tool.Arguments, ev.Tool.Status)
		if ev.Tool.Code != "" {
			line += " " + ev.Tool.Code + ": " + ev.Tool.Error
		}
	case ev.Type == agent.Thought:
		th := ev.Thinking
		line += fmt.Sprintf(" %d/%d", th.Number, th.Total)
		if th.Revises > 0 {
			line += fmt.Sprintf(" (%s %d)", th.Revision, th.Revises)
		}
		if th.Branch != "" {
			line += fmt.Sprintf(" (branch %s from %d)", th.Branch, th.From)
		}
		line += " " + ev.Text
	case ev.Type == agent.PlanUpdated:
		for _, it := range ev.Plan {
			line += fmt.Sprintf(" [%s] %s;", it.Status, it.Title)
		}
	case ev.Approval != nil:
		line += fmt.Sprintf(" %s %s (%s)", ev.Approval.Action, ev.Approval.Target, ev.Approval.Rule)
	case ev.Reason != "":
		line += " " + ev.Reason
	}
	return strings.TrimRight(r.clean(line), " ")
}

func quoteJSON(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func firstLineOf(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
