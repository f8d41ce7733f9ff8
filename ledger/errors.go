package ledger

import (
	"database/sql"
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("ledger is closed")
	// ErrNotFound is wrapped by errors about keys, runs and blobs that are not there.
	ErrNotFound = errors.New("not found in the ledger")
)

// DuplicateError says that a key is already in the ledger.
type DuplicateError struct {
	// Existing is what the ledger has under the key.
	Existing Command
	// Same: the content is the same too, so the command has been done (or
	// tried) already and must not run again. Otherwise the id was used for
	// another operation, which is refused.
	Same bool
}

func (e *DuplicateError) Error() string {
	if e.Same {
		return fmt.Sprintf("id %d was already used for the same command (%s): it is not run again", e.Existing.ID, e.Existing.Status)
	}
	return fmt.Sprintf("id %d was already used for another command (%s %s): use a new id", e.Existing.ID, e.Existing.Tool, e.Existing.Path)
}

// AmbiguousError says that a reference fits several things.
type AmbiguousError struct {
	Ref     string
	Matches []string // a few of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q fits several entries (%v): give more of it", e.Ref, e.Matches)
}

// BrokenError says where the chain of event rows does not hold.
type BrokenError struct {
	Row    int64  // first row that does not fit
	Reason string // what is wrong with it
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("ledger row %d: %s", e.Row, e.Reason)
}

// FileError is trouble with the ledger's file or folder.
type FileError struct {
	Path string
	What string // what happened
	Do   string // what to do about it; may be empty
	Err  error
}

func (e *FileError) Error() string {
	s := fmt.Sprintf("ledger %s: %s", e.Path, e.What)
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *FileError) Unwrap() error { return e.Err }

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
