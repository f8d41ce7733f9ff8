// Package lsp is the editor side of ThinkFlow: an LSP server over stdio. It
// keeps the open documents, turns the agent's changes into versioned
// WorkspaceEdits and finds out whether they landed, and carries runs, events,
// progress and approvals over JSON-RPC.
//
// It implements [agent.Editor] and [agent.Approver], and knows the engine only
// through [Engine]. It is the only package that imports go.lsp.dev.
//
// # Units
//
// Inside, everything is byte offsets into immutable texts. Client positions
// (UTF-16 unless negotiated otherwise; lines from 0) exist only in position.go
// and at the very edge of a handler.
//
// # The way of a message
//
//	frames.go   bytes → whole frames; broken ones are answered and dropped
//	serve.go    guard → cancel → recover → thinkflow/* table → protocol.Server
//	sync.go     didOpen, didChange, … → one modification → documents.apply
//	run.go …    one file per request: snapshot, delegate, convert
//	apply.go    a change → WorkspaceEdit → confirm.go → verdict
//
// Notifications and requests are handled in the order in which they come, on
// the read loop; a handler that takes long (thinkflow/run) takes what it needs
// of the documents first and then releases the loop (release).
// Nothing that runs on the read loop may call the client.
//
// # What is absent on purpose
//
// protocol.NewServer and protocol.Handlers: they handle every message
// concurrently, so that didChange is applied out of order. Trust in the reply
// to workspace/applyEdit: clients say "applied" for skipped edits, so only the
// reported text decides. A watch on the parent process: the editor's end of the
// pipe says the same, also across process namespaces.
package lsp
