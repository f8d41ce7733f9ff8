package workspace

import (
	"errors"
	"fmt"
)

// Code names a kind of refusal. The set is closed.
type Code string

// The refusals. In all of them nothing was changed.
const (
	CodeBadPath       Code = "bad_path"       // empty, control characters, foreign spelling
	CodeOutside       Code = "outside"        // not inside a root
	CodeForbidden     Code = "forbidden"      // version control metadata and its aliases
	CodeDenied        Code = "denied"         // a deny pattern of the configuration
	CodeSecret        Code = "secret"         // content of a secret file, nobody agreed
	CodeAmbiguousPath Code = "ambiguous_path" // several roots hold it
	CodeNotFound      Code = "not_found"      // no such file
	CodeExists        Code = "exists"         // the destination is there already
	CodeIsDirectory   Code = "is_directory"   // a folder where a file is needed
	CodeNotRegular    Code = "not_regular"    // device, socket, pipe
	CodeBinary        Code = "binary"
	CodeUndecodable   Code = "undecodable" // not UTF-8
	CodeTooLarge      Code = "too_large"
	CodeDirty         Code = "dirty"        // unsaved changes are in the way
	CodeBufferStale   Code = "buffer_stale" // clean buffer differs from the disk
	CodeEmptyOld      Code = "empty_old"
	CodeEmptyBody     Code = "empty_body"
	CodeNoChange      Code = "no_change" // old = new
	CodeNoMatch       Code = "no_match"
	CodeAmbiguous     Code = "ambiguous" // several places match
	CodeOverlap       Code = "overlap"   // pairs overlap
	CodePlaceholder   Code = "placeholder"
	CodeLineNumbers   Code = "line_numbers" // old carries line-number prefixes
	CodeIndentation   Code = "indentation"  // same text, other indentation
	CodeChanged       Code = "changed"      // not the text that was known, planned or approved
	CodeReadOnly      Code = "read_only"    // no write permission in the file's mode
	CodeInvalid       Code = "invalid"      // the request itself makes no sense
	CodeIO            Code = "io"           // the system said no; see Err
)

// Refusal is an operation that was not carried out, worded for the model:
// Message says what is wrong, where, and what to do. Nearest, when set, is the
// real text next to what was looked for, bounded to about 12 lines and 1 KiB.
type Refusal struct {
	Code    Code
	Message string
	Path    string // Display
	Line    int    // 1-based line that matters most; 0 = none
	Lines   []int  // 1-based candidates, for CodeAmbiguous
	Nearest string
	Err     error // underlying error of the system, for CodeIO
}

func (r *Refusal) Error() string {
	if r.Path == "" {
		return r.Message
	}
	return r.Path + ": " + r.Message
}

// Unwrap returns the error of the system, if there is one.
func (r *Refusal) Unwrap() error { return r.Err }

// AsRefusal finds the refusal in err.
func AsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}

func refuse(code Code, path, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}
}
