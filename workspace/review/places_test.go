package review

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"thinkflow/workspace"
)

// world is files by path, as an agent sees them or as they really are.
type world map[string]string

// proposals plays an agent whose commands are only proposed, over a real world.
type proposals struct {
	t     *testing.T
	tr    *Tracker
	real  world
	seen  world // with the proposals
	steps []string
}

// command does one thing at random.
func (p *proposals) command(rng *rand.Rand, n int) {
	key := fmt.Sprintf("r/1/text/%d", n)
	names := []string{"a", "b", "c", "d"}
	path, dest := names[rng.IntN(4)], names[rng.IntN(4)]
	text, there := p.seen[path]
	_, taken := p.seen[dest]
	a := Applied{Key: key, Path: path, Before: text}
	switch kind := rng.IntN(4); {
	case !there:
		a.Kind, a.After = workspace.ChangeCreate, fmt.Sprintf("new %d\nx\ny\nz\n", n)
		p.seen[path] = a.After
	case kind == 0:
		a.Kind = workspace.ChangeDelete
		delete(p.seen, path)
	case kind == 1 && !taken:
		a.Kind, a.Dest = workspace.ChangeMove, dest
		delete(p.seen, path)
		p.seen[dest] = text
	default:
		lines := strings.SplitAfter(text, "\n")
		lines[rng.IntN(len(lines)-1)] = fmt.Sprintf("edit %d\n", n)
		a.Kind, a.After = workspace.ChangeModify, strings.Join(lines, "")
		a.Edits = workspace.DiffText(text, a.After)
		p.seen[path] = a.After
	}
	p.steps = append(p.steps, fmt.Sprintf("%s %s %s", a.Kind, path, a.Dest))
	p.tr.Agent(a)
	p.sync()
}

// sync tells the tracker what is real, as the engine does before each decision.
func (p *proposals) sync() {
	for _, path := range p.tr.Paths() {
		real := path
		if from := p.tr.Origin(path); from != "" {
			real = from
		}
		text, exists := p.real[real]
		p.tr.SyncBase(path, text, exists)
	}
}

// shown is the real world with the proposals in front.
func (p *proposals) shown() world {
	out := maps.Clone(p.real)
	for _, path := range p.tr.Paths() {
		for _, c := range p.tr.Changes(path) {
			if c.From != "" && !slices.Contains(p.tr.Paths(), c.From) {
				delete(out, c.From)
			}
		}
		if text, exists, _ := p.tr.Text(path); exists {
			out[path] = text
		} else {
			delete(out, path)
		}
	}
	return out
}

// accept makes one change real, if nothing is in its way.
func (p *proposals) accept(c Change) bool {
	actions, err := p.tr.Accept(c.Path, c.ID)
	if err != nil {
		p.t.Fatalf("%v: %v", p.steps, err)
	}
	a := actions[0]
	text, there := p.real[a.Path]
	switch a.Kind {
	case KindCreate:
		if there {
			return false
		}
		p.real[a.Path] = a.Text
	case KindDelete:
		if !there {
			return false
		}
		delete(p.real, a.Path)
	case KindMove:
		if _, taken := p.real[a.Dest]; taken || !there {
			return false
		}
		delete(p.real, a.Path)
		p.real[a.Dest] = text
	case KindEdit:
		place := a.Path
		if from := p.tr.Origin(a.Path); from != "" {
			place = from // the move waits
		}
		after, err := workspace.ApplyEdits(p.real[place], a.Edits)
		if err != nil {
			p.t.Fatalf("%v: %v", p.steps, err)
		}
		p.real[place] = after
	}
	if err := p.tr.Keep(c.Path, c.ID); err != nil {
		p.t.Fatalf("%v: %v", p.steps, err)
	}
	return true
}

func (p *proposals) changes() []Change {
	var out []Change
	for _, path := range p.tr.Paths() {
		out = append(out, p.tr.Changes(path)...)
	}
	return out
}

// TestProposalsOfFiles: whatever is created, changed, moved and deleted among
// proposals, they show what the agent sees, and accepted one by one, in any order,
// they end there too.
func TestProposalsOfFiles(t *testing.T) {
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		base := world{"a": "a1\na2\na3\na4\n", "b": "b1\nb2\nb3\nb4\n"}
		p := &proposals{t: t, tr: NewTracker(), real: maps.Clone(base), seen: maps.Clone(base)}
		for n := range 1 + rng.IntN(14) {
			p.command(rng, n+1)
			if got := p.shown(); !maps.Equal(got, p.seen) {
				t.Fatalf("seed %d, %v: shown are %q, the agent sees %q", seed, p.steps, got, p.seen)
			}
		}
		if !maps.Equal(p.real, base) {
			t.Fatalf("seed %d: something is real", seed)
		}
		for changes := p.changes(); len(changes) > 0; changes = p.changes() {
			rng.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
			if !slices.ContainsFunc(changes, p.accept) {
				t.Fatalf("seed %d, %v: nothing of %+v can be accepted; real are %q", seed, p.steps, changes, p.real)
			}
			p.sync()
			if got := p.shown(); !maps.Equal(got, p.seen) {
				t.Fatalf("seed %d, %v: after a decision %q are shown, the agent saw %q", seed, p.steps, got, p.seen)
			}
		}
		if !maps.Equal(p.real, p.seen) {
			t.Fatalf("seed %d, %v: real are %q, want %q", seed, p.steps, p.real, p.seen)
		}
	}
}
