// Package agenttest has what tests of the agent and of what stands around it
// share: a person with prepared answers, and the sandbox of this machine.
package agenttest

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/need"
	"thinkflow/internal/sandbox"
)

// Person answers questions in order; when no answer is left, it is a no. It is
// an [agent.Approver].
type Person struct {
	mu      sync.Mutex // guards all below
	answers []agent.Decision
	asked   []agent.ApprovalEvent
}

// NewPerson makes one with these answers.
func NewPerson(answers []agent.Decision) *Person { return &Person{answers: slices.Clone(answers)} }

// Ask gives the next answer.
func (p *Person) Ask(_ context.Context, ev agent.ApprovalEvent) (agent.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, ev)
	if len(p.answers) == 0 {
		return agent.Deny, nil
	}
	d := p.answers[0]
	p.answers = p.answers[1:]
	return d, nil
}

// Asked is what the person was asked, in order.
func (p *Person) Asked() []agent.ApprovalEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Sandbox is what confines commands on this machine. Where nothing does, the test
// is skipped, or fails with CI=true.
func Sandbox(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("there is no sandbox on " + runtime.GOOS)
	}
	s := sandbox.Detect(t.Context(), sandbox.Options{})
	if !s.Report().Confines() {
		need.Right(t, "a sandbox ("+strings.Join(s.Report().Missing, "; ")+")")
	}
	return s
}
