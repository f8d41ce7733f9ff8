package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// Probe looks at a file: the SHA-256 hex of its bytes; exists is false when
// nothing is there; a folder exists with an empty hash.
type Probe func(path string) (hash string, exists bool, err error)

// Options configures a ledger.
type Options struct {
	// Dir is the state folder of this workspace (see StateDir); it is created
	// with mode 0700.
	Dir string
	// Workspace is the identity of the workspace, e.g. its first root.
	Workspace string
	// Probe looks at files when settling; nil leaves intents of dead owners as
	// they are.
	Probe Probe
	// RemoveTemp removes a recorded temp file of a dead owner; a missing file
	// is no error. nil leaves them.
	RemoveTemp func(path string) error
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// Log gets what went wrong in the background; nil = discarded.
	Log *slog.Logger
	// FlushAfter is how long outcomes may wait for a commit; 0 = 200 ms.
	FlushAfter time.Duration
}

// Ledger is one open ledger. It may be used by several goroutines, and several
// processes may have the same ledger open.
type Ledger struct{}

var errTodo = errors.New("ledger: not implemented yet")

// Open opens or creates the ledger in o.Dir and settles the intents of dead
// owners. A damaged file is kept aside under another name (see Aside) and a
// new one is started.
func Open(ctx context.Context, o Options) (*Ledger, error) { return nil, errTodo }

// Settled lists what Open decided about intents of dead owners.
func (l *Ledger) Settled() []Settlement { return nil }

// Aside is the path under which a damaged ledger was kept by Open; "" when the
// ledger was sound.
func (l *Ledger) Aside() string { return "" }

// Path is the path of the ledger's file.
func (l *Ledger) Path() string { return "" }

// StartSession records a session; a known id is left as it is.
func (l *Ledger) StartSession(s Session) error { return errTodo }

// StartRun records the start of a run; a known id becomes running again.
func (l *Ledger) StartRun(r Run) error { return errTodo }

// StartTurn records the start of a turn, from 1.
func (l *Ledger) StartTurn(run string, turn int) error { return errTodo }

// EndTurn records how a turn ended; usage may be nil.
func (l *Ledger) EndTurn(run string, turn int, finish string, usage json.RawMessage) error {
	return errTodo
}

// EndRun records how a run ended; usage may be nil.
func (l *Ledger) EndRun(run, state, reason string, usage json.RawMessage) error { return errTodo }

// Intent records what is about to be done. It is durable when Intent returns
// nil: only then may the effect happen. A key that is already there is a
// *DuplicateError.
func (l *Ledger) Intent(ctx context.Context, in Intent) error { return errTodo }

// Outcome records what became of an intent. It shares the next commit, at the
// latest after Options.FlushAfter.
func (l *Ledger) Outcome(o Outcome) error { return errTodo }

// Record stores a command that never had an intent (skipped, failed before its
// effect, cancelled), without a sync. The Command's Key, Tool, Path, Dest, Cmd,
// Status, Code, Error and so on are stored as given.
func (l *Ledger) Record(c Command) error { return errTodo }

// Event appends one of the agent's run events, numbered from 1 per run, without
// a sync. body must be JSON.
func (l *Ledger) Event(run string, seq int64, typ string, body json.RawMessage) error {
	return errTodo
}

// Approval records a question to a person or its answer.
func (l *Ledger) Approval(k Key, a Approval) error { return errTodo }

// Review records a person's decision about a change.
func (l *Ledger) Review(k Key, r Review) error { return errTodo }

// Injected marks the outcomes of these commands as told to the model.
func (l *Ledger) Injected(keys ...Key) error { return errTodo }

// List returns commands, oldest first.
func (l *Ledger) List(ctx context.Context, f Filter) ([]Command, error) { return nil, errTodo }

// Get returns the command with that key; a missing one wraps ErrNotFound.
func (l *Ledger) Get(ctx context.Context, k Key) (Command, error) { return Command{}, errTodo }

// Show returns one command with its texts and events. ref is its number N, the
// form of Key.String with the run abbreviated to a unique prefix or "last" and
// the channel left out when it is text (last/2/4), or "last" alone.
func (l *Ledger) Show(ctx context.Context, ref string) (Detail, error) { return Detail{}, errTodo }

// Runs returns runs, newest first, with their counts.
func (l *Ledger) Runs(ctx context.Context, f RunFilter) ([]Run, error) { return nil, errTodo }

// FindRun returns the run with that id, unique prefix of one, or "last".
func (l *Ledger) FindRun(ctx context.Context, ref string) (Run, error) { return Run{}, errTodo }

// Events returns rows of the chain.
func (l *Ledger) Events(ctx context.Context, f EventFilter) ([]Event, error) { return nil, errTodo }

// Blob returns a stored text by its hash; a missing or purged one wraps ErrNotFound.
func (l *Ledger) Blob(ctx context.Context, hash string) ([]byte, error) { return nil, errTodo }

// PurgeBlobs removes stored texts (of secret files) for good; their hashes stay.
func (l *Ledger) PurgeBlobs(ctx context.Context, hashes ...string) error { return errTodo }

// Verify walks the chain; the first row that does not fit is a *BrokenError.
// It returns the number of rows walked.
func (l *Ledger) Verify(ctx context.Context) (rows int64, err error) { return 0, errTodo }

// Prune removes ended runs that are older than age, then the oldest ones until
// the ledger is no larger than size bytes; 0 sets no bound.
func (l *Ledger) Prune(ctx context.Context, age time.Duration, size int64) (PruneResult, error) {
	return PruneResult{}, errTodo
}

// Flush commits, durably, all that waits.
func (l *Ledger) Flush(ctx context.Context) error { return errTodo }

// Close flushes and closes.
func (l *Ledger) Close() error { return errTodo }
