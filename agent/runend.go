package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// sameFailures is how often the same call may fail without an applied change
// in between.
const sameFailures = 3

// closeEarly puts the turn of a run that ends now into the history, so that the
// next request tells all that happened and every call has its answer.
func (r *run) closeEarly(t *turn) {
	t.writeAnswers(t.runCalls(t.toHistory()))
	if len(t.dropped) > 0 {
		r.s.addNote("Not executed, because it came after a command whose result you had not seen: " + strings.Join(t.dropped, "; "))
	}
	r.count(t)
}

// bound says which bound the next turn would break.
func (r *run) bound(n int) string {
	c := &r.cfg
	switch {
	case n-r.base > c.MaxTurns:
		return fmt.Sprintf("stopped after %d turns (max_turns); raise it or give the rest as a new task", c.MaxTurns)
	case c.MaxTokens > 0 && r.usage.InputTokens+r.usage.OutputTokens-r.spent.InputTokens-r.spent.OutputTokens >= c.MaxTokens:
		return fmt.Sprintf("stopped after %d tokens (max_tokens)", r.usage.InputTokens+r.usage.OutputTokens)
	case c.MaxCost > 0 && r.usage.Cost-r.spent.Cost >= c.MaxCost:
		return fmt.Sprintf("stopped at a cost of %.4f (max_cost)", r.usage.Cost)
	}
	return ""
}

// stuck says that the same call failed three times without an applied change
// in between.
func (r *run) stuck(t *turn) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sig := range t.failedSignatures() {
		r.failures[sig]++
		if r.failures[sig] >= sameFailures {
			return fmt.Sprintf("stopped: the model sent the same failing call %d times in a row (%s)", sameFailures, t.failureText())
		}
	}
	return ""
}

// endWith ends the run for an error of the provider or of its context.
func (r *run) endWith(err error) RunResult {
	var tooLarge *errTooLarge
	switch {
	case errors.Is(err, errWall):
		return r.end(StateStopped, fmt.Sprintf("stopped after %s (max_wall)", r.cfg.MaxWall))
	case errors.Is(err, errTaskTime):
		return r.end(StateStopped, fmt.Sprintf("stopped after %s (task_timeout)", r.cfg.TaskTimeout))
	case r.ctx.Err() != nil:
		return r.end(StateCancelled, "what was applied stays")
	case errors.As(err, &tooLarge):
		return r.end(StateStopped, err.Error())
	}
	return r.end(StateFailed, err.Error())
}

func (r *run) end(state State, reason string) RunResult {
	defer r.over.Store(true)
	r.checkpoint(int(r.turnNo.Load()))
	r.mu.Lock()
	res := RunResult{
		Run: r.id, Session: r.s.id, State: state, Reason: reason, Text: r.text, Turns: int(r.turnNo.Load()), Usage: r.usage,
		Applied: r.applied, Failed: r.failed, Skipped: r.skipped, Verify: r.verified,
	}
	for f := range r.files {
		res.Files = append(res.Files, filepath.ToSlash(f))
	}
	r.mu.Unlock()
	slices.Sort(res.Files)
	res = safeResult(r.e.redact, res)
	reason = res.Reason
	typ := RunCompleted
	switch state {
	case StateFailed, StateStopped, StateRefused:
		typ = RunFailed
	case StateCancelled:
		typ = RunCancelled
	case StateSuspended:
		typ = RunSuspended
	}
	r.traced(res)
	r.e.log.Info("run ended", "run", r.id, "session", r.s.id, "state", state, "turns", res.Turns, "applied", res.Applied, "failed", res.Failed,
		"input", res.Usage.InputTokens, "output", res.Usage.OutputTokens, "ms", r.e.now().Sub(r.started).Milliseconds())
	r.e.release(r)
	flush := r.recordEnd(&res)
	r.emit.emit(Event{Type: typ, Result: &res, Usage: &res.Usage, Reason: reason})
	flush()
	return res
}

func (r *run) close() {
	r.wall.stop()
	r.previews.stop()
	r.cancel(nil)
}

// refuse notes that a permission was needed which nobody could give.
func (r *run) refuse(reason string, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal == "" {
		r.refusal = reason
	}
	r.stopAfter = r.stopAfter || again
}

func (r *run) refusedTwice() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopAfter
}
