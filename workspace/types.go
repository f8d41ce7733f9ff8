package workspace

import "io/fs"

// Root is one workspace folder. Dir is absolute; Name is how multi-root paths
// begin (empty: the last element of Dir).
type Root struct {
	Name string
	Dir  string
}

// Access says what a path is wanted for. Forbidden names are refused for every
// access; Protected is reported for all but AccessRead.
type Access uint8

// The kinds of access. AccessDelete means the directory entry itself (delete,
// source of a move): a symbolic link as last component is not followed.
const (
	AccessRead   Access = iota // an existing file or folder is read
	AccessWrite                // an existing or new file's content
	AccessCreate               // a new file or folder
	AccessDelete               // the entry itself goes away
)

// Target is a path that Resolve accepted.
type Target struct {
	// Display is relative with '/', with the root name when there are several
	// roots: what people and models see. It names the resolved target.
	Display string
	// Abs is the real path: all links resolved, the deepest existing ancestor
	// included. For AccessDelete the last component is the entry itself.
	Abs string
	// Given is the cleaned absolute path as it was asked for, links unresolved.
	Given string
	// Root is the index of the root that holds Abs; Rel is Abs relative to it,
	// with '/'; "." for the root itself.
	Root int
	Rel  string
	// Exists (by lstat) and IsDir describe the disk at the moment of Resolve.
	Exists bool
	IsDir  bool
	// IsLink: AccessDelete only, the entry is a symbolic link.
	IsLink bool
	// Protected targets may be changed only after a person agreed; the rule is
	// the pattern that says so.
	Protected     bool
	ProtectedRule string
	// Secret targets may be read only after a person agreed.
	Secret     bool
	SecretRule string
}

// Document is one open document: an immutable value.
type Document struct {
	Path    string // absolute, as the editor spells it
	URI     string // as the editor spells it
	Version int32
	Text    string
	// Dirty: the text is not known to be what is on disk. Kept by the
	// workspace: a document starts clean when its text equals the file, and
	// again after SaveDocument.
	Dirty bool
}

// Snapshot is the text of one file at one moment: the open buffer where there
// is one, the disk otherwise.
type Snapshot struct {
	Target
	Text string // raw bytes, byte order mark and line endings included
	Hash string // sha256 of Text, hex; "" when the file does not exist
	Open bool   // Text comes from an open document
	// Version and URI of the open document.
	Version int32
	URI     string
	// Dirty: see Document.
	Dirty bool
	// Mode is the file's mode on disk; 0 when it is not there.
	Mode fs.FileMode
	// Exists: there is a buffer or a file.
	Exists bool
	// InPlace: the file cannot be replaced by a rename (several hard links, a
	// mount point) and will be written in place.
	InPlace bool

	doc    string // key of the open document
	hashed hashed // Text, when it is that document's
}

// OpKind names an operation on files.
type OpKind string

// The operations.
const (
	OpWrite  OpKind = "write"
	OpAppend OpKind = "append"
	OpMkdir  OpKind = "mkdir"
	OpTouch  OpKind = "touch"
	OpCopy   OpKind = "copy"
	OpMove   OpKind = "move"
	OpEdit   OpKind = "edit"
	OpDelete OpKind = "delete"
)

// Pair is one quoted text and what replaces it.
type Pair struct {
	Old, New string
}

// Op is one operation as asked for.
type Op struct {
	Kind  OpKind
	Path  string
	Dest  string // copy, move
	Body  string // write, append
	Pairs []Pair // edit
	All   bool   // edit: every place
	Empty bool   // write: an empty body is meant
	Line  int    // edit: 1-based hint, settles several matches; 0 = none

	// Known is the hash of the text that the model last knew of Path ("" =
	// absent); KnownEver says whether it ever knew one. Only OpWrite asks.
	Known     string
	KnownEver bool

	// AllowSecret: a person agreed that the content of secret files is used.
	AllowSecret bool

	// Approved, when set, are the real paths (Target.Abs of Path, then of Dest)
	// that were approved: Plan refuses when the paths lead elsewhere by now.
	Approved []string
}

// Edit replaces the bytes Start to End (exclusive) by New.
type Edit struct {
	Start, End int
	New        string
}

// ChangeKind says what Commit will do.
type ChangeKind string

// The kinds of change. ChangeNone: the wanted state is already there.
const (
	ChangeNone   ChangeKind = "none"
	ChangeCreate ChangeKind = "create"
	ChangeModify ChangeKind = "modify"
	ChangeDelete ChangeKind = "delete"
	ChangeMove   ChangeKind = "move"
	ChangeCopy   ChangeKind = "copy"
	ChangeMkdir  ChangeKind = "mkdir"
	ChangeTouch  ChangeKind = "touch"
)

// HashDir stands for a folder wherever a hash of a file's bytes would stand.
const HashDir = "dir"

// Change is a planned operation. It is a value: committing it changes no field.
type Change struct {
	Op     Op
	Kind   ChangeKind
	Target Target
	Dest   *Target // copy, move
	// Before is the text that the plan was made against; for copy and move the
	// source's.
	Before Snapshot
	// Edits are byte ranges of Before.Text: sorted, not overlapping, touching
	// ones merged. A created file has one insertion at 0; a deleted one none.
	Edits []Edit
	// BeforeHash and AfterHash are of Target, "" = absent, HashDir = a folder.
	// For copy and move AfterHash is that of Dest.
	BeforeHash, AfterHash string
	// Rung is the loosest rung of the matching ladder that was needed.
	Rung string
	// Notes are repairs and flags, each one sentence for the model.
	Notes          []string
	Added, Removed int // lines
	// Open: the target is an open document; the editor carries the change out.
	Open bool
	// Temp is the absolute path of the temporary file that Commit will use,
	// "" when it needs none.
	Temp string
	// Parents are the folders that Commit will create, outermost first.
	Parents []string

	after     string      // text after; of a created or copied file, its content
	mode      fs.FileMode // of a created file; 0 = as the system has it
	link      string      // target of the symbolic link that is deleted or restored
	rmParents []string    // folders to remove afterwards where empty, innermost first
	undo      *Undo       // see Undo
}

// After is the text that the change leads to: of Target, or of Dest for a copy.
// Deletions, moves and folders have none.
func (c *Change) After() string { return c.after }
