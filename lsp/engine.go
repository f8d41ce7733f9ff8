package lsp

import (
	"context"
	"encoding/json"
	"log/slog"

	"thinkflow/agent"
	"thinkflow/workspace"
)

// Engine is what this package needs of the agent; *agent.Engine has it.
type Engine interface {
	// Run blocks until the run ends; an error means a bad request.
	Run(ctx context.Context, req agent.RunRequest) (agent.RunResult, error)
	// Cancel reports whether there was such a run.
	Cancel(run string) bool
	Steer(run, text string) error
	Approve(run, approvalID string, d agent.Decision) error
}

var (
	_ Engine    = (*agent.Engine)(nil)
	_ Documents = (*workspace.Workspace)(nil)
)

// Setup is what is known once the client has been initialized: what an engine
// is built from.
type Setup struct {
	Roots []workspace.Root
	// Settings are the editor's settings as JSON, with the same keys as the
	// user's configuration file; nil when there are none.
	Settings json.RawMessage
	Editor   agent.Editor
	Approver agent.Approver
	// Notice shows the person a message that belongs to no run.
	Notice  func(string)
	Log     *slog.Logger
	Client  string // name and version of the editor, "" when unknown
	Version string // ours
}

// Backend is an engine and what belongs to it.
type Backend struct {
	Engine    Engine
	Documents Documents
	// Display returns how people and models see an absolute path (relative to
	// its root); nil = as it is.
	Display func(abs string) string
	// Configure takes changed settings, in the form of Setup.Settings; nil =
	// settings take effect with the next start.
	Configure func(settings json.RawMessage) error
	// Settled hears what became of an edit whose verdict had been uncertain;
	// nil = nobody wants to know.
	Settled func(change *workspace.Change, outcome agent.EditOutcome)
	// Notify hears every event of every run, for the user's own notifications;
	// nil = nobody. What the editor shows is not its business.
	Notify func(agent.Event)
	// Close flushes the ledger. It is called once, when the connection ends and
	// all runs have been told to stop.
	Close func() error
}
