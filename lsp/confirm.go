package lsp

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// How long an edit is waited for. The reply of a client proves nothing, so each
// is a wait for its didChange.
const (
	// noAnswer bounds the wait for the reply itself: an editor that shows a
	// dialog answers when the person does.
	noAnswer = 30 * time.Second
	// noChange is how long an edit that is said to be applied may stay unseen.
	noChange = 3 * time.Second
	// settle is how long a client may take to report what the person typed
	// before it refused our edit, or, after a reply, ours behind the person's:
	// eglot reports after 0.5 s, Neovim after up to 0.19 s.
	settle = time.Second
	// settled is the rest of that wait once a change came after the reply: what
	// was applied before the reply is reported in order.
	settled = 250 * time.Millisecond
	// afterwards is how long an uncertain edit is still watched.
	afterwards = time.Minute
)

// replyKind is what the client answered to workspace/applyEdit.
type replyKind uint8

const (
	noReply replyKind = iota
	saidApplied
	saidRefused // applied: false, no result, or an error
)

// confirmation finds out what became of one applyEdit, from the reply and the
// reported changes in whatever order they come. It is a state machine driven by
// changed, replied and expired; each call decides at once or sets the next
// deadline.
type confirmation struct {
	clock Clock
	old   string // the text that the edit was made for
	ours  []edit
	late  func(agent.EditOutcome) // called once if an uncertain verdict settles
	// unseen: the file is not open, so the client may never report a change.
	unseen bool

	mu        sync.Mutex // guards what follows
	d         delta
	cur       *snapshot
	moved     bool // the document is not what it was
	after     bool // it moved after the reply
	gone      bool // closed, or remade so that nothing can be compared
	reply     replyKind
	reason    string
	stopTimer func()
	wait      time.Duration // of the timer that runs
	timer     int           // number of the timer that counts

	verdict agent.EditOutcome
	decided bool
	done    chan struct{} // closed with the verdict
	release func()        // stops watching the document
}

func newConfirmation(clock Clock, snap *snapshot, ours []edit, late func(agent.EditOutcome)) *confirmation {
	return &confirmation{clock: clock, old: snap.s, ours: ours, cur: snap, late: late, done: make(chan struct{})}
}

// begin starts the time: the request is about to be sent.
func (c *confirmation) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.decided {
		c.arm(noAnswer)
	}
}

// onEnd names what is called, once, when nothing more is to be watched.
func (c *confirmation) onEnd(release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release = release
	if c.decided && c.stopTimer == nil {
		c.forget()
	}
}

// outcome is the verdict so far.
func (c *confirmation) outcome() agent.EditOutcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verdict
}

// changed takes one event of the document.
func (c *confirmation) changed(ev docEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ev.cause == saved:
		return
	case ev.now == nil || ev.now.lost != nil:
		c.gone = true
	case ev.remade:
		// A new didOpen of the document: all that can be said is the difference.
		c.cur = ev.now
		c.d = delta{}.add(edit{0, len(c.old), ev.now.s}.trim(c.old))
	default:
		for _, e := range ev.edits {
			c.d = c.d.add(e)
		}
		c.cur = ev.now
	}
	c.moved = true
	c.after = c.after || c.reply != noReply
	c.decide()
}

// replied takes the client's answer.
func (c *confirmation) replied(res *protocol.ApplyWorkspaceEditResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.reply, c.reason = saidRefused, err.Error()
	case res == nil:
		c.reply, c.reason = saidRefused, "the editor answered without a result"
	case res.Applied:
		c.reply = saidApplied
	default:
		c.reply = saidRefused
		if res.FailureReason != nil {
			c.reason = *res.FailureReason
		}
	}
	c.decide()
}

// decide ends the wait or sets the deadline for what may still come.
func (c *confirmation) decide() {
	if c.decided && c.verdict.Verdict != agent.EditUncertain {
		return
	}
	state := untouched
	if c.moved && !c.gone {
		state = landed(c.old, c.ours, c.d, c.cur.s)
	}
	switch {
	case state == complete:
		c.end(agent.EditApplied, "")
	case c.reply == noReply:
		// noAnswer is running.
	case c.gone && c.reply == saidRefused:
		c.end(agent.EditRefused, c.reason)
	case c.gone:
		c.end(agent.EditUncertain, "the document was closed, or its text was lost track of, before the edit was seen in it")
	case c.reply == saidRefused && c.moved && (state == untouched || state == other):
		c.end(agent.EditStale, c.reason)
	case c.unseen && c.reply == saidRefused && !c.moved:
		c.end(agent.EditRefused, c.reason)
	case c.unseen && c.reply == saidApplied && !c.moved:
		c.arm(settled)
	case !c.moved && (c.reply == saidApplied || strings.Contains(c.reason, "version")):
		// eglot names the version that it has and reports it when the person
		// pauses.
		c.arm(noChange)
	case c.reply == saidApplied && state == untouched && c.after:
		c.arm(settled)
	default:
		c.arm(settle)
	}
}

// expired decides with what is known when the time is over.
func (c *confirmation) expired(timer int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer != c.timer {
		return
	}
	if c.decided { // nothing more will be learned
		c.forget()
		return
	}
	state := untouched
	if c.moved && !c.gone {
		state = landed(c.old, c.ours, c.d, c.cur.s)
	}
	switch {
	case c.reply == noReply:
		c.end(agent.EditUncertain, fmt.Sprintf("the editor has not answered for %v; it may be waiting for the person", noAnswer))
	case c.reply == saidRefused && !c.moved:
		c.end(agent.EditRefused, c.reason)
	case state == partly:
		c.end(agent.EditUncertain, "only a part of the edit is in the document")
	case c.unseen && !c.moved:
		c.end(agent.EditApplied, "on the word of the editor, which does not show the file")
	case !c.moved:
		c.end(agent.EditUncertain, fmt.Sprintf("the editor says that the edit was applied, but has reported no change for %v", noChange))
	case state == untouched:
		c.end(agent.EditStale, "the editor skipped the edit, because the document had changed")
	default:
		c.end(agent.EditUncertain, "the editor says that the edit was applied, but other text stands in its place")
	}
}

// giveUp ends the wait early, for instance because the run was cancelled.
func (c *confirmation) giveUp(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.decided {
		c.end(agent.EditUncertain, reason)
	}
}

// end sets the verdict. An uncertain one stays under watch for a while: the
// later reply or change may settle it.
func (c *confirmation) end(v agent.EditVerdict, reason string) {
	out := agent.EditOutcome{Verdict: v, Reason: reason, Version: c.cur.version}
	if c.decided {
		if v == agent.EditUncertain {
			return
		}
		c.verdict = out
		c.forget()
		if c.late != nil {
			go c.late(out) // not under the locks that are held here
		}
		return
	}
	c.verdict, c.decided = out, true
	c.disarm()
	close(c.done)
	if v == agent.EditUncertain && !c.gone {
		c.arm(afterwards)
		return
	}
	c.forget()
}

// forget ends all watching.
func (c *confirmation) forget() {
	c.disarm()
	if c.release != nil {
		release := c.release
		c.release = nil
		go release() // takes the lock of documents, which may be held
	}
}

// arm sets the one deadline, if it is a shorter wait than the one that runs: a
// person who goes on typing must not put the verdict off. While an uncertain
// edit is watched, only that watch has a deadline.
func (c *confirmation) arm(d time.Duration) {
	if c.decided && d != afterwards || c.stopTimer != nil && d >= c.wait {
		return
	}
	c.disarm()
	c.wait = d
	n := c.timer
	c.stopTimer = c.clock.AfterFunc(d, func() { c.expired(n) })
}

func (c *confirmation) disarm() {
	if c.stopTimer != nil {
		c.stopTimer()
		c.stopTimer = nil
	}
	c.timer++
}
