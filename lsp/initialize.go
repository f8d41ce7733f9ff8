package lsp

import (
	"context"
	"encoding/json"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// ProtocolVersion is the version of the thinkflow/* methods and events. It
// grows when something is removed or changes its meaning, not when something is
// added.
const ProtocolVersion = 1

// initOptions are the initializationOptions that we know.
type initOptions struct {
	// Settings have the same keys as the user's configuration file.
	Settings json.RawMessage `json:"settings"`
	// Protocol is the newest version of our methods that the plugin speaks.
	Protocol int `json:"protocol"`
	// Approvals: the plugin asks the person itself, on approval.requested.
	Approvals bool `json:"approvals"`
	// Diagnostics: the plugin answers thinkflow/diagnostics.
	Diagnostics bool `json:"diagnostics"`
}

// experimental is what we say about ourselves in the server's capabilities.
type experimental struct {
	ThinkFlow thinkflowCapability `json:"thinkflow"`
}

type thinkflowCapability struct {
	Version  string            `json:"version"`
	Protocol int               `json:"protocol"`
	Methods  []string          `json:"methods"`
	Events   []agent.EventType `json:"events"`
}

// Initialize answers at once: nothing is read from disk and no engine built.
func (s *Server) Initialize(_ context.Context, p *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	var o initOptions
	if len(p.InitializationOptions) > 0 {
		if err := json.Unmarshal(p.InitializationOptions, &o); err != nil {
			s.log.Warn("the initializationOptions cannot be read", "error", err)
		}
	}
	facts := factsOf(p, o)
	s.docs.enc = facts.encoding
	s.mu.Lock()
	s.facts = facts
	s.folders = initialFolders(p, s.workingDir())
	if !isNull(o.Settings) {
		s.settings = o.Settings
	}
	s.mu.Unlock()
	s.state.set(stateInitialized)

	about, err := ourJSON(experimental{thinkflowCapability{s.opts.Version, ProtocolVersion, s.methodNames(), agent.EventTypes}})
	if err != nil {
		return nil, err
	}
	yes := true
	sync := protocol.TextDocumentSyncKindIncremental
	var lenses *protocol.CodeLensOptions
	if facts.codeLens {
		lenses = &protocol.CodeLensOptions{}
	}
	return &protocol.InitializeResult{
		ServerInfo: protocol.ServerInfo{Name: "thinkflow", Version: protocol.NewOptional(s.opts.Version)},
		Capabilities: protocol.ServerCapabilities{
			PositionEncoding: protocol.PositionEncodingKind(facts.encoding),
			TextDocumentSync: &protocol.TextDocumentSyncOptions{
				OpenClose: &yes, Change: &sync, Save: protocol.Boolean(true),
			},
			CodeActionProvider:     protocol.Boolean(true),
			CodeLensProvider:       lenses,
			ExecuteCommandProvider: protocol.ExecuteCommandOptions{Commands: commandNames},
			Workspace: &protocol.WorkspaceOptions{
				WorkspaceFolders: &protocol.WorkspaceFoldersServerCapabilities{
					Supported: &yes, ChangeNotifications: protocol.Boolean(true),
				},
			},
			Experimental: protocol.LSPAny(about),
		},
	}, nil
}

// Initialized begins to build the engine.
func (s *Server) Initialized(context.Context, *protocol.InitializedParams) error {
	s.start(false)
	return nil
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }
