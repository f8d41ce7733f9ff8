package thinking

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func step(n, total int) Step {
	return Step{Thought: fmt.Sprintf("thought %d", n), ThoughtNumber: n, TotalThoughts: total, NextThoughtNeeded: n < total}
}

func with(s Step, f func(*Step)) Step { f(&s); return s }

func TestAdd(t *testing.T) {
	tests := []struct {
		name       string
		steps      []Step
		err        string // of the last step
		warnings   []string
		incomplete []int
		total      int
		length     int
		branches   []Branch
	}{
		{name: "three in a row", steps: []Step{step(1, 3), step(2, 3), step(3, 3)}, incomplete: []int{}, total: 3, length: 3},
		{name: "begun", steps: []Step{step(1, 3)}, incomplete: []int{2, 3}, total: 3, length: 1},
		{name: "total is raised", steps: []Step{step(1, 1), step(2, 1)}, warnings: []string{"raised to 2"}, incomplete: []int{}, total: 2, length: 2},
		{name: "a gap is a warning", steps: []Step{step(1, 3), step(3, 3)}, warnings: []string{"step 3 follows 1"}, incomplete: []int{2}, total: 3, length: 2},
		{name: "same number again", steps: []Step{step(1, 2), step(1, 2)}, warnings: []string{"there already"}, incomplete: []int{2}, total: 2, length: 2},
		{name: "cancelled step is incomplete", steps: []Step{step(1, 2), step(2, 2), with(step(3, 3), func(s *Step) { s.IsRevision, s.RevisesThought, s.RevisionType = true, 2, Cancel })},
			incomplete: []int{2}, total: 3, length: 3},
		{name: "the count goes on behind a revision", steps: []Step{step(1, 4), step(2, 4), with(step(3, 4), func(s *Step) { s.IsRevision, s.RevisesThought = true, 1 }), step(4, 4)},
			incomplete: []int{}, total: 4, length: 4},
		{name: "the count goes on behind a revision on a branch", steps: []Step{step(1, 1), with(step(2, 4), func(s *Step) { s.BranchFromThought, s.BranchID = 1, "b" }),
			with(step(3, 4), func(s *Step) { s.IsRevision, s.RevisesThought, s.BranchID = true, 2, "b" }), with(step(4, 4), func(s *Step) { s.BranchID = "b" })},
			incomplete: []int{}, total: 4, length: 4, branches: []Branch{{ID: "b", From: 1, Thoughts: []Line{{Number: 2, Thought: "thought 3", Revised: true}, {Number: 4, Thought: "thought 4"}}}}},

		{name: "revision of a missing step", steps: []Step{with(step(1, 1), func(s *Step) { s.IsRevision, s.RevisesThought = true, 9 })},
			warnings: []string{"step 9"}, incomplete: []int{}, total: 1, length: 1},
		{name: "revises without is_revision", steps: []Step{step(1, 1), with(step(1, 1), func(s *Step) { s.RevisesThought = 1 })},
			warnings: []string{"without is_revision"}, incomplete: []int{}, total: 1, length: 2},
		{name: "branch counts in the history", steps: []Step{step(1, 2), with(step(2, 2), func(s *Step) { s.BranchFromThought, s.BranchID = 1, "b" })},
			incomplete: []int{2}, total: 2, length: 2, branches: []Branch{{ID: "b", From: 1, Thoughts: []Line{{Number: 2, Thought: "thought 2"}}}}},
		{name: "branch from a missing step", steps: []Step{with(step(1, 1), func(s *Step) { s.BranchFromThought, s.BranchID = 7, "b" })},
			warnings: []string{"leaves step 7"}, incomplete: []int{}, total: 1, length: 1, branches: []Branch{{ID: "b", From: 7, Thoughts: []Line{{Number: 1, Thought: "thought 1"}}}}},
		{name: "branch without a name", steps: []Step{step(1, 2), with(step(2, 2), func(s *Step) { s.BranchFromThought = 1 })}, warnings: []string{"called from-1"},
			incomplete: []int{2}, total: 2, length: 2, branches: []Branch{{ID: "from-1", From: 1, Thoughts: []Line{{Number: 2, Thought: "thought 2"}}}}},
		{name: "branch from elsewhere", steps: []Step{step(1, 3), step(2, 3), with(step(2, 3), func(s *Step) { s.BranchFromThought, s.BranchID = 1, "b" }), with(step(3, 3), func(s *Step) { s.BranchFromThought, s.BranchID = 2, "b" })},
			warnings: []string{"left step 1, not 2"}, incomplete: []int{3}, total: 3, length: 4, branches: []Branch{{ID: "b", From: 1, Thoughts: []Line{{Number: 2, Thought: "thought 2"}, {Number: 3, Thought: "thought 3"}}}}},
		{name: "needs more", steps: []Step{with(step(1, 1), func(s *Step) { s.NeedsMoreThoughts = true })}, warnings: []string{"taken as true"}, incomplete: []int{}, total: 1, length: 1},
		{name: "empty", steps: []Step{{ThoughtNumber: 1, TotalThoughts: 1}}, err: "thought is empty"},
		{name: "too long", steps: []Step{{Thought: strings.Repeat("ä", MaxThought+1), ThoughtNumber: 1, TotalThoughts: 1}}, err: "2001 characters"},
		{name: "just long enough", steps: []Step{{Thought: strings.Repeat("ä", MaxThought), ThoughtNumber: 1, TotalThoughts: 1}}, incomplete: []int{}, total: 1, length: 1},
		{name: "number 0", steps: []Step{{Thought: "x", TotalThoughts: 1}}, err: "starts at 1"},
		{name: "unknown revision", steps: []Step{with(step(1, 1), func(s *Step) { s.RevisionType = "drop" })}, err: `"drop"`},
		{name: "a million steps claimed", steps: []Step{step(1, 1_000_000)}, incomplete: upTo(2, 101), total: 1_000_000, length: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h History
			var r Result
			for _, s := range tt.steps {
				r = h.Add(s)
			}
			if tt.err != "" {
				require.False(t, r.Success)
				require.Nil(t, r.Data)
				require.NotNil(t, r.Error)
				require.Contains(t, *r.Error, tt.err)
				require.Zero(t, h.Len())
				return
			}
			require.True(t, r.Success)
			require.Nil(t, r.Error)
			require.Equal(t, "thinking", r.Data.DisplayType)
			require.Equal(t, tt.steps[len(tt.steps)-1].Thought, r.Data.Thought)
			require.Equal(t, tt.incomplete, r.Data.IncompleteSteps)
			require.Equal(t, tt.total, r.Data.TotalThoughts)
			require.Equal(t, tt.length, r.Data.HistoryLength)
			if tt.branches == nil {
				tt.branches = []Branch{}
			}
			require.Equal(t, tt.branches, r.Data.Branches)
			require.Len(t, r.Data.Warnings, len(tt.warnings), "%v", r.Data.Warnings)
			for i, w := range tt.warnings {
				require.Contains(t, r.Data.Warnings[i], w)
			}
		})
	}
}

func upTo(from, to int) (out []int) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

func TestAmendAndReplace(t *testing.T) {
	var h History
	h.Add(step(1, 2))
	h.Add(with(step(2, 2), func(s *Step) { s.Thought, s.IsRevision, s.RevisesThought, s.RevisionType = "more", true, 1, Amend }))
	require.Equal(t, "thought 1\nmore", h.main[0].Thought)
	h.Add(with(step(2, 2), func(s *Step) { s.Thought, s.IsRevision, s.RevisesThought = "other", true, 1 }))
	require.Equal(t, "other", h.main[0].Thought)
	require.Len(t, h.main, 1)
}

func TestParallelCalls(t *testing.T) {
	var h History
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() { h.Add(step(n+1, 100)) })
	}
	wg.Wait()
	require.Equal(t, 100, h.Len())
	require.Empty(t, h.incomplete())
}

// TestEnvelope: the four fields are always there.
func TestEnvelope(t *testing.T) {
	var h History
	for _, tt := range []struct {
		name string
		step Step
		want string
	}{
		{"taken", step(1, 1), `"error":null}`},
		{"refused", Step{}, `{"success":false,"output":"the step was not taken: thought is empty","data":null,"error":"thought is empty"}`},
	} {
		raw, err := json.Marshal(h.Add(tt.step))
		require.NoError(t, err)
		require.Contains(t, string(raw), tt.want, tt.name)
	}
}
