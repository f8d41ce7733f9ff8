package agent

import (
	"context"
	"fmt"
	"slices"

	"thinkflow/internal/config"
	"thinkflow/internal/sandbox"
)

// SessionSettings are what a person may switch while a session goes on. Empty
// fields stand for the configuration's value.
type SessionSettings struct {
	Mode            config.Mode     `json:"mode,omitempty"`
	Model           string          `json:"model,omitempty"`
	ReasoningEffort string          `json:"reasoningEffort,omitempty"`
	Protocol        config.Protocol `json:"protocol,omitempty"`
}

// Switch changes settings of a session; empty fields of s stay as they are. A
// mode acts at once on what is executed, everything else on the next request. A
// session that is not there yet is begun with these settings. It returns what
// counts now, with nothing left empty but an effort that was never set.
func (e *Engine) Switch(id string, s SessionSettings) (SessionSettings, error) {
	if id == "" {
		return SessionSettings{}, fmt.Errorf("no session is named")
	}
	if err := CheckSettings(s); err != nil {
		return SessionSettings{}, err
	}
	e.mu.Lock()
	known := e.sessions[id] != nil
	e.mu.Unlock()
	if !known { // or what was said in it before would be lost
		if err := e.loadSession(context.Background(), id); err != nil {
			return SessionSettings{}, err
		}
	}
	e.mu.Lock()
	sess := e.session(id)
	cfg := e.cfg
	e.mu.Unlock()
	return sess.change(s).over(&cfg), nil
}

// Settings are what counts in a session that is known here; of any other, and
// with id "", what counts in a new one.
func (e *Engine) Settings(id string) SessionSettings {
	e.mu.Lock()
	sess, cfg := e.sessions[id], e.cfg
	e.mu.Unlock()
	if sess == nil {
		return SessionSettings{}.over(&cfg)
	}
	return sess.change(SessionSettings{}).over(&cfg)
}

// Over returns s with the fields that are set in n.
func (s SessionSettings) Over(n SessionSettings) SessionSettings {
	t := session{settings: s}
	return t.change(n)
}

// CheckSettings says what is wrong with settings that a person gave.
func CheckSettings(s SessionSettings) error {
	switch {
	case s.Mode != "" && !slices.Contains(config.Modes, s.Mode):
		return fmt.Errorf("mode %q is not one of %v", s.Mode, config.Modes)
	case s.Protocol != "" && !slices.Contains([]config.Protocol{config.ProtocolAuto, config.ProtocolTags, config.ProtocolNative}, s.Protocol):
		return fmt.Errorf("protocol %q is not one of auto, tags, native", s.Protocol)
	}
	return nil
}

// Mode and Protocol are what can be switched in a session, by the names of the
// configuration.
type (
	Mode     = config.Mode
	Protocol = config.Protocol
)

// Modes are the modes, the one that may least first.
func Modes() []Mode { return slices.Clone(config.Modes) }

// over fills in what the configuration says.
func (s SessionSettings) over(c *config.Config) SessionSettings {
	if s.Mode == "" {
		s.Mode = c.Mode
	}
	if s.Mode == "" { // a configuration made by hand
		s.Mode = config.ModeEdit
	}
	if s.Model == "" {
		s.Model = c.Model
	}
	if s.ReasoningEffort == "" {
		s.ReasoningEffort = c.ReasoningEffort
	}
	if s.Protocol == "" {
		s.Protocol = c.Protocol
	}
	return s
}

// change takes the fields that are set and returns all of them.
func (s *session) change(n SessionSettings) SessionSettings {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := func(old *string, v string) {
		if v != "" {
			*old = v
		}
	}
	set((*string)(&s.settings.Mode), string(n.Mode))
	set(&s.settings.Model, n.Model)
	set(&s.settings.ReasoningEffort, n.ReasoningEffort)
	set((*string)(&s.settings.Protocol), string(n.Protocol))
	return s.settings
}

// settings are what counts for the run at this moment.
func (r *run) settings() SessionSettings {
	if p := r.parent; p != nil {
		s := p.r.settings()
		s.Mode = p.limit(s.Mode)
		return s
	}
	return r.s.change(SessionSettings{}).over(&r.cfg)
}

// barred says why the mode of the session does not let the action happen, ""
// when it does.
func (r *run) barred(a Action) string {
	if a == ActionRead {
		return ""
	}
	switch mode := r.settings().Mode; mode {
	case config.ModeAsk:
		return "this session only answers questions (mode ask): nothing may be changed or run. Answer in words, or say what you would change"
	case config.ModePlan:
		return "this session only plans (mode plan): nothing may be changed or run. Say what you would do; the user switches the mode when they agree"
	}
	return ""
}

// waive leaves out what the mode answers with yes.
func (r *run) waive(needs []need) []need {
	if len(needs) == 0 || r.settings().Mode != config.ModeAuto {
		return needs
	}
	return slices.DeleteFunc(needs, func(n need) bool {
		if n.wants != (sandbox.Grants{}) {
			return false
		}
		return n.class == config.AllowDelete || n.class == config.AllowBash
	})
}
