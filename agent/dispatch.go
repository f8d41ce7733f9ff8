package agent

import (
	"fmt"
	"strings"
	"time"

	"thinkflow/parser"
)

// Bounds of the settle window: after a command that cannot be undone the
// message is read on to its end, at most this far, so that an orphan closing
// tag is seen before anything irreversible (case TS-36).
const (
	settleBytes = 2048
	settleTime  = 2 * time.Second
)

// phase is where the reader stands in the message.
type phase int

const (
	// streaming: commands go to the queue as they come.
	streaming phase = iota
	// settleReads: a read (or need_result) has come; only blanks, further reads
	// and native calls may follow.
	settleReads
	// settleLast: a bash or delete has come; the rest of the message is looked
	// at, nothing of it is executed.
	settleLast
	// halted: nothing more is taken from this message.
	halted
)

// sink receives the parser's events of one channel, on the reader's goroutine.
type sink struct {
	t  *turn
	ch parser.Channel
}

var _ parser.Sink = sink{}

func (s sink) Text(text string) {
	t := s.t
	if s.ch == parser.ChannelReasoning {
		s.Reasoning(text)
		return
	}
	switch t.phase {
	case streaming:
		t.stubbed.WriteString(text)
		if text = t.joinLines(text); text == "" {
			return
		}
		t.visible.WriteString(text)
		t.r.emit.text(TextDelta, text)
	case settleReads:
		if strings.TrimSpace(text) != "" {
			t.halt(stopResult)
		}
	case settleLast:
		t.window.WriteString(text)
	}
}

// joinLines drops the line break behind a command that stood on a line of its
// own, so that commands leave no blank lines in the text.
func (t *turn) joinLines(text string) string {
	if !t.afterTag {
		return text
	}
	t.afterTag = false
	if v := t.visible.String(); v != "" && !strings.HasSuffix(v, "\n") {
		return text
	}
	if rest, ok := strings.CutPrefix(text, "\r\n"); ok {
		return rest
	}
	return strings.TrimPrefix(text, "\n")
}

func (s sink) Reasoning(text string) {
	if s.t.phase == halted {
		return
	}
	s.t.thinking.WriteString(text)
	s.t.r.emit.text(ReasoningDelta, text)
}

func (s sink) Opened(o parser.Opening) {
	t := s.t
	switch t.phase {
	case settleReads:
		if s.ch == parser.ChannelText && o.Channel == parser.ChannelText && o.Name != parser.Read {
			t.halt(stopResult)
			return
		}
	case settleLast, halted:
		return
	}
	t.open = &o
	if o.Name == parser.Bash {
		return // it is shown when its line is known
	}
	t.r.emit.emit(Event{Type: CommandStarted, Command: &CommandEvent{
		ID: o.ID, Channel: string(o.Channel), Name: string(o.Name), Path: o.Path, Dest: o.Dest,
	}})
}

// showLine tells of a shell command that was begun: with its line, or without one
// when it will never be complete.
func (t *turn) showLine(line string) {
	if o := t.open; o != nil && o.Name == parser.Bash {
		t.r.emit.emit(Event{Type: CommandStarted, Command: &CommandEvent{ID: o.ID, Channel: string(o.Channel), Name: string(o.Name), Cmd: line}})
	}
}

func (s sink) Progress(p parser.Progress) {
	if t := s.t; t.open != nil && (t.phase == streaming || t.phase == settleReads) {
		t.r.preview(t.n, t.open, p)
	}
}

func (s sink) Command(c *parser.Command) {
	t := s.t
	t.showLine(c.Cmd)
	t.open = nil
	t.afterTag = c.Channel == parser.ChannelText
	if t.phase == halted {
		return
	}
	if t.phase == settleLast {
		t.drop(fmt.Sprintf("%d %s %s", c.ID, c.Name, c.Path))
		t.unrun = append(t.unrun, c)
		return
	}
	if why := t.r.inadmissible(c); why != "" {
		t.refuseQuietly(c, why)
		return
	}
	key := commandKey{c.Channel, c.ID}
	if c.Repeated || t.seen[key] {
		if !c.Repeated {
			t.halt(stopFailure)
			t.push(item{err: &parser.Error{Code: parser.CodeDuplicateID, Name: string(c.Name), ID: c.ID, Channel: c.Channel, Path: c.Path,
				Message: fmt.Sprintf("id %d was used for another command of this answer; send this one with a new id", c.ID)}})
			return
		}
		t.r.emit.emit(Event{Type: CommandSkipped, Command: commandEvent(c), Reason: "already applied: same id and content"})
		return
	}
	t.seen[key] = true
	t.noteArrival(c)
	t.stub(c)
	switch {
	case c.Name == parser.Read:
		t.reads = append(t.reads, c)
		t.phase = settleReads
	case c.Name.Blocking():
		t.last, t.lastAt = c, c.End
		t.phase = settleLast
		t.settle = time.AfterFunc(settleTime, func() { t.stopStream(stopSettled) })
	default:
		t.push(item{cmd: c, bytes: len(c.Body) + pairBytes(c.Pairs)})
		if c.NeedResult && c.Channel == parser.ChannelText {
			t.wanted = append(t.wanted, c)
			t.phase = settleReads
		}
	}
}

func (s sink) Error(e *parser.Error) {
	t := s.t
	t.showLine("")
	t.open = nil
	switch t.phase {
	case halted:
		return
	case settleLast:
		if e.Code != parser.CodeOrphanClose {
			t.drop(fmt.Sprintf("%s (%s)", e.Name, e.Code))
			return
		}
		// The block before was cut, so the command came out of its body: it
		// goes behind the failure, where it is skipped.
		last := t.last
		t.last = nil
		t.halt(stopFailure)
		t.push(item{err: e})
		t.push(item{cmd: last})
		return
	}
	t.badForm = t.badForm || e.Code != parser.CodeUnclosed || t.finish != "length"
	if e.Code == parser.CodeUnclosed && t.finish == "length" {
		e.Message += "; the answer hit the output limit: send it again in smaller pieces (tf-write for the first, tf-append for the rest)"
	}
	t.halt(stopFailure)
	t.push(item{err: e})
}

func (s sink) Note(n parser.Note) {
	if s.t.phase == halted {
		return
	}
	s.t.r.s.addNote(n.Message)
}

// inadmissible says why a complete command does not run although nothing is
// wrong with its form: it is an echo, or lacks the session's key. Neither is a
// failure; the stream goes on.
func (r *run) inadmissible(c *parser.Command) string {
	if origin := r.s.isEcho(c.Open); origin != "" {
		return "the same tag stands in text that was read (" + origin + "); to run it, write it differently"
	}
	if r.s.key == "" {
		return ""
	}
	for _, a := range c.Attrs {
		if a.Name == "key" && a.Value == r.s.key {
			return ""
		}
	}
	return "the tag does not carry the key of this session"
}

func pairBytes(pairs []parser.Pair) int {
	n := 0
	for _, p := range pairs {
		n += len(p.Old) + len(p.New)
	}
	return n
}

func commandEvent(c *parser.Command) *CommandEvent {
	return &CommandEvent{ID: c.ID, Channel: string(c.Channel), Name: string(c.Name), Path: c.Path, Dest: c.Dest, Cmd: c.Cmd}
}
