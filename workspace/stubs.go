package workspace

import (
	"context"
	"errors"
)

var errTODO = errors.New("not implemented yet")

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
