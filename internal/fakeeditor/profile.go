package fakeeditor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Profile is how one client behaves. Unless said otherwise each trait was seen
// in a run of the real editor.
type Profile struct {
	Name         string
	Capabilities string // file of recorded capabilities; "" = the minimal ones

	// FirstVersion is the version in didOpen; later ones count up by one, after
	// a first jump (Neovim: changedtick).
	FirstVersion, FirstJump int32

	// Stale is the answer to an edit with another version than the buffer's.
	Stale Staleness
	// ChecksFirst: only the first documentChange's version is checked, only for
	// being too old, and version 0 never.
	ChecksFirst bool
	// Sequential: earlier documentChanges stay applied when a later one fails.
	Sequential bool

	// Report is how long changes wait until they are reported. Idle: every
	// further change starts the wait anew. ReplyFirst: never before the reply
	// to the edit that made them.
	Report     time.Duration
	Idle       bool
	ReplyFirst bool
	// Whole: every report is the whole document. Merged: several changes are
	// reported as one that spans them. (Other clients; for variety.)
	Whole, Merged bool

	// FileEOL: line breaks of an edit, "\r" too, become the buffer's. AddEOL: a
	// text always ends with a line break.
	FileEOL, AddEOL bool
	// StrayLine: whole lines inserted behind the final line break leave an empty
	// line behind them.
	StrayLine bool

	// OpensClosed: a file that an edit opens is reported with didOpen.
	// NeedsCreate: an edit of a missing file is refused without CreateFile.
	// Truncates: CreateFile without ignoreIfExists empties a file that is there.
	OpensClosed, NeedsCreate, Truncates bool
	// NoCreate: resource operations are an error.
	NoCreate bool

	// ReadOnly is the failureReason for a read-only buffer; ReadOnlyError sends
	// it as an error instead.
	ReadOnly      string
	ReadOnlyError bool

	// Unknown requests: "" = -32601, "null" = result null.
	Unknown string
}

// Staleness names an answer to a stale edit.
type Staleness string

// The answers. The edit is not applied, whatever is said.
const (
	StaleFalse  Staleness = "false"  // applied: false, no reason
	StaleReason Staleness = "reason" // applied: false with a reason and failedChange
	StaleTrue   Staleness = "true"   // applied: true (!)
	StaleError  Staleness = "error"  // an error reply
)

// Profiles are the clients that every scenario is played as.
var profiles = []Profile{
	{
		Name: "vscode", Capabilities: "caps-vscode.json", FirstVersion: 1, Stale: StaleFalse,
		Report: 2 * time.Millisecond, ReplyFirst: true, FileEOL: true, OpensClosed: true, NeedsCreate: true,
	},
	nvim("nvim-0.7", "caps-nvim-7.json", true),
	nvim("nvim-0.10", "caps-nvim-10.json", true),
	nvim("nvim-0.12", "caps-nvim-12.json", false),
	{
		Name: "eglot-1.9", Capabilities: "caps-emacs-28.json", Stale: StaleError, Sequential: true,
		Report: 500 * time.Millisecond, Idle: true, OpensClosed: true, NoCreate: true,
		ReadOnly: "Buffer is read-only", ReadOnlyError: true, Unknown: "null",
	},
	{
		Name: "eglot-30", Capabilities: "caps-emacs-30.json", Stale: StaleError,
		Report: 500 * time.Millisecond, Idle: true, OpensClosed: true, NoCreate: true,
		ReadOnly: "Buffer is read-only", ReadOnlyError: true, Unknown: "null",
	},
	{
		Name: "helix", Capabilities: "caps-helix.json", Stale: StaleReason, Sequential: true,
		OpensClosed: true, Truncates: true,
	},
	// Not one editor, but what the protocol allows. Strict does all by the book.
	{Name: "strict", Capabilities: "caps-helix.json", Stale: StaleFalse, OpensClosed: true},
	{Name: "minimal", Stale: StaleFalse, Whole: true, OpensClosed: true},
	{Name: "merging", Capabilities: "caps-vscode.json", FirstVersion: 7, Stale: StaleFalse, Report: 40 * time.Millisecond, Merged: true, OpensClosed: true},
}

func nvim(name, caps string, strayLine bool) Profile {
	return Profile{
		Name: name, Capabilities: caps, FirstJump: 4, Stale: StaleTrue, ChecksFirst: true, Sequential: true,
		Report: 150 * time.Millisecond, FileEOL: true, AddEOL: true, Truncates: true, StrayLine: strayLine,
		ReadOnly: "E21: Cannot make changes, 'modifiable' is off",
	}
}

// Profiles returns all profiles.
func Profiles() []Profile { return slices.Clone(profiles) }

// ProfileNamed finds a profile.
func ProfileNamed(name string) (Profile, error) {
	for _, p := range profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("no profile %q", name)
}

// InitializeParams makes the params of initialize, from the recorded ones in dir
// where there are any. Some recordings are whole params, others capabilities only.
func (p Profile) InitializeParams(dir string, rootURI string) (map[string]any, error) {
	params := map[string]any{
		"processId": nil, "rootUri": rootURI, "clientInfo": map[string]any{"name": p.Name, "version": "fake"},
		"capabilities":     map[string]any{"workspace": map[string]any{"applyEdit": true}},
		"workspaceFolders": []any{map[string]any{"uri": rootURI, "name": "ws"}},
	}
	if p.Capabilities == "" {
		return params, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, p.Capabilities))
	if err != nil {
		return nil, err
	}
	var recorded map[string]any
	if err := json.Unmarshal(data, &recorded); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Capabilities, err)
	}
	if caps, whole := recorded["capabilities"]; whole {
		recorded = caps.(map[string]any)
	}
	params["capabilities"] = recorded
	return params, nil
}
