package lsp

import "context"

// steerParams are a further message for a run that is going on.
type steerParams struct {
	Run  string `json:"runId"`
	Text string `json:"text"`
}

// steer serves thinkflow/steer: the model sees the text with its next turn.
func (s *Server) steer(_ context.Context, p steerParams) (empty, error) {
	b := s.standing()
	if b == nil {
		return empty{}, badParams("run %q: no run is going on", p.Run)
	}
	if err := b.Engine.Steer(p.Run, p.Text); err != nil {
		return empty{}, badParams("%v", err)
	}
	return empty{}, nil
}
