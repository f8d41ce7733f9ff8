package workspace

import (
	"context"
	"errors"
)

var errTODO = errors.New("not implemented yet")

// Plan works out what op would change, and changes nothing.
func (w *Workspace) Plan(op Op) (*Change, error) { return nil, errTODO }

// After is the text that the change leads to.
func (c *Change) After() string { return "" }

// Diff renders the change as a unified diff; maxBytes 0 = unbounded.
func (c *Change) Diff(maxBytes int) string { return "" }

// Undo is what the ledger stores to take a change back.
type Undo struct{}

// Undo returns what is needed to take the change back.
func (c *Change) Undo() Undo { return Undo{} }

// Encode makes the bytes that DecodeUndo reads.
func (u Undo) Encode() []byte { return nil }

// DecodeUndo reads what Encode made.
func DecodeUndo(data []byte) (Undo, error) { return Undo{}, errTODO }

// Committed says what Commit did.
type Committed struct {
	Hash    string // of the target (copy, move: the destination) afterwards; "" = absent
	Bytes   int64  // its size
	InPlace bool   // written in place
}

// Commit carries the change out on disk.
func (w *Workspace) Commit(ctx context.Context, c *Change) (Committed, error) {
	return Committed{}, errTODO
}

// Revert plans the inverse of a change against the current text.
func (w *Workspace) Revert(u Undo) (*Change, error) { return nil, errTODO }

// RemoveTemp removes a temporary file of ours that a crash left behind.
func RemoveTemp(abs string) error { return errTODO }

// MapRange maps the range start to end through changes that happened one after
// the other. intact: none of them touched the range.
func MapRange(start, end int, changes []Edit) (s, e int, intact bool) { return start, end, false }

// ApplyEdits applies edits that all refer to text (sorted, not overlapping).
func ApplyEdits(text string, edits []Edit) (string, error) { return "", errTODO }

// DiffText returns minimal edits that turn before into after.
func DiffText(before, after string) []Edit { return nil }

// ReadRequest asks for a part of a file. Line (1-based) and Lines select lines,
// Byte (from 0) and Bytes select bytes; neither = from the start. MaxBytes
// bounds the text (0 = 65536).
type ReadRequest struct {
	Path        string
	Line, Lines int
	Byte, Bytes int
	MaxBytes    int
	AllowSecret bool
}

// ReadResult is a part of a file. Text is exactly the file's bytes.
type ReadResult struct {
	Target     Target
	Header     string // e.g. "a.go: lines 1-40 of 200"
	Text       string
	StartLine  int // 1-based
	EndLine    int
	TotalLines int
	StartByte  int
	EndByte    int // exclusive
	TotalBytes int
	Truncated  bool
	Hash       string // of the whole text
	Open       bool
	Version    int32
}

// Read reads a part of a file.
func (w *Workspace) Read(ctx context.Context, r ReadRequest) (ReadResult, error) {
	return ReadResult{}, errTODO
}

// ListRequest asks for a folder's entries. Path "" = the root, or all roots.
type ListRequest struct {
	Path       string
	Depth      int  // 0 = 1; -1 = all the way down
	Ignored    bool // also what .gitignore excludes
	MaxEntries int  // 0 = 1000
}

// Entry is one file or folder. Path is a display path; folders end in "/".
type Entry struct {
	Path   string
	IsDir  bool
	IsLink bool
	Secret bool
}

// ListResult is sorted by path.
type ListResult struct {
	Entries   []Entry
	Truncated bool
}

// List lists a folder.
func (w *Workspace) List(ctx context.Context, r ListRequest) (ListResult, error) {
	return ListResult{}, errTODO
}

// GlobRequest asks for files whose path matches ("**" crosses folders).
type GlobRequest struct {
	Pattern string
	Path    string // folder to look in
	Ignored bool
	Max     int // 0 = 1000
}

// Glob finds files by name.
func (w *Workspace) Glob(ctx context.Context, r GlobRequest) (ListResult, error) {
	return ListResult{}, errTODO
}

// GrepRequest asks for lines that match.
type GrepRequest struct {
	Pattern    string
	Regex      bool   // RE2 syntax; otherwise literal
	Glob       string // only files that match
	Path       string // file or folder to look in
	IgnoreCase bool
	Ignored    bool
	Context    int // lines before and after
	MaxMatches int // 0 = 200
	MaxBytes   int // of all lines together; 0 = 65536
}

// GrepMatch is one line. Text is cut when it is huge.
type GrepMatch struct {
	Path   string
	Line   int // 1-based
	Text   string
	Match  bool // false: a context line
	Cut    bool
	Column int // byte offset of the match in the line, from 0
}

// GrepResult is in order of path and line.
type GrepResult struct {
	Matches   []GrepMatch
	Files     int // files with a match
	Searched  int // files looked into
	Truncated bool
}

// String renders the result as text for the model: a path line per file, then
// "line: text" lines.
func (r GrepResult) String() string { return "" }

// Grep searches the workspace.
func (w *Workspace) Grep(ctx context.Context, r GrepRequest) (GrepResult, error) {
	return GrepResult{}, errTODO
}
