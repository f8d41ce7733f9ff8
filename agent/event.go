package agent

import "time"

// EventType names a kind of event. The list is closed: `thinkflow run --json`,
// the LSP notification thinkflow/event and the server's SSE stream all carry
// these and no others (DESIGN, the editor side).
type EventType string

// The events of a run, in no particular order but: run.started is the first
// and exactly one of run.completed, run.failed, run.cancelled is the last.
const (
	RunStarted        EventType = "run.started"
	TurnStarted       EventType = "turn.started"
	TurnRestarted     EventType = "turn.restarted"
	TextDelta         EventType = "text.delta"
	ReasoningDelta    EventType = "reasoning.delta"
	CommandStarted    EventType = "command.started"
	CommandCompleted  EventType = "command.completed"
	CommandSkipped    EventType = "command.skipped"
	ToolStarted       EventType = "tool.started"
	ToolOutput        EventType = "tool.output"
	ToolCompleted     EventType = "tool.completed"
	Thought           EventType = "thought"
	PlanUpdated       EventType = "plan"
	ApprovalRequested EventType = "approval.requested"
	RunSuspended      EventType = "run.suspended"
	ChangesUpdated    EventType = "changes.updated"
	Compaction        EventType = "compaction"
	UsageReported     EventType = "usage"
	RunCompleted      EventType = "run.completed"
	RunFailed         EventType = "run.failed"
	RunCancelled      EventType = "run.cancelled"
)

// EventTypes lists every type, for documentation and tests.
var EventTypes = []EventType{
	RunStarted, TurnStarted, TurnRestarted, TextDelta, ReasoningDelta,
	CommandStarted, CommandCompleted, CommandSkipped, ToolStarted, ToolOutput,
	ToolCompleted, Thought, PlanUpdated, ApprovalRequested, RunSuspended,
	ChangesUpdated, Compaction, UsageReported, RunCompleted, RunFailed, RunCancelled,
}

// Event is one thing that happened in a run. Exactly the fields that belong to
// the type are set; the rest are absent from the JSON.
type Event struct {
	Seq     int64     `json:"seq"` // from 1, per run; without gaps but for a jump where a run goes on after a crash
	Run     string    `json:"run"`
	Session string    `json:"session,omitempty"` // run.started only
	Turn    int       `json:"turn,omitempty"`    // from 1
	Time    time.Time `json:"time"`
	Type    EventType `json:"type"`

	Task  string `json:"task,omitempty"`  // run.started
	Model string `json:"model,omitempty"` // run.started
	Dir   string `json:"dir,omitempty"`   // run.started: first root

	Text string `json:"text,omitempty"` // text.delta, reasoning.delta, thought, tool.output

	Command  *CommandEvent  `json:"command,omitempty"`  // command.*
	Tool     *ToolEvent     `json:"tool,omitempty"`     // tool.*
	Approval *ApprovalEvent `json:"approval,omitempty"` // approval.requested
	Usage    *Usage         `json:"usage,omitempty"`    // usage, run.completed, run.failed, run.cancelled
	Result   *RunResult     `json:"result,omitempty"`   // run.completed, run.failed, run.cancelled
	Plan     []PlanItem     `json:"plan,omitempty"`     // plan
	Changes  *ChangesEvent  `json:"changes,omitempty"`  // changes.updated
	Thinking *ThoughtEvent  `json:"thinking,omitempty"` // thought

	Reason string `json:"reason,omitempty"` // turn.restarted, compaction, run.suspended, command.skipped; run.started of a run that goes on
}

// CommandEvent describes one command tag (or the same command given as a native
// tool call) in command.started, command.completed and command.skipped.
type CommandEvent struct {
	ID      int    `json:"id"`
	Channel string `json:"channel"`
	Name    string `json:"name"` // tf-write, …
	Path    string `json:"path,omitempty"`
	Dest    string `json:"dest,omitempty"`
	Cmd     string `json:"cmd,omitempty"`

	Status  string   `json:"status,omitempty"` // see ledger.Status; absent in command.started
	Code    string   `json:"code,omitempty"`   // error code when failed
	Error   string   `json:"error,omitempty"`  // for people
	Via     string   `json:"via,omitempty"`    // disk or editor
	Rung    string   `json:"rung,omitempty"`   // how <old> was found: exact, final-newline, …
	Notes   []string `json:"notes,omitempty"`  // repairs and flags, each reported
	Added   int      `json:"added,omitempty"`  // lines
	Removed int      `json:"removed,omitempty"`
	Bytes   int      `json:"bytes,omitempty"` // size of the target afterwards
	Diff    string   `json:"diff,omitempty"`  // unified, bounded
	Created bool     `json:"created,omitempty"`

	ExitCode *int   `json:"exit_code,omitempty"` // bash
	Output   string `json:"output,omitempty"`    // bash, read: bounded
	// Micros is the time from the closing tag's arrival to the recorded effect,
	// in µs, without the time in which a person was asked.
	Micros int64 `json:"micros,omitempty"`
}

// ToolEvent describes one native tool call.
type ToolEvent struct {
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"` // JSON
	Status    string `json:"status,omitempty"`    // ok, error
	Code      string `json:"code,omitempty"`      // UNKNOWN_TOOL, INVALID_ARGUMENT, …
	Error     string `json:"error,omitempty"`
	Bytes     int    `json:"bytes,omitempty"` // size of the result
	Summary   string `json:"summary,omitempty"`
}

// ApprovalEvent asks a person. The answer comes as a Decision for its ID.
type ApprovalEvent struct {
	ID     string `json:"id"`
	Action string `json:"action"` // write, delete, bash, read, …
	Target string `json:"target"` // the real, resolved target or the command line
	Rule   string `json:"rule"`   // why it asks
	Diff   string `json:"diff,omitempty"`
	Hash   string `json:"hash"` // of what is approved; what was approved is what runs
	// Choices are the answers that mean something here. Target, rule and diff
	// have their hidden characters made visible.
	Choices []Decision `json:"choices,omitempty"`
}

// ThoughtEvent says where a step of thought stands; its text is Event.Text.
type ThoughtEvent struct {
	Number   int    `json:"number"`             // from 1
	Total    int    `json:"total"`              // the estimate as it is now
	More     bool   `json:"more"`               // another step follows
	Revises  int    `json:"revises,omitempty"`  // number of the step that it changes
	Revision string `json:"revision,omitempty"` // replace, amend, cancel
	Branch   string `json:"branch,omitempty"`
	From     int    `json:"from,omitempty"` // step that the branch leaves
}

// PlanItem is one entry of the plan tool's list.
type PlanItem struct {
	Title  string `json:"title"`
	Status string `json:"status"` // pending, in_progress, done
}

// Usage counts tokens over a run. Unknown is not 0: see Estimated.
type Usage struct {
	Requests        int `json:"requests"`
	InputTokens     int `json:"input_tokens"`
	OutputTokens    int `json:"output_tokens"`
	CachedTokens    int `json:"cached_tokens,omitempty"`
	ReasoningTokens int `json:"reasoning_tokens,omitempty"`
	// RequestBytes is the size of all requests (messages and tools), ReusedBytes
	// how much of it was, byte for byte, the beginning of the request before.
	RequestBytes int `json:"request_bytes,omitempty"`
	ReusedBytes  int `json:"reused_bytes,omitempty"`
	// Estimated: at least one request did not report its usage (a cancelled
	// stream, a server without usage) and was estimated from bytes.
	Estimated bool    `json:"estimated,omitempty"`
	Cost      float64 `json:"cost,omitempty"` // in the currency of the configured prices
}

// State is how a run ended.
type State string

// The states. A stopped run hit a bound; a refused one needed a permission that
// nobody could give.
const (
	StateDone      State = "done"
	StateFailed    State = "failed"
	StateStopped   State = "stopped"
	StateRefused   State = "refused"
	StateCancelled State = "cancelled"
	StateSuspended State = "suspended"
)

// ExitCode is the process exit code that stands for the state.
func (s State) ExitCode() int {
	switch s {
	case StateDone:
		return 0
	case StateStopped:
		return 3
	case StateRefused, StateSuspended:
		return 4
	case StateCancelled:
		return 130
	}
	return 1
}

// RunResult is the answer to a run: also the result of thinkflow/run.
type RunResult struct {
	Run     string `json:"runId"`
	Session string `json:"session"`
	State   State  `json:"state"`
	// Reason is for people: why it failed, stopped or was refused, and what to do.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"` // the last turn's visible text
	Turns  int    `json:"turns"`
	Usage  Usage  `json:"usage"`

	// Verify is what the check of the changes said; "" = there was none.
	Verify string `json:"verify,omitempty"`

	Applied int      `json:"applied"` // commands
	Failed  int      `json:"failed"`
	Skipped int      `json:"skipped"`
	Files   []string `json:"files,omitempty"` // paths changed, relative, sorted
}
