package agent

import (
	"context"
	"slices"
	"strings"

	"thinkflow/agent/profile"
)

// ModelInfo is one model that an endpoint offers.
type ModelInfo struct {
	ID string
	// ContextTokens is the size of the context; 0 = not reported.
	ContextTokens int
}

// Lister is a Model whose endpoint may tell what it offers.
type Lister interface {
	Models(ctx context.Context) ([]ModelInfo, error)
}

// maxModels bounds the list of models: the largest brokers offer some hundreds.
const maxModels = 2000

// ModelChoice is a model that a person may choose.
type ModelChoice struct {
	ID       string `json:"id"`
	Current  bool   `json:"current,omitempty"`  // the one that the session has
	Context  int    `json:"context,omitempty"`  // tokens; 0 = unknown
	Profile  string `json:"profile,omitempty"`  // row of the table that it is spoken to by
	Protocol string `json:"protocol,omitempty"` // how it gives commands: tags or native
	NoTools  bool   `json:"noTools,omitempty"`
}

// Models lists what a session may be switched to: what the endpoint offers, the
// models that the user's profiles name, and current, the one that counts now. The
// error says why the endpoint did not tell; the rest of the list is good then.
func (e *Engine) Models(ctx context.Context, current string) ([]ModelChoice, error) {
	e.mu.Lock()
	model, own := e.model, e.cfg.Profiles
	e.mu.Unlock()
	sizes := map[string]int{}
	var ids []string
	add := func(id string, size int) {
		if _, ok := sizes[id]; id != "" && !ok && len(ids) < maxModels {
			ids = append(ids, id)
			sizes[id] = size
		}
	}
	var problem error
	if l, ok := model.(Lister); ok {
		var offered []ModelInfo
		offered, problem = l.Models(ctx)
		for _, m := range offered {
			add(m.ID, m.ContextTokens)
		}
	}
	for _, id := range profile.Models(own) {
		add(id, 0)
	}
	add(current, 0)
	slices.SortFunc(ids, strings.Compare)
	out := make([]ModelChoice, 0, len(ids))
	for _, id := range ids {
		p, err := profile.Lookup(id, own)
		if err != nil {
			e.profileTrouble(err)
		}
		c := ModelChoice{ID: id, Current: id == current, Context: sizes[id], Profile: p.Name, Protocol: p.Protocol, NoTools: p.NoTools}
		if c.Context == 0 {
			c.Context = p.Context
		}
		if c.Protocol == "" {
			c.Protocol = profile.Tags
		}
		out = append(out, c)
	}
	return out, problem
}
