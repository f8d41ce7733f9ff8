package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"thinkflow/agent"
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
		fmt.Fprintf(a.stderr, "thinkflow: settled %s %s: %s (%s)\n", s.Tool, term.VisibleName(s.Path), s.Status, term.Visible(s.Reason))
	}
	if notice := led.Notice(); notice != "" {
		fmt.Fprintln(a.stderr, "thinkflow:", term.Visible(notice))
	}
	return led, nil
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
	var rows [][]string
	for i := range commands {
		rows = append(rows, commandRow(&commands[i]))
	}
	screen, done := a.screen()
	defer done()
	screen.Table([]string{"no", "time", "run/turn/id", "status", "lines", "command"}, rows)
	return nil
}

func commandRow(c *ledger.Command) []string {
	what := strings.TrimPrefix(c.Tool, "tf-") + " " + c.Path
	if c.Dest != "" {
		what += " → " + c.Dest
	}
	if c.Cmd != "" {
		what += c.Cmd
	}
	if c.Code != "" {
		what += " (" + strings.ReplaceAll(c.Code, "_", " ") + ")"
	}
	return []string{
		strconv.FormatInt(c.N, 10), c.IntentAt.Local().Format("01-02 15:04:05"),
		fmt.Sprintf("%s/%d/%d", c.Run, c.Turn, c.ID), string(c.Status), counts(c.Added, c.Removed), what,
	}
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

type ledgerShowCmd struct {
	ledgerFlags
	Ref string `arg:"" optional:"" default:"last" help:"Number, RUN/TURN/ID, or last."`
}

func (c *ledgerShowCmd) Run(a *app) error {
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	d, err := led.Show(a.ctx, c.Ref)
	if err != nil {
		return err
	}
	if c.JSON {
		content, err := agent.DecodeContent(d.ContentText)
		if err != nil {
			return err
		}
		return printJSON(a, struct {
			ledger.Detail
			Body agent.Content `json:"content"`
		}{d, content})
	}
	screen, done := a.screen()
	defer done()
	var rows [][]string
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	row("key", d.Key.String())
	row("command", d.Tool)
	row("path", d.Path)
	row("dest", d.Dest)
	row("shell", d.Cmd)
	row("status", string(d.Status))
	if d.Recovered {
		row("", "found by looking, after a crash")
	}
	row("code", d.Code)
	for i, l := range strings.Split(d.Error, "\n") {
		row([]string{"error", ""}[min(i, 1)], l)
	}
	row("lines", counts(d.Added, d.Removed))
	row("matched by", d.Rung)
	row("way", strings.TrimSuffix(string(d.Flow)+", "+string(d.Via), ", "))
	row("notes", strings.Join(d.Notes, "; "))
	row("before", d.BeforeHash)
	row("after", d.AfterHash)
	if d.ExitCode != nil {
		row("exit code", strconv.Itoa(*d.ExitCode))
	}
	row("intent", d.IntentAt.Local().Format(time.RFC3339Nano))
	if d.OutcomeAt != nil {
		row("outcome", d.OutcomeAt.Local().Format(time.RFC3339Nano))
	}
	if d.Injected != nil {
		row("told", d.Injected.Local().Format(time.RFC3339Nano))
	}
	screen.Table(nil, rows)
	for _, part := range []struct{ name, text string }{{"content", contentText(d.ContentText)}, {"stdout", d.Stdout}, {"stderr", d.Stderr}} {
		if part.text != "" {
			screen.Dim("\n" + part.name)
			screen.Block(part.text)
		}
	}
	screen.Dim("events")
	rows = nil
	for _, e := range d.Events {
		rows = append(rows, []string{"  " + strconv.FormatInt(e.Row, 10), e.Time.Local().Format("15:04:05.000"), e.Type, e.Hash[:min(16, len(e.Hash))]})
	}
	screen.Table(nil, rows)
	return nil
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
	screen.Table([]string{"run", "started", "state", "turns", "commands", "task"}, rows)
	return nil
}

type ledgerVerifyCmd struct{ ledgerFlags }

func (c *ledgerVerifyCmd) Run(a *app) error {
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	rows, err := led.Verify(a.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, map[string]int64{"rows": rows})
	}
	fmt.Fprintf(a.stdout, "%s: %d rows, the chain is whole\n", led.Path(), rows)
	return nil
}
