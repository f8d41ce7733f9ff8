package agent

import (
	"context"
	"slices"

	"thinkflow/internal/sandbox"
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
	// Over, with an uncertain verdict: the editor is done with the request, nothing
	// of it is still to come, so that what the disk shows decides.
	Over bool
}

// Decision is a person's answer to an approval.
type Decision string

// The decisions. Anything else, no answer included, is a no. The three with a
// plus open the sandbox for one shell command: the network, version control
// metadata (but not its hooks and configuration), or both.
const (
	AllowOnce       Decision = "once"
	AllowSession    Decision = "session"
	Deny            Decision = "no"
	AllowOnceNet    Decision = "once+net"
	AllowOnceGit    Decision = "once+git"
	AllowOnceGitNet Decision = "once+git+net"
)

// Decisions lists all of them.
var Decisions = []Decision{AllowOnce, AllowSession, AllowOnceNet, AllowOnceGit, AllowOnceGitNet, Deny}

// Known reports whether the decision is one of the list.
func (d Decision) Known() bool { return slices.Contains(Decisions, d) }

// Allows reports whether the decision is a yes.
func (d Decision) Allows() bool { return d.Known() && d != Deny }

// Grants is what the decision opens for one shell command.
func (d Decision) Grants() sandbox.Grants {
	return sandbox.Grants{
		Git: d == AllowOnceGit || d == AllowOnceGitNet,
		Net: d == AllowOnceNet || d == AllowOnceGitNet,
	}
}

// Approver asks a person. A nil Approver means that nobody can be asked: every
// ask is a no (headless without a terminal).
type Approver interface {
	Ask(ctx context.Context, a ApprovalEvent) (Decision, error)
}
