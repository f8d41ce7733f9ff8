package experiment

import (
	"strings"
	"time"
)

// floorPrompt is the size of the system prompt and the tools for the floors, in
// bytes: what a lean agent of this kind needs.
const floorPrompt = 6 << 10

// Floor is the least that a task can cost an agent whose model writes tags: no
// call but those whose results must be seen, no byte in a request but a prompt of
// 6 KB, the task and what was seen.
type Floor struct {
	Calls  int           `json:"calls"`
	Input  int           `json:"input"`  // tokens
	Output int           `json:"output"` // tokens
	Wall   time.Duration `json:"wall"`
}

// FloorOf plays the task against an agent that adds nothing.
func FloorOf(t *Task, pace Pace) Floor {
	p := newPlayer(t, Parallel, "")
	seen := t.Prompt
	if t.Attached {
		for _, f := range t.Reads {
			seen += t.Files[f]
		}
	}
	var f Floor
	own, last := "", ""
	for f.Calls < 50 {
		f.Calls++
		f.Input += tokens(floorPrompt + len(seen))
		text := p.answer(&request{teaches: true, text: seen + own, last: last})[0].text
		last = ""
		more := false
		for _, s := range p.last {
			for _, a := range s.actions {
				if a.Fix != nil && last == "" { // the answer ends there
					open := "id=\"" + s.id + "\""
					at := strings.Index(text, open)
					end := strings.Index(text[at:], "</tf-edit>")
					text = text[:at+end+len("</tf-edit>")]
					last, more = "[THINKFLOW ERROR]\nCommand "+s.id+" (", true
				}
				switch a.Kind {
				case Read:
					more = true
					seen += p.shown(a.Path)
				case Bash:
					more = true
				}
			}
		}
		own += text
		f.Output += tokens(len(text))
		if !more {
			break
		}
	}
	f.Wall = pace.least(f.Calls, f.Output)
	return f
}

// shown is the text of a file as it would be read: as it was, or as it was
// written.
func (p *player) shown(path string) string {
	text := p.task.Files[path]
	for _, s := range p.stages {
		for i := range s.Actions {
			if a := &s.Actions[i]; a.Kind == Write && a.Path == path && p.done[a] {
				text = a.Body
			}
		}
	}
	return text
}

// least is the time that these calls and tokens take at this pace, in the
// model's own time.
func (p Pace) least(calls, output int) time.Duration {
	return time.Duration(calls)*p.First + time.Duration(float64(output)/p.Rate*float64(time.Second))
}
