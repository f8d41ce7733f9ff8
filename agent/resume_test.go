package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// events collects a run's events.
type events struct{ all []agent.Event }

func (e *events) add(ev agent.Event) { e.all = append(e.all, ev) }

func (e *events) approval(t *testing.T) *agent.ApprovalEvent {
	t.Helper()
	for _, ev := range e.all {
		if ev.Approval != nil {
			return ev.Approval
		}
	}
	t.Fatal("nothing was asked")
	return nil
}

func (e *events) gapless(t *testing.T) {
	t.Helper()
	for i, ev := range e.all {
		assert.Equal(t, int64(i+1), ev.Seq, ev.Type)
	}
}

// other is another process on the same workspace and ledger: a new engine.
func (r *rig) other(t *testing.T, approver agent.Approver) {
	t.Helper()
	require.NoError(t, r.engine.Close())
	o := r.options
	o.Approver = approver
	r.engine = agent.New(o)
	e := r.engine
	t.Cleanup(func() { _ = e.Close() })
}

func (r *rig) commands(t *testing.T) []ledger.Command {
	t.Helper()
	cmds, err := r.ledger.List(t.Context(), ledger.Filter{})
	require.NoError(t, err)
	return cmds
}

const asksBash = `
turn
text <<END
<tf-append id="1" path="log.txt">
first
</tf-append>
<tf-bash id="2" cmd="echo ran >> out.txt; cat out.txt"/>
END
turn
expect last-contains "%s"
text "All done."
`

// TestSuspendedRunIsAnsweredElsewhere: nobody answers, the run ends as
// suspended and holds nothing; another process answers, the very command runs,
// once, and the run goes on under the same keys.
func TestSuspendedRunIsAnsweredElsewhere(t *testing.T) {
	for _, row := range []struct {
		name, expect string
		decision     agent.Decision
		want         ledger.Status
		ran          bool
	}{
		{"once", "exit status 0", agent.AllowOnce, ledger.StatusApplied, true},
		{"session", "exit status 0", agent.AllowSession, ledger.StatusApplied, true},
		{"no", "said no", agent.Deny, ledger.StatusRejected, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, dir, "# approver\napproval_wait = \"20ms\"\n", strings.ReplaceAll(asksBash, "%s", row.expect))
			var ev events
			res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x", Events: ev.add})
			require.NoError(t, err)
			require.Equal(t, agent.StateSuspended, res.State)
			assert.Contains(t, res.Reason, "thinkflow approve run1 ")
			assert.Empty(t, r.engine.Runs(), "a waiting run is not there any more")
			assert.Equal(t, agent.RunSuspended, ev.all[len(ev.all)-1].Type)
			asked := ev.approval(t)

			_, err = r.engine.Run(t.Context(), agent.RunRequest{Session: res.Session, Task: "past the question"})
			require.ErrorContains(t, err, "waits for an approval")

			r.other(t, nil)
			waiting, err := r.engine.Waiting(t.Context())
			require.NoError(t, err)
			require.Len(t, waiting, 1)
			assert.Equal(t, asked.ID, waiting[0].ID)
			assert.Equal(t, asked.Hash, waiting[0].Hash)
			_, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1"})
			require.ErrorIs(t, err, agent.ErrWaits)
			_, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1", Answers: map[string]agent.Decision{"else": agent.AllowOnce}})
			require.Error(t, err)
			assert.NoFileExists(t, filepath.Join(dir, "out.txt"))

			res, err = r.engine.Resume(t.Context(), agent.ResumeRequest{
				Run: "run1", Answers: map[string]agent.Decision{asked.ID: row.decision}, By: "test", Events: ev.add,
			})
			require.NoError(t, err)
			assert.Equal(t, agent.StateDone, res.State, res.Reason)
			assert.Equal(t, "All done.", res.Text)
			require.Empty(t, r.server.Failures())
			ev.gapless(t)

			got, _ := os.ReadFile(filepath.Join(dir, "out.txt"))
			assert.Equal(t, row.ran, string(got) == "ran\n", "%q", got)
			log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
			require.NoError(t, err)
			assert.Equal(t, "first\n", string(log), "not done again")
			cmds := r.commands(t)
			require.Len(t, cmds, 2)
			assert.Equal(t, row.want, cmds[1].Status)
			_, err = r.ledger.Verify(t.Context())
			require.NoError(t, err)
			_, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1"})
			require.ErrorContains(t, err, "is done")
		})
	}
}

// TestAnswerIsBoundToTheTarget: what was approved leads elsewhere by now, so
// the answer does not count.
func TestAnswerIsBoundToTheTarget(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"a.txt", "precious.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("x\n"), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "e"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "a.txt"), []byte("x\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "e", "a.txt"), []byte("x\n"), 0o644))
	r := newRig(t, dir, "# approver\napproval_wait = \"20ms\"\n", `
turn
text <<END
<tf-delete id="1" path="d/a.txt"/>
END
turn
text "Then not."
`)
	var ev events
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x", Events: ev.add})
	require.NoError(t, err)
	require.Equal(t, agent.StateSuspended, res.State)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "d")))
	require.NoError(t, os.Symlink("e", filepath.Join(dir, "d")))
	r.other(t, nil)
	_, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1", Answers: map[string]agent.Decision{ev.approval(t).ID: agent.AllowOnce}})
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(dir, "e", "a.txt"))
}

// TestGoneEditorSuspends: the caller's context ends because nobody is there any
// more. A run that waits is suspended, another one is cancelled.
func TestGoneEditorSuspends(t *testing.T) {
	r := newRig(t, t.TempDir(), "# approver\n", strings.ReplaceAll(asksBash, "%s", "exit status 0"))
	ctx, cancel := context.WithCancelCause(t.Context())
	var ev events
	res, err := r.engine.Run(ctx, agent.RunRequest{Run: "run1", Task: "x", Events: func(e agent.Event) {
		ev.add(e)
		if e.Approval != nil {
			cancel(agent.ErrGone)
		}
	}})
	require.NoError(t, err)
	assert.Equal(t, agent.StateSuspended, res.State)
	r.other(t, always(agent.AllowOnce))
	res, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: agent.LastRun, Events: ev.add})
	require.NoError(t, err)
	assert.Equal(t, agent.StateDone, res.State, res.Reason)
}

type always agent.Decision

func (a always) Ask(context.Context, agent.ApprovalEvent) (agent.Decision, error) {
	return agent.Decision(a), nil
}

// TestSuspendedNativeCall: the call keeps its place in the history, its result
// comes later.
func TestSuspendedNativeCall(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "# approver\napproval_wait = \"20ms\"\n", `
turn
call#c1 bash {"command":"echo ran >> out.txt"}
turn
expect last-contains "exit status 0"
text "All done."
`)
	var ev events
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x", Events: ev.add})
	require.NoError(t, err)
	require.Equal(t, agent.StateSuspended, res.State, res.Reason)
	r.other(t, nil)
	res, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1", Answers: map[string]agent.Decision{ev.approval(t).ID: agent.AllowOnce}})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.Empty(t, r.server.Failures())
	got, err := os.ReadFile(filepath.Join(dir, "out.txt"))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(got))
	cmds := r.commands(t)
	require.Len(t, cmds, 1)
	assert.Equal(t, ledger.StatusApplied, cmds[0].Status)
}

// TestSuspendedReadAndSecondQuestion: reads wait too; what is asked anew after
// the answer suspends again.
func TestSuspendedRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("COLOUR=blue\n"), 0o644))
	r := newRig(t, dir, "# approver\napproval_wait = \"20ms\"\n", `
turn
text <<END
<tf-read id="1" path=".env"/>
END
turn
expect last-contains "COLOUR=blue"
text "All done."
`)
	var ev events
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x", Events: ev.add})
	require.NoError(t, err)
	require.Equal(t, agent.StateSuspended, res.State, res.Reason)
	r.other(t, nil)
	res, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1", Answers: map[string]agent.Decision{ev.approval(t).ID: agent.AllowOnce}})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.Empty(t, r.server.Failures())
}

// TestAbandon: a suspended run is given up.
func TestAbandon(t *testing.T) {
	r := newRig(t, t.TempDir(), "# approver\napproval_wait = \"20ms\"\n", strings.ReplaceAll(asksBash, "%s", ""))
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x"})
	require.NoError(t, err)
	require.Equal(t, agent.StateSuspended, res.State)
	require.NoError(t, r.engine.Abandon(t.Context(), "run1"))
	cmds := r.commands(t)
	assert.Equal(t, ledger.StatusCancelled, cmds[1].Status)
	run, err := r.ledger.FindRun(t.Context(), "run1")
	require.NoError(t, err)
	assert.Equal(t, "cancelled", run.State)
}

// TestSessionGoesOnInAnotherProcess: history and knowledge come along, and the
// earlier request is a prefix of the next.
func TestSessionGoesOnInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o644))
	r := newRig(t, dir, "", `
turn
text <<END
Here.
<tf-edit id="1" path="a.txt"><old>one</old><new>two</new></tf-edit>
END
turn
expect contains "Here."
expect last-contains "again"
text <<END
<tf-write id="1" path="a.txt">
three
</tf-write>
END
`)
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "change a.txt"})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State)
	r.other(t, nil)
	list, err := r.engine.Sessions(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.True(t, list[0].Resumable)
	now, err := r.engine.Switch(list[0].ID, agent.SessionSettings{ReasoningEffort: "low"})
	require.NoError(t, err, "and nothing of the conversation is lost by it")
	assert.Equal(t, "low", now.ReasoningEffort)
	res, err = r.engine.Run(t.Context(), agent.RunRequest{Run: "run2", Session: list[0].ID, Task: "again"})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.Empty(t, r.server.Failures())
	assert.Equal(t, 0, res.Failed, "a.txt is known as it is")
	d, err := r.engine.Session(t.Context(), list[0].ID)
	require.NoError(t, err)
	require.Len(t, d.Members, 2)
	assert.Equal(t, "run2", d.Members[0].ID)
	_, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run1"})
	require.Error(t, err)
}

// TestCancelledRunIsResumed: on purpose, with a further message.
func TestCancelledRunIsResumed(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, dir, "", `
turn
text <<END
<tf-append id="1" path="log.txt">
first
</tf-append>
More to come.
END
await here
hang
turn
expect contains "1 tf-append log.txt: applied"
expect last-contains "in capitals"
text <<END
<tf-append id="2" path="log.txt">
SECOND
</tf-append>
END
`)
	driven := make(chan error, 1)
	go func() {
		driven <- r.drive(t.Context(), []string{"exists log.txt", "reached here", "release here", "cancel"})
	}()
	r.setRun("run1")
	res, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "write the log"})
	require.NoError(t, err)
	require.NoError(t, <-driven)
	require.Equal(t, agent.StateCancelled, res.State)
	r.other(t, nil)
	var ev events
	res, err = r.engine.Resume(t.Context(), agent.ResumeRequest{Run: "run", Message: "in capitals, please", Events: ev.add})
	require.NoError(t, err)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.Empty(t, r.server.Failures())
	assert.Equal(t, 2, ev.all[1].Turn)
	got, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	require.NoError(t, err)
	assert.Equal(t, "first\nSECOND\n", string(got))
	assert.Equal(t, 2, res.Applied)
}

// TestContentIsKept: body and pairs of every command can be read back.
func TestContentIsKept(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("a long line of text\n", 200)
	r := newRig(t, dir, "", `
turn
text <<END
<tf-write id="1" path="a.txt">
one
</tf-write>
<tf-edit id="2" path="a.txt"><old>one</old><new>two</new></tf-edit>
<tf-write id="3" path="long.txt">
`+long+`</tf-write>
<tf-edit id="4" path="a.txt"><old>nowhere</old><new>x</new></tf-edit>
END
turn
text "Well."
`)
	_, err := r.engine.Run(t.Context(), agent.RunRequest{Run: "run1", Task: "x"})
	require.NoError(t, err)
	for id, want := range map[string]string{"1": "one\n", "2": "one→two", "3": long, "4": "nowhere→x"} {
		d, err := r.ledger.Show(t.Context(), "run1/1/"+id)
		require.NoError(t, err)
		c, err := agent.DecodeContent(d.ContentText)
		require.NoError(t, err)
		got := c.Body
		for _, p := range c.Pairs {
			got += p.Old + "→" + p.New
		}
		assert.Equal(t, want, got, id)
	}
}
