package lsp

import (
	"context"
	"errors"
	"fmt"

	"thinkflow/agent"
)

// Recorder is what an engine has besides if it keeps a ledger; *agent.Engine has
// it.
type Recorder interface {
	Commands(ctx context.Context, q agent.CommandQuery) (agent.CommandList, error)
	Command(ctx context.Context, ref string) (agent.CommandDetail, error)
}

var _ Recorder = (*agent.Engine)(nil)

// ledgerParams list recorded commands, or name one.
type ledgerParams struct {
	agent.CommandQuery
	Command string `json:"command,omitempty"` // number, run/turn/id, or last
}

// ledgerResult is a list, or the one command.
type ledgerResult struct {
	*agent.CommandList
	Command *agent.CommandDetail `json:"command,omitempty"`
}

// ledger serves thinkflow/ledger.
func (s *Server) ledger(ctx context.Context, p ledgerParams) (ledgerResult, error) {
	release(ctx)
	b, err := s.engine(ctx)
	if err != nil {
		return ledgerResult{}, fmt.Errorf("the engine could not be set up: %w", err)
	}
	r, ok := b.Engine.(Recorder)
	if !ok {
		return ledgerResult{}, errors.New("this engine keeps no ledger")
	}
	if p.Command != "" {
		d, err := r.Command(ctx, p.Command)
		if err != nil {
			return ledgerResult{}, badParams("command %q: %v", p.Command, err)
		}
		return ledgerResult{Command: &d}, nil
	}
	list, err := r.Commands(ctx, p.CommandQuery)
	if err != nil {
		return ledgerResult{}, badParams("%v", err)
	}
	return ledgerResult{CommandList: &list}, nil
}
