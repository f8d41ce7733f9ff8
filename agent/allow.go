package agent

import "thinkflow/internal/config"

// Allow lets everything of the class through without asking for the rest of the
// session, as an answer "for this session" does. It reports false if there is
// no such session (yet): then it is Configure that counts.
func (e *Engine) Allow(session string, class config.Class) bool {
	e.mu.Lock()
	s, ok := e.sessions[session]
	e.mu.Unlock()
	if ok {
		s.perms.grant(class)
	}
	return ok
}
