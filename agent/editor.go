package agent

import (
	"context"

	"thinkflow/workspace"
)

// Editor is what a run needs of the editor it works for. Headless runs have
// none. Package lsp implements it.
type Editor interface {
	// ApplyEdit sends the change to its open document (change.Open is set) as
	// one versioned WorkspaceEdit and returns once the outcome is certain, or
	// certain to stay unknown. The reply of the client alone proves nothing:
	// see DESIGN section 4, Confirmation.
	ApplyEdit(ctx context.Context, change *workspace.Change) (EditOutcome, error)
}

// EditVerdict is what became of one applyEdit.
type EditVerdict string

// The verdicts. Stale: the document moved on and the edit did not land; match
// again on the new text. Uncertain is never retried.
const (
	EditApplied   EditVerdict = "applied"
	EditStale     EditVerdict = "stale"
	EditRefused   EditVerdict = "refused"
	EditUncertain EditVerdict = "uncertain"
)

// EditOutcome is the verdict with the client's reason, if it gave one, and the
// version that the document has now.
type EditOutcome struct {
	Verdict EditVerdict
	Reason  string
	Version int32
}

// Decision is a person's answer to an approval.
type Decision string

// The decisions. Anything else, no answer included, is a no.
const (
	AllowOnce    Decision = "once"
	AllowSession Decision = "session"
	Deny         Decision = "no"
)

// Approver asks a person. A nil Approver means that nobody can be asked: every
// ask is a no (headless without a terminal).
type Approver interface {
	Ask(ctx context.Context, a ApprovalEvent) (Decision, error)
}
