package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"thinkflow/agent"
)

// status is what the status line tells.
type status struct {
	active  bool
	busy    string // what is waited for outside a run, visible
	start   time.Time
	turn    int
	doing   string // "writing", "running"; "" = the model
	what    string // path or command, visible
	bytes   int    // of the body so far
	answers bool   // the model's answer has begun
	thinks  bool
	usage   agent.Usage
	frame   int
}

// frames are those of the spinner.
const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// see takes in one event.
func (s *status) see(e agent.Event, now time.Time) {
	switch e.Type {
	case agent.RunStarted:
		*s = status{active: true, start: now, turn: 1, frame: s.frame}
	case agent.TurnStarted:
		s.turn, s.answers, s.thinks = e.Turn, false, false
		s.idle()
	case agent.TextDelta:
		s.answers, s.thinks = true, false
		s.idle()
	case agent.ReasoningDelta:
		s.answers, s.thinks = true, true
		s.idle()
	case agent.CommandStarted:
		if c := e.Command; c != nil {
			s.answers, s.bytes = true, c.Bytes
			s.doing, s.what = gerund(c.Name), VisibleName(c.Path)
			if s.what == "" {
				s.what = VisibleName(firstLine(c.Cmd))
			}
		}
	case agent.CommandCompleted, agent.CommandSkipped, agent.ToolCompleted:
		s.idle()
	case agent.ToolStarted:
		if e.Tool != nil {
			s.doing, s.what, s.bytes = "running", VisibleName(e.Tool.Name), 0
		}
	case agent.UsageReported:
		if e.Usage != nil {
			s.usage = *e.Usage
		}
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled, agent.RunSuspended:
		s.active = false
	}
}

func (s *status) idle() { s.doing, s.what, s.bytes = "", "", 0 }

func (s *status) growing(path string, bytes int) {
	if s.doing != "" && s.what == VisibleName(path) {
		s.bytes = bytes
	}
}

func gerund(name string) string {
	switch v := strings.TrimPrefix(name, "tf-"); v {
	case "write", "delete", "move":
		return v[:len(v)-1] + "ing"
	case "append":
		return "appending to"
	case "mkdir", "touch":
		return "making"
	case "copy":
		return "copying"
	case "edit":
		return "editing"
	case "read":
		return "reading"
	case "bash":
		return "running"
	}
	return "doing"
}

// statusLine words the status, with less of it on narrow terminals.
func (r *Renderer) statusLine() string {
	s := &r.state
	if !s.active {
		return ""
	}
	spin := []rune(frames)[s.frame%10]
	act := "waiting for the model"
	switch {
	case s.busy != "":
		act = s.busy
	case s.doing != "":
		act = s.doing + " " + s.what
		if s.bytes > 0 {
			act += " " + size(s.bytes)
		}
	case s.thinks:
		act = "the model reasons"
	case s.answers:
		act = "the model answers"
	}
	elapsed := r.o.Now().Sub(s.start).Round(time.Second)
	var parts []string
	if s.turn > 0 {
		parts = append(parts, "turn "+itoa(s.turn))
	}
	if n := s.usage.InputTokens + s.usage.OutputTokens; n > 0 {
		parts = append(parts, tokens(n)+" tokens")
	}
	if s.usage.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %.4f", s.usage.Cost))
	}
	stops := "ctrl-c stops"
	if r.o.Inline {
		stops = "esc stops"
	}
	parts = append(parts, fmt.Sprintf("%d:%02d", int(elapsed.Minutes()), int(elapsed.Seconds())%60), stops)

	w := r.width()
	line := []seg{{string(spin) + " ", r.pal.info}, {act, nil}}
	used := 2 + cells(act)
	for _, p := range parts {
		if used+3+cells(p) > w {
			break
		}
		line = append(line, seg{" · " + p, r.pal.dim})
		used += 3 + cells(p)
	}
	var b strings.Builder
	for _, p := range cutSegs(line, w) {
		b.WriteString(paint(p.st, p.text))
	}
	return b.String()
}

// tokens words a number of tokens.
func tokens(n int) string {
	switch {
	case n < 10_000:
		return humanize.Comma(int64(n))
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.2fM", float64(n)/1e6)
}
