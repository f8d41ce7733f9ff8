package term

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"thinkflow/agent"
)

// Lines of a diff that are shown: less of a new file, whose text is all new.
const (
	linesOfNewFile = 8
	linesOfDiff    = 28
	linesOfOutput  = 12 // of a shell command: its beginning, and its end
	linesOfTail    = 5
	linesOfError   = 16
)

// look is how a status is shown.
type look struct {
	mark string
	st   style
	word string // said when the mark does not say enough
}

func (r *Renderer) look(status string) look {
	switch status {
	case "applied", "":
		return look{"✓", r.pal.good, ""}
	case "failed", "not_applied":
		return look{"✗", r.pal.bad, ""}
	case "skipped":
		return look{"–", r.pal.dim, "skipped"}
	case "rejected":
		return look{"✗", r.pal.bad, "refused"}
	case "cancelled":
		return look{"–", r.pal.warn, "cancelled"}
	case "uncertain":
		return look{"?", r.pal.warn, "uncertain"}
	case "rolled_back":
		return look{"↺", r.pal.warn, "rolled back"}
	case "undone":
		return look{"↺", r.pal.warn, "undone"}
	case "staged":
		return look{"○", r.pal.info, "staged"}
	}
	return look{"○", r.pal.info, VisibleName(strings.ReplaceAll(status, "_", " "))}
}

// command shows a completed or skipped command: one line, and below it what a
// person wants to see of it.
func (r *Renderer) command(e agent.Event) {
	c := e.Command
	if c.Status == "" && e.Type == agent.CommandSkipped {
		c.Status = "skipped"
	}
	l := r.look(c.Status)
	if c.ExitCode != nil && *c.ExitCode != 0 && l.mark == "✓" {
		l.mark, l.st = "!", r.pal.warn // it ran; what it says is not good
	}
	r.tally.add(c)

	failed := l.mark == "✗" || l.mark == "?"
	if r.ran { // the output was shown while it came
		c.Output, r.ran = "", false
	}
	diff := parseDiff(c.Diff)
	detail := len(diff) > 0 || len(c.Notes) > 0 || failed && c.Error != "" || c.Name == "tf-bash" && c.Output != ""
	r.enter(blockCommand)

	verb := strings.TrimPrefix(VisibleName(c.Name), "tf-")
	segs := []seg{{l.mark + " ", l.st}, {pad(verb, 6) + " ", nil}}
	segs = append(segs, r.target(c)...)
	var facts [][]seg
	fact := func(st style, s string) { facts = append(facts, []seg{{s, st}}) }
	if l.word != "" {
		fact(l.st, l.word)
	}
	switch {
	case failed:
		if c.Code != "" && l.word == "" {
			fact(r.pal.bad, VisibleName(strings.ReplaceAll(c.Code, "_", " ")))
		}
	case e.Type == agent.CommandSkipped:
		if e.Reason != "" {
			fact(r.pal.dim, VisibleName(e.Reason))
		}
	case l.word != "" && l.word != "staged":
	default:
		var n []seg
		if c.Created && verb != "mkdir" {
			n = append(n, seg{"new", r.pal.good})
		}
		if n = append(n, r.counts(c.Added, c.Removed)...); len(n) > 0 {
			facts = append(facts, n)
		}
		if c.ExitCode != nil {
			st := r.pal.dim
			if *c.ExitCode != 0 {
				st = r.pal.warn
			}
			fact(st, "exit "+itoa(*c.ExitCode))
		}
		if verb == "read" && c.Bytes > 0 {
			fact(r.pal.dim, size(c.Bytes))
		}
		if c.Via == "editor" {
			fact(r.pal.dim, "in the editor")
		}
		if c.Rung != "" && c.Rung != "exact" {
			fact(r.pal.dim, "matched by "+VisibleName(strings.ReplaceAll(c.Rung, "-", " ")))
		}
		if c.Channel == "reasoning" {
			fact(r.pal.dim, "while reasoning")
		}
	}
	if c.Micros > 0 && e.Type == agent.CommandCompleted {
		fact(r.pal.dim, took(time.Duration(c.Micros)*time.Microsecond))
	}
	r.line(r.join(segs, facts)...)

	for _, n := range c.Notes {
		r.para(4, r.pal.warn, "! "+n, 3)
	}
	if failed && c.Error != "" {
		r.para(4, nil, c.Error, linesOfError)
	}
	if c.Name == "tf-bash" && c.Output != "" {
		for line := range strings.SplitSeq(strings.TrimRight(c.Output, "\n"), "\n") {
			r.outputLine(line)
		}
		r.endOutput()
	}
	if !failed {
		r.diff(diff, c.Created)
	}
	if detail {
		r.block = blockDetail
	}
}

// target is what the command is about, cut so that the facts stay readable.
func (r *Renderer) target(c *agent.CommandEvent) []seg {
	name := VisibleName(c.Path)
	if c.Name == "tf-bash" {
		name = VisibleName(firstLine(c.Cmd))
	}
	room := 0
	if w := r.width(); w > 0 {
		room = max(12, w-9-26)
	}
	short := func(s string, w int) string {
		if room == 0 {
			return s
		}
		if c.Name == "tf-bash" {
			return cut(s, w)
		}
		return cutMiddle(s, w)
	}
	if c.Dest == "" {
		return []seg{{short(name, room), r.pal.path}}
	}
	return []seg{{short(name, room/2), r.pal.path}, {" → ", r.pal.dim}, {short(VisibleName(c.Dest), room/2), r.pal.path}}
}

// join sets the facts behind the line: two blanks, then dots between them.
func (r *Renderer) join(line []seg, facts [][]seg) []seg {
	for i, fact := range facts {
		if i == 0 {
			line = append(line, seg{"  ", nil})
		} else {
			line = append(line, seg{" · ", r.pal.dim})
		}
		for j, s := range fact {
			if j > 0 {
				line = append(line, seg{" ", nil})
			}
			line = append(line, s)
		}
	}
	return line
}

// counts are added and removed lines; the minus is a real one.
func (r *Renderer) counts(added, removed int) []seg {
	var out []seg
	if added > 0 {
		out = append(out, seg{"+" + itoa(added), r.pal.add})
	}
	if removed > 0 {
		out = append(out, seg{"−" + itoa(removed), r.pal.del})
	}
	return out
}

// tool shows a completed native tool call.
func (r *Renderer) tool(t *agent.ToolEvent) {
	l := r.look("applied")
	if t.Status == "error" || t.Error != "" || t.Code != "" {
		l = r.look("failed")
	}
	r.enter(blockCommand)
	segs := []seg{{l.mark + " ", l.st}, {pad(VisibleName(t.Name), 6) + " ", nil}, {mainArgument(t.Arguments), r.pal.path}}
	var facts [][]seg
	if t.Code != "" {
		facts = append(facts, []seg{{VisibleName(strings.ToLower(strings.ReplaceAll(t.Code, "_", " "))), r.pal.bad}})
	}
	if t.Summary != "" {
		facts = append(facts, []seg{{VisibleName(t.Summary), r.pal.dim}})
	} else if t.Bytes > 0 {
		facts = append(facts, []seg{{size(t.Bytes), r.pal.dim}})
	}
	r.line(r.join(segs, facts)...)
	if t.Error != "" {
		r.para(4, nil, t.Error, linesOfError)
		r.block = blockDetail
	}
}

// mainArgument is what a person wants to know of a call's arguments: the path,
// pattern or command, else all of them.
func mainArgument(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) == nil {
		for _, k := range []string{"command", "cmd", "pattern", "path", "query", "task", "url"} {
			if s, ok := m[k].(string); ok && s != "" {
				if p, ok := m["path"].(string); ok && k == "pattern" && p != "" {
					s += " in " + p
				}
				return cut(VisibleName(s), 60)
			}
		}
		if len(m) == 0 {
			return ""
		}
	}
	return cut(VisibleName(args), 60)
}

// outputBlock is the output of a running command, line by line.
type outputBlock struct {
	part  string
	lines int
	tail  []string // the last lines, once there are more than are shown at once
}

func (r *Renderer) toolOutput(e agent.Event) {
	if r.block != blockOutput {
		r.enter(blockOutput)
		r.output = outputBlock{}
	}
	r.ran = true
	text := r.output.part + e.Text
	for {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		r.outputLine(line)
		text = rest
	}
	if len(text) > 4096 { // no line break for long: do not hold on to it
		text = text[:4096]
	}
	r.output.part = text
}

func (r *Renderer) outputLine(line string) {
	line = strings.TrimSuffix(line, "\r")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a progress bar: what it shows at the end
		line = line[i+1:]
	}
	if r.output.lines++; r.output.lines <= linesOfOutput-linesOfTail {
		r.gutter(line)
		return
	}
	r.output.tail = append(r.output.tail, line)
	if len(r.output.tail) > linesOfTail {
		r.output.tail = r.output.tail[1:]
	}
}

func (r *Renderer) gutter(line string) {
	r.line(seg{"  │ ", r.pal.dim}, seg{expandTabs(Visible(line), 0), r.pal.dim})
}

func (r *Renderer) endOutput() {
	if r.output.part != "" {
		r.outputLine(r.output.part)
	}
	if n := r.output.lines - linesOfOutput; n > 0 {
		r.line(seg{"  │ … " + plural(n, "more line"), r.pal.dim})
	}
	for _, line := range r.output.tail {
		r.gutter(line)
	}
	r.output = outputBlock{}
}

func itoa(n int) string { return strconv.Itoa(n) }

func spaces(n int) string { return strings.Repeat(" ", n) }

func pad(s string, w int) string {
	if n := w - cells(s); n > 0 {
		return s + spaces(n)
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return humanize.Comma(int64(n)) + " " + what + "s"
}

// size words a number of bytes.
func size(n int) string { return humanize.IBytes(uint64(max(0, n))) }

// took words a duration with the digits that matter.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(max(d, 100*time.Microsecond).Microseconds())/1e3, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	d = d.Round(time.Second)
	return strconv.Itoa(int(d.Minutes())) + " min " + strconv.Itoa(int(d.Seconds())%60) + " s"
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(s, "\n")
	if strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return line
}
