package ledger

import (
	"encoding/json"
	"fmt"
	"time"
)

// Status is what became of a command. The set is closed (DESIGN, Ledger).
type Status string

// The statuses.
const (
	StatusIntent     Status = "intent"      // announced; nothing known yet
	StatusStaged     Status = "staged"      // proposed, waits for review
	StatusApplied    Status = "applied"     // the effect is there
	StatusNotApplied Status = "not_applied" // a crash came before the effect
	StatusFailed     Status = "failed"      // tried and refused or broken
	StatusSkipped    Status = "skipped"     // not tried: an earlier one failed
	StatusRejected   Status = "rejected"    // a person said no
	StatusCancelled  Status = "cancelled"   // the run was cancelled first
	StatusUncertain  Status = "uncertain"   // nobody knows; never repaired silently
	StatusRolledBack Status = "rolled_back" // applied, then taken back by ThinkFlow
	StatusUndone     Status = "undone"      // applied, then undone by a person
)

// Flow says how a command was run.
type Flow string

// The flows: while the model was streaming, ending its stream, or as a native
// tool call.
const (
	FlowStreamed Flow = "streamed"
	FlowBlocking Flow = "blocking"
	FlowNative   Flow = "native"
)

// Via says where the effect of a command happens.
type Via string

// The ways. An intent sent to an editor cannot be settled as not applied by
// looking at the disk: the text may stand in an unsaved buffer.
const (
	ViaDisk   Via = "disk"
	ViaEditor Via = "editor"
)

// Dir is the hash that stands for an existing folder in Intent's hashes and in
// what a probe found.
const Dir = "dir"

// Key names one command. Ids are unique per run, turn and channel (cases LR-10
// and LR-11: the key is what makes a repeated command harmless).
type Key struct {
	Run     string `json:"run"`
	Turn    int    `json:"turn"`    // from 1
	Channel string `json:"channel"` // "text", "reasoning" or "native"
	ID      int    `json:"id"`
}

// String is the form that [Ledger.Show] accepts: run/turn/channel/id.
func (k Key) String() string {
	return fmt.Sprintf("%s/%d/%s/%d", k.Run, k.Turn, k.Channel, k.ID)
}

// Session is one conversation.
type Session struct {
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Started time.Time `json:"started"`
}

// Run is one task of a person.
type Run struct {
	ID      string          `json:"id"`
	Session string          `json:"session,omitempty"`
	Task    string          `json:"task,omitempty"`
	Model   string          `json:"model,omitempty"`
	Dir     string          `json:"dir,omitempty"` // first root
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended,omitempty"` // nil while it runs
	State   string          `json:"state"`           // "running", as given to EndRun, or "interrupted" when its owner died
	Reason  string          `json:"reason,omitempty"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Turns   int             `json:"turns"`
	// Counts of the run's commands by status; filled in by Runs only.
	Counts map[Status]int `json:"counts,omitempty"`
}

// The two states of a run that the ledger itself sets.
const (
	RunRunning     = "running"
	RunInterrupted = "interrupted"
)

// Intent announces an effect. Hashes are as [Probe] reports them: "" = absent,
// [Dir] = a folder.
type Intent struct {
	Key
	Tool       string // tf-write, …, or the name of a native tool
	Path, Dest string // as people and models see them
	Cmd        string // shell commands
	Abs        string // real path that is probed when settling; "" for commands without a file
	AbsDest    string // copy and move

	// BeforeHash and AfterHash are the text of Abs before and after; for copy
	// and move BeforeHash is the source before and AfterHash the target after.
	BeforeHash, AfterHash string
	// DestBefore is the target of a copy or move before it; "" = absent.
	DestBefore string

	NeedResult bool
	Flow       Flow
	Via        Via // "" = disk
	Risk       string
	Rung       string // how the text to replace was found
	// Temp is the absolute path of the temp file that the write will use, so
	// that a crash leaves none behind; "" = none.
	Temp string

	// Undo takes the effect back: a reverse delta or the text before, in the
	// caller's encoding. Content is the command's own body (or its pairs), if
	// the caller wants it kept; texts are stored once per content. Secret marks
	// both for purging when the change is kept.
	Undo, Content []byte
	Secret        bool
	// ContentHash identifies what was asked for: the same key with the same
	// ContentHash is a repetition, with another one a conflict.
	ContentHash string
	// Summary describes the content in a few words ("41 lines, 1,204 bytes").
	Summary string
	// Args are the arguments of a native tool call as JSON.
	Args json.RawMessage
	// Staged records the command as a proposal that waits for review.
	Staged bool
	At     time.Time // zero = now
}

// Outcome says what became of an announced command.
type Outcome struct {
	Key
	Status  Status
	Code    string // error code
	Error   string // for people
	Bytes   int64  // size written
	Added   int    // lines
	Removed int    // lines
	Rung    string // "" keeps the intent's
	// Output describes what came back, in a few words ("12 lines, 340 bytes").
	Output   string
	Stdout   string // cut to 64 KiB in the middle; of a shell command both streams, as they came
	Stderr   string // only where it came apart from stdout
	ExitCode *int
	Notes    []string
	At       time.Time // zero = now
}

// Announced is what the intent of a command says about it, as it stands in the
// chain and in [Command].
type Announced struct {
	Tool       string          `json:"tool"`
	Path       string          `json:"path,omitempty"`
	Dest       string          `json:"dest,omitempty"`
	Cmd        string          `json:"cmd,omitempty"`
	Abs        string          `json:"abs,omitempty"`
	AbsDest    string          `json:"abs_dest,omitempty"`
	BeforeHash string          `json:"before_hash,omitempty"`
	AfterHash  string          `json:"after_hash,omitempty"`
	DestBefore string          `json:"dest_before,omitempty"`
	NeedResult bool            `json:"need_result,omitempty"`
	Flow       Flow            `json:"flow,omitempty"`
	Via        Via             `json:"via,omitempty"`
	Risk       string          `json:"risk,omitempty"`
	Rung       string          `json:"rung,omitempty"`
	Temp       string          `json:"temp,omitempty"`
	UndoBlob   string          `json:"undo_blob,omitempty"`    // hash for Blob; "" = none
	Content    string          `json:"content_blob,omitempty"` // hash for Blob; "" = not kept
	Secret     bool            `json:"secret,omitempty"`
	ContentSum string          `json:"content_hash,omitempty"`
	Summary    string          `json:"summary,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
}

// Command is the projection of all that is known of one command.
type Command struct {
	N int64 `json:"n"` // number of its first row in the chain; grows in the order of recording
	Key
	// Extra: recorded beside another command that has the key (a repeated or
	// bad id); reached by N only.
	Extra bool `json:"extra,omitempty"`
	Announced

	Status Status `json:"status"`
	// Recovered: the status was found by looking, after the owner had died.
	Recovered bool     `json:"recovered,omitempty"`
	Code      string   `json:"code,omitempty"`
	Error     string   `json:"error,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Added     int      `json:"added,omitempty"`
	Removed   int      `json:"removed,omitempty"`
	Output    string   `json:"output,omitempty"` // what came back, in a few words
	Stdout    string   `json:"stdout,omitempty"` // of a shell command: both streams, in the order in which they came
	Stderr    string   `json:"stderr,omitempty"`
	ExitCode  *int     `json:"exit_code,omitempty"`
	Notes     []string `json:"notes,omitempty"`

	Injected  *time.Time `json:"injected,omitempty"` // when the outcome was told to the model
	IntentAt  time.Time  `json:"intent_at"`
	OutcomeAt *time.Time `json:"outcome_at,omitempty"`
	LastEvent int64      `json:"last_event"` // number of the row that set the status
}

// Detail is a command with its texts and the rows of the chain about it.
type Detail struct {
	Command
	Undo        Text    `json:"undo,omitempty"`    // nil when none was stored or it was purged
	ContentText Text    `json:"content,omitempty"` // nil when none was stored or it was purged
	Events      []Event `json:"events"`
}

// Event is one row of the chain.
type Event struct {
	Row    int64           `json:"row"` // number in the chain, from 1, without gaps
	Time   time.Time       `json:"time"`
	Run    string          `json:"run,omitempty"`
	Seq    int64           `json:"seq,omitempty"` // the agent's number within the run, from 1; 0 for the ledger's own rows
	Type   string          `json:"type"`
	Body   json.RawMessage `json:"body,omitempty"` // null when pruned
	Hash   string          `json:"hash"`
	Pruned bool            `json:"pruned,omitempty"`
}

// The types of the ledger's own rows. The agent's numbered run events carry
// the names of its closed list beside these.
const (
	EventOpened     = "ledger.opened" // first row of a ledger
	EventSession    = "ledger.session"
	EventSessionEnd = "ledger.session.end"
	EventRunStart   = "ledger.run.start"
	EventRunEnd     = "ledger.run.end"
	EventTurnStart  = "ledger.turn.start"
	EventTurnEnd    = "ledger.turn.end"
	EventIntent     = "ledger.intent"
	EventOutcome    = "ledger.outcome"
	EventRecord     = "ledger.record"
	EventSettled    = "ledger.settled"
	EventApproval   = "ledger.approval"
	EventReview     = "ledger.review"
	EventInjected   = "ledger.injected"
	EventRequest    = "ledger.request"
	EventCheckpoint = "ledger.checkpoint"
	EventPurge      = "ledger.purge"
	EventPrune      = "ledger.prune"
)

// Approval is one question to a person and the answer.
type Approval struct {
	ID       string    `json:"approval,omitempty"`
	Action   string    `json:"action"` // class: bash, delete, …
	Subject  string    `json:"subject,omitempty"`
	Target   string    `json:"target,omitempty"`   // the real target that was shown
	Hash     string    `json:"hash,omitempty"`     // of what was approved
	Decision string    `json:"decision,omitempty"` // "" while it is open
	By       string    `json:"by,omitempty"`       // editor, terminal, http, command line; nobody = there was no one to ask
	At       time.Time `json:"-"`                  // zero = now
}

// Request is what a person asked of a run that goes on.
type Request struct {
	Action string    `json:"action"`         // cancel, steer
	Text   string    `json:"text,omitempty"` // of a further message
	At     time.Time `json:"-"`              // zero = now
}

// ReviewKeep is the Action of a Review that keeps a change.
const ReviewKeep = "keep"

// Review is a person's decision about a change.
type Review struct {
	Action string    `json:"action"` // keep, undo, edit, reject
	Path   string    `json:"path,omitempty"`
	Hunks  []string  `json:"hunks,omitempty"` // ids; empty = all of the command
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"-"` // zero = now
}

// Settlement is one decision that Open took about a dead owner's intent.
type Settlement struct {
	Command
	Reason string `json:"reason"` // what was found, for people and the model
}

// Filter selects commands; the zero value selects all.
type Filter struct {
	Run         string   // id, unique prefix of one, or "last"
	Session     string   // id
	Turn        int      // 0 = all
	AfterTurn   int      // only later turns; with Run this costs nothing for the earlier ones
	Path        string   // exact display path, or dest
	Paths       []string // any of these, as Path
	Tool        string   // exact
	Status      []Status // any of
	NotInjected bool     // only those whose outcome was not yet told
	Since       time.Time
	After       int64 // only N greater than this, for paging
	Before      int64 // only N less than this, for paging back; 0 = all
	Limit       int   // 0 = no limit; the first ones
	Last        int   // 0 = all; the last ones. Always oldest first.
}

// RunFilter selects runs; the zero value selects all, newest first.
type RunFilter struct {
	Session string
	State   string
	Limit   int // 0 = no limit
}

// EventFilter selects rows of the chain, oldest first.
type EventFilter struct {
	Run   string // id; "" = all
	Seq   bool   // only the agent's numbered events
	Type  string // only rows of this type; "" = all
	After int64  // only events with a larger Seq (Seq set) or Row
	Limit int    // 0 = no limit
}

// PruneResult says what Prune removed.
type PruneResult struct {
	Runs     int `json:"runs"`
	Commands int `json:"commands"`
	Events   int `json:"events"`
	Blobs    int `json:"blobs"`
	// Of the file, write-ahead log included.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}
