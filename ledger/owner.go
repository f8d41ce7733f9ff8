package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// An owner is one open Ledger that announces effects. It holds an exclusive
// lock on a file of its own, owners/<id>.lock, for as long as it lives; the
// system drops the lock when the process ends, however it ends. So a dead owner
// is one whose file is missing or can be locked; process ids, which are used
// again, play no part.

const (
	ownersDir = "owners"
	openLock  = "open.lock"
	// openLockRetry is the time between tries for the opening lock, which is
	// held for milliseconds.
	openLockRetry = 2 * time.Millisecond
)

type owner struct {
	id   string
	lock *flock.Flock
}

func newOwnerID() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func ownerFile(dir, id string) string {
	return filepath.Join(dir, ownersDir, id+".lock")
}

// acquireOwner makes and locks an owner file.
func acquireOwner(dir string) (*owner, error) {
	if err := os.MkdirAll(filepath.Join(dir, ownersDir), 0o700); err != nil {
		return nil, dirError(filepath.Join(dir, ownersDir), err)
	}
	for range 16 {
		o := &owner{id: newOwnerID()}
		path := ownerFile(dir, o.id)
		o.lock = flock.New(path, flock.SetPermissions(0o600))
		ok, err := o.lock.TryLock()
		if err != nil {
			_ = o.lock.Close()
			return nil, dirError(path, err)
		}
		// Someone who tidies up may have taken the new file for a dead one's
		// between its creation and its lock: then it is not there any more.
		if ok && sameFile(o.lock, path) {
			return o, nil
		}
		_ = o.lock.Close()
	}
	return nil, dirError(filepath.Join(dir, ownersDir), errors.New("no lock file could be made"))
}

func sameFile(l *flock.Flock, path string) bool {
	held, err := l.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

// release gives the lock up; whatever the owner left open is a dead owner's now.
func (o *owner) release() {
	path := o.lock.Path()
	_ = o.lock.Close()
	_ = os.Remove(path)
}

// buryOwner locks the file of an owner that is dead. ok is false when it lives.
// done must be called afterwards; it removes the file if remove is true.
func buryOwner(dir, id string) (done func(remove bool), ok bool, err error) {
	path := ownerFile(dir, id)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return func(bool) {}, true, nil
	}
	l := flock.New(path, flock.SetPermissions(0o600))
	ok, err = l.TryLock()
	if err != nil || !ok {
		_ = l.Close()
		return nil, false, err
	}
	return func(remove bool) {
		_ = l.Close()
		if remove {
			_ = os.Remove(path)
		}
	}, true, nil
}

// ownerFiles lists the ids of all owner files.
func ownerFiles(dir string) []string {
	entries, err := os.ReadDir(filepath.Join(dir, ownersDir))
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".lock"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// lockOpening serialises what only one process may do at a time: making the
// file, keeping a damaged one aside, settling, pruning.
func lockOpening(ctx context.Context, dir string) (unlock func(), err error) {
	l := flock.New(filepath.Join(dir, openLock), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(ctx, openLockRetry)
	if err != nil {
		_ = l.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("ledger %s: waiting for another process that opens it: %w", dir, err)
		}
		return nil, dirError(filepath.Join(dir, openLock), err)
	}
	if !ok {
		return nil, dirError(filepath.Join(dir, openLock), errors.New("cannot be locked"))
	}
	return func() { _ = l.Close() }, nil
}
