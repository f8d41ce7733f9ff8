package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"thinkflow/internal/term"
	"thinkflow/ledger"
)

type ledgerCmd struct {
	List   ledgerListCmd   `cmd:"" help:"List commands, oldest first."`
	Show   ledgerShowCmd   `cmd:"" help:"Show one command with its texts and events."`
	Runs   ledgerRunsCmd   `cmd:"" help:"List runs, newest first."`
	Diff   ledgerDiffCmd   `cmd:"" help:"Show what a command, or a run, changed."`
	Undo   ledgerUndoCmd   `cmd:"" help:"Take back a command, or a run."`
	Stats  ledgerStatsCmd  `cmd:"" help:"Add the ledger up: runs, commands, failures, tokens, cost."`
	Export ledgerExportCmd `cmd:"" help:"Write all of it, or a run, as JSON lines, without secrets."`
	Prune  ledgerPruneCmd  `cmd:"" help:"Remove old runs; the hash chain stays whole."`
	Verify ledgerVerifyCmd `cmd:"" help:"Check the hash chain of the ledger."`
}

// ledgerFlags are what every ledger command takes.
type ledgerFlags struct {
	settings
	Dir  string `short:"C" placeholder:"DIR" help:"Folder whose ledger it is (the current one)."`
	JSON bool   `name:"json" help:"As JSON."`
}

// open opens the folder's ledger, which settles what a crashed process left
// open. Without a ledger it returns nil: nothing has been done there yet.
func (f *ledgerFlags) open(a *app) (*ledger.Ledger, error) {
	loaded, err := a.load(&f.settings, nil, nil)
	if err != nil {
		return nil, err
	}
	dir, err := folder(f.Dir)
	if err != nil {
		return nil, err
	}
	state, err := stateDir(&loaded.Config, dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		if !f.JSON {
			fmt.Fprintf(a.stderr, "thinkflow: nothing was done in %s yet\n", term.VisibleName(dir))
		}
		return nil, nil
	}
	log, _, err := logger(&loaded.Config, a.stderr, a.redact)
	if err != nil {
		return nil, err
	}
	led, err := openLedger(a.ctx, state, dir, log, a.redact)
	if err != nil {
		return nil, err
	}
	for _, s := range led.Settled() {
		what := s.Tool
		if on := cmp.Or(s.Path, s.Cmd); on != "" {
			what += " " + term.VisibleName(on)
		}
		fmt.Fprintf(a.stderr, "thinkflow: settled %s: %s (%s)\n", what, s.Status, term.Visible(s.Reason))
	}
	if notice := led.Notice(); notice != "" {
		fmt.Fprintln(a.stderr, "thinkflow:", term.Visible(notice))
	}
	return led, nil
}

// need is open for who asks for something that must be there.
func (f *ledgerFlags) need(a *app) (*ledger.Ledger, error) {
	quiet := *f
	quiet.JSON = true
	led, err := quiet.open(a)
	if led == nil && err == nil {
		dir, derr := folder(f.Dir)
		if derr != nil {
			return nil, derr
		}
		return nil, fmt.Errorf("nothing was done in %s yet, so it has no ledger; -C names another folder", dir)
	}
	return led, err
}

func printJSON(a *app, v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

type ledgerListCmd struct {
	ledgerFlags
	Only   string   `name:"run" placeholder:"ID" help:"Only this run: id, the beginning of one, or last."`
	Path   string   `placeholder:"PATH" help:"Only commands on this path."`
	Status []string `placeholder:"STATUS" help:"Only these statuses (applied, failed, skipped, uncertain …)."`
	Last   int      `short:"n" default:"50" help:"Only so many, the last ones; 0 lists all."`
}

func (c *ledgerListCmd) Run(a *app) error {
	filter := ledger.Filter{Run: c.Only, Path: c.Path, Last: max(0, c.Last)}
	for _, s := range c.Status {
		if !slices.Contains(ledger.Statuses(), ledger.Status(s)) {
			return usagef("--status %s: not one of %v", s, ledger.Statuses())
		}
		filter.Status = append(filter.Status, ledger.Status(s))
	}
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	commands, err := led.List(a.ctx, filter)
	if err != nil {
		return err
	}
	if c.JSON {
		for i := range commands {
			if err := printJSON(a, &commands[i]); err != nil {
				return err
			}
		}
		return nil
	}
	screen, done := a.screen()
	defer done()
	return listByRun(a.ctx, led, screen, commands)
}

// listByRun writes commands under the runs that they belong to.
func listByRun(ctx context.Context, led *ledger.Ledger, screen *term.Renderer, commands []ledger.Command) error {
	if len(commands) == 0 {
		screen.Dim("no commands")
		return nil
	}
	for len(commands) > 0 {
		id, n := commands[0].Run, 1
		for n < len(commands) && commands[n].Run == id {
			n++
		}
		run, err := led.FindRun(ctx, id)
		if err != nil {
			return err
		}
		task, _, _ := strings.Cut(run.Task, "\n")
		rows := [][]string{{run.ID, run.Started.Local().Format("2006-01-02 15:04"), run.State, task}}
		screen.Table(nil, rows)
		rows = nil
		for i := range commands[:n] {
			rows = append(rows, append([]string{" "}, commandRow(&commands[i])...))
		}
		screen.Table([]string{" ", "no", "time", "turn/id", "status", "lines", "command"}, rows)
		commands = commands[n:]
	}
	return nil
}

// commandRow is number, time, place in the run, status, lines and the command.
func commandRow(c *ledger.Command) []string {
	what := strings.TrimPrefix(c.Tool, "tf-") + " " + c.Path
	if c.Dest != "" {
		what += " → " + c.Dest
	}
	if c.Cmd != "" {
		what += c.Cmd
	} else if c.Path == "" && c.Summary != "" {
		what += c.Summary
	}
	if c.Code != "" {
		what += " (" + strings.ReplaceAll(c.Code, "_", " ") + ")"
	}
	place := fmt.Sprintf("%d/%d", c.Turn, c.ID)
	switch first, _, part := strings.Cut(c.Channel, "."); {
	case c.Turn == 0 && part: // what a person did: an undo, an acceptance
		place = first
	case c.Channel != "text":
		place = fmt.Sprintf("%d/%s/%d", c.Turn, c.Channel, c.ID)
	}
	return []string{strconv.FormatInt(c.N, 10), c.IntentAt.Local().Format("15:04:05"), place, string(c.Status), counts(c.Added, c.Removed), what}
}

func counts(added, removed int) string {
	var s []string
	if added > 0 {
		s = append(s, "+"+strconv.Itoa(added))
	}
	if removed > 0 {
		s = append(s, "−"+strconv.Itoa(removed))
	}
	return strings.Join(s, " ")
}

type ledgerRunsCmd struct {
	ledgerFlags
	Last int `short:"n" default:"20" help:"Only so many, the newest ones; 0 lists all."`
}

func (c *ledgerRunsCmd) Run(a *app) error {
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	runs, err := led.Runs(a.ctx, ledger.RunFilter{Limit: max(0, c.Last)})
	if err != nil {
		return err
	}
	if c.JSON {
		for i := range runs {
			if err := printJSON(a, &runs[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var rows [][]string
	for _, r := range runs {
		n := 0
		for _, k := range r.Counts {
			n += k
		}
		task, _, _ := strings.Cut(r.Task, "\n")
		rows = append(rows, []string{r.ID, r.Started.Local().Format("2006-01-02 15:04"), r.State, strconv.Itoa(r.Turns), strconv.Itoa(n), task})
	}
	screen, done := a.screen()
	defer done()
	screen.Table([]string{"run", "started", "state", "turns", "cmds", "task"}, rows)
	return nil
}
