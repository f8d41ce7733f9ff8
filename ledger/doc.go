// Package ledger records what ThinkFlow does to a workspace: runs, turns,
// commands, the texts that undo them, and every decision, in one SQLite file
// per workspace in the user's state folder.
//
// Three promises hold (DESIGN, Ledger):
//
//   - An intent is durable before the effect that it announces: [Ledger.Intent]
//     returns after a synced commit. The outcome needs no commit of its own; it
//     shares the next one.
//   - [Open] settles the intents of dead owners by looking at the files, and
//     never by running anything: after-hash means applied, before-hash means
//     not applied, anything else is uncertain and is told.
//   - Event rows are append-only and hash-chained; [Ledger.Verify] names the
//     first row that was changed, and the chain survives [Ledger.Prune].
//
// The package knows nothing of files, models or editors but what it is told.
// All times are stored in UTC with microseconds; sizes are bytes; hashes are
// lower-case SHA-256 hex of the bytes, "" meaning that there is no file.
package ledger
