package main

import (
	"errors"
	"fmt"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/term"
	"thinkflow/workspace"
)

type ledgerUndoCmd struct {
	ledgerFlags
	Ref    string `arg:"" optional:"" help:"Command: number, RUN/TURN/ID, or last."`
	Only   string `name:"run" placeholder:"ID" help:"All commands of this run: id, the beginning of one, or last."`
	DryRun bool   `name:"dry-run" help:"Say what would be done; do nothing."`
}

// Run takes commands back, from what the ledger has of them. What changed since
// is left alone and named. Undoing is recorded, and can be undone itself.
func (c *ledgerUndoCmd) Run(a *app) error {
	if (c.Ref == "") == (c.Only == "") {
		return usagef("say what is to be undone: a command, or --run ID")
	}
	led, err := c.need(a)
	if err != nil {
		return err
	}
	sel := agent.Selection{By: "command line", Preview: c.DryRun}
	if c.Only != "" {
		run, ferr := led.FindRun(a.ctx, c.Only)
		sel.Run, err = run.ID, ferr
	} else {
		d, serr := led.Show(a.ctx, c.Ref)
		sel.Command, err = d.Key.String(), serr
	}
	if cerr := led.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	loaded, err := a.load(&c.settings, nil, nil)
	if err != nil {
		return err
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	log, closeLog, err := logger(&loaded.Config, a.stderr, a.redact)
	if err != nil {
		return err
	}
	defer closeLog()
	engine, _, err := assemble(parts{cfg: loaded.Config, roots: []workspace.Root{{Dir: dir}}, file: loaded.File, log: log, redact: a.redact})
	if err != nil {
		return err
	}
	res, err := engine.Undo(a.ctx, sel)
	err = errors.Join(err, engine.Close())
	switch {
	case c.JSON && err != nil && len(res.Commands)+len(res.Problems) == 0: // the error says it
	case c.JSON:
		if perr := printJSON(a, res); perr != nil {
			return perr
		}
	default:
		for _, e := range res.Effects {
			fmt.Fprintf(a.stdout, "would %s %s\n", term.Visible(e.Kind), term.VisibleName(e.Path))
		}
		switch {
		case err != nil || len(res.Effects)+len(res.Problems) > 0 && len(res.Commands) == 0:
		case len(res.Commands) == 0:
			fmt.Fprintln(a.stdout, nothingToUndo)
		case !c.DryRun:
			fmt.Fprintf(a.stdout, "undone: %s\n", strings.Join(res.Commands, ", "))
		}
		for _, p := range res.Problems {
			fmt.Fprintf(a.stderr, "thinkflow: %s: %s\n", term.VisibleName(p.Path+p.Command), term.Visible(p.Reason))
		}
	}
	if err == nil && len(res.Problems) > 0 {
		return exitError(exitFailed)
	}
	return err
}
