package agent

import (
	"maps"
	"slices"
	"sync"

	"thinkflow/internal/config"
	"thinkflow/workspace"
)

// Action is what a command or tool wants to do; permissions go by it.
type Action string

// The actions.
const (
	ActionRead   Action = "read"
	ActionWrite  Action = "write"
	ActionDelete Action = "delete"
	ActionBash   Action = "bash"
)

// permissions decides what asks. What is forbidden outright (VCS metadata, paths
// outside the roots) never gets here: workspace refuses to resolve it.
type permissions struct {
	mu      sync.Mutex
	allowed map[config.Class]bool // by flag, configuration or this session's answers
	told    map[config.Class]bool // refusals that the model has been told
}

func newPermissions(classes []config.Class) *permissions {
	p := &permissions{allowed: map[config.Class]bool{}, told: map[config.Class]bool{}}
	for _, c := range classes {
		p.allowed[c] = true
	}
	return p
}

// need is one question that must be answered with yes before an effect.
type need struct {
	class config.Class // what an answer "for this session" allows
	rule  string       // for people: why it asks
}

// check lists what must be asked for the action on its targets; nil = allowed.
func (p *permissions) check(a Action, targets ...workspace.Target) []need {
	p.mu.Lock()
	defer p.mu.Unlock()
	var needs []need
	add := func(class config.Class, rule string) {
		if !p.allowed[class] {
			needs = append(needs, need{class, rule})
		}
	}
	switch a {
	case ActionDelete:
		add(config.AllowDelete, "deleting asks")
	case ActionBash:
		add(config.AllowBash, "shell commands ask")
	}
	for _, t := range targets {
		if t.Protected && a != ActionRead {
			add(config.AllowProtected, t.Display+" is protected: "+t.ProtectedRule)
		}
		if t.Secret {
			add(config.AllowSecrets, t.Display+" may hold secrets")
		}
	}
	return needs
}

// grant allows the class for the rest of the session.
func (p *permissions) grant(class config.Class) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed[class] = true
}

// granted lists what is allowed in the session.
func (p *permissions) granted() []config.Class {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.allowed))
}

func (p *permissions) allows(class config.Class) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed[class]
}

// toldBefore notes that the model is told of this refusal, and reports whether
// it has been told before.
func (p *permissions) toldBefore(class config.Class) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.told[class]
	p.told[class] = true
	return before
}
