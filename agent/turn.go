package agent

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// stop says why a message was read no further.
type stop int

const (
	stopNone    stop = iota // it came to its end
	stopFailure             // a command failed
	stopResult              // the model needs results now
	stopSettled             // the settle window of a bash or delete is over
	stopCancel              // the run was cancelled or hit a bound
)

// commandKey is unique within a turn.
type commandKey struct {
	channel parser.Channel
	id      int
}

// turn is one API call: the stream being read, the queue behind it, and what
// has come of its commands.
type turn struct {
	r      *run
	set    *setup
	n      int // from 1
	cancel context.CancelCauseFunc
	ctx    context.Context // ends the stream, not the commands
	q      *queue
	worker sync.WaitGroup

	// Owned by the reader's goroutine.
	phase      phase
	text       *parser.Parser
	reason     *parser.Parser
	visible    strings.Builder // enters the history
	stubbed    strings.Builder // the same with one line for each command, for history stub
	afterTag   bool            // a command has just ended in the text
	safeEnd    int64           // end of the last command in the text, for history keep
	thinking   strings.Builder
	window     strings.Builder // text behind an irreversible command
	raw        strings.Builder // text with its tags, for history keep and stub
	textBytes  int64           // fed to the text parser
	outBytes   int             // all that was received, for the estimate
	open       *parser.Opening
	seen       map[commandKey]bool
	reads      []*parser.Command
	wanted     []*parser.Command // need_result
	last       *parser.Command   // bash or delete, executed after the window
	lastAt     int64
	settle     *time.Timer
	dropped    []string          // what stood in the window
	unrun      []*parser.Command // the commands among them
	calls      callList
	growing    map[int]*growing // native commands, by call from 0
	nextCall   int              // the first native call that has not gone to the queue
	badForm    bool             // a tag could not be read
	finish     string
	usage      *TurnUsage
	firstToken time.Time           // when the first piece of the answer came
	staged     map[ledger.Key]bool // commands of a resumed run that waited
	accepted   bool                // something of the answer was taken
	err        error               // of the provider

	mu       sync.Mutex // guards all below
	why      stop
	failed   *failure
	applied  []int
	skipped  []int
	ran      []*executed // what can be rolled back, in order
	results  []result
	subUsage []Usage         // of sub-agents that have ended
	native   map[int]outcome // of commands that came as native calls, by number from 1
	badCalls []string        // native calls that failed
	lastBad  string
	arrived  map[*parser.Command]arrival
	tasks    map[string]taskEnd        // sub-agents whose time was over, by call
	intents  map[string]ledger.Key     // of calls whose tools have no better record, by call
	jobs     map[string]*shellJob      // shell commands, by call
	opened   map[string]sandbox.Grants // for native commands that were permitted, by hash
}

// failure is the first command that failed, and what makes another one the same.
type failure struct {
	o         outcome
	signature string
}

// result is something the model asked to see.
type result struct {
	key   ledger.Key // of the command that it is the result of
	title string
	out   toolOutput
}

func (r *run) newTurn(n int, set *setup) *turn {
	t := &turn{r: r, set: set, n: n, q: newQueue(), seen: map[commandKey]bool{}, arrived: map[*parser.Command]arrival{}}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	o := parser.Options{
		Channel:           parser.ChannelText,
		ReasoningCommands: r.cfg.ReasoningCommands,
		StartInThink:      set.startInThink,
		Legacy:            r.cfg.LegacyTags,
		NoCommands:        set.native,
	}
	t.text = parser.New(o, sink{t, parser.ChannelText})
	o.Channel, o.StartInThink = parser.ChannelReasoning, false
	t.reason = parser.New(o, sink{t, parser.ChannelReasoning})
	t.worker.Go(t.work)
	return t
}

// read takes the whole stream, or as much of it as is wanted, and returns once
// every queued command has been worked off.
func (t *turn) read(stream Stream) {
	defer stream.Close()
	for t.phase != halted {
		d, err := stream.Recv()
		if t.stopped() != stopNone {
			break
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.err = err
				break
			}
			t.end()
			break
		}
		t.take(d)
	}
	t.finishReading()
}

func (t *turn) take(d Delta) {
	if t.firstToken.IsZero() {
		t.firstToken = t.r.e.now()
	}
	if d.Finish != "" {
		t.finish = d.Finish
	}
	if d.Usage != nil {
		t.usage = d.Usage
	}
	if d.Reasoning != "" {
		t.accepted = true
		t.outBytes += len(d.Reasoning)
		t.reason.Write(d.Reasoning)
	}
	if d.Text != "" && t.phase != halted {
		t.accepted = true
		t.outBytes += len(d.Text)
		t.textBytes += int64(len(d.Text))
		if t.r.keepsTags() {
			t.raw.WriteString(d.Text)
		}
		t.text.Write(d.Text)
		if t.phase == settleLast && t.textBytes-t.lastAt >= settleBytes {
			t.halt(stopSettled)
		}
	}
	for _, c := range d.Calls {
		t.accepted = true
		t.outBytes += len(c.Args) + len(c.Name)
		if t.phase != halted {
			t.takeCall(c)
		}
	}
}

// end is the end of the message: what is open is an error now.
func (t *turn) end() {
	t.reason.Close(t.finish)
	if t.phase != halted {
		t.text.Close(t.finish)
	}
}

// finishReading ends the stream and waits for the queue.
func (t *turn) finishReading() {
	if t.settle != nil {
		t.settle.Stop()
	}
	t.text.Stop()
	t.reason.Stop()
	t.cancel(nil)
	if t.open != nil {
		t.showLine("")
		t.r.emit.emit(Event{Type: CommandSkipped, Reason: "the answer was stopped before this command was complete", Command: &CommandEvent{
			ID: t.open.ID, Channel: string(t.open.Channel), Name: string(t.open.Name), Path: t.open.Path, Dest: t.open.Dest,
		}})
		t.open = nil
	}
	t.q.close()
	t.worker.Wait()
	t.dropGrowing()
}

// halt takes nothing more from the message. Reader's goroutine only.
func (t *turn) halt(why stop) {
	t.phase = halted
	t.text.Stop()
	t.reason.Stop()
	t.stopStream(why)
}

// stopStream ends the stream; the first reason counts. Any goroutine.
func (t *turn) stopStream(why stop) {
	t.mu.Lock()
	if t.why == stopNone {
		t.why = why
	}
	t.mu.Unlock()
	t.cancel(nil)
}

func (t *turn) stopped() stop {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == stopNone && t.r.ctx.Err() != nil {
		return stopCancel
	}
	return t.why
}

// push queues it; a full queue holds the stream back.
func (t *turn) push(it item) {
	if err := t.q.push(t.r.ctx, it); err != nil {
		t.halt(stopCancel)
	}
}

func (t *turn) drop(what string) { t.dropped = append(t.dropped, what) }

// noteArrival takes the time at which a command was complete.
func (t *turn) noteArrival(c *parser.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.r.e.now()
	t.arrived[c] = arrival{now, t.r.persons.total(now)}
}

// arrival is when a command was complete, and how long the run had waited for
// persons by then.
type arrival struct {
	at     time.Time
	waited time.Duration
}

// took is when the command was complete and how long it took since, without the
// time in which a person was asked; ok is false when that is not known.
func (t *turn) took(c *parser.Command) (at time.Time, d time.Duration, ok bool) {
	t.mu.Lock()
	a, ok := t.arrived[c]
	t.mu.Unlock()
	if !ok {
		return at, 0, false
	}
	now := t.r.e.now()
	return a.at, max(now.Sub(a.at)-(t.r.persons.total(now)-a.waited), 0), true
}
