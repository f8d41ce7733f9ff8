package main

import "thinkflow/agent"

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
	res, err := a.undo(&c.settings, c.Dir, sel)
	if c.JSON && (err == nil || len(res.Commands)+len(res.Problems) > 0) { // else the error says it
		if perr := printJSON(a, res); perr != nil {
			return perr
		}
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		a.tellUndo(res, c.DryRun)
	}
	return partly(res)
}
