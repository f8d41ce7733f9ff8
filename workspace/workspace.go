package workspace

import (
	"sync"
)

// Options configures a workspace. The zero value is good.
type Options struct {
	// Deny are patterns (gitignore semantics, letter case ignored) of paths
	// that no operation may touch or read.
	Deny []string
	// Protected and Secrets are further patterns besides the built-in ones.
	Protected, Secrets []string
	// MaxFile bounds the size of a text in bytes; 0 = 64 MiB.
	MaxFile int64
}

const defaultMaxFile = 64 << 20

// Workspace is the folders that the agent works in and the documents that are
// open in the editor. It is safe for concurrent use.
type Workspace struct {
	opts Options

	mu    sync.RWMutex // guards what follows
	roots []root
}

// root is a Root with what was found out about it.
type root struct {
	name string
	dir  string // as given, cleaned
	real string // links resolved
}
