// Package fakeeditor is an LSP client for tests, over an in-process pipe. It
// plays the quirks that were seen in real editors (profile.go): when they
// report changes, what they answer to stale edits, which versions they count,
// what they do to line endings. Time is virtual (clock.go): debounces pass when
// the test says so, nothing sleeps.
//
// It has its own small JSON-RPC and its own position arithmetic, on encoding/json
// and the standard library only, so that a mistake of the server's libraries
// does not hide itself.
package fakeeditor
