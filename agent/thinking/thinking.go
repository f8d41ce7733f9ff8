// Package thinking is the sequential_thinking tool: a model's numbered steps of
// thought, with revisions and branches. It knows nothing of models, tools or
// events; the agent shows what it returns.
package thinking

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxThought bounds one thought, in characters.
const MaxThought = 2000

// Revision says what a revising step does with the step that it revises.
type Revision string

// The revisions. Replace is meant when none is named.
const (
	Replace Revision = "replace"
	Amend   Revision = "amend"
	Cancel  Revision = "cancel"
)

// Step is one call: the arguments of the tool.
type Step struct {
	Thought           string   `json:"thought" jsonschema:"this step, at most 2000 characters"`
	NextThoughtNeeded bool     `json:"next_thought_needed"`
	ThoughtNumber     int      `json:"thought_number" jsonschema:"from 1"`
	TotalThoughts     int      `json:"total_thoughts" jsonschema:"estimate, may be raised"`
	IsRevision        bool     `json:"is_revision,omitempty"`
	RevisesThought    int      `json:"revises_thought,omitempty"`
	RevisionType      Revision `json:"revision_type,omitempty" jsonschema:"replace, amend or cancel"`
	BranchFromThought int      `json:"branch_from_thought,omitempty"`
	BranchID          string   `json:"branch_id,omitempty"`
	NeedsMoreThoughts bool     `json:"needs_more_thoughts,omitempty"`
}

// Result is the envelope of an answer: exactly one of Data and Error is set, the
// other is null.
type Result struct {
	Success bool    `json:"success"`
	Output  string  `json:"output"`
	Data    *Data   `json:"data"`
	Error   *string `json:"error"`
}

// Data is where the thinking stands after a step.
type Data struct {
	Thought           string `json:"thought"`
	DisplayType       string `json:"display_type"` // always "thinking"
	ThoughtNumber     int    `json:"thought_number"`
	TotalThoughts     int    `json:"total_thoughts"`
	NextThoughtNeeded bool   `json:"next_thought_needed"`
	NeedsMoreThoughts bool   `json:"needs_more_thoughts,omitempty"`
	// BranchID is the branch that the step went to, "" = the main line.
	BranchID string `json:"branch_id,omitempty"`
	// IncompleteSteps are the numbers between 1 and TotalThoughts of the main
	// line that no step has, or only a cancelled one. A revision has its number.
	IncompleteSteps []int `json:"incomplete_steps"`
	// Branches holds the steps of every branch, in the order in which the
	// branches were begun.
	Branches []Branch `json:"branches"`
	// HistoryLength counts all steps, those of branches and revisions too.
	HistoryLength int      `json:"thought_history_length"`
	Warnings      []string `json:"warnings,omitempty"`
}

// Branch is one line of thought that left the main one.
type Branch struct {
	ID       string `json:"id"`
	From     int    `json:"from"` // number of the step that it left
	Thoughts []Line `json:"thoughts"`

	revisions numbers
}

// numbers are those that revising steps had: they changed another step, but the
// count goes on behind them.
type numbers map[int]bool

func (n *numbers) add(number int) {
	if *n == nil {
		*n = numbers{}
	}
	(*n)[number] = true
}

// Line is one step as it stands after revisions.
type Line struct {
	Number    int    `json:"number"`
	Thought   string `json:"thought"`
	Cancelled bool   `json:"cancelled,omitempty"`
	Revised   bool   `json:"revised,omitempty"`
}

// History is the thinking of one session. The zero value is ready; it is safe
// for concurrent use.
type History struct {
	mu       sync.Mutex // guards all below
	steps    []Step
	main     []Line
	revised  numbers // of the main line
	branches []Branch
	total    int
}

// Add takes one step. What cannot be a step at all is an error in the envelope;
// gaps and references to steps that do not exist are warnings.
func (h *History) Add(s Step) Result {
	if problem := s.problem(); problem != "" {
		return Result{Error: &problem, Output: "the step was not taken: " + problem}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var warnings []string
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }

	if s.BranchFromThought > 0 && s.BranchID == "" {
		s.BranchID = fmt.Sprintf("from-%d", s.BranchFromThought)
		warn("branch_from_thought without branch_id: the branch is called %s", s.BranchID)
	}
	total := s.TotalThoughts
	if s.ThoughtNumber > total {
		total = s.ThoughtNumber
		warn("total_thoughts was %d, raised to %d", s.TotalThoughts, total)
	}
	if s.BranchID == "" {
		h.total = total
	}
	switch {
	case s.BranchID != "":
		h.branch(s, warn)
	case s.IsRevision || s.RevisesThought > 0:
		h.main = revise(h.main, &h.revised, s, warn)
	default:
		h.main = put(h.main, h.revised, s, warn)
	}
	h.steps = append(h.steps, s)

	d := &Data{
		Thought: s.Thought, DisplayType: "thinking", ThoughtNumber: s.ThoughtNumber, TotalThoughts: total,
		NextThoughtNeeded: s.NextThoughtNeeded, NeedsMoreThoughts: s.NeedsMoreThoughts, BranchID: s.BranchID,
		IncompleteSteps: h.incomplete(), Branches: h.copyBranches(), HistoryLength: len(h.steps), Warnings: warnings,
	}
	if s.NeedsMoreThoughts && !s.NextThoughtNeeded {
		d.NextThoughtNeeded = true
		d.Warnings = append(d.Warnings, "needs_more_thoughts was set, so next_thought_needed is taken as true")
	}
	return Result{Success: true, Output: d.output(s), Data: d}
}

// Len is the number of steps taken, branches and revisions included.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.steps)
}

func (s *Step) problem() string {
	switch n := utf8.RuneCountInString(s.Thought); {
	case strings.TrimSpace(s.Thought) == "":
		return "thought is empty"
	case n > MaxThought:
		return fmt.Sprintf("thought has %d characters, %d are allowed: split it into several steps", n, MaxThought)
	}
	switch {
	case s.ThoughtNumber < 1:
		return "thought_number starts at 1"
	case s.TotalThoughts < 1:
		return "total_thoughts is at least 1"
	case s.RevisesThought < 0 || s.BranchFromThought < 0:
		return "step numbers start at 1"
	}
	switch s.RevisionType {
	case "", Replace, Amend, Cancel:
	default:
		return fmt.Sprintf("revision_type %q is none of replace, amend, cancel", s.RevisionType)
	}
	return ""
}

// put adds a step to a line of thought, in order of its number. A number that
// is taken already gets the later text.
func put(line []Line, revisions numbers, s Step, warn func(string, ...any)) []Line {
	last := 0
	if len(line) > 0 {
		last = line[len(line)-1].Number
	}
	for revisions[last+1] {
		last++
	}
	i, taken := find(line, s.ThoughtNumber)
	switch {
	case taken:
		warn("step %d was there already; its text is replaced (use is_revision for that)", s.ThoughtNumber)
		line[i] = Line{Number: s.ThoughtNumber, Thought: s.Thought, Revised: true}
		return line
	case s.ThoughtNumber > last+1:
		warn("step %d follows %d: the steps between are missing", s.ThoughtNumber, last)
	}
	return slices.Insert(line, i, Line{Number: s.ThoughtNumber, Thought: s.Thought})
}

// revise changes an earlier step. The revising step becomes none of the line, but
// its number is taken.
func revise(line []Line, revisions *numbers, s Step, warn func(string, ...any)) []Line {
	n := s.RevisesThought
	if n == 0 {
		n = s.ThoughtNumber
		warn("is_revision without revises_thought: step %d is meant", n)
	}
	if !s.IsRevision {
		warn("revises_thought without is_revision: taken as a revision")
	}
	i, ok := find(line, n)
	if !ok {
		warn("step %d, which is to be revised, does not exist; the step is kept as it is", n)
		return put(line, *revisions, s, func(string, ...any) {})
	}
	if n != s.ThoughtNumber {
		revisions.add(s.ThoughtNumber)
	}
	l := &line[i]
	l.Revised = true
	switch s.RevisionType {
	case Amend:
		l.Thought += "\n" + s.Thought
	case Cancel:
		l.Cancelled = true
	default:
		l.Thought, l.Cancelled = s.Thought, false
	}
	return line
}

func (h *History) branch(s Step, warn func(string, ...any)) {
	i := slices.IndexFunc(h.branches, func(b Branch) bool { return b.ID == s.BranchID })
	if i < 0 {
		from := s.BranchFromThought
		if from == 0 {
			warn("branch %s begins without branch_from_thought", s.BranchID)
		} else if _, ok := find(h.main, from); !ok {
			warn("branch %s leaves step %d, which does not exist", s.BranchID, from)
		}
		h.branches = append(h.branches, Branch{ID: s.BranchID, From: from})
		i = len(h.branches) - 1
	}
	b := &h.branches[i]
	if s.BranchFromThought > 0 && s.BranchFromThought != b.From {
		warn("branch %s left step %d, not %d; it stays there", b.ID, b.From, s.BranchFromThought)
	}
	if s.IsRevision || s.RevisesThought > 0 {
		b.Thoughts = revise(b.Thoughts, &b.revisions, s, warn)
		return
	}
	if len(b.Thoughts) == 0 {
		b.Thoughts = []Line{{Number: s.ThoughtNumber, Thought: s.Thought}} // a branch may begin at any number
		return
	}
	b.Thoughts = put(b.Thoughts, b.revisions, s, warn)
}

// incomplete lists the numbers of the main line that have no valid step.
func (h *History) incomplete() []int {
	out := []int{}
	for n := 1; n <= h.total; n++ {
		if i, ok := find(h.main, n); !ok && !h.revised[n] || ok && h.main[i].Cancelled {
			out = append(out, n)
		}
		if len(out) == 100 {
			break // a model may claim a million steps
		}
	}
	return out
}

func (h *History) copyBranches() []Branch {
	out := make([]Branch, len(h.branches))
	for i, b := range h.branches {
		out[i] = Branch{ID: b.ID, From: b.From, Thoughts: slices.Clone(b.Thoughts)}
	}
	return out
}

func find(line []Line, n int) (int, bool) {
	return slices.BinarySearchFunc(line, n, func(l Line, n int) int { return l.Number - n })
}

func (d *Data) output(s Step) string {
	what := fmt.Sprintf("step %d of %d", d.ThoughtNumber, d.TotalThoughts)
	if s.BranchID != "" {
		what += " on branch " + s.BranchID
	}
	if d.NextThoughtNeeded {
		return what + "; go on"
	}
	return what + "; done"
}

// Steps returns the steps that were taken, in order: adding them to an empty
// History gives this one.
func (h *History) Steps() []Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.steps)
}
