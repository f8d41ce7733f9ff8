package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// played is a folder in which a model has worked.
type played struct {
	*rig
	t *testing.T
}

// play runs tasks of a script in a folder with these files.
func play(t *testing.T, settings string, files map[string]string, script string, tasks ...string) *played {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	p := &played{newRig(t, dir, settings, script), t}
	for _, task := range tasks {
		p.run(task)
	}
	return p
}

// run gives a task with the run's id as its name; all are one session.
func (p *played) run(id string) agent.RunResult {
	p.t.Helper()
	p.setRun(id)
	res, err := p.engine.Run(p.t.Context(), agent.RunRequest{Run: id, Session: "s", Task: "do " + id})
	require.NoError(p.t, err)
	require.Empty(p.t, p.server.Failures())
	return res
}

// other is an engine over the same folder and ledger, as another process has it.
func (p *played) other() *played {
	p.t.Helper()
	require.NoError(p.t, p.engine.Close())
	next := newRig(p.t, p.dir, "", oneScript)
	next.state = p.state
	return &played{next, p.t}
}

func (p *played) text(name string) string {
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return "absent"
	}
	return string(data)
}

func (p *played) write(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644))
}

// hunks shows what waits, one line each.
func (p *played) hunks(sel agent.Selection) string {
	p.t.Helper()
	ch, err := p.engine.Changes(p.t.Context(), sel)
	require.NoError(p.t, err)
	var b strings.Builder
	for _, f := range ch.Files {
		for _, h := range f.Hunks {
			b.WriteString(hunkLine(f, h) + "\n")
		}
	}
	for _, pr := range ch.Problems {
		b.WriteString("problem " + pr.Path + ": " + pr.Reason + "\n")
	}
	return b.String()
}

func hunkLine(f agent.FileChanges, h agent.Hunk) string {
	s := f.Path + " " + string(h.Kind)
	if f.Staged {
		s += " staged"
	}
	if h.Edited {
		s += " edited"
	}
	return s + " " + strings.ReplaceAll(strings.TrimSpace(h.Old), "\n", "|") + " > " + strings.ReplaceAll(strings.TrimSpace(h.New), "\n", "|")
}

// first is the id of the first hunk of a file.
func (p *played) first(name string) string {
	p.t.Helper()
	ch, err := p.engine.Changes(p.t.Context(), agent.Selection{Path: name})
	require.NoError(p.t, err)
	require.NotEmpty(p.t, ch.Files)
	return ch.Files[0].Hunks[0].ID
}

func (p *played) status(key string) ledger.Status {
	p.t.Helper()
	k, err := agent.ParseKey(key)
	require.NoError(p.t, err)
	c, err := p.ledger.Get(context.Background(), k)
	require.NoError(p.t, err)
	return c.Status
}

const oneScript = `turn
text <<END
<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>
<tf-edit id="2" path="a.txt"><old>five</old><new>FIVE</new></tf-edit>
<tf-write id="3" path="new.txt">
fresh
</tf-write>
<tf-move id="4" path="m.txt" dest="sub/moved.txt" />
Done.
END
`

func one(t *testing.T) *played {
	return play(t, "", map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "m.txt": "m\n"}, oneScript, "r1")
}

func TestReviewHunks(t *testing.T) {
	p := one(t)
	require.Equal(t, "a.txt edit two > TWO\na.txt edit five > FIVE\nnew.txt create  > fresh\nsub/moved.txt move  > \n", p.hunks(agent.Selection{All: true}))

	// A person types: outside it is theirs, inside it changes the hunk.
	p.write("a.txt", "zero\none\nTWO!\nthree\nfour\nFIVE\n")
	require.Equal(t, "a.txt edit edited two > TWO!\na.txt edit five > FIVE\n", p.hunks(agent.Selection{Path: "a.txt"}))
	base, _, err := p.engine.Content(t.Context(), "a.txt", "base")
	require.NoError(t, err)
	require.Equal(t, "zero\none\ntwo\nthree\nfour\nfive\n", base)

	// Undo one, keep the other.
	id := p.first("a.txt")
	res, err := p.engine.Undo(t.Context(), agent.Selection{Hunks: []string{id}})
	require.NoError(t, err)
	require.Equal(t, 1, res.Hunks)
	require.Equal(t, "zero\none\ntwo\nthree\nfour\nFIVE\n", p.text("a.txt"))
	require.Equal(t, ledger.StatusUndone, p.status("r1/1/text/1"))
	_, err = p.engine.Undo(t.Context(), agent.Selection{Hunks: []string{id}})
	require.Error(t, err, "ids are not used again")
	_, err = p.engine.Keep(t.Context(), agent.Selection{Path: "a.txt"})
	require.NoError(t, err)
	require.Equal(t, ledger.StatusApplied, p.status("r1/1/text/2"))
	require.Empty(t, p.hunks(agent.Selection{Path: "a.txt"}))

	// The undo can be undone.
	_, err = p.engine.Undo(t.Context(), agent.Selection{Command: res.Undo[0]})
	require.NoError(t, err)
	require.Equal(t, "zero\none\nTWO!\nthree\nfour\nFIVE\n", p.text("a.txt"))

	// Created and moved files are changes too.
	_, err = p.engine.Undo(t.Context(), agent.Selection{All: true})
	require.NoError(t, err)
	require.Equal(t, "absent", p.text("new.txt"))
	require.Equal(t, "m\n", p.text("m.txt"))
	require.Equal(t, "absent", p.text("sub/moved.txt"))
	require.Empty(t, p.hunks(agent.Selection{All: true}))
}

func TestReviewStaleVersion(t *testing.T) {
	p := one(t)
	ch, err := p.engine.Changes(t.Context(), agent.Selection{Path: "a.txt"})
	require.NoError(t, err)
	p.write("a.txt", "one\nTWO by me\nthree\nfour\nFIVE\n")
	_, err = p.engine.Undo(t.Context(), agent.Selection{Path: "a.txt", Version: ch.Files[0].Version})
	require.ErrorContains(t, err, "look again")
	require.Contains(t, p.text("a.txt"), "by me")
	_, err = p.engine.Keep(t.Context(), agent.Selection{})
	require.Error(t, err, "nothing named is not everything")
}

// Another process sees and undoes what this one did.
func TestReviewLater(t *testing.T) {
	p := one(t).other()
	p.write("a.txt", "zero\none\nTWO\nthree\nfour\nFIVE\n")
	require.Equal(t, "a.txt edit two > TWO\na.txt edit five > FIVE\nnew.txt create  > fresh\nsub/moved.txt move  > \n", p.hunks(agent.Selection{Run: "r1"}))
	seen, err := p.engine.Undo(t.Context(), agent.Selection{Run: "r1", Preview: true})
	require.NoError(t, err)
	require.Len(t, seen.Effects, 3)
	require.Equal(t, "fresh\n", p.text("new.txt"))
	res, err := p.engine.Undo(t.Context(), agent.Selection{Run: "r1"})
	require.NoError(t, err)
	require.Empty(t, res.Problems)
	require.Equal(t, "zero\none\ntwo\nthree\nfour\nfive\n", p.text("a.txt"))
	require.Equal(t, "absent", p.text("new.txt"))
	require.Equal(t, "m\n", p.text("m.txt"))
	require.Empty(t, p.hunks(agent.Selection{Run: "r1"}))
	for _, id := range []string{"1", "2", "3", "4"} {
		require.Equal(t, ledger.StatusUndone, p.status("r1/1/text/"+id))
	}
	// And back again, by another one.
	p = p.other()
	for i := len(res.Undo) - 1; i >= 0; i-- {
		_, err := p.engine.Undo(t.Context(), agent.Selection{Command: res.Undo[i]})
		require.NoError(t, err)
	}
	require.Equal(t, "zero\none\nTWO\nthree\nfour\nFIVE\n", p.text("a.txt"))
	require.Equal(t, "fresh\n", p.text("new.txt"))
	require.Equal(t, "m\n", p.text("sub/moved.txt"))
	require.Equal(t, ledger.StatusApplied, p.status("r1/1/text/2"))
}
