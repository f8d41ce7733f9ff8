package agent

import (
	"thinkflow/internal/trust"
)

// trusted tells whether a person has agreed to this content of the workspace.
// What is not is told once: it is simply not used.
func (e *Engine) trusted(kind trust.Kind, path, content string) bool {
	if e.trust == nil {
		e.tellUntrusted(path, "nothing of a workspace is trusted here")
		return false
	}
	state, err := e.trust.Trusted(kind, path, trust.Hash(content))
	if err != nil {
		e.log.Warn("trust: the answers cannot be read, so nothing is trusted", "err", err)
	}
	switch state {
	case trust.Trusted:
		return true
	case trust.Changed:
		e.tellUntrusted(path, "it has changed since you trusted it; look at it, then trust it again")
	case trust.Unknown:
		e.tellUntrusted(path, "look at it, then trust it")
	}
	return false
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
