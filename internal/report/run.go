package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// Run is all that a page shows of a run.
type Run struct {
	Info     ledger.Run
	Usage    agent.Usage
	Ended    time.Time // or the time of the last event
	Turns    []Turn
	Spans    []Span
	Commands []Command
	Groups   []Group // the commands by turn
	Failures []Command
	Text     string // the last turn's visible text
	Reason   string
}

// Turn is one API call.
type Turn struct {
	N          int
	Start, End time.Time
	First      time.Time // first piece of the answer; zero = none came
	In, Out    int       // tokens
	Cost       float64
	Commands   int
	Failed     int
	Tools      int
	Restarts   int
	Text       string
}

// Group is the commands of one turn, with what the model said in it. Turn 0 holds
// what people did: undos, acceptances.
type Group struct {
	Turn     int
	Text     string
	Commands []Command
}

// Lane is where a span is drawn.
type Lane int

// The lanes, from top to bottom.
const (
	LaneStream Lane = iota
	LaneCommands
	LaneTools
	LanePerson
	lanes
)

// Span is something that took time.
type Span struct {
	Lane       Lane
	Kind       string // CSS class: wait, text, applied, failed, skipped, tool, person
	Start, End time.Time
	Title      string
}

// Command is a command or tool call with what it did.
type Command struct {
	ledger.Command
	Diff   string
	Micros int64
	Asked  []Asked
	// Cut: its diff is left out, because the page would be too large.
	Cut bool
}

// Asked is one question about a command, and its answer.
type Asked struct{ Action, Decision, By string }

// Name is the command without its prefix.
func (c Command) Name() string { return strings.TrimPrefix(c.Tool, "tf-") }

// What is what the command was about.
func (c Command) What() string {
	s := c.Path
	if c.Dest != "" {
		s += " → " + c.Dest
	}
	if c.Cmd != "" {
		s = c.Cmd
	}
	if c.Abs == "" && c.Summary != "" && c.Flow == ledger.FlowNative && c.Cmd == "" || c.Tool == "grep" {
		s = c.Summary
	}
	var task struct{ Task string }
	if s == "" && json.Unmarshal(c.Args, &task) == nil {
		s = task.Task
	}
	if s == "" && len(c.Args) > 0 {
		s = string(c.Args)
	}
	return s
}

// Sub is the call of the sub-agent whose command it is; "" = none.
func (c Command) Sub() string {
	if first, _, ok := strings.Cut(c.Channel, "."); ok && strings.HasPrefix(first, "task") {
		return "sub-agent " + strings.TrimPrefix(first, "task")
	}
	return ""
}

// Exit is the exit status of a shell command that did not succeed; 0 = it did,
// or is none.
func (c Command) Exit() int {
	if c.ExitCode == nil {
		return 0
	}
	return *c.ExitCode
}

// Bad says that the command did not do what was asked, or came to a bad end.
func (c Command) Bad() bool {
	return c.Exit() != 0 || c.Status == ledger.StatusFailed || c.Status == ledger.StatusUncertain || c.Status == ledger.StatusRejected || c.Status == ledger.StatusRolledBack
}

// Load reads a run: id, unique prefix of one, or "last".
func Load(ctx context.Context, led *ledger.Ledger, ref string) (*Run, error) {
	info, err := led.FindRun(ctx, ref)
	if err != nil {
		return nil, err
	}
	r := &Run{Info: info, Ended: info.Started, Reason: info.Reason}
	if len(info.Usage) > 0 {
		if err := json.Unmarshal(info.Usage, &r.Usage); err != nil {
			return nil, fmt.Errorf("usage of run %s: %w", info.ID, err)
		}
	}
	diffs, b := map[ledger.Key]string{}, builder{r: r, open: map[string]time.Time{}, micros: map[ledger.Key]int64{}}
	for after := int64(0); ; {
		events, err := led.Events(ctx, ledger.EventFilter{Run: info.ID, Seq: true, After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.Seq
			var ev agent.Event
			if json.Unmarshal(e.Body, &ev) != nil {
				continue // pruned
			}
			b.add(&ev)
			if c := ev.Command; c != nil && c.Diff != "" {
				diffs[ledger.Key{Run: info.ID, Turn: ev.Turn, Channel: c.Channel, ID: c.ID}] = c.Diff
			}
		}
	}
	b.finish()
	commands, err := led.List(ctx, ledger.Filter{Run: info.ID})
	if err != nil {
		return nil, err
	}
	asked, err := questions(ctx, led, info.ID)
	if err != nil {
		return nil, err
	}
	for i := range commands {
		c := Command{Command: commands[i], Micros: b.micros[commands[i].Key]}
		if c.Diff, err = DiffOf(ctx, led, &commands[i], diffs); err != nil {
			return nil, err
		}
		c.Asked = asked[c.Key]
		r.Commands = append(r.Commands, c)
	}
	r.bound()
	return r, nil
}

// Bounds of one page.
const (
	maxDiffBytes = 3 << 19 // of all diffs and outputs together
	maxFailures  = 200     // repeated at the top
)

// bound leaves out the texts of the last commands of a run that has very many.
func (r *Run) bound() {
	left := maxDiffBytes
	for i := range r.Commands {
		c := &r.Commands[i]
		n := len(c.Diff) + len(c.Stdout) + len(c.Stderr)
		if n > left {
			c.Diff, c.Stdout, c.Stderr, c.Cut = "", "", "", true
			continue
		}
		left -= n
	}
}

// group picks the failures, and puts the commands under their turns, in the
// order in which the turns came.
func (r *Run) group() {
	r.Failures, r.Groups = nil, nil
	for _, c := range r.Commands {
		if c.Bad() && len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, c)
		}
	}
	at := map[int]int{}
	for _, t := range r.Turns {
		at[t.N] = len(r.Groups)
		r.Groups = append(r.Groups, Group{Turn: t.N, Text: strings.TrimSpace(t.Text)})
	}
	for _, c := range r.Commands {
		i, ok := at[c.Turn]
		if !ok {
			i = len(r.Groups)
			at[c.Turn] = i
			r.Groups = append(r.Groups, Group{Turn: c.Turn})
		}
		r.Groups[i].Commands = append(r.Groups[i].Commands, c)
	}
}

// questions are what people were asked about commands, and what they said; of a
// question that was asked again only the last answer counts.
func questions(ctx context.Context, led *ledger.Ledger, run string) (map[ledger.Key][]Asked, error) {
	rows, err := led.Events(ctx, ledger.EventFilter{Run: run, Type: ledger.EventApproval})
	if err != nil {
		return nil, err
	}
	out := map[ledger.Key][]Asked{}
	for _, e := range rows {
		var a struct {
			ledger.Key
			ledger.Approval
		}
		if json.Unmarshal(e.Body, &a) != nil {
			continue // pruned
		}
		list := out[a.Key]
		if n := len(list); n > 0 && list[n-1].Action == a.Action && list[n-1].Decision == "" {
			list = list[:n-1]
		}
		out[a.Key] = append(list, Asked{a.Action, a.Decision, a.By})
	}
	return out, nil
}

// builder follows the events.
type builder struct {
	r      *Run
	turn   *Turn
	last   time.Time // last piece of text of the turn
	usage  agent.Usage
	open   map[string]time.Time // commands and tool calls begun
	asked  []asked
	micros map[ledger.Key]int64
}

type asked struct {
	at    time.Time
	title string
}

func (b *builder) add(ev *agent.Event) {
	at := ev.Time
	b.r.Ended = at
	switch ev.Type {
	case agent.TurnStarted:
		b.endTurn(at)
		b.r.Turns = append(b.r.Turns, Turn{N: ev.Turn, Start: at, End: at})
		b.turn = &b.r.Turns[len(b.r.Turns)-1]
	case agent.TextDelta, agent.ReasoningDelta, agent.CommandStarted:
		if b.turn != nil {
			if b.turn.First.IsZero() {
				b.turn.First = at
			}
			b.last = at
			if ev.Type == agent.TextDelta {
				b.turn.Text += ev.Text
			}
		}
	case agent.TurnRestarted:
		if b.turn != nil {
			b.turn.Restarts++
		}
	case agent.UsageReported:
		if b.turn != nil && ev.Usage != nil {
			b.turn.In += ev.Usage.InputTokens - b.usage.InputTokens
			b.turn.Out += ev.Usage.OutputTokens - b.usage.OutputTokens
			b.turn.Cost += ev.Usage.Cost - b.usage.Cost
			b.usage, b.r.Usage = *ev.Usage, *ev.Usage
		}
	case agent.ApprovalRequested:
		b.asked = append(b.asked, asked{at, ev.Approval.Action + ": " + ev.Approval.Target})
	case agent.RunStarted: // it goes on: what it waited for was answered
		b.answered(at)
	case agent.RunSuspended:
		b.endTurn(at)
		b.turn = nil
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled:
		b.answered(at)
		if ev.Result != nil {
			b.r.Text = ev.Result.Text
		}
		b.endTurn(at)
		b.turn = nil
	}
	b.calls(ev, at)
}

// calls takes commands and tool calls.
func (b *builder) calls(ev *agent.Event, at time.Time) {
	switch c, t := ev.Command, ev.Tool; {
	case ev.Type == agent.CommandStarted:
		b.open[fmt.Sprint(c.Channel, c.ID)] = at
	case ev.Type == agent.CommandCompleted, ev.Type == agent.CommandSkipped:
		if c.Status != string(ledger.StatusStaged) { // that one goes on waiting
			b.answered(at)
		}
		key := fmt.Sprint(c.Channel, c.ID)
		// The span is that of the effect: the time before belongs to the stream.
		start := at.Add(-time.Duration(c.Micros) * time.Microsecond)
		delete(b.open, key)
		kind := "applied"
		switch ledger.Status(c.Status) {
		case ledger.StatusFailed, ledger.StatusUncertain, ledger.StatusRejected, ledger.StatusRolledBack:
			kind = "failed"
		case ledger.StatusSkipped, ledger.StatusCancelled, ledger.StatusStaged, "":
			kind = "skipped"
		}
		if c.ExitCode != nil && *c.ExitCode != 0 {
			kind = "failed"
		}
		lane := LaneCommands
		if c.Name == "tf-bash" || c.Name == "tf-read" {
			lane = LaneTools
		}
		title := fmt.Sprintf("%d %s %s%s", c.ID, strings.TrimPrefix(c.Name, "tf-"), c.Path, c.Cmd)
		if c.Status != "" {
			title += ": " + strings.ReplaceAll(c.Status, "_", " ")
		}
		b.r.Spans = append(b.r.Spans, Span{lane, kind, start, at, title})
		b.micros[ledger.Key{Run: b.r.Info.ID, Turn: ev.Turn, Channel: c.Channel, ID: c.ID}] = c.Micros
		if b.turn != nil {
			b.turn.Commands++
			if kind == "failed" {
				b.turn.Failed++
			}
		}
	case ev.Type == agent.ToolStarted:
		b.open["tool"+t.CallID] = at
	case ev.Type == agent.ToolCompleted:
		b.answered(at)
		start, ok := b.open["tool"+t.CallID]
		if !ok {
			start = at
		}
		kind := "tool"
		if t.Status != "ok" {
			kind = "failed"
		}
		b.r.Spans = append(b.r.Spans, Span{LaneTools, kind, start, at, t.Name + " " + t.Summary})
		if b.turn != nil {
			b.turn.Tools++
		}
	}
}

// answered ends what a person was asked: the run went on.
func (b *builder) answered(at time.Time) {
	for _, q := range b.asked {
		b.r.Spans = append(b.r.Spans, Span{LanePerson, "person", q.at, at, "asked to " + q.title})
	}
	b.asked = nil
}

func (b *builder) endTurn(at time.Time) {
	t := b.turn
	if t == nil {
		return
	}
	t.End = at
	first := t.First
	if first.IsZero() {
		first = at
	}
	b.r.Spans = append(b.r.Spans, Span{LaneStream, "wait", t.Start, first, fmt.Sprintf("turn %d: waiting for the first token", t.N)})
	if b.last.After(first) {
		b.r.Spans = append(b.r.Spans, Span{LaneStream, "text", first, b.last, fmt.Sprintf("turn %d: the model speaks", t.N)})
	} else if !t.First.IsZero() {
		b.r.Spans = append(b.r.Spans, Span{LaneStream, "text", first, first, fmt.Sprintf("turn %d: the model speaks", t.N)})
	}
	b.last = time.Time{}
}

func (b *builder) finish() {
	b.answered(b.r.Ended) // nobody has said anything so far
	b.endTurn(b.r.Ended)
	slices.SortStableFunc(b.r.Spans, func(a, c Span) int { return a.Start.Compare(c.Start) })
	if e := b.r.Info.Ended; e != nil && e.After(b.r.Ended) && b.r.Info.State != ledger.RunInterrupted {
		b.r.Ended = *e
	}
}
