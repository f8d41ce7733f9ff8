package main

import (
	"log/slog"
	"slices"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/notify"
	"thinkflow/internal/term"
)

// notifying passes events on and tells a person who does not look. terminal:
// stdout is for people.
func (a *app) notifying(c *config.Config, log *slog.Logger, terminal bool, next func(agent.Event)) (event func(agent.Event), wait func()) {
	if c.Notify == string(notify.Off) && c.NotifyHook == "" {
		return next, func() {}
	}
	n := &notify.Notifier{
		Way: notify.Way(c.Notify), Hook: c.NotifyHook, After: c.NotifyAfter, Env: withoutKeys(a.environ, c.KeyEnv),
		Log: func(err error) { log.Warn("a notification failed", "err", err) },
	}
	if terminal && term.IsTerminal(a.stdout) {
		n.Out = a.stdout
	}
	return func(ev agent.Event) {
		next(ev)
		n.Event(ev)
	}, n.Wait
}

// withoutKeys is the environment of the user's command: what looks like a key
// stays away.
func withoutKeys(environ []string, keyEnv string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(kv), "=")
		for _, part := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"} {
			if strings.Contains(name, part) {
				return true
			}
		}
		return name == strings.ToUpper(keyEnv)
	})
}
