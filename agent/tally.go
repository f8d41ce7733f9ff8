package agent

import "thinkflow/workspace"

// changed notes an applied change.
func (r *run) changed(ch *workspace.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.rememberChange(ch)
	r.changes++
	clear(r.failures)
	r.changedBySub(ch)
	for _, f := range changedFiles(ch) {
		r.files[f]++
	}
}

// unchanged notes that an applied change was taken back.
func (r *run) unchanged(x *executed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range x.files {
		r.s.rememberUndone(f)
		if r.files[f]--; r.files[f] <= 0 {
			delete(r.files, f)
		}
	}
	if r.parent != nil {
		r.parent.r.unchanged(x)
	}
}

func changedFiles(ch *workspace.Change) []string {
	if ch.Dest != nil {
		return []string{ch.Target.Display, ch.Dest.Display}
	}
	return []string{ch.Target.Display}
}

func (r *run) count(t *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied += len(t.applied)
	r.skipped += len(t.skipped)
	if t.failed != nil && t.failed.o.code != codeWaiting {
		r.failed++
	}
}
