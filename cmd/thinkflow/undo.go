package main

import (
	"fmt"
	"io"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/term"
)

type undoCmd struct {
	settings
	What   string `arg:"" help:"A run (id, the beginning of one, or last), or one of its commands: RUN/turn/id, as ledger list shows it."`
	Dir    string `short:"C" placeholder:"DIR" help:"Folder of the run (the current one)."`
	DryRun bool   `name:"dry-run" help:"Show what would be done."`
}

func (c *undoCmd) Run(a *app) error {
	sel := agent.Selection{Run: c.What, Preview: c.DryRun, By: "terminal"}
	if strings.Contains(c.What, "/") {
		sel.Run, sel.Command = "", c.What
	}
	res, err := a.undo(&c.settings, c.Dir, sel)
	if err != nil {
		return err
	}
	a.tellUndo(res, c.DryRun)
	return partly(res)
}

// undo takes back what is selected, from what the ledger of the folder has of it.
func (a *app) undo(s *settings, dir string, sel agent.Selection) (agent.Reviewed, error) {
	engine, _, done, err := a.reviewing(s, dir)
	if err != nil {
		return agent.Reviewed{}, err
	}
	defer done()
	return engine.Undo(a.ctx, sel)
}

// partly is the exit of an undo that left something as it is.
func partly(res agent.Reviewed) error {
	if len(res.Problems) > 0 {
		return exitError(exitFailed)
	}
	return nil
}

// tellUndo says for people what an undo did, or would do in a dry run: only then
// it has effects.
func (a *app) tellUndo(res agent.Reviewed, dryRun bool) {
	for _, f := range res.Effects {
		line := "would " + f.Kind + " " + term.VisibleName(f.Path)
		if f.Dest != "" {
			line += " → " + term.VisibleName(f.Dest)
		}
		fmt.Fprintln(a.stdout, line)
		if f.Diff != "" {
			fmt.Fprint(a.stdout, term.Visible(f.Diff))
		}
	}
	if !dryRun {
		sayUndone(a.stdout, res)
	}
	for _, p := range res.Problems {
		fmt.Fprintln(a.stderr, "thinkflow: not undone: "+term.Visible(p.Path+": "+p.Reason))
	}
}

const nothingToUndo = "nothing to undo: what it changed was taken back before, or it changed nothing (see: thinkflow ledger list)"

// sayUndone tells what an undo did and how it is taken back: the last step
// first, since each step builds on those before it.
func sayUndone(w io.Writer, res agent.Reviewed) {
	files := strings.Join(visible(res.Files), ", ")
	switch n := len(res.Commands); {
	case len(res.Files) == 0 && len(res.Problems) > 0:
		return // the problems are told
	case len(res.Files) == 0:
		fmt.Fprintln(w, nothingToUndo)
	case n == 0:
		fmt.Fprintf(w, "undone, files: %s\n", files)
	case n == 1:
		fmt.Fprintf(w, "1 command undone, files: %s\n", files)
	default:
		fmt.Fprintf(w, "%d commands undone, files: %s\n", n, files)
	}
	for i := len(res.Undo) - 1; i >= 0; i-- {
		how := "to bring it back:"
		if len(res.Undo) > 1 {
			how = "to bring it back, in this order:"
			if i < len(res.Undo)-1 {
				how = "then:"
			}
		}
		fmt.Fprintf(w, "  %s thinkflow undo %s\n", how, res.Undo[i])
	}
}
