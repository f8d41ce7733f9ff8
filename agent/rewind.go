package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thinkflow/ledger"
)

// RewindPoint is a message of the user in a session that can be gone back to:
// the state of files and conversation right before it.
type RewindPoint struct {
	Message int       `json:"message"` // from 1
	Run     string    `json:"runId"`
	Text    string    `json:"text"` // its first line
	At      time.Time `json:"at"`
	// Conversation: the history can be cut there; false when it was shortened
	// since, then only files go back.
	Conversation bool `json:"conversation"`
}

// RewindResult says what a rewind did or, with a dry run, would do.
type RewindResult struct {
	Points []RewindPoint `json:"points"` // all of the session
	// Messages is how many messages leave the conversation.
	Messages int `json:"messages"`
	Reviewed
}

// Rewind takes a session back to before a message of the user: what its runs
// did to files since is undone, as far as people did not change the same places
// (then the file stays and is named), and the conversation is cut. With dryRun,
// or with message 0, nothing is done.
func (e *Engine) Rewind(ctx context.Context, id string, message int, dryRun bool) (RewindResult, error) {
	var res RewindResult
	if err := e.loadSession(ctx, id); err != nil {
		return res, err
	}
	led, err := e.openLedger()
	if err != nil {
		return res, err
	}
	runs, err := led.Runs(ctx, ledger.RunFilter{Session: id})
	if err != nil {
		return res, err
	}
	e.mu.Lock()
	s := e.sessions[id]
	running := s != nil && s.running
	if s != nil && !running && message > 0 && !dryRun {
		s.running = true // no run may begin meanwhile
		defer func() {
			e.mu.Lock()
			s.running = false
			e.mu.Unlock()
		}()
	}
	e.mu.Unlock()
	switch {
	case s == nil || len(runs) == 0:
		return res, fmt.Errorf("session %q: %w", id, ledger.ErrNotFound)
	case running:
		return res, fmt.Errorf("session %s is working on a task: wait for it or cancel it first", id)
	}
	slices.Reverse(runs) // oldest first
	cuts := s.cuts(runs)
	for i, r := range runs {
		res.Points = append(res.Points, RewindPoint{Message: i + 1, Run: r.ID, Text: firstLine(r.Task), At: r.Started, Conversation: cuts[i] >= 0})
	}
	if message == 0 {
		return res, nil
	}
	if message < 0 || message > len(runs) {
		return res, fmt.Errorf("session %s has the messages 1 to %d", id, len(runs))
	}
	cut := cuts[message-1]
	var cmds []ledger.Command
	gone := map[string]bool{}
	for _, r := range runs[message-1:] {
		gone[r.ID] = true
		sel := Selection{Run: r.ID}
		more, err := e.recorded(ctx, &sel)
		if err != nil {
			return res, err
		}
		cmds = append(cmds, more...)
		if !dryRun {
			sel.Staged = true
			if err := e.within(ctx, &sel, &res.Reviewed, func(g *group) error { return e.reject(g, "rewind") }); err != nil {
				return res, err
			}
		}
	}
	rejected := res.Reviewed
	if res.Reviewed, err = e.undoCommands(ctx, cmds, dryRun, "rewind"); err != nil {
		return res, err
	}
	res.Hunks += rejected.Hunks
	res.Files = slices.Compact(slices.Sorted(slices.Values(append(res.Files, rejected.Files...))))
	s.mu.Lock()
	total := len(s.history)
	s.mu.Unlock()
	if cut < 0 {
		res.Problems = append(res.Problems, Problem{Reason: "the conversation was shortened since that message and stays as it is; only files go back"})
		return res, nil
	}
	res.Messages = total - cut
	if dryRun {
		return res, nil
	}
	s.cutAt(cut, gone, len(runs)-message+1)
	return res, e.saveRewound(ctx, led, s, runs)
}

// cuts finds where the message of each run stands in the history; -1 = not
// there any more.
func (s *session) cuts(runs []ledger.Run) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, len(runs))
	at := 0
	for i, r := range runs {
		out[i] = -1
		for j := at; j < len(s.history); j++ {
			m := &s.history[j]
			if rest, ok := strings.CutPrefix(m.Content, r.Task); m.Role == RoleUser && ok && (rest == "" || strings.HasPrefix(rest, "\n\n")) {
				out[i], at = j, j+1
				break
			}
		}
	}
	return out
}

// cutAt drops the history from a message on, with what was known or to be told
// because of it. What it knows of files is dropped as well: they have changed.
func (s *session) cutAt(cut int, runs map[string]bool, tasks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = slices.Clone(s.history[:cut])
	s.pending = slices.DeleteFunc(s.pending, func(o outcome) bool { return runs[o.key.Run] })
	s.notes, s.plan = nil, nil
	s.known = map[string]knowledge{}
	s.memory.tasks = s.memory.tasks[:max(0, len(s.memory.tasks)-tasks)]
}

// saveRewound stores the conversation, so that another process goes on from the
// same place.
func (e *Engine) saveRewound(ctx context.Context, led *ledger.Ledger, s *session, runs []ledger.Run) error {
	last := runs[len(runs)-1]
	state := savedState{Format: checkpointFormat}
	saved, err := led.Checkpoint(ctx, last.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err == nil {
		state, _, err = loadCheckpoint(saved)
	}
	if err != nil {
		return err
	}
	var messages []Message
	state.Session, messages = s.save()
	c := ledger.Checkpoint{Run: last.ID, Turn: saved.Turn, Fresh: true}
	if c.Head, err = pack(state); err != nil {
		return err
	}
	if c.Delta, err = pack(messages); err != nil {
		return err
	}
	if err := led.SaveCheckpoint(c); err != nil {
		return err
	}
	return led.Flush(ctx)
}
