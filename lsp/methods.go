package lsp

import (
	"context"
	"encoding/json"
	"slices"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// The methods of our own, client to server, and the notifications to the client.
const (
	methodRun      = "thinkflow/run"
	methodCancel   = "thinkflow/cancel"
	methodSteer    = "thinkflow/steer"
	methodApprove  = "thinkflow/approve"
	methodResume   = "thinkflow/resume"
	methodSessions = "thinkflow/sessions"
	methodSession  = "thinkflow/session"
	methodChanges  = "thinkflow/changes"
	methodKeep     = "thinkflow/keep"
	methodUndo     = "thinkflow/undo"
	methodContent  = "thinkflow/content"
	methodRewind   = "thinkflow/rewind"
	methodMode     = "thinkflow/mode"
	methodModels   = "thinkflow/models"
	methodTrust    = "thinkflow/trust"
	methodLedger   = "thinkflow/ledger"

	notifyEvent   = "thinkflow/event"
	notifyPreview = "thinkflow/preview"
)

// ownMethod decodes the params, does its work and encodes the result.
type ownMethod func(ctx context.Context, params []byte) (any, error)

// ownTable lists our methods. Missing and null params are alike: the zero value.
func (s *Server) ownTable() map[string]ownMethod {
	return map[string]ownMethod{
		methodRun:      typed(s.run),
		methodCancel:   typed(s.cancelRun),
		methodSteer:    typed(s.steer),
		methodApprove:  typed(s.approve),
		methodResume:   typed(s.resume),
		methodSessions: typed(s.sessions),
		methodSession:  typed(s.session),
		methodChanges:  typed(s.changes),
		methodKeep:     typed(s.keep),
		methodUndo:     typed(s.undo),
		methodContent:  typed(s.content),
		methodRewind:   typed(s.rewind),
		methodMode:     typed(s.mode),
		methodModels:   typed(s.models),
		methodTrust:    typed(s.trust),
		methodLedger:   typed(s.ledger),
	}
}

// methodNames are told to the client in initialize.
func (s *Server) methodNames() []string {
	var names []string
	for name := range s.ownTable() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func typed[P, R any](f func(context.Context, P) (R, error)) ownMethod {
	return func(ctx context.Context, params []byte) (any, error) {
		var p P
		if !isNull(params) {
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, badParams("the params cannot be read: %v", err)
			}
		}
		r, err := f(ctx, p)
		if err != nil {
			return nil, err
		}
		return ourJSON(r)
	}
}

// ownMethods serves our methods and what protocol.ServerHandler cannot: didOpen
// with the client's spelling of the URI.
func (s *Server) ownMethods(next jsonrpc2.Handler) jsonrpc2.Handler {
	table := s.ownTable()
	return func(ctx context.Context, req *jsonrpc2.Request) (any, error) {
		if own, ok := table[req.Method()]; ok {
			return own(ctx, req.Params())
		}
		if req.Method() == protocol.MethodTextDocumentDidOpen {
			return nil, s.didOpen(req.Params())
		}
		if !standard[req.Method()] {
			return nil, jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "unknown method %q", req.Method())
		}
		return next(ctx, req)
	}
}

// standard are the methods of LSP that we serve or take note of. Any other is
// refused here: protocol.ServerHandler would call it a parse error when it has
// no params.
var standard = map[string]bool{
	protocol.MethodInitialize: true, protocol.MethodInitialized: true, protocol.MethodShutdown: true, protocol.MethodExit: true,
	protocol.MethodSetTrace:              true,
	protocol.MethodTextDocumentDidChange: true, protocol.MethodTextDocumentDidSave: true, protocol.MethodTextDocumentDidClose: true,
	protocol.MethodWorkspaceExecuteCommand: true, protocol.MethodTextDocumentCodeAction: true, protocol.MethodTextDocumentCodeLens: true,
	protocol.MethodWorkspaceDidChangeConfiguration:    true,
	protocol.MethodWorkspaceDidChangeWorkspaceFolders: true,
	protocol.MethodWindowWorkDoneProgressCancel:       true,
}

// empty is the result of methods that have nothing to say.
type empty struct{}
