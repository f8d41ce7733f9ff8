package chat

import (
	"context"
	"time"

	"thinkflow/agent"
)

// question is an approval that waits for a key.
type question struct {
	ev    agent.ApprovalEvent
	reply chan<- agent.Decision // room for one
	shown time.Time
}

// asked and withdrawn are the messages of an approver.
type (
	asked     question
	withdrawn struct{ id string }
)

// approver asks the person in the chat.
type approver struct{ r *relay }

var _ agent.Approver = approver{}

// Ask waits for the person's key, or for the end of the run.
func (a approver) Ask(ctx context.Context, ev agent.ApprovalEvent) (agent.Decision, error) {
	reply := make(chan agent.Decision, 1)
	a.r.send(asked{ev: ev, reply: reply})
	select {
	case d := <-reply:
		return d, nil
	case <-ctx.Done():
		a.r.send(withdrawn{ev.ID})
		return agent.Deny, ctx.Err()
	}
}

// Keys that were on their way when a question appeared must not answer it: a
// question counts only after it has stood for a moment, and not while someone
// is writing.
const (
	standsFor = 300 * time.Millisecond
	quietFor  = 700 * time.Millisecond
)

func (m *model) armed() bool {
	if len(m.questions) == 0 {
		return false
	}
	now := m.now()
	return now.Sub(m.questions[0].shown) >= standsFor && now.Sub(m.typed) >= quietFor
}

// ask shows the next question, if there is one and none is open.
func (m *model) ask() {
	if len(m.questions) == 0 || !m.questions[0].shown.IsZero() {
		return
	}
	m.questions[0].shown = m.now()
	m.screen.Ask(m.questions[0].ev)
}

func (m *model) answer(d agent.Decision) {
	mark, how := "✗", "no"
	switch d {
	case agent.AllowOnce:
		mark, how = "✓", "yes, once"
	case agent.AllowSession:
		mark, how = "✓", "yes, for this session"
	}
	m.questions[0].reply <- d
	m.questions = m.questions[1:]
	m.screen.Answered(mark, how)
	m.ask()
}

// withdraw takes a question back that nobody waits for any longer.
func (m *model) withdraw(id string) {
	for i, q := range m.questions {
		if q.ev.ID == id {
			open := !q.shown.IsZero()
			m.questions = append(m.questions[:i:i], m.questions[i+1:]...)
			if open {
				m.screen.Answered("–", "not answered")
			}
			m.ask()
			return
		}
	}
}
