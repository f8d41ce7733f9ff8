package agent

import (
	"context"
	"sync"
)

// pathLocks keeps commands of different runs from working on one path at the
// same time. The zero value is ready.
type pathLocks struct {
	mu   sync.Mutex // guards held
	free sync.Cond
	held map[string]bool
}

// lock takes all paths at once, so that no two callers can block each other.
func (l *pathLocks) lock(paths []string) (unlock func()) {
	unlock, _ = l.lockFor(context.Background(), paths)
	return unlock
}

// lockFor is lock for somebody who may be called off while it waits.
func (l *pathLocks) lockFor(ctx context.Context, paths []string) (unlock func(), err error) {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.free.L != nil {
			l.free.Broadcast()
		}
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]bool{}
		l.free.L = &l.mu
	}
	for l.any(paths) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.free.Wait()
	}
	for _, p := range paths {
		l.held[p] = true
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, p := range paths {
			delete(l.held, p)
		}
		l.free.Broadcast()
	}, nil
}

func (l *pathLocks) any(paths []string) bool {
	for _, p := range paths {
		if l.held[p] {
			return true
		}
	}
	return false
}
