package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/internal/sandbox"
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

// permissions are what a person answered in a session. What the rules say is
// asked first; what is forbidden outright (VCS metadata, paths outside the
// roots) never gets here: workspace refuses to resolve it.
type permissions struct {
	grants policy.Grants

	mu   sync.Mutex
	told map[config.Class]bool // refusals that the model has been told
}

func newPermissions() *permissions { return &permissions{told: map[config.Class]bool{}} }

// need is one question that must be answered with yes before an effect.
type need struct {
	// class is what an answer "for this session" allows: a class of actions, or
	// a key of package policy for a rule or a hash.
	class config.Class
	rule  string // for people: why it asks
	// hint are the classes that --allow must name to do without the question.
	hint []config.Class
	// sandboxed: with the yes a person can open the sandbox for the command.
	sandboxed bool
	// unconfined: nothing would hold the command.
	unconfined bool
	// also is allowed for the session with class, and wants is what a yes opens.
	also  []config.Class
	wants sandbox.Grants
}

// told is the class that counts for whether the model was told of a refusal:
// answers that are bound to one thing count as their class.
func (n need) told() config.Class {
	if len(n.hint) > 0 {
		return n.hint[0]
	}
	return n.class
}

// grantKey is what stands for a class among the grants.
func grantKey(class config.Class) string {
	if c := string(class); strings.Contains(c, " ") {
		return c
	}
	return "class " + string(class)
}

// classOf is the reverse of grantKey.
func classOf(grant string) config.Class {
	return config.Class(strings.TrimPrefix(grant, "class "))
}

// grant allows the class for the rest of the session.
func (p *permissions) grant(class config.Class) { p.grants.Add(grantKey(class)) }

// granted lists what was allowed in the session.
func (p *permissions) granted() []config.Class {
	var out []config.Class
	for _, g := range p.grants.List() {
		out = append(out, classOf(g))
	}
	return out
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

// newRules compiles the rules of the configuration. Lines that are none were
// told when it was read; they count for nothing here.
func newRules(c *config.Config) *policy.Engine {
	var all []policy.Rule
	for v, lines := range c.Rules() {
		rules, _ := policy.Parse(policy.User, policy.Verdict(v), "", lines)
		all = append(all, rules...)
	}
	e, err := policy.New(all)
	if err != nil { // each was parsed: a fault of package policy
		e, _ = policy.New([]policy.Rule{{Verdict: policy.Deny, Layer: policy.User, Action: policy.Write}})
	}
	return e
}

// RuleProblems says which lines of the configuration are no rules; nil = none.
func RuleProblems(c *config.Config) error {
	_, err := policy.Parse(policy.User, policy.Deny, "", slices.Concat(c.Rules()...))
	return err
}

// Patterns are what the rules of the configuration say to the workspace: paths
// that may not be read at all, and paths whose reading asks, which are left out
// of searches as secrets are.
func Patterns(c *config.Config) (deny, ask []string) {
	rules := newRules(c)
	return rules.Patterns(policy.Deny, policy.Read), rules.Patterns(policy.Ask, policy.Read)
}

// checked is what the rules say of one action: a no, or questions.
type checked struct {
	r     *run
	hash  string
	needs []need
	no    string // why it is denied
}

// checkPaths decides by the rules and by what was answered before.
func (r *run) checkPaths(a Action, hash string, targets ...workspace.Target) checked {
	c := checked{r: r, hash: hash}
	for _, t := range targets {
		asked := c.path(policy.Read, t, "reading "+t.Display+" asks")
		if a != ActionRead {
			c.path(policy.Action(a), t, map[Action]string{ActionDelete: "deleting asks"}[a])
		}
		if t.Protected && a != ActionRead {
			c.path(policy.Protected, t, t.Display+" is protected: "+t.ProtectedRule)
		}
		if t.Secret && !asked {
			c.path(policy.Secrets, t, t.Display+" may hold secrets")
		}
	}
	return c
}

// path decides about one path by its real place and by the one that was asked
// for, and reports whether a rule of a person asks. why is told where none does.
func (c *checked) path(a policy.Action, t workspace.Target, why string) (byRule bool) {
	subjects := []string{t.Rel}
	if given, ok := c.r.given(t); ok && given != t.Rel {
		subjects = append(subjects, given)
	}
	for _, s := range subjects {
		d := c.decide(policy.Request{Action: a, Subject: s, Dir: t.IsDir, Hash: c.hash}, why)
		if d.Layer != policy.Default && d.Verdict != policy.Allow {
			byRule = true
		}
	}
	return byRule
}

// given is the path as it was asked for, relative to its root.
func (r *run) given(t workspace.Target) (string, bool) {
	for _, root := range r.e.ws.Roots() {
		if rel, err := filepath.Rel(root.Dir, t.Given); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// decide takes the verdict down. The decision that it returns is that of the
// rules alone.
func (c *checked) decide(req policy.Request, why string) policy.Decision {
	byRules := c.r.ruleset().Decide(req)
	d := c.r.s.perms.grants.Decide(c.r.ruleset(), req)
	switch d.Verdict {
	case policy.Deny:
		c.no = fmt.Sprintf("the %s's rule `%s` denies it", d.Layer, d.Rule)
	case policy.Ask:
		n := need{class: classOf(d.Grant), rule: why}
		if d.Layer != policy.Default || why == "" {
			n.rule = d.Rule
		}
		if d.Layer == policy.Default {
			n.hint = []config.Class{config.Class(req.Action)}
		}
		if !slices.ContainsFunc(c.needs, func(h need) bool { return h.class == n.class && h.rule == n.rule }) {
			c.needs = append(c.needs, n)
		}
	}
	return byRules
}
