package lsp

import "context"

// runRef names a run; "" means the only one that is going on.
type runRef struct {
	Run string `json:"runId"`
}

type cancelResult struct {
	Cancelled bool `json:"cancelled"`
}

// cancelRun serves thinkflow/cancel. Applied commands stay.
func (s *Server) cancelRun(_ context.Context, p runRef) (cancelResult, error) {
	return cancelResult{s.stop(p.Run) > 0}, nil
}

// stop cancels a run, or all when id is "", and counts them. A run whose engine
// is not there yet is cancelled by its context.
func (s *Server) stop(id string) int {
	s.mu.Lock()
	var stopped []*activeRun
	for _, r := range s.runs {
		if id == "" || r.id == id {
			stopped = append(stopped, r)
		}
	}
	backend := s.backend
	s.mu.Unlock()
	n := len(stopped)
	for _, r := range stopped {
		r.cancel()
	}
	if n == 0 && id != "" && backend != nil && backend.Engine.Cancel(id) {
		n = 1
	}
	return n
}
