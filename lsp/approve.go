package lsp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// approveParams answer an approval.requested event.
type approveParams struct {
	Run      string         `json:"runId"`
	Approval string         `json:"approvalId"`
	Decision agent.Decision `json:"decision"`
}

// approve serves thinkflow/approve. The engine takes the question back from
// whoever else was asked.
func (s *Server) approve(ctx context.Context, p approveParams) (empty, error) {
	if !p.Decision.Known() {
		return empty{}, badParams("decision %q is none of %q", p.Decision, agent.Decisions)
	}
	b := s.standing()
	free := b == nil
	if free { // a run may wait that another process began
		release(ctx)
		var err error
		if b, err = s.engine(ctx); err != nil {
			return empty{}, fmt.Errorf("the engine could not be set up: %w", err)
		}
	}
	err := b.Engine.Approve(p.Run, p.Approval, p.Decision)
	if _, ok := b.Engine.(Resumer); ok && errors.Is(err, agent.ErrNoRun) { // it was suspended meanwhile
		if !free {
			release(ctx)
		}
		return empty{}, s.resumeInBackground(p)
	}
	if err != nil {
		return empty{}, badParams("%v", err)
	}
	return empty{}, nil
}

// choices are the buttons of the message request, and what each means. Every
// other answer, none included, is a no.
var choices = []struct {
	title    string
	decision agent.Decision
}{
	{"Allow once", agent.AllowOnce},
	{"Allow for this session", agent.AllowSession},
	{"Allow once with network", agent.AllowOnceNet},
	{"Allow once with .git", agent.AllowOnceGit},
	{"Allow once with network and .git", agent.AllowOnceGitNet},
	{"No", agent.Deny},
}

// maxAskDiff bounds the diff in a message request, in lines; a toast with more
// cannot be read.
const maxAskDiff = 12

// Ask implements agent.Approver with window/showMessageRequest. A plugin that
// asks itself (initializationOptions.approvals) has had the event and answers
// with thinkflow/approve; then Ask waits until the engine takes it back.
func (s *Server) Ask(ctx context.Context, a agent.ApprovalEvent) (agent.Decision, error) {
	ctx, cancel := joined(ctx, s.ctx)
	defer cancel()
	if s.clientFacts().approves {
		<-ctx.Done()
		return agent.Deny, ctx.Err()
	}
	p := &protocol.ShowMessageRequestParams{Type: protocol.MessageTypeWarning, Message: question(a)}
	for _, c := range choices {
		if !offers(a, c.decision) {
			continue
		}
		p.Actions = append(p.Actions, protocol.MessageActionItem{Title: c.title})
	}
	item, err := s.client.ShowMessageRequest(ctx, p)
	if err != nil {
		return agent.Deny, fmt.Errorf("the editor could not ask: %w", err)
	}
	if item != nil {
		for _, c := range choices {
			if c.title == item.Title && offers(a, c.decision) {
				return c.decision, nil
			}
		}
	}
	return agent.Deny, nil
}

// offers reports whether the answer means something for the question.
func offers(a agent.ApprovalEvent, d agent.Decision) bool {
	if len(a.Choices) == 0 {
		return d == agent.AllowOnce || d == agent.AllowSession || d == agent.Deny
	}
	return slices.Contains(a.Choices, d)
}

// question words an approval for a person: the real target first.
func question(a agent.ApprovalEvent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ThinkFlow wants to %s: %s", verb(a.Action), a.Target)
	if a.Rule != "" {
		fmt.Fprintf(&b, "\n(%s)", a.Rule)
	}
	if a.Diff != "" {
		lines := strings.Split(strings.TrimRight(a.Diff, "\n"), "\n")
		more := len(lines) - maxAskDiff
		if more > 0 {
			lines = lines[:maxAskDiff]
		}
		b.WriteString("\n" + strings.Join(lines, "\n"))
		if more > 0 {
			fmt.Fprintf(&b, "\n… %d more lines", more)
		}
	}
	return b.String()
}

func verb(action string) string {
	switch action {
	case "bash":
		return "run a command"
	case "delete":
		return "delete"
	case "read":
		return "read"
	case "write":
		return "change"
	case "trust":
		return "use text of the workspace"
	case "keep":
		return "keep what a command made"
	}
	return action
}

// joined is ctx that also ends with other.
func joined(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(errGone) })
	return ctx, func() { stop(); cancel(nil) }
}
