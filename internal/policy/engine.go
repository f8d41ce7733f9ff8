package policy

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"

	"thinkflow/internal/shellrules"
	"thinkflow/workspace"
)

// Engine holds the rules. It is immutable and safe for concurrent use.
type Engine struct {
	lists   []list
	shell   *shellrules.List // all allow entries for bash
	ignored []Rule
}

// list is the rules of one layer with one verdict for one action, in order.
type list struct {
	verdict  Verdict
	layer    Layer
	action   Action
	rules    []Rule
	patterns workspace.Patterns // of path actions
}

// New compiles rules, as Parse returns them. Allow rules of the workspace are
// left out: see Ignored.
func New(rules []Rule) (*Engine, error) {
	e := &Engine{}
	var entries []string
	type key struct {
		v Verdict
		l Layer
		a Action
	}
	index := map[key]int{}
	for _, r := range rules {
		if msg := r.problem(); msg != "" {
			return nil, &Error{r.Source, strings.TrimSpace(string(r.Action) + " " + r.Pattern), msg}
		}
		if r.Layer == Workspace && r.Verdict == Allow {
			e.ignored = append(e.ignored, r)
			continue
		}
		if r.Action == Bash && r.Verdict == Allow && r.Pattern != "" {
			entries = append(entries, r.Pattern)
		}
		k := key{r.Verdict, r.Layer, r.Action}
		i, ok := index[k]
		if !ok {
			i = len(e.lists)
			index[k] = i
			e.lists = append(e.lists, list{verdict: r.Verdict, layer: r.Layer, action: r.Action})
		}
		e.lists[i].rules = append(e.lists[i].rules, r)
	}
	for i := range e.lists {
		l := &e.lists[i]
		if !isPath(l.action) {
			continue
		}
		var lines []string
		for _, r := range l.rules {
			lines = append(lines, orAll(r.Pattern))
		}
		var err error
		if l.patterns, err = workspace.NewPatterns(lines); err != nil {
			return nil, err
		}
	}
	var err error
	e.shell, err = shellrules.NewList(entries)
	return e, err
}

// Patterns lists the patterns of the rules with this verdict and action, in
// order; a rule without one is "*".
func (e *Engine) Patterns(v Verdict, a Action) []string {
	var out []string
	for _, l := range e.lists {
		if l.verdict != v || l.action != a {
			continue
		}
		for _, r := range l.rules {
			out = append(out, orAll(r.Pattern))
		}
	}
	return out
}

// Ignored lists the rules that loosen something and come from the workspace.
func (e *Engine) Ignored() []Rule { return e.ignored }

// Request asks for one action.
type Request struct {
	Action  Action
	Subject string // see Action
	Dir     bool   // the subject is a folder
	// Hash is of exactly what would be done and was shown; "" = no grant of one.
	Hash string
}

// Decision is the answer.
type Decision struct {
	Verdict Verdict
	Layer   Layer
	// Rule is what decided: a rule as written, or a sentence.
	Rule string
	// Source is where the rule stands, "" = nowhere.
	Source string
	// Grant is what an answer "for this session" grants; "" when the verdict is
	// not Ask.
	Grant string
}

// Decide goes by the rules alone.
func (e *Engine) Decide(r Request) Decision {
	best := Decision{Verdict: defaultVerdict(r.Action)}
	found := false
	for i := range e.lists {
		l := &e.lists[i]
		rule, ok := l.match(r)
		if !ok || found && (l.verdict < best.Verdict || l.verdict == best.Verdict && l.layer < best.Layer) {
			continue
		}
		found = true
		best = Decision{Verdict: l.verdict, Layer: l.layer, Rule: rule.String(), Source: rule.Source}
	}
	why := ""
	if r.Action == Bash && !found {
		d := e.shell.Decide(r.Subject)
		if d.Allowed {
			return Decision{Verdict: Allow, Layer: User, Rule: "every command of the line is on the allow list"}
		}
		why = d.Reason
	}
	if !found {
		best.Rule = defaultRule(r.Action, why)
	}
	if best.Verdict == Ask {
		best.Grant = "class " + string(r.Action)
		if found {
			best.Grant = "rule " + best.Layer.String() + " " + best.Rule
		}
	}
	return best
}

func defaultRule(a Action, why string) string {
	switch {
	case a == Read || a == Write:
		return string(a) + " is allowed in the workspace"
	case a == Bash && why != "":
		return "shell commands ask: " + why
	case a == Bash:
		return "shell commands ask"
	case a == Delete:
		return "deleting asks"
	case a == Net:
		return "network access asks"
	case a == Git:
		return "changes of version control metadata by a command ask"
	case a == Protected:
		return "changes of protected paths ask"
	case a == Secrets:
		return "files that may hold secrets ask"
	}
	return "tools ask"
}

// match finds the rule of the list that matches; for paths the last one decides.
func (l *list) match(r Request) (Rule, bool) {
	switch {
	case strings.HasPrefix(string(l.action), toolPrefix):
		ok, err := path.Match(string(l.action), string(r.Action))
		return l.rules[0], ok && err == nil
	case l.action != r.Action:
		return Rule{}, false
	case isPath(l.action):
		if r.Subject == "." { // the root itself: only rules for everything
			for _, rule := range l.rules {
				if rule.Pattern == "" || rule.Pattern == "**" || rule.Pattern == "*" {
					return rule, true
				}
			}
			return Rule{}, false
		}
		pattern, ok := l.patterns.Match(r.Subject, r.Dir)
		if !ok {
			return Rule{}, false
		}
		for _, rule := range l.rules {
			if orAll(rule.Pattern) == pattern {
				return rule, true
			}
		}
		return l.rules[0], true
	case l.action == Bash:
		for _, rule := range l.rules {
			if rule.Pattern == "" {
				return rule, true
			}
			if l.verdict == Allow {
				continue // the line as a whole: see Decide
			}
			if words, err := shellrules.Words(rule.Pattern); err == nil && shellrules.Mentions(r.Subject, words) {
				return rule, true
			}
		}
	case l.action == Git:
		return l.rules[0], true
	case l.action == Net:
		for _, rule := range l.rules {
			if matchHost(rule.Pattern, r.Subject) {
				return rule, true
			}
		}
	}
	return Rule{}, false
}

func isPath(a Action) bool {
	switch a {
	case Read, Write, Delete, Protected, Secrets:
		return true
	}
	return false
}

func orAll(pattern string) string {
	if pattern == "" || pattern == "**" {
		return "*"
	}
	return pattern
}

// matchHost compares a host, or host and port, with a pattern. "*." stands for
// any number of labels; a pattern without port matches every port.
func matchHost(pattern, subject string) bool {
	if pattern == "" {
		return true
	}
	host, port := splitHost(subject)
	wantHost, wantPort := splitHost(pattern)
	if wantPort != "" && wantPort != port {
		return false
	}
	if rest, ok := strings.CutPrefix(wantHost, "*."); ok {
		return strings.HasSuffix(host, "."+rest)
	}
	ok, err := path.Match(wantHost, host)
	return ok && err == nil
}

func splitHost(s string) (host, port string) {
	s = strings.ToLower(s)
	if h, p, err := net.SplitHostPort(s); err == nil {
		s, port = h, p
	}
	return strings.TrimSuffix(strings.Trim(s, "[]"), "."), port
}

// Grants are the answers of one session. The zero value has none; it is safe
// for concurrent use.
type Grants struct {
	mu    sync.Mutex // guards given
	given map[string]bool
}

// Add records an answer "for this session": the Grant of the decision.
func (g *Grants) Add(grant string) {
	if grant == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.given == nil {
		g.given = map[string]bool{}
	}
	g.given[grant] = true
}

// AddClass allows a whole action where no rule asks: a flag such as --allow.
func (g *Grants) AddClass(a Action) { g.Add("class " + string(a)) }

// AddHash allows exactly what has the hash.
func (g *Grants) AddHash(a Action, hash string) {
	if hash != "" {
		g.Add("hash " + string(a) + " " + hash)
	}
}

// HasHash reports whether exactly what has the hash was allowed.
func (g *Grants) HasHash(a Action, hash string) bool {
	return hash != "" && g.has("hash "+string(a)+" "+hash)
}

// List returns what was granted, sorted: adding it to other Grants gives the
// same.
func (g *Grants) List() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.given))
}

func (g *Grants) has(grant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.given[grant]
}

// Decide goes by the rules, and by the grants where those ask.
func (g *Grants) Decide(e *Engine, r Request) Decision {
	d := e.Decide(r)
	if d.Verdict != Ask {
		return d
	}
	if g.has(d.Grant) {
		return Decision{Verdict: Allow, Layer: Session, Rule: "granted for this session: " + d.Rule}
	}
	if r.Hash != "" && g.has("hash "+string(r.Action)+" "+r.Hash) {
		return Decision{Verdict: Allow, Layer: Session, Rule: fmt.Sprintf("granted for exactly this %s", r.Action)}
	}
	return d
}
