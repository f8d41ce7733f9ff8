package agent

import (
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// trusted tells whether a person has agreed to this content of the workspace.
// What is new or has changed is asked about, once; where nobody can be asked it
// is told once, and simply not used.
func (r *run) trusted(kind trust.Kind, path, content string) bool {
	e := r.e
	if e.trust == nil {
		e.tellUntrusted(path, "nothing of a workspace is trusted here")
		return false
	}
	state, err := e.trust.Trusted(kind, path, trust.Hash(content))
	if err != nil {
		e.log.Warn("trust: the answers cannot be read, so nothing is trusted", "err", err)
		return false
	}
	switch state {
	case trust.Trusted:
		return true
	case trust.Refused:
		return false
	}
	if e.approver == nil || r.dryRun {
		why := "look at it, then trust it"
		if state == trust.Changed {
			why = "it has changed since you trusted it; look at it, then trust it again"
		}
		e.tellUntrusted(path, why+" (thinkflow trust add)")
		return false
	}
	return r.askTrust(kind, path, content, state)
}

// askTrust asks about content that a person has not agreed to, and remembers the
// answer. No answer is no yes, and is asked again.
func (r *run) askTrust(kind trust.Kind, path, content string, state trust.State) bool {
	rule := map[trust.Kind]string{
		trust.Rules: "rules of the project for the model", trust.Verify: "the project's own command that checks changes",
	}[kind]
	if rule == "" {
		rule = string(kind)
	}
	if state == trust.Changed {
		rule += ", changed since you trusted it"
	}
	rule += "; a yes trusts exactly this text from now on"
	ev := r.question("trust", path, need{rule: rule}, trust.Hash(content), func() string {
		return workspace.UnifiedDiff("/dev/null", path, "", content, eventDiff)
	})
	ev.Choices = []Decision{AllowOnce, Deny}
	d, err := r.ask(ev)
	r.recordAsked(ledger.Key{Run: r.id}, ev, ev.Action, rule, d, err)
	switch {
	case err != nil:
		return false
	case d.Allows():
		err = r.e.trust.Grant(kind, path, trust.Hash(content))
	default:
		err = r.e.trust.Refuse(kind, path, trust.Hash(content))
	}
	if err != nil {
		r.e.log.Warn("trust: the answer was not stored", "path", path, "err", err)
	}
	return d.Allows()
}

func (e *Engine) tellUntrusted(path, what string) {
	e.mu.Lock()
	told := e.untrusted[path] == what
	if e.untrusted == nil {
		e.untrusted = map[string]string{}
	}
	e.untrusted[path] = what
	e.mu.Unlock()
	if !told {
		e.notice(path + " is not used: " + what)
	}
}
