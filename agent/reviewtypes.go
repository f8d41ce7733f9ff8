package agent

import "thinkflow/workspace/review"

// Hunk is one change of the agent that waits for a person: whole lines of a
// file, or the file itself. Lines count from 0, ends are exclusive.
type Hunk struct {
	ID   string      `json:"id"`
	Kind review.Kind `json:"kind"` // edit, create, delete, move
	From string      `json:"from,omitempty"`
	// StartLine and EndLine are in the text as it is (of a proposal: as it is
	// proposed); BaseStartLine and BaseEndLine in the text without the changes.
	StartLine     int      `json:"startLine"`
	EndLine       int      `json:"endLine"`
	BaseStartLine int      `json:"baseStartLine"`
	BaseEndLine   int      `json:"baseEndLine"`
	Old           string   `json:"old"`
	New           string   `json:"new"`
	Commands      []string `json:"commands,omitempty"` // keys, run/turn/channel/id
	Edited        bool     `json:"edited,omitempty"`   // a person changed it since
}

// FileChanges is what waits in one file. Version changes whenever that does;
// requests carry it, so that what is kept or undone is what was looked at.
type FileChanges struct {
	Path    string `json:"path"` // as people see it
	Abs     string `json:"abs"`
	Version int64  `json:"version"`
	Staged  bool   `json:"staged,omitempty"` // a proposal: nothing of it is in the file yet
	Added   int    `json:"added"`            // lines
	Removed int    `json:"removed"`
	Hunks   []Hunk `json:"hunks"`
	// DocumentVersion is that of the open document which the lines refer to.
	DocumentVersion *int32 `json:"documentVersion,omitempty"`
}

// Changes is all that waits for a person, by path.
type Changes struct {
	Files []FileChanges `json:"files"`
	// Problems are changes that cannot be shown: the text moved on.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is something that could not be done, and why.
type Problem struct {
	Path    string `json:"path,omitempty"`
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason"`
}

// Selection says which changes are meant: those with these ids, of this file,
// of this command or of this run; with All, every one. Version, when set, is
// that of the one file they are in.
type Selection struct {
	Hunks   []string `json:"hunks,omitempty"`
	Path    string   `json:"path,omitempty"`
	Command string   `json:"command,omitempty"` // key
	Run     string   `json:"runId,omitempty"`
	All     bool     `json:"all,omitempty"`
	Staged  bool     `json:"staged,omitempty"` // only proposals
	Version int64    `json:"version,omitempty"`
	By      string   `json:"by,omitempty"` // editor, terminal
	// Preview says what would be done and does nothing (Undo by command or run).
	Preview bool `json:"preview,omitempty"`
}

func (s *Selection) empty() bool {
	return len(s.Hunks) == 0 && s.Path == "" && s.Command == "" && s.Run == "" && !s.All
}

// Reviewed is what Keep or Undo did.
type Reviewed struct {
	Hunks    int       `json:"hunks"` // kept, undone, accepted or rejected
	Commands []string  `json:"commands,omitempty"`
	Files    []string  `json:"files,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Undo are the keys that take it back, for Undo by command.
	Undo []string `json:"undo,omitempty"`
	// Effects is what happens to files, for a preview.
	Effects []FileEffect `json:"effects,omitempty"`
}

// FileEffect is what an undo does to one file.
type FileEffect struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // edit, create, delete, move
	Dest string `json:"dest,omitempty"`
	Diff string `json:"diff,omitempty"` // bounded
}
