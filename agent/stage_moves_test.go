package agent_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// moved is one mixture of proposals.
type moved struct {
	name  string
	turns []string // tags, a run each
	want  map[string]string
}

var movedBase = map[string]string{"a.txt": "one\ntwo\nthree\nfour\nfive\n", "b.txt": "bee\n"}

const (
	edit2  = `<tf-edit id="1" path="a.txt"><old>two</old><new>TWO</new></tf-edit>` + "\n"
	edit5c = `<tf-edit id="5" path="sub/c.txt"><old>five</old><new>FIVE</new></tf-edit>` + "\n"
	moveC  = `<tf-move id="2" path="a.txt" dest="sub/c.txt" />` + "\n"
	create = "<tf-write id=\"3\" path=\"n.txt\">\nfresh\n</tf-write>\n"
)

var movedRows = []moved{
	{"edit then move", []string{edit2 + moveC},
		map[string]string{"sub/c.txt": "one\nTWO\nthree\nfour\nfive\n", "b.txt": "bee\n"}},
	{"move then edit by the new name", []string{moveC + edit5c},
		map[string]string{"sub/c.txt": "one\ntwo\nthree\nfour\nFIVE\n", "b.txt": "bee\n"}},
	{"edit, move, edit", []string{edit2 + moveC + edit5c},
		map[string]string{"sub/c.txt": "one\nTWO\nthree\nfour\nFIVE\n", "b.txt": "bee\n"}},
	{"create then move", []string{create + `<tf-move id="4" path="n.txt" dest="m.txt" />`},
		map[string]string{"a.txt": movedBase["a.txt"], "b.txt": "bee\n", "m.txt": "fresh\n"}},
	{"create, edit, move, edit", []string{create + `<tf-edit id="4" path="n.txt"><old>fresh</old><new>fresh and new</new></tf-edit>
<tf-move id="5" path="n.txt" dest="m.txt" />
<tf-edit id="6" path="m.txt"><old>new</old><new>NEW</new></tf-edit>`},
		map[string]string{"a.txt": movedBase["a.txt"], "b.txt": "bee\n", "m.txt": "fresh and NEW\n"}},
	{"create then delete", []string{create, `<tf-delete id="1" path="n.txt" />`}, movedBase},
	{"edit then delete", []string{edit2 + `<tf-delete id="2" path="a.txt" />`}, map[string]string{"b.txt": "bee\n"}},
	{"delete then create", []string{`<tf-delete id="1" path="a.txt" />`, "<tf-write id=\"1\" path=\"a.txt\">\nagain\n</tf-write>"},
		map[string]string{"a.txt": "again\n", "b.txt": "bee\n"}},
	{"move then create at the old place", []string{moveC + "<tf-write id=\"3\" path=\"a.txt\">\nagain\n</tf-write>"},
		map[string]string{"a.txt": "again\n", "b.txt": "bee\n", "sub/c.txt": movedBase["a.txt"]}},
	{"move twice", []string{moveC + `<tf-move id="3" path="sub/c.txt" dest="d.txt" />`},
		map[string]string{"b.txt": "bee\n", "d.txt": movedBase["a.txt"]}},
	{"edit, move twice, edit", []string{edit2 + moveC + `<tf-move id="3" path="sub/c.txt" dest="d.txt" />
<tf-edit id="4" path="d.txt"><old>five</old><new>FIVE</new></tf-edit>`},
		map[string]string{"b.txt": "bee\n", "d.txt": "one\nTWO\nthree\nfour\nFIVE\n"}},
	{"move there and back", []string{moveC + `<tf-move id="3" path="sub/c.txt" dest="a.txt" />`}, movedBase},
	{"edit, there and back", []string{edit2 + moveC + `<tf-move id="3" path="sub/c.txt" dest="a.txt" />`},
		map[string]string{"a.txt": "one\nTWO\nthree\nfour\nfive\n", "b.txt": "bee\n"}},
	{"move then delete", []string{moveC + `<tf-delete id="3" path="sub/c.txt" />`}, map[string]string{"b.txt": "bee\n"}},
	{"edit then copy", []string{edit2 + `<tf-copy id="2" path="a.txt" dest="c.txt" />`},
		map[string]string{"a.txt": "one\nTWO\nthree\nfour\nfive\n", "b.txt": "bee\n", "c.txt": "one\nTWO\nthree\nfour\nfive\n"}},
	{"delete then move there", []string{`<tf-delete id="1" path="b.txt" />`, `<tf-move id="1" path="a.txt" dest="b.txt" />`},
		map[string]string{"b.txt": movedBase["a.txt"]}},
	{"swap", []string{`<tf-move id="1" path="a.txt" dest="t.txt" />
<tf-move id="2" path="b.txt" dest="a.txt" />
<tf-move id="3" path="t.txt" dest="b.txt" />`},
		map[string]string{"a.txt": "bee\n", "b.txt": movedBase["a.txt"]}},
}

func (m moved) play(t *testing.T) *played {
	p := m.work(t, "review = \"before\"\n")
	require.Equal(t, movedBase, p.files(), "nothing is on disk before it is accepted")
	return p
}

// work has the model give the commands.
func (m moved) work(t *testing.T, settings string) *played {
	var script strings.Builder
	for _, turn := range m.turns {
		fmt.Fprintf(&script, "turn\ntext <<END\n%s\nEND\n", strings.TrimSuffix(turn, "\n"))
	}
	p := play(t, settings, movedBase, script.String())
	for i := range m.turns {
		res := p.run(fmt.Sprintf("r%d", i+1))
		require.Equal(t, agent.StateDone, res.State, res.Reason)
		require.Zero(t, res.Failed, "%+v", res)
	}
	return p
}

// files are all files of the folder, by name.
func (p *played) files() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	require.NoError(p.t, filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(p.dir, path)
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	}))
	return out
}

// ids are those of all hunks that wait, proposed or applied.
func (p *played) ids() []string {
	p.t.Helper()
	ch, err := p.engine.Changes(p.t.Context(), agent.Selection{All: true})
	require.NoError(p.t, err)
	var out []string
	for _, f := range ch.Files {
		for _, h := range f.Hunks {
			out = append(out, h.ID)
		}
	}
	return out
}

// TestStagedMovesByHand: single lines of a moved proposal, what a person types
// meanwhile, and what stands in each other's way.
func TestStagedMovesByHand(t *testing.T) {
	row := func(name string) moved {
		i := slices.IndexFunc(movedRows, func(m moved) bool { return m.name == name })
		return movedRows[i]
	}
	hunk := func(p *played, kind string, nth int) agent.Selection {
		p.t.Helper()
		ch, err := p.engine.Changes(p.t.Context(), agent.Selection{All: true})
		require.NoError(p.t, err)
		for _, f := range ch.Files {
			for _, h := range f.Hunks {
				if f.Staged && string(h.Kind) == kind {
					if nth--; nth == 0 {
						return agent.Selection{Hunks: []string{h.ID}}
					}
				}
			}
		}
		p.t.Fatalf("no such change: %s", p.hunks(agent.Selection{All: true}))
		return agent.Selection{}
	}
	done := func(p *played, res agent.Reviewed, err error) {
		p.t.Helper()
		require.NoError(p.t, err)
		require.Empty(p.t, res.Problems)
	}
	t.Run("one line of a moved file", func(t *testing.T) {
		p := row("edit, move, edit").play(t)
		res, err := p.engine.Keep(t.Context(), hunk(p, "edit", 2))
		done(p, res, err)
		require.Equal(t, "one\ntwo\nthree\nfour\nFIVE\n", p.text("a.txt"), "where the file is as long as the move waits")
		res, err = p.engine.Undo(t.Context(), hunk(p, "edit", 1))
		done(p, res, err)
		res, err = p.engine.Keep(t.Context(), hunk(p, "move", 1))
		done(p, res, err)
		require.Equal(t, "one\ntwo\nthree\nfour\nFIVE\n", p.text("sub/c.txt"))
		require.Equal(t, "absent", p.text("a.txt"))
		require.Equal(t, ledger.StatusRejected, p.status("r1/1/text/1"))
		require.Equal(t, ledger.StatusApplied, p.status("r1/1/text/2"))
		require.Equal(t, ledger.StatusApplied, p.status("r1/1/text/5"))
	})
	t.Run("the lines without the move", func(t *testing.T) {
		p := row("edit, move, edit").play(t)
		res, err := p.engine.Undo(t.Context(), hunk(p, "move", 1))
		done(p, res, err)
		require.Equal(t, "a.txt edit staged two > TWO\na.txt edit staged five > FIVE\n", p.hunks(agent.Selection{All: true}))
		res, err = p.engine.Keep(t.Context(), agent.Selection{All: true})
		done(p, res, err)
		require.Equal(t, "one\nTWO\nthree\nfour\nFIVE\n", p.text("a.txt"))
	})
	t.Run("a person types in the file that is to be moved", func(t *testing.T) {
		p := row("edit, move, edit").play(t)
		p.write("a.txt", "zero\none\ntwo\nthree\nfour\nfive\n")
		res, err := p.engine.Keep(t.Context(), agent.Selection{All: true})
		done(p, res, err)
		require.Equal(t, "zero\none\nTWO\nthree\nfour\nFIVE\n", p.text("sub/c.txt"))
		require.Equal(t, "absent", p.text("a.txt"))
	})
	t.Run("a person removes the file that is to be moved", func(t *testing.T) {
		p := row("edit then move").play(t)
		require.NoError(t, os.Remove(filepath.Join(p.dir, "a.txt")))
		res, err := p.engine.Keep(t.Context(), agent.Selection{All: true})
		done(p, res, err)
		require.Equal(t, row("edit then move").want, p.files(), "the text was proposed, and is a new file")
	})
	t.Run("a move back into a place that is taken", func(t *testing.T) {
		p := row("move then create at the old place").play(t)
		require.Equal(t, "a.txt edit staged one|two|three|four|five > again\nsub/c.txt create staged  > one|two|three|four|five\n", p.hunks(agent.Selection{All: true}))
		res, err := p.engine.Keep(t.Context(), hunk(p, "edit", 1))
		done(p, res, err)
		require.Equal(t, map[string]string{"a.txt": "again\n", "b.txt": "bee\n"}, p.files())
		res, err = p.engine.Undo(t.Context(), hunk(p, "create", 1))
		done(p, res, err)
		require.Equal(t, map[string]string{"a.txt": "again\n", "b.txt": "bee\n"}, p.files())
		require.Equal(t, ledger.StatusRejected, p.status("r1/1/text/2"))
	})
	t.Run("a move onto a proposed new file is refused", func(t *testing.T) {
		p := play(t, "review = \"before\"\n", movedBase, "turn\ntext <<END\n"+create+`<tf-move id="4" path="a.txt" dest="n.txt" />`+"\nEND\nturn\nexpect last-contains \"exists already\"\ntext \"I see.\"\n")
		res := p.run("r1")
		require.Equal(t, 1, res.Failed)
		require.Equal(t, "n.txt create staged  > fresh\n", p.hunks(agent.Selection{All: true}))
		require.Equal(t, movedBase, p.files())
	})
	t.Run("a file that is no text", func(t *testing.T) {
		files := map[string]string{"a.png": "\x89PNG\x00\x01\x02", "b.txt": "bee\n"}
		p := play(t, "review = \"before\"\n", files, "turn\ntext <<END\n<tf-move id=\"1\" path=\"a.png\" dest=\"c.png\" />\n<tf-write id=\"2\" path=\"a.png\">\nno picture\n</tf-write>\nEND\n")
		p.run("r1")
		p.oneByOne(false, p.engine.Keep)
		require.Equal(t, map[string]string{"a.png": "no picture\n", "c.png": files["a.png"], "b.txt": "bee\n"}, p.files())
	})
}

// TestAppliedMoves: the same with what is applied at once: undone as a whole, and
// one by one.
func TestAppliedMoves(t *testing.T) {
	for _, row := range movedRows {
		t.Run(row.name, func(t *testing.T) {
			p := row.work(t, "allow = [\"delete\"]\n")
			require.Equal(t, row.want, p.files())
			res, err := p.engine.Undo(t.Context(), agent.Selection{All: true})
			require.NoError(t, err)
			require.Empty(t, res.Problems)
			require.Equal(t, movedBase, p.files())
			for _, backwards := range []bool{false, true} {
				p := row.work(t, "allow = [\"delete\"]\n")
				p.oneByOne(backwards, p.engine.Undo)
				require.Equal(t, movedBase, p.files())
			}
		})
	}
}

// TestAppliedMovesOfNoText: a file that cannot be compared is moved and deleted as
// a whole, and comes back as it was.
func TestAppliedMovesOfNoText(t *testing.T) {
	files := map[string]string{"a.png": "\x89PNG\x00\x01\x02", "b.txt": "bee\n"}
	for name, tags := range map[string]string{
		"moved, and its place taken": "<tf-move id=\"1\" path=\"a.png\" dest=\"c.png\" />\n<tf-write id=\"2\" path=\"a.png\">\nno picture\n</tf-write>",
		"moved":                      "<tf-move id=\"1\" path=\"a.png\" dest=\"c.png\" />",
		"deleted":                    "<tf-delete id=\"1\" path=\"a.png\" />",
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, "allow = [\"delete\"]\n", files, "turn\ntext <<END\n"+tags+"\nEND\n")
			res := p.run("r1")
			require.Zero(t, res.Failed)
			require.NotEqual(t, files, p.files())
			p.oneByOne(false, p.engine.Undo)
			require.Equal(t, files, p.files())
		})
	}
}

// oneByOne decides about every hunk alone until none waits. One may be refused
// as long as another is in its way; then something else is done, and it is tried
// again.
func (p *played) oneByOne(backwards bool, decide func(context.Context, agent.Selection) (agent.Reviewed, error)) {
	p.t.Helper()
	for ids := p.ids(); len(ids) > 0; ids = p.ids() {
		if backwards {
			slices.Reverse(ids)
		}
		var refused []string
		for _, id := range ids {
			res, err := decide(p.t.Context(), agent.Selection{Hunks: []string{id}})
			if err == nil && len(res.Problems) == 0 {
				break
			}
			refused = append(refused, fmt.Sprint(id, " ", err, " ", res.Problems))
		}
		require.Less(p.t, len(refused), len(ids), "all are refused: %v", refused)
	}
}

// TestStagedMoves: moves and deletes among proposals, decided all at once, hunk
// by hunk in both directions, by another process, and taken back.
func TestStagedMoves(t *testing.T) {
	all := agent.Selection{All: true, Staged: true}
	keep := func(p *played, sel agent.Selection) {
		p.t.Helper()
		res, err := p.engine.Keep(p.t.Context(), sel)
		require.NoError(p.t, err)
		require.Empty(p.t, res.Problems)
	}
	for _, row := range movedRows {
		t.Run(row.name, func(t *testing.T) {
			t.Run("accept", func(t *testing.T) {
				p := row.play(t)
				t.Log("\n" + p.hunks(agent.Selection{All: true}))
				keep(p, all)
				require.Equal(t, row.want, p.files())
				require.Empty(t, p.ids())
				// And taken back.
				for i := len(row.turns); i > 0; i-- {
					res, err := p.engine.Undo(t.Context(), agent.Selection{Run: fmt.Sprintf("r%d", i)})
					require.NoError(t, err)
					require.Empty(t, res.Problems)
				}
				require.Equal(t, movedBase, p.files())
			})
			t.Run("accept elsewhere", func(t *testing.T) {
				p := row.play(t).other()
				keep(p, all)
				require.Equal(t, row.want, p.files())
			})
			t.Run("reject", func(t *testing.T) {
				p := row.play(t)
				res, err := p.engine.Undo(t.Context(), all)
				require.NoError(t, err)
				require.Empty(t, res.Problems)
				require.Equal(t, movedBase, p.files())
				require.Empty(t, p.ids())
			})
			for _, order := range []string{"first to last", "last to first"} {
				t.Run("accept one by one, "+order, func(t *testing.T) {
					p := row.play(t)
					p.oneByOne(order == "last to first", p.engine.Keep)
					require.Equal(t, row.want, p.files())
				})
				t.Run("reject one by one, "+order, func(t *testing.T) {
					p := row.play(t)
					p.oneByOne(order == "last to first", p.engine.Undo)
					require.Equal(t, movedBase, p.files())
				})
			}
		})
	}
}
