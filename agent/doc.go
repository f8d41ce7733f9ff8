// Package agent runs tasks: it owns sessions, the loop over turns, the
// dispatcher that executes commands while the model is still streaming, the
// queue, the prompt, the history, permissions and the native tools.
//
// It knows models only through [Model], editors only through [Editor] and
// people only through [Approver]; it does not know LSP, JSON-RPC or terminals.
//
// Words: a session is a conversation; a run is one user task in it; a turn is
// one API call. History, approvals "for this session", and the echo memory
// belong to the session. A command is one tag, keyed by (run, turn, channel,
// id); a tool call is a native one.
//
// The way of a command through the package:
//
//	turn.go       deltas → parsers
//	dispatch.go   parser events → queue, settle windows, stops
//	queue.go      bounded FIFO
//	execute.go    permission → plan → intent → effect → outcome
//	messages.go   outcomes → the next turn's messages
package agent
