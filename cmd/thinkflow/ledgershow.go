package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/term"
	"thinkflow/ledger"
)

type ledgerShowCmd struct {
	ledgerFlags
	Ref string `arg:"" optional:"" default:"last" help:"Number, RUN/TURN/ID, or last."`
}

// shown is a command as --json has it: all of it, and its content taken apart.
type shown struct {
	ledger.Detail
	Body agent.Content `json:"content"`
}

func (c *ledgerShowCmd) Run(a *app) error {
	led, err := c.need(a)
	if err != nil {
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
		return printJSON(a, shown{d, content})
	}
	screen, done := a.screen()
	defer done()
	screen.Fields(fields(&d))
	for _, part := range []struct{ name, text string }{{"shell", d.Cmd}, {"content", contentText(d.ContentText)}, {outputName(&d.Command), d.Stdout}, {"stderr", d.Stderr}} {
		if part.text != "" {
			screen.Dim("")
			screen.Dim(part.name)
			screen.Block(part.text)
		}
	}
	screen.Dim("")
	screen.Dim("in the chain")
	var rows [][]string
	for _, e := range d.Events {
		rows = append(rows, []string{"   ", strconv.FormatInt(e.Row, 10), e.Time.Local().Format("15:04:05.000"), e.Hash[:min(12, len(e.Hash))], said(&e)})
	}
	screen.Table(nil, rows)
	return nil
}

func outputName(c *ledger.Command) string {
	if c.Cmd != "" {
		return "output, stdout and stderr as they came"
	}
	return "output"
}

// fields are what is known of a command, for people; empty ones are left out.
func fields(d *ledger.Detail) [][2]string {
	var out [][2]string
	row := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, value})
		}
	}
	what := d.Tool
	if d.Path != "" {
		what += " " + d.Path
	}
	if d.Dest != "" {
		what += " → " + d.Dest
	}
	row("command", what)
	row("key", d.Key.String())
	row("number", strconv.FormatInt(d.N, 10))
	if d.Cmd == "" && len(d.Args) > 0 {
		row("arguments", string(d.Args))
	}
	status := strings.ReplaceAll(string(d.Status), "_", " ")
	if d.Code != "" {
		status += " (" + strings.ReplaceAll(d.Code, "_", " ") + ")"
	}
	if d.Recovered {
		status += ", found by looking, after a crash"
	}
	row("status", status)
	row("error", d.Error)
	row("lines", counts(d.Added, d.Removed))
	if d.Bytes > 0 && d.Output == "" {
		row("size", fmt.Sprintf("%d bytes", d.Bytes))
	}
	if d.ExitCode != nil {
		row("exit code", strconv.Itoa(*d.ExitCode))
	}
	row("result", d.Output)
	row("carries", d.Summary)
	row("matched by", d.Rung)
	row("notes", strings.Join(d.Notes, "\n"))
	row("way", way(&d.Command))
	row("risk", d.Risk)
	row("before", short(d.BeforeHash))
	row("after", short(d.AfterHash))
	row("begun", d.IntentAt.Local().Format("2006-01-02 15:04:05.000"))
	if d.OutcomeAt != nil {
		row("ended", d.OutcomeAt.Local().Format("2006-01-02 15:04:05.000")+", after "+term.Elapsed(d.OutcomeAt.Sub(d.IntentAt).Round(time.Microsecond)))
	}
	told := "not yet"
	if d.Injected != nil {
		told = d.Injected.Local().Format("2006-01-02 15:04:05.000")
	}
	row("told the model", told)
	return out
}

// short is the beginning of a hash.
func short(hash string) string {
	switch {
	case hash == ledger.Dir:
		return "a folder"
	case len(hash) > 16:
		return hash[:16] + "…"
	}
	return hash
}

// way says how a command was run and where its effect happened.
func way(c *ledger.Command) string {
	var s []string
	switch c.Flow {
	case ledger.FlowStreamed:
		s = append(s, "while the model was speaking")
	case ledger.FlowBlocking:
		s = append(s, "at the end of the message")
	case ledger.FlowNative:
		s = append(s, "as a native call")
	}
	switch {
	case c.Abs == "" || c.AfterHash == "" && c.BeforeHash == "":
	case c.Via == ledger.ViaDisk:
		s = append(s, "on disk")
	case c.Via == ledger.ViaEditor:
		s = append(s, "through the editor")
	}
	if c.NeedResult {
		s = append(s, "the model waited for the result")
	}
	return strings.Join(s, ", ")
}

// said is what a row of the chain says, in a few words.
func said(e *ledger.Event) string {
	var b struct {
		Status, Code, Decision, Action, By string
		Hunks                              []string
	}
	name := strings.TrimPrefix(e.Type, "ledger.")
	if e.Pruned || json.Unmarshal(e.Body, &b) != nil {
		return name
	}
	what := b.Status
	switch e.Type {
	case ledger.EventApproval:
		if what = b.Action + ": " + b.Decision; b.Decision == "" {
			what = b.Action + ": asked, no answer yet"
		}
	case ledger.EventReview:
		what = b.Action
		if len(b.Hunks) > 0 {
			what += fmt.Sprintf(" (%d hunks)", len(b.Hunks))
		}
	case ledger.EventInjected:
		what = "told the model"
	}
	if b.By != "" {
		what += ", by " + b.By
	}
	if b.Code != "" {
		what += " (" + strings.ReplaceAll(b.Code, "_", " ") + ")"
	}
	return name + "  " + what
}
