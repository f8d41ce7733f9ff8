package experiment

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Style is how much the simulated model asks for in one answer.
type Style string

// The styles. Serial: one native call, or one thing to be seen, in an answer.
// Parallel: everything of a stage. Commands as tags stand together in both: they
// are text, and nothing ends the answer between them.
const (
	Serial   Style = "serial"
	Parallel Style = "parallel"
)

// piece is a part of an answer: text, or a native call.
type piece struct {
	text   string
	call   string // name of the tool
	custom bool   // the arguments are no JSON
	args   string
	id     string
}

// sent is an action that the last answer asked for.
type sent struct {
	id      string // of the call, or of the tag
	actions []*Action
}

// player is the simulated model in one run.
type player struct {
	task  *Task
	style Style
	dir   string

	mu      sync.Mutex // guards all below
	stages  []Stage
	done    map[*Action]bool
	tries   map[*Action]int
	afresh  map[string]bool // files to be looked at again after a failed validation
	looked  map[string]int  // reads for the sake of an edit, by path
	last    []sent
	tags    bool // the last answer had tags
	answers int
	lost    []string
}

func newPlayer(t *Task, style Style, dir string) *player {
	p := &player{task: t, style: style, dir: dir, done: map[*Action]bool{}, tries: map[*Action]int{}, looked: map[string]int{}, afresh: map[string]bool{}}
	p.stages = slices.Clone(t.Stages)
	for i, s := range p.stages {
		p.stages[i].Actions = slices.Clone(s.Actions)
	}
	return p
}

// again is the text that begins a prompt after a failed validation.
const again = "The work was checked and is not complete. Mend this, and nothing else:"

// answer is what the model says to a request.
func (p *player) answer(rq *request) []piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle(rq)
	p.answers++
	for _, s := range p.stages { // what can be seen need not be read
		for i := range s.Actions {
			if a := &s.Actions[i]; a.Kind == Read && visible(rq.text, p.task.Files[a.Path]) {
				p.done[a] = true
			}
		}
	}
	if rq.teaches {
		return p.asTags(rq)
	}
	return p.asCalls(rq)
}

// settle learns from the request what became of the last answer.
func (p *player) settle(rq *request) {
	defer func() { p.last = nil }()
	if p.tags {
		p.settleTags(rq)
		return
	}
	for _, s := range p.last {
		result, told := rq.results[s.id]
		for _, a := range s.actions {
			switch {
			case !told || strings.Contains(result, "not executed") || strings.Contains(result, ": skipped: "):
			case a.Fix != nil && !p.has(a), strings.Contains(result, ": not applied ["):
				p.failed(a)
			case a.Kind == Edit && saysNo.MatchString(result) && !p.has(a):
				p.afresh[a.Path] = strings.Contains(strings.ToLower(result), "read")
				p.failed(a)
			default:
				p.done[a] = true
			}
		}
	}
}

var failedCommand = regexp.MustCompile(`(?i)\bcommand (\d+) \(`)

func (p *player) settleTags(rq *request) {
	stop := -1
	if _, after, ok := strings.Cut(rq.last, "[THINKFLOW ERROR]"); ok {
		if m := failedCommand.FindStringSubmatch(after); m != nil {
			stop, _ = strconv.Atoi(m[1])
		}
	}
	for _, s := range p.last {
		id, _ := strconv.Atoi(s.id)
		for _, a := range s.actions {
			switch {
			case stop > 0 && id > stop:
			case id == stop:
				p.failed(a)
			default:
				p.done[a] = true
			}
		}
	}
}

// saysNo is how the result of a call begins that did nothing.
var saysNo = regexp.MustCompile(`(?i)^\W*(error|fail|you must|could not|cannot|no such|unable)`)

// has tells whether the text that the action brings stands in the file: some
// agents put an edit where it nearly matches, and say so.
func (p *player) has(a *Action) bool {
	return strings.Contains(Work{Dir: p.dir}.read(a.Path), a.New)
}

// failed replaces the action by what the model sends instead; after three tries
// it gives up.
func (p *player) failed(a *Action) {
	if p.tries[a]++; p.tries[a] >= 3 {
		p.done[a] = true
		p.lost = append(p.lost, a.Path+a.Cmd)
		return
	}
	if a.Fix != nil {
		*a = *a.Fix
	}
}

// redo does what the validator's message names again, as far as the folder shows
// that it is not done.
func (p *player) redo(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = nil
	clear(p.looked)
	rewrite := Stage{Say: "I write it anew."}
	for path := range p.task.Files {
		if want := p.task.wanted(path); strings.Contains(message, path) && want != p.task.Files[path] {
			rewrite.Actions = append(rewrite.Actions, Action{Kind: Write, Path: path, Body: want})
		}
	}
	defer func() { // when no edit is missing and it is wrong all the same
		for _, s := range p.stages {
			for i := range s.Actions {
				if !p.done[&s.Actions[i]] {
					return
				}
			}
		}
		p.stages = append(p.stages, rewrite)
	}()
	for _, s := range p.stages {
		for i := range s.Actions {
			a := &s.Actions[i]
			if a.Path == "" || a.Kind == Read || !strings.Contains(message, a.Path) {
				continue
			}
			p.afresh[a.Path] = true
			now := Work{Dir: p.dir}.read(a.Path)
			p.done[a] = a.Kind == Edit && !strings.Contains(now, a.Old) || a.Kind == Write && now == a.Body
		}
	}
}

// wanted is a file of the beginning with all edits.
func (t *Task) wanted(path string) string {
	text := t.Files[path]
	for _, s := range t.Stages {
		for _, a := range s.Actions {
			if a.Fix != nil {
				a = *a.Fix
			}
			if a.Kind == Edit && a.Path == path {
				text = strings.Replace(text, a.Old, a.New, 1)
			}
		}
	}
	return text
}

// next is what is left of each stage, with the reads before them that are needed
// to see what is to be edited.
func (p *player) next(rq *request) []left {
	var out []left
	for _, s := range p.stages {
		l := left{say: s.Say}
		for i := range s.Actions {
			if a := &s.Actions[i]; !p.done[a] {
				l.actions = append(l.actions, a)
			}
		}
		if len(l.actions) > 0 {
			out = append(out, l)
		}
	}
	if len(out) == 0 || out[0].actions[0].Kind == Read {
		return out
	}
	// The edits up to the next thing that must be seen.
	look := left{say: "I look at it again."}
	have := map[string]bool{}
	for _, l := range out {
		for _, a := range l.actions {
			old := a.Old
			if a.Fix != nil {
				old = a.Fix.Old
			}
			if a.Kind == Edit && !have[a.Path] && p.looked[a.Path] < 3 && (p.afresh[a.Path] || !visible(rq.text, old)) {
				have[a.Path] = true
				delete(p.afresh, a.Path)
				p.looked[a.Path]++
				look.actions = append(look.actions, &Action{Kind: Read, Path: a.Path})
			}
		}
		if k := l.actions[len(l.actions)-1].Kind; k == Bash || k == Read || !rq.teaches {
			break
		}
	}
	if len(look.actions) > 0 {
		return append([]left{look}, out...)
	}
	return out
}

type left struct {
	say     string
	actions []*Action
}

// visible tells whether each line of text that says something stands in what
// the model was given.
func visible(given, text string) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.Contains(given, line) {
			return false
		}
	}
	return true
}

// asTags writes everything down up to what must be seen.
func (p *player) asTags(rq *request) []piece {
	p.tags = true
	var b strings.Builder
	id := 0
	for _, l := range p.next(rq) {
		b.WriteString(l.say + "\n")
		for _, a := range l.actions {
			id++
			fmt.Fprint(&b, tag(id, a))
			p.last = append(p.last, sent{strconv.Itoa(id), []*Action{a}})
			if a.Kind == Bash || a.Kind == Read && p.style == Serial {
				return []piece{{text: b.String()}}
			}
		}
		if l.actions[0].Kind == Read {
			return []piece{{text: b.String()}}
		}
	}
	b.WriteString(p.task.Closing)
	return []piece{{text: b.String()}}
}

// tag is the action as our system prompt teaches it.
func tag(id int, a *Action) string {
	switch a.Kind {
	case Read:
		return fmt.Sprintf("<tf-read id=\"%d\" path=\"%s\"/>\n", id, a.Path)
	case Write:
		return fmt.Sprintf("<tf-write id=\"%d\" path=\"%s\">\n%s</tf-write>\n", id, a.Path, a.Body)
	case Edit:
		return fmt.Sprintf("<tf-edit id=\"%d\" path=\"%s\">\n<old>\n%s</old>\n<new>\n%s</new>\n</tf-edit>\n", id, a.Path, a.Old, a.New)
	}
	return fmt.Sprintf("<tf-bash id=\"%d\">%s</tf-bash>\n", id, a.Cmd)
}

// asCalls asks for the first stage with the tools that the request offers.
func (p *player) asCalls(rq *request) []piece {
	p.tags = false
	todo := p.next(rq)
	if len(todo) == 0 {
		return []piece{{text: p.task.Closing}}
	}
	out := []piece{{text: todo[0].say}}
	for i, a := range todo[0].actions {
		c, err := rq.callFor(a, p.dir)
		if err != nil {
			p.lost = append(p.lost, err.Error())
			p.done[a] = true
			continue
		}
		c.id = fmt.Sprintf("call_%d_%d", p.answers, i)
		out = append(out, c)
		p.last = append(p.last, sent{c.id, []*Action{a}})
		if p.style == Serial {
			break
		}
	}
	if len(out) == 1 {
		return []piece{{text: "I cannot do this with the tools that I have."}}
	}
	return out
}
