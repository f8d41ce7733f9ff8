package term

import (
	"strings"
	"time"

	"thinkflow/agent"
)

// holdFor is how long text waits for the outcome of the command before it, on a
// live terminal. Elsewhere nobody watches, and it waits as long as it takes.
const holdFor = 500 * time.Millisecond

// order puts outcomes where a reader expects them. A command's outcome comes a
// few milliseconds after its closing tag, when the next word of the text is
// already there; shown as it comes, the command would stand in the middle of
// that word. So text waits for the outcomes of the commands before it, for a
// moment at most.
type order struct {
	open  map[commandKey]bool // started, without an outcome
	late  []agent.Event       // text, and what came after it
	since time.Time           // when the first of late came
}

type commandKey struct {
	channel string
	id      int
}

func keyOf(e agent.Event) commandKey {
	if e.Command == nil {
		return commandKey{}
	}
	return commandKey{e.Command.Channel, e.Command.ID}
}

// arrive shows an event now or once its turn has come.
func (r *Renderer) arrive(e agent.Event) {
	q := &r.order
	text := e.Type == agent.TextDelta || e.Type == agent.ReasoningDelta
	outcome := e.Type == agent.CommandCompleted || e.Type == agent.CommandSkipped
	switch {
	case text && len(q.open) > 0, len(q.late) > 0 && !outcome:
		if len(q.late) == 0 {
			q.since = r.o.Now()
		}
		q.late = append(q.late, e)
		if !text && e.Type != agent.CommandStarted || (r.o.Live || r.o.Inline) && r.o.Now().Sub(q.since) > holdFor {
			r.catchUp()
		}
		return
	case len(q.late) > 0 && !q.open[keyOf(e)]:
		q.late = append(q.late, e)
		return
	}
	r.show(e)
	if outcome && len(q.open) == 0 && len(q.late) > 0 {
		r.release(failed(e))
	}
}

// show notes which commands are open, and shows the event.
func (r *Renderer) show(e agent.Event) {
	q := &r.order
	switch e.Type {
	case agent.CommandStarted:
		if q.open == nil {
			q.open = map[commandKey]bool{}
		}
		q.open[keyOf(e)] = true
	case agent.CommandCompleted, agent.CommandSkipped:
		delete(q.open, keyOf(e))
	case agent.TurnStarted, agent.TurnRestarted, agent.RunStarted:
		clear(q.open)
	}
	r.event(e)
}

// release goes on with what was held. After a failure the model's answer is cut
// off: the beginning of a word that had come by then is not worth a line.
func (r *Renderer) release(cut bool) {
	late := r.order.late
	r.order.late = nil
	for _, e := range late {
		if cut && e.Type == agent.TextDelta && !strings.Contains(strings.TrimSpace(e.Text), "\n") {
			continue
		}
		r.arrive(e)
	}
}

// catchUp shows all that was held, in the order in which it came.
func (r *Renderer) catchUp() {
	late := r.order.late
	r.order.late = nil
	for _, e := range late {
		r.show(e)
	}
	clear(r.order.open)
}

func failed(e agent.Event) bool {
	return e.Command != nil && (e.Command.Status == "failed" || e.Command.Status == "rejected")
}
