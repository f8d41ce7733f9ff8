package agent

import (
	"fmt"
	"slices"
	"strings"

	"thinkflow/workspace"
)

// memory is what a session keeps of itself besides the history, so that the
// history can be shortened without a model's help.
type memory struct {
	tasks    []string // of the user, verbatim, oldest first; steering too
	attached []string // names of files that were attached
	touched  []touch  // in the order of the last change
	problems []problem
	said     []string // beginnings of the assistant's texts
}

// touch is what became of a file through the session's commands.
type touch struct {
	path string
	what string // created, modified, deleted, …
	hash string // of its text after the last change; "" = it is gone
}

// problem is something that went wrong and has not gone right since.
type problem struct {
	about string // what makes it go away: a path, a shell command, a tool
	text  string
}

// maxProblems bounds the open problems; the oldest go.
const maxProblems = 20

func (s *session) rememberTask(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.tasks = append(s.memory.tasks, text)
}

// rememberSaid keeps the beginning of a text of the assistant.
func (s *session) rememberSaid(m Message) {
	if !spoken(m) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.said = append(s.memory.said, oneLine(m.Content, 600))
}

func (s *session) rememberAttached(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.memory.attached, name) {
		s.memory.attached = append(s.memory.attached, name)
	}
}

// rememberChange keeps what a change did to its files, and closes what was wrong
// with them.
func (s *session) rememberChange(ch *workspace.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := map[workspace.ChangeKind]string{
		workspace.ChangeCreate: "created", workspace.ChangeModify: "modified", workspace.ChangeDelete: "deleted",
		workspace.ChangeMove: "moved away", workspace.ChangeCopy: "copied", workspace.ChangeMkdir: "folder made", workspace.ChangeTouch: "created empty",
	}[ch.Kind]
	switch {
	case ch.Dest != nil && ch.Kind == workspace.ChangeMove:
		s.touchLocked(touch{path: ch.Target.Display, what: "moved to " + ch.Dest.Display})
		s.touchLocked(touch{path: ch.Dest.Display, what: "moved from " + ch.Target.Display, hash: ch.AfterHash})
	case ch.Dest != nil:
		s.touchLocked(touch{path: ch.Dest.Display, what: "copied from " + ch.Target.Display, hash: ch.AfterHash})
	default:
		if i := slices.IndexFunc(s.memory.touched, func(t touch) bool { return t.path == ch.Target.Display }); i >= 0 && what == "modified" && s.memory.touched[i].what == "created" {
			what = "created"
		}
		s.touchLocked(touch{path: ch.Target.Display, what: what, hash: ch.AfterHash})
	}
	for _, f := range changedFiles(ch) {
		s.solvedLocked(f)
	}
}

func (s *session) touchLocked(t touch) {
	s.memory.touched = slices.DeleteFunc(s.memory.touched, func(o touch) bool { return o.path == t.path })
	s.memory.touched = append(s.memory.touched, t)
}

// rememberUndone notes that a file is as it was before.
func (s *session) rememberUndone(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touchLocked(touch{path: path, what: "changed, and the change was taken back"})
}

// trouble keeps a problem until the same thing goes right.
func (s *session) trouble(about, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.solvedLocked(about)
	s.memory.problems = append(s.memory.problems, problem{about, oneLine(text, 300)})
	if n := len(s.memory.problems); n > maxProblems {
		s.memory.problems = slices.Delete(s.memory.problems, 0, n-maxProblems)
	}
}

func (s *session) solved(about string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.solvedLocked(about)
}

func (s *session) solvedLocked(about string) {
	s.memory.problems = slices.DeleteFunc(s.memory.problems, func(p problem) bool { return p.about == about })
}

// digest makes what stands in the place of a history that was left out. It says
// only what is known for certain: nothing of it comes from a model.
type digest struct {
	head, rest string
	said       []string
	// bounds of what is kept of each text of the assistant, and of all, in bytes.
	each, all int
}

// newDigest collects what does not depend on how much is left out. small
// bounds each part more narrowly.
func (r *run) newDigest(small bool) *digest {
	s := r.s
	s.mu.Lock()
	mem := s.memory
	mem.touched, mem.problems = slices.Clone(mem.touched), slices.Clone(mem.problems) // these change in place
	plan := planText(s.plan)
	rules := slices.Clone(s.rules)
	s.mu.Unlock()
	sum := &digest{said: mem.said, each: 600, all: 6 << 10}
	files := 200
	if small {
		sum.each, sum.all, files = 200, 1<<10, 40
	}
	var b strings.Builder
	b.WriteString(headSummary + "\nThe conversation was shortened to fit. This is what counts; what you read and wrote is left out. Read again what you need, then go on with the last task. What is named here as done is done.\n")
	for _, u := range rules {
		b.WriteString("\n" + strings.TrimRight(u.String(), "\n") + "\n")
	}
	b.WriteString("\nTasks of the user, oldest first:\n")
	for i, t := range mem.tasks {
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.TrimSpace(t))
	}
	if len(mem.attached) > 0 {
		b.WriteString("\nAttached to them, and left out here: " + strings.Join(mem.attached, ", ") + "\n")
	}
	sum.head = b.String()
	b.Reset()
	if plan != "" {
		b.WriteString("\nThe plan:\n" + plan)
	}
	if len(mem.problems) > 0 {
		b.WriteString("\nOpen problems:\n")
		for _, p := range mem.problems {
			b.WriteString("- " + p.text + "\n")
		}
	}
	if len(mem.touched) > 0 {
		b.WriteString("\nFiles that were changed, with the first digits of their SHA-256:\n")
		if more := len(mem.touched) - files; more > 0 {
			fmt.Fprintf(&b, "- %d more, changed before these\n", more)
			mem.touched = mem.touched[more:]
		}
		for _, t := range mem.touched {
			b.WriteString("- " + r.touchLine(t) + "\n")
		}
	}
	sum.rest = b.String()
	return sum
}

// of is the summary for a history of which this end stays.
func (s *digest) of(kept []Message) string {
	said := s.said
	for _, m := range kept {
		if spoken(m) {
			said = said[:max(len(said)-1, 0)] // it stands there word for word
		}
	}
	text := newest(said, s.each, s.all)
	if text != "" {
		text = "\nWhat you said and decided:\n" + text
	}
	return s.head + text + s.rest
}

// spoken tells whether the message is text of the assistant.
func spoken(m Message) bool {
	return m.Role == RoleAssistant && m.Content != "" && m.Content != onlyCommands && m.Content != onlyThinking
}

// touchLine is one file of the summary, compared with what stands there now.
func (r *run) touchLine(t touch) string {
	line := t.path + ": " + t.what
	if t.hash == "" || t.hash == "dir" {
		return line
	}
	line += ", " + t.hash[:min(12, len(t.hash))]
	target, err := r.e.ws.Resolve(t.path, workspace.AccessRead)
	if err != nil {
		return line
	}
	switch snap, err := r.e.ws.Snapshot(target); {
	case err != nil:
	case !snap.Exists:
		line += "; it is gone since"
	case snap.Hash != t.hash:
		line += "; changed since, now " + snap.Hash[:12]
	}
	return line
}

// newest are the beginnings of texts, the last ones as far as all of them fit
// into most bytes.
func newest(texts []string, each, most int) string {
	var lines []string
	for _, text := range slices.Backward(texts) {
		line := "- " + oneLine(text, each) + "\n"
		if most -= len(line); most < 0 {
			lines = append(lines, "- (earlier ones are left out)\n")
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "")
}

// ran keeps what became of a shell command: one that failed is an open problem
// until it succeeds.
func (s *session) ran(cmd string, res shellResult) {
	about := "$ " + cmd
	if res.killed == "" && res.exit != nil && *res.exit == 0 {
		s.solved(about)
		return
	}
	last := strings.TrimSpace(res.output)
	last = last[strings.LastIndexByte(last, '\n')+1:]
	s.trouble(about, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", oneLine(cmd, 100), res.state(), last), ": "))
}

// failedCommand keeps a failed command as an open problem.
func (s *session) failedCommand(o outcome) {
	about := o.path
	if about == "" {
		about = o.name
	}
	s.trouble(about, fmt.Sprintf("%s %s: %s: %s", o.tool(), o.path, strings.ReplaceAll(o.status, "_", " "), o.said(firstLine(o.message))))
}
