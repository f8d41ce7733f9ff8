package lsp

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"
)

// section is our name in an editor's settings.
const section = "thinkflow"

// DidChangeConfiguration takes settings of the form {thinkflow: {…}}. A client
// that sends none with the notification (VS Code's pull model) is asked for
// them.
func (s *Server) DidChangeConfiguration(_ context.Context, p *protocol.DidChangeConfigurationParams) error {
	var all map[string]json.RawMessage
	if !isNull(p.Settings) {
		if err := json.Unmarshal(p.Settings, &all); err != nil {
			return err
		}
	}
	if own, ok := all[section]; ok && !isNull(own) {
		return s.configure(own)
	}
	if s.clientFacts().configuration && len(all) == 0 {
		go s.pullSettings() // a call to the client must not block the read loop
	}
	return nil
}

func (s *Server) pullSettings() {
	name := section
	got, err := s.client.Configuration(s.ctx, &protocol.ConfigurationParams{Items: []protocol.ConfigurationItem{{Section: &name}}})
	if err == nil && len(got) == 1 && !isNull(got[0]) {
		err = s.configure(json.RawMessage(got[0]))
	}
	if err != nil {
		s.log.Warn("the settings could not be taken from the editor", "error", err)
	}
}

// configure keeps the settings and hands them to the engine if it stands.
func (s *Server) configure(settings json.RawMessage) error {
	s.mu.Lock()
	s.settings = append([]byte(nil), settings...)
	s.mu.Unlock()
	if b := s.standing(); b != nil && b.Configure != nil {
		return b.Configure(settings)
	}
	return nil
}
