package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
)

const stageScript = `turn
text <<END
<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>
<tf-write id="2" path="new/n.txt">
fresh
</tf-write>
<tf-delete id="3" path="gone.txt" />
END
turn
expect last-contains "do r2"
text <<END
<tf-edit id="1" path="a.txt"><old>TWO</old><new>TWO, twice</new></tf-edit>
<tf-edit id="2" path="a.txt"><old>five</old><new>FIVE</new></tf-edit>
<tf-read id="3" path="a.txt" />
END
turn
expect last-contains "TWO, twice"
text "Good."
turn
expect contains "rejected 1 change in a.txt"
expect contains "accepted 1 change in a.txt"
text <<END
<tf-bash id="1">cat new/n.txt</tf-bash>
END
turn
expect last-contains "fresh"
text "Ran."
`

func staged(t *testing.T) *played {
	return play(t, "review = \"before\"\n# approver\n", map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "gone.txt": "bye\n"}, stageScript, "r1", "r2")
}

const stagedHunks = "a.txt edit staged two > TWO, twice\na.txt edit staged five > FIVE\ngone.txt delete staged bye > \nnew/n.txt create staged  > fresh\n"

func TestStaged(t *testing.T) {
	p := staged(t)
	require.Equal(t, stagedHunks, p.hunks(agent.Selection{All: true}))
	require.Equal(t, "one\ntwo\nthree\nfour\nfive\n", p.text("a.txt"))
	require.Equal(t, "absent", p.text("new/n.txt"))
	require.Equal(t, "bye\n", p.text("gone.txt"))
	require.Equal(t, ledger.StatusStaged, p.status("r2/1/text/1"))

	// A person types in the real file; the proposal follows.
	p.write("a.txt", "zero\none\ntwo\nthree\nfour\nfive\n")
	text, _, err := p.engine.Content(t.Context(), "a.txt", "staged")
	require.NoError(t, err)
	require.Equal(t, "zero\none\nTWO, twice\nthree\nfour\nFIVE\n", text)

	id := p.first("a.txt")
	res, err := p.engine.Keep(t.Context(), agent.Selection{Hunks: []string{id}})
	require.NoError(t, err)
	require.Empty(t, res.Problems)
	require.Equal(t, "zero\none\nTWO, twice\nthree\nfour\nfive\n", p.text("a.txt"))
	require.Equal(t, ledger.StatusApplied, p.status("r1/1/text/1"))
	_, err = p.engine.Undo(t.Context(), agent.Selection{Path: "a.txt"})
	require.NoError(t, err)
	require.Equal(t, ledger.StatusRejected, p.status("r2/1/text/2"))
	require.Equal(t, "zero\none\nTWO, twice\nthree\nfour\nfive\n", p.text("a.txt"))

	// A shell command must see what is proposed: it asks once, for both.
	p.mu.Lock()
	p.answers = append(p.answers, agent.AllowOnce)
	p.mu.Unlock()
	p.run("r3")
	require.Equal(t, "fresh\n", p.text("new/n.txt"))
	require.Equal(t, "absent", p.text("gone.txt"))

	// What was accepted can be undone, as one command.
	_, err = p.engine.Undo(t.Context(), agent.Selection{Command: "r1/1/text/3"})
	require.NoError(t, err)
	require.Equal(t, "bye\n", p.text("gone.txt"))
	require.Equal(t, ledger.StatusUndone, p.status("r1/1/text/3"))
}

// Proposals live on in the ledger: another process shows and accepts them.
func TestStagedLater(t *testing.T) {
	p := staged(t).other()
	p.write("a.txt", "zero\none\ntwo\nthree\nfour\nfive\n")
	require.Equal(t, stagedHunks, p.hunks(agent.Selection{All: true}))
	res, err := p.engine.Keep(t.Context(), agent.Selection{Run: "r2"})
	require.NoError(t, err)
	require.Empty(t, res.Problems)
	require.Equal(t, "zero\none\nTWO, twice\nthree\nfour\nFIVE\n", p.text("a.txt"))
	require.Equal(t, "bye\n", p.text("gone.txt"))
	res, err = p.engine.Undo(t.Context(), agent.Selection{All: true})
	require.NoError(t, err)
	require.Equal(t, 2, res.Hunks)
	cmds, err := p.ledger.List(context.Background(), ledger.Filter{Status: []ledger.Status{ledger.StatusStaged}})
	require.NoError(t, err)
	require.Empty(t, cmds)
	require.Equal(t, "absent", p.text("new/n.txt"))
}

const rewindScript = `turn
text <<END
<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>
END
turn
text <<END
<tf-edit id="1" path="a.txt"><old>TWO</old><new>second</new></tf-edit>
<tf-write id="2" path="b.txt">
b
</tf-write>
END
turn
text <<END
<tf-edit id="1" path="d.txt"><old>dee</old><new>D</new></tf-edit>
<tf-delete id="2" path="c.txt" />
END
turn
expect not-contains "do r3"
expect not-contains "do r2"
expect contains "do r1"
text "Again."
`

func TestRewind(t *testing.T) {
	files := map[string]string{"a.txt": "one\ntwo\nthree\n", "c.txt": "c\n", "d.txt": "dee\n"}
	p := play(t, "allow = [\"delete\"]\n", files, rewindScript, "r1", "r2", "r3")
	p.write("a.txt", "mine\none\nsecond\nthree\n")
	p.write("d.txt", "D by me\n")

	list, err := p.engine.Rewind(t.Context(), "s", 0, true)
	require.NoError(t, err)
	require.Len(t, list.Points, 3)
	seen, err := p.engine.Rewind(t.Context(), "s", 2, true)
	require.NoError(t, err)
	require.Len(t, seen.Effects, 3)
	require.Len(t, seen.Problems, 1, "the text of d.txt is the user's now")
	require.Positive(t, seen.Messages)
	require.Equal(t, "absent", p.text("c.txt"), "a preview does nothing")

	res, err := p.engine.Rewind(t.Context(), "s", 2, false)
	require.NoError(t, err)
	require.Equal(t, seen.Messages, res.Messages)
	require.Equal(t, "mine\none\nTWO\nthree\n", p.text("a.txt"))
	require.Equal(t, "absent", p.text("b.txt"))
	require.Equal(t, "c\n", p.text("c.txt"))
	require.Equal(t, "D by me\n", p.text("d.txt"))
	require.Equal(t, "d.txt", res.Problems[0].Path)
	p.setRun("r4")
	_, err = p.engine.Run(t.Context(), agent.RunRequest{Run: "r4", Session: "s", Task: "go on"})
	require.NoError(t, err)
	require.Empty(t, p.server.Failures())
	_, err = p.engine.Rewind(t.Context(), "s", 9, true)
	require.Error(t, err)
	_, err = p.engine.Rewind(t.Context(), "other", 1, true)
	require.Error(t, err)
}
