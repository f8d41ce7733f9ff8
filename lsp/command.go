package lsp

import (
	"context"
	"encoding/json"
	"strings"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// The commands for clients without a plugin. VS Code registers the names that a
// server advertises, so the extension uses others for itself.
const (
	commandRun     = "thinkflow.server.run"
	commandCancel  = "thinkflow.server.cancel"
	commandApprove = "thinkflow.server.approve"

	commandKeep     = "thinkflow.server.keep"
	commandUndo     = "thinkflow.server.undo"
	commandAccept   = "thinkflow.server.accept"
	commandReject   = "thinkflow.server.reject"
	commandNextHunk = "thinkflow.server.nextHunk"

	commandMode  = "thinkflow.server.mode"
	commandModel = "thinkflow.server.model"
)

var commandNames = []string{commandRun, commandCancel, commandApprove, commandKeep, commandUndo, commandAccept, commandReject, commandNextHunk, commandMode, commandModel}

// runStarted is the answer to thinkflow.server.run.
type runStarted struct {
	Run string `json:"runId"`
}

// ExecuteCommand answers at once; a run goes on in the background.
func (s *Server) ExecuteCommand(ctx context.Context, p *protocol.ExecuteCommandParams) (protocol.LSPAny, error) {
	var arg json.RawMessage
	if len(p.Arguments) > 0 {
		arg = json.RawMessage(p.Arguments[0])
	}
	var method ownMethod
	switch p.Command {
	case commandRun:
		method = typed(s.runInBackground)
	case commandCancel:
		method = typed(s.cancelRun)
	case commandApprove:
		method = typed(s.approve)
	case commandKeep, commandUndo, commandAccept, commandReject:
		method = s.reviewCommand(p.Command)
	case commandNextHunk:
		method = typed(s.nextHunk)
	case commandMode, commandModel:
		method = s.switchCommand(p.Command)
		arg = switchArgument(p.Command, arg)
	default:
		return nil, badParams("unknown command %q; there are %s", p.Command, strings.Join(commandNames, ", "))
	}
	result, err := method(ctx, taskArgument(p.Command, arg))
	if err != nil {
		return nil, err
	}
	raw, err := codec{}.Marshal(result)
	return protocol.LSPAny(raw), err
}

// taskArgument lets the run command take a bare string, which is what a person
// can type in :LspExecuteCommand or M-x eglot-execute-command.
func taskArgument(command string, arg json.RawMessage) json.RawMessage {
	var task string
	if command == commandRun && json.Unmarshal(arg, &task) == nil {
		arg, _ = json.Marshal(runParams{Task: task})
	}
	return arg
}

// runInBackground starts a run that lives as long as the connection.
func (s *Server) runInBackground(_ context.Context, p runParams) (runStarted, error) {
	req, err := s.request(p)
	if err != nil {
		return runStarted{}, err
	}
	a, ctx, err := s.begin(s.ctx, req.Run)
	if err != nil {
		return runStarted{}, err
	}
	go func() {
		var res agent.RunResult
		res, err := s.finish(a, ctx, req, p.WorkDoneToken, false)
		if !s.clientFacts().events && s.ctx.Err() == nil {
			s.report(res, err)
		}
	}()
	return runStarted{req.Run}, nil
}
