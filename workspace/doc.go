// Package workspace knows files: roots and paths, open documents, matching of
// quoted text, guards, diffs, atomic writing, reading and searching.
//
// It works in byte offsets and plain structs and knows no model, no tag and no
// LSP type. The way of a change is always the same three steps:
//
//	change, err := w.Plan(op)        // pure: reads, matches, guards, repairs
//	… the caller records change.Undo() and the hashes durably …
//	done, err := w.Commit(ctx, change)  // disk; or, when change.Open is set, the
//	                                    // caller sends change.Edits to the editor
//
// A plan that cannot be carried out is a *Refusal, whose message is written for
// the model: it says what is wrong, where, and what to do next.
//
// Every path of every reader and writer goes through Resolve. What Resolve
// approved is opened again at the write without following links.
package workspace
