package lsp

import (
	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// notice shows the person a message that belongs to no run.
func (s *Server) notice(message string) { s.show(protocol.MessageTypeWarning, message) }

// show must not be called with a lock held: the write may block.
func (s *Server) show(kind protocol.MessageType, message string) {
	err := s.client.ShowMessage(s.ctx, &protocol.ShowMessageParams{Type: kind, Message: message})
	if err != nil && s.ctx.Err() == nil {
		s.log.Warn("a message could not be shown", "message", message, "error", err)
	}
}

// tellHook passes an event on to the user's own notifications.
func (s *Server) tellHook(b *Backend, ev agent.Event) {
	if b.Notify != nil {
		b.Notify(ev)
	}
}

// report tells a client without a plugin how its run ended: the answer goes to
// the log of the server, one line to the person.
func (s *Server) report(res agent.RunResult, err error) {
	if err != nil {
		s.show(protocol.MessageTypeError, "ThinkFlow: "+err.Error())
		return
	}
	if res.Text != "" {
		_ = s.client.LogMessage(s.ctx, &protocol.LogMessageParams{Type: protocol.MessageTypeInfo, Message: res.Text})
	}
	kind := protocol.MessageTypeInfo
	switch res.State {
	case agent.StateFailed:
		kind = protocol.MessageTypeError
	case agent.StateStopped, agent.StateRefused, agent.StateSuspended:
		kind = protocol.MessageTypeWarning
	}
	s.show(kind, "ThinkFlow: "+summary(res))
}
