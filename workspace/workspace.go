package workspace

import "sync"

// Options configures a workspace. The zero value is good.
type Options struct {
	// Deny are patterns (gitignore semantics, letter case ignored) of paths
	// that no operation may touch or read.
	Deny []string
	// Protected and Secrets are further patterns besides the built-in ones;
	// with "!" they lift one of those.
	Protected, Secrets []string
	// Own are absolute real paths of our own files (state folder, user
	// configuration): protected where they lie inside a root.
	Own []string
	// MaxFile bounds the size of a text in bytes; 0 = 64 MiB.
	MaxFile int64
}

const defaultMaxFile = 64 << 20

// Workspace is the folders that the agent works in and the documents that are
// open in the editor. It is safe for concurrent use.
type Workspace struct {
	opts  Options
	rules rules
	docs  *documents

	parent *Workspace // of an overlay; see Overlay

	lastFind findMemo // in an open document

	// faults lets tests play a disk that is full; nil fields do nothing.
	faults faults

	mu      sync.RWMutex // guards what follows
	roots   []root
	inPlace map[string]bool // real paths that a rename could not replace (EBUSY)
}

// root is a Root with what was found out about it.
type root struct {
	name string
	dir  string // as given, cleaned
	real string // links resolved
}

// faults are hooks for tests.
type faults struct {
	write        func(n int) (int, error) // called before n bytes are written; how many to accept
	beforeRename func()
}
