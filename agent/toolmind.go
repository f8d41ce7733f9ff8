package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/agent/thinking"
	"thinkflow/internal/config"
)

// mindTools are those that change nothing but what the session has in mind.
func mindTools() []entry {
	return []entry{
		{registry.Define(registry.Tool[*turn]{
			Name: "plan", Description: "Show the user your list of steps for a task with several; send the whole list each time its state changes.", Alone: inOrder,
		}, planTool), toolFacts{from: config.ModePlan, quiet: true}},
		{registry.Define(registry.Tool[*turn]{
			Name: "sequential_thinking", Description: "Think a hard problem through in numbered steps, which can be revised and branched. Not for simple tasks.", Alone: inOrder,
		}, thinkTool), toolFacts{from: config.ModeAsk, quiet: true}},
		taskEntry(),
	}
}

// inOrder: the steps of one answer come one after the other.
func inOrder(json.RawMessage) bool { return true }

// The states of a step of the plan.
const (
	PlanPending    = "pending"
	PlanInProgress = "in_progress"
	PlanDone       = "done"
)

// maxPlan bounds a plan, in steps.
const maxPlan = 50

type planArgs struct {
	Items []planItem `json:"items"`
}

type planItem struct {
	Title  string `json:"title"`
	Status string `json:"status" jsonschema:"pending, in_progress or done"`
}

// planTool replaces the session's plan.
func planTool(_ context.Context, c toolCall, a planArgs) (toolOutput, error) {
	if len(a.Items) > maxPlan {
		return toolOutput{}, registry.Errorf(registry.Invalid, "%d steps are too many to be of use; %d at most", len(a.Items), maxPlan)
	}
	items := make([]PlanItem, len(a.Items))
	done := 0
	for i, it := range a.Items {
		title := oneLine(it.Title, 200)
		switch {
		case title == "":
			return toolOutput{}, registry.Errorf(registry.Invalid, "step %d has no title", i+1)
		case !slices.Contains([]string{PlanPending, PlanInProgress, PlanDone}, it.Status):
			return toolOutput{}, registry.Errorf(registry.Invalid, "step %d: status %q is none of pending, in_progress, done", i+1, it.Status)
		case it.Status == PlanDone:
			done++
		}
		items[i] = PlanItem{Title: title, Status: it.Status}
	}
	t := c.Env
	t.r.s.setPlan(items)
	t.r.emit.emit(Event{Type: PlanUpdated, Plan: items})
	return registry.Text(fmt.Sprintf("shown: %d of %d done", done, len(items))), nil
}

// thinkTool takes one step of the session's thinking. The answer is the envelope
// of package thinking, also when the step could not be taken.
func thinkTool(_ context.Context, c toolCall, s thinking.Step) (toolOutput, error) {
	t := c.Env
	res := t.r.s.thoughts.Add(s)
	if res.Success {
		t.r.emit.emit(Event{Type: Thought, Text: s.Thought, Thinking: thoughtOf(s, res.Data)})
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return toolOutput{}, err
	}
	return registry.Text(string(raw)), nil
}

func thoughtOf(s thinking.Step, d *thinking.Data) *ThoughtEvent {
	ev := &ThoughtEvent{Number: d.ThoughtNumber, Total: d.TotalThoughts, More: d.NextThoughtNeeded, Branch: d.BranchID, From: s.BranchFromThought}
	if s.IsRevision || s.RevisesThought > 0 {
		ev.Revises, ev.Revision = s.RevisesThought, string(s.RevisionType)
		if ev.Revises == 0 {
			ev.Revises = s.ThoughtNumber
		}
		if ev.Revision == "" {
			ev.Revision = string(thinking.Replace)
		}
	}
	return ev
}

func (s *session) setPlan(items []PlanItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = items
}

// planText is the plan for the model; "" when there is none.
func planText(items []PlanItem) string {
	var b strings.Builder
	for _, it := range items {
		mark := map[string]string{PlanPending: "[ ]", PlanInProgress: "[>]", PlanDone: "[x]"}[it.Status]
		fmt.Fprintf(&b, "%s %s\n", mark, it.Title)
	}
	return b.String()
}
