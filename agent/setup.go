package agent

import (
	"context"
	"maps"

	"thinkflow/agent/profile"
	"thinkflow/internal/config"
)

// setup is what one turn works with: what was switched in the session, else what
// the configuration says, else what the profile of the model says. It is made
// anew for every turn.
type setup struct {
	SessionSettings
	profile profile.Profile
	tools   *toolbox
	native  bool // commands come as native calls, tags are text
	teach   bool // the prompt says that commands run in the thinking too

	startInThink  bool
	sendReasoning bool
	context       int // tokens, 0 = unknown
	maxOutput     int // tokens, 0 = the server decides
	extra         map[string]any
	price         price
}

// context is the run's, also of one that is only made up to size a request.
func (r *run) context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	return context.Background()
}

func (r *run) setup() *setup {
	c := &r.cfg
	s := &setup{SessionSettings: r.settings(), tools: r.e.toolbox(r.context())}
	p, err := profile.Lookup(s.Model, c.Profiles)
	if err != nil {
		r.e.profileTrouble(err)
	}
	s.profile = p
	switch s.Protocol {
	case config.ProtocolNative:
		s.native = true
	case config.ProtocolAuto, "":
		s.native = p.Protocol == profile.Native || r.s.leftTags(s.Model)
	}
	if p.NoTools {
		s.native = false
	}
	s.teach = !s.native && c.ReasoningCommands && p.Teach == profile.Reasoning
	s.startInThink = c.StartInThink || p.StartInThink
	s.sendReasoning = c.SendReasoning || p.SendReasoning
	s.context = c.ContextTokens
	if s.context == 0 {
		s.context = r.e.contextOf(s.Model)
	}
	if s.context == 0 {
		s.context = p.Context
	}
	s.maxOutput = c.MaxOutputTokens
	s.extra = p.Extra
	if len(c.ExtraBody) > 0 {
		s.extra = maps.Clone(p.Extra)
		if s.extra == nil {
			s.extra = map[string]any{}
		}
		maps.Copy(s.extra, c.ExtraBody)
	}
	s.price = price{c.PriceInput, c.PriceOutput, c.PriceCached}
	if s.price == (price{}) {
		s.price = price{p.PriceInput, p.PriceOutput, p.PriceCached}
	}
	return s
}

// profileTrouble tells once that a row of the user's profiles is wrong.
func (e *Engine) profileTrouble(err error) {
	e.mu.Lock()
	told := e.toldProfiles
	e.toldProfiles = true
	e.mu.Unlock()
	if !told {
		e.notice(err.Error() + "; the row is not used")
	}
}

// brokenFormats is how many answers of a run may break the form of tags before
// protocol auto gives up on them.
const brokenFormats = 2

// leftTags tells whether the session changed to native calls for the model.
func (s *session) leftTags(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noTags[model]
}

func (s *session) leaveTags(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noTags == nil {
		s.noTags = map[string]bool{}
	}
	s.noTags[model] = true
}

// brokeFormat counts answers that were no good tags. At the second one of a run
// protocol auto changes to native calls; it returns what is to be said then.
func (r *run) brokeFormat(t *turn) string {
	if !t.badForm || t.set.native || t.set.profile.NoTools {
		return ""
	}
	r.broken++
	if r.broken < brokenFormats || t.set.Protocol != config.ProtocolAuto && t.set.Protocol != "" {
		return ""
	}
	r.broken = 0
	r.s.leaveTags(t.set.Model)
	r.s.addNote("Your tags could not be read twice. From here on do not write tags: change files with the tools write_file, edit_file and so on.")
	return t.set.Model + " broke the form of the command tags twice; from here on it gives commands as native tool calls (protocol auto)"
}
