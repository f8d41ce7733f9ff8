package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thinkflow/internal/config"
	"thinkflow/internal/policy"
	"thinkflow/internal/sandbox"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// Shell says how shell commands are held, beyond the configuration.
type Shell struct {
	// Hidden are files and folders that no command may read: the key file, the
	// state folder.
	Hidden []string
	// Cache is the folder for what build tools keep from command to command;
	// "" = nothing is kept.
	Cache string
}

// confines reports whether something holds the commands of the run.
func (r *run) confines() bool {
	return r.cfg.Sandbox != config.SandboxNone && r.e.box().Report().Confines()
}

// unheld reports that commands would have to run as they are although nobody
// set that: each one asks.
func (r *run) unheld() bool {
	return r.cfg.Sandbox != config.SandboxNone && !r.dryRun && !r.e.box().Report().Confines()
}

// command prepares a line of the shell.
func (r *run) command(ctx context.Context, line string, g sandbox.Grants) (*sandbox.Command, error) {
	home, _ := os.UserHomeDir()
	spec := sandbox.Spec{
		Line: line, Dir: r.dir(), Classify: r.e.classify, Cache: r.e.shell.Cache, Grants: g,
		Hidden: slices.Concat(sandbox.HomeSecrets(home, g), r.e.shell.Hidden),
		Env:    childEnv(os.Environ()), Unconfined: !r.confines(),
	}
	for _, root := range r.e.ws.Roots() {
		spec.Roots = append(spec.Roots, root.Dir)
	}
	return r.e.box().Command(ctx, spec)
}

// classify says what a path inside a root is to the sandbox.
func (e *Engine) classify(path string, dir bool) sandbox.Class {
	switch e.ws.ClassifyName(path, dir) {
	case workspace.NameForbidden:
		return sandbox.VCS
	case workspace.NameProtected:
		return sandbox.Protected
	case workspace.NameDenied:
		return sandbox.Hide
	}
	return sandbox.Free
}

// shellAsk is one command of the shell that the model wants to run.
type shellAsk struct {
	line       string
	with       sandbox.Grants // what it asks to have opened
	background bool
}

// parseWith reads what a command asks to have opened: net, git, or both.
func parseWith(s string) (g sandbox.Grants, err error) {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' }) {
		switch w {
		case "net":
			g.Net = true
		case "git":
			g.Git = true
		default:
			return g, fmt.Errorf("with: %q is neither net nor git", w)
		}
	}
	return g, nil
}

// wish is the reverse of parseWith.
func (a shellAsk) wish() string {
	var w []string
	if a.with.Net {
		w = append(w, "net")
	}
	if a.with.Git {
		w = append(w, "git")
	}
	return strings.Join(w, " ")
}

// hash identifies exactly this command.
func (a shellAsk) hash() string {
	if a == (shellAsk{line: a.line}) {
		return workspace.HashText(a.line)
	}
	return workspace.HashText(fmt.Sprintf("%s\x00%+v %t", a.line, a.with, a.background))
}

// permitShell asks what a command needs: its permission and, while proposals
// wait that it would not see, that they are accepted, in one question. The permit
// says what is opened.
func (r *run) permitShell(at ledger.Key, a shellAsk) permit {
	if why := r.barred(ActionBash); why != "" {
		return permit{code: codeMode, message: why}
	}
	c, open := r.checkShell(a)
	if n := r.e.proposed(); n > 0 && !r.dryRun && c.no == "" {
		if p := r.acceptAndRun(at, n, a.line, c.hash); !p.allowed {
			return p
		}
		c.needs = slices.DeleteFunc(c.needs, func(n need) bool {
			return n.class == config.AllowBash && n.wants == sandbox.Grants{}
		})
	}
	p := r.permitNeeds(at, ActionBash, a.line, c, nil, nil)
	p.grants = union(p.grants, open)
	return p
}

// checkShell decides about a command by the rules, and says what is open to it
// without a question.
func (r *run) checkShell(a shellAsk) (checked, sandbox.Grants) {
	c := checked{r: r, hash: a.hash()}
	why := "shell commands ask"
	if r.hasEntries() {
		why = "" // say which word is not on the list
	}
	c.decide(policy.Request{Action: policy.Bash, Subject: a.line, Hash: c.hash}, why)
	c.needs = r.waive(c.needs)
	if r.dryRun || c.no != "" {
		return c, sandbox.Grants{}
	}
	if a.background && len(c.needs) > 0 {
		c.needs[0].rule += ", and it goes on in the background"
	}
	if r.unheld() {
		c.unheld()
		return c, sandbox.Grants{}
	}
	if !r.confines() {
		return c, sandbox.Grants{}
	}
	net, git := r.opening(policy.Net, c.hash), r.opening(policy.Git, c.hash)
	for _, w := range []struct {
		want   bool
		action policy.Action
		d      policy.Decision
		what   string
	}{{a.with.Net, policy.Net, net, "the network"}, {a.with.Git, policy.Git, git, "to change version control metadata"}} {
		switch {
		case !w.want || w.d.Verdict == policy.Allow:
		case w.d.Verdict == policy.Deny:
			c.no = fmt.Sprintf("it wants %s, which the %s's rule `%s` denies", w.what, w.d.Layer, w.d.Rule)
		default:
			c.wants(w.action, w.what)
		}
	}
	for i := range c.needs {
		c.needs[i].sandboxed = true
	}
	open := sandbox.Grants{Net: net.Verdict == policy.Allow, Git: git.Verdict == policy.Allow}
	return c, open
}

// unheld makes the command ask by itself, whatever is allowed.
func (c *checked) unheld() {
	if c.r.s.perms.grants.HasHash(policy.Bash, c.hash) {
		return
	}
	rule := "nothing on this machine holds a command back (thinkflow doctor says why), so each one asks"
	if len(c.needs) == 0 {
		c.needs = []need{{hint: []config.Class{config.AllowBash}}}
	}
	n := &c.needs[0]
	n.class, n.rule, n.unconfined = config.Class("hash bash "+c.hash), rule, true
}

// wants puts the wish for an opening into the one question about the command. An
// answer "for this session" opens the sandbox for exactly this command.
func (c *checked) wants(a policy.Action, what string) {
	class := config.Class("hash " + string(a) + " " + c.hash)
	if len(c.needs) == 0 {
		c.needs = []need{{class: class, rule: "the command wants " + what}}
	} else {
		c.needs[0].rule += ", and it wants " + what
		c.needs[0].also = append(c.needs[0].also, class)
	}
	n := &c.needs[0]
	n.hint = append(n.hint, config.Class(a))
	n.wants = union(n.wants, sandbox.Grants{Net: a == policy.Net, Git: a == policy.Git})
}

// opening is what rules and answers say of opening the sandbox.
func (r *run) opening(a policy.Action, hash string) policy.Decision {
	return r.s.perms.grants.Decide(r.ruleset(), policy.Request{Action: a, Hash: hash})
}

// shellChoices are the answers to the question about a command.
func (r *run) shellChoices() []Decision {
	out := []Decision{AllowOnce, AllowSession}
	if r.confines() {
		net := r.opening(policy.Net, "").Verdict == policy.Ask
		git := r.opening(policy.Git, "").Verdict == policy.Ask
		if net {
			out = append(out, AllowOnceNet)
		}
		if git {
			out = append(out, AllowOnceGit)
		}
		if net && git {
			out = append(out, AllowOnceGitNet)
		}
	}
	return append(out, Deny)
}

func union(a, b sandbox.Grants) sandbox.Grants {
	return sandbox.Grants{Git: a.Git || b.Git, GitConfig: a.GitConfig || b.GitConfig, Net: a.Net || b.Net}
}

// hasEntries reports whether commands are allowed by their words.
func (r *run) hasEntries() bool {
	return slices.ContainsFunc(r.cfg.Allow, func(c config.Class) bool { return strings.HasPrefix(string(c), "bash ") })
}

// ruleset is the rules that count in the run.
func (r *run) ruleset() *policy.Engine {
	if r.rules == nil {
		r.rules = newRules(&r.cfg)
	}
	return r.rules
}

// mayRunShell reports whether any command could run without a question.
func (r *run) mayRunShell() bool {
	return r.hasEntries() || r.s.perms.grants.Decide(r.ruleset(), policy.Request{Action: policy.Bash, Subject: "true"}).Verdict == policy.Allow
}

// found deals with protected paths that a command made or changed. What was made
// is kept only if rules or a person say so. It returns what is to be told.
func (r *run) found(at ledger.Key, f sandbox.Findings, since time.Time) string {
	var made []sandbox.Violation
	var said []string
	for _, v := range f.Violations {
		switch {
		case r.e.wroteSince(v.Path, since):
		case v.What == "created":
			if !r.mayKeep(v) {
				made = append(made, v)
			}
		default:
			said = append(said, fmt.Sprintf("%s was %s, which is protected", r.shown(v.Path), v.What))
		}
	}
	if len(made) > 0 && !r.keep(at, made) {
		for _, v := range made {
			if err := v.Remove(); err != nil {
				said = append(said, fmt.Sprintf("%s was made, which is protected, and could not be removed: %v", r.shown(v.Path), err))
				continue
			}
			said = append(said, r.shown(v.Path)+" was removed again: it is protected, and nobody agreed to it")
		}
	}
	if f.Killed > 0 {
		said = append(said, fmt.Sprintf("%d processes that the command left behind were ended", f.Killed))
	}
	if f.Incomplete {
		said = append(said, "the workspace holds too many files to look at all protected paths")
	}
	if len(said) == 0 {
		return ""
	}
	return "[sandbox] " + strings.Join(said, "\n[sandbox] ") + "\n"
}

// mayKeep reports whether the path may stand without a question.
func (r *run) mayKeep(v sandbox.Violation) bool {
	a := policy.Protected
	if v.VCS {
		a = policy.Git
	}
	rel, err := filepath.Rel(v.Root, v.Path)
	if err != nil {
		return false
	}
	req := policy.Request{Action: a}
	if !v.VCS {
		req.Subject = filepath.ToSlash(rel)
	}
	return r.s.perms.grants.Decide(r.ruleset(), req).Verdict == policy.Allow
}

// keep asks whether what a command made may stand.
func (r *run) keep(at ledger.Key, made []sandbox.Violation) bool {
	if r.e.approver == nil || r.ctx.Err() != nil {
		return false
	}
	var paths []string
	for _, v := range made {
		paths = append(paths, v.Path)
	}
	target := strings.Join(paths, "\n")
	n := need{rule: "a command made this, and it is protected; a no removes it"}
	ev := r.question("keep", target, n, workspace.HashText(target), nil)
	ev.Choices = []Decision{AllowOnce, Deny}
	d, err := r.ask(ev)
	r.recordAsked(at, ev, ev.Action, n.rule, d, err)
	return err == nil && d.Allows()
}

// shown is a real path as people see it.
func (r *run) shown(abs string) string {
	if t, err := r.e.ws.Resolve(abs, workspace.AccessRead); err == nil {
		return t.Display
	}
	if rel, err := filepath.Rel(r.dir(), abs); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return abs
}

// noteWrites remembers our own changes of protected paths, which are no doing of
// a command that runs at the same time.
func (e *Engine) noteWrites(targets []workspace.Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range targets {
		if t.Protected {
			if e.writes == nil {
				e.writes = map[string]time.Time{}
			}
			e.writes[t.Abs] = e.now()
		}
	}
}

func (e *Engine) wroteSince(path string, since time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for abs, at := range e.writes {
		if rel, err := filepath.Rel(path, abs); err == nil && filepath.IsLocal(rel) && !at.Before(since) {
			return true
		}
	}
	return false
}
