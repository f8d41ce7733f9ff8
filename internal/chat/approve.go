package chat

import (
	"context"
	"slices"
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

// answerKey is a key that answers a question.
type answerKey struct {
	key   string
	means agent.Decision
	long  string // for a wide terminal
	short string // for a narrow one
	said  string // once it is given
}

// answerKeys are all of them, in the order in which they are shown.
func answerKeys() []answerKey {
	return []answerKey{
		{"y", agent.AllowOnce, "yes, once", "once", "yes, once"},
		{"s", agent.AllowSession, "for this session", "session", "yes, for this session"},
		{"w", agent.AllowOnceNet, "once, with the network", "+net", "yes, once, with the network"},
		{"g", agent.AllowOnceGit, "once, with .git", "+git", "yes, once, with .git"},
		{"b", agent.AllowOnceGitNet, "with both", "+both", "yes, once, with the network and .git"},
		{"n", agent.Deny, "no", "no", "no"},
	}
}

// answers are the keys that answer the question: opening the sandbox is one only
// where it means something.
func (q *question) answers() []answerKey {
	return slices.DeleteFunc(answerKeys(), func(a answerKey) bool {
		return a.opens() && !slices.Contains(q.ev.Choices, a.means)
	})
}

// opens tells that the answer opens the sandbox.
func (a answerKey) opens() bool {
	switch a.means {
	case agent.AllowOnce, agent.AllowSession, agent.Deny:
		return false
	}
	return true
}

func (m *model) answer(d agent.Decision) {
	mark, how := "✗", "no"
	for _, a := range answerKeys() {
		if a.means == d && d.Allows() {
			mark, how = "✓", a.said
		}
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
