package lsp

import "context"

// Shutdown stops all runs, those that wait for an answer for now; exit ends the process.
func (s *Server) Shutdown(context.Context) error {
	s.state.set(stateShutdown)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.gone()
	}
	return nil
}

// Exit makes Main return.
func (s *Server) Exit(context.Context) error {
	select {
	case <-s.exit:
	default:
		close(s.exit)
	}
	return nil
}
