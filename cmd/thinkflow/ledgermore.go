package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"thinkflow/agent"
	"thinkflow/internal/report"
	"thinkflow/ledger"
)

type ledgerDiffCmd struct {
	ledgerFlags
	Ref  string `arg:"" optional:"" help:"Number, RUN/TURN/ID, or last."`
	Only string `name:"run" placeholder:"ID" help:"All changes of this run: id, the beginning of one, or last."`
}

func (c *ledgerDiffCmd) Run(a *app) error {
	if c.Ref == "" && c.Only == "" {
		c.Ref = ledger.Last
	}
	led, err := c.need(a)
	if err != nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	var commands []ledger.Command
	if c.Only != "" {
		commands, err = led.List(a.ctx, ledger.Filter{Run: c.Only})
	} else {
		var d ledger.Detail
		d, err = led.Show(a.ctx, c.Ref)
		commands = []ledger.Command{d.Command}
	}
	if err != nil {
		return err
	}
	diffs := map[string]map[ledger.Key]string{}
	for i := range commands {
		cmd := &commands[i]
		if diffs[cmd.Run] == nil {
			if diffs[cmd.Run], err = report.Diffs(a.ctx, led, cmd.Run); err != nil {
				return err
			}
		}
		text, err := report.DiffOf(a.ctx, led, cmd, diffs[cmd.Run])
		if err != nil {
			return err
		}
		if c.JSON {
			if err := printJSON(a, map[string]any{"key": cmd.Key.String(), "path": cmd.Path, "status": cmd.Status, "diff": text}); err != nil {
				return err
			}
			continue
		}
		if text == "" && c.Only != "" {
			continue
		}
		screen, done := a.screen()
		screen.Dim(fmt.Sprintf("%d  %s  %s %s  %s", cmd.N, cmd.Key, strings.TrimPrefix(cmd.Tool, "tf-"), cmd.Path, cmd.Status))
		if text == "" {
			text = "(no text changed)\n"
		}
		screen.Block(text)
		done()
	}
	return nil
}

type ledgerStatsCmd struct{ ledgerFlags }

// ledgerStats adds a ledger up.
type ledgerStats struct {
	Runs     int                   `json:"runs"`
	Commands int                   `json:"commands"`
	States   map[string]int        `json:"states"`   // of runs
	Statuses map[ledger.Status]int `json:"statuses"` // of commands
	Tools    map[string]int        `json:"tools"`
	Codes    map[string]int        `json:"codes,omitempty"` // of failures
	Rungs    map[string]int        `json:"rungs,omitempty"` // how places to edit were found
	Usage    agent.Usage           `json:"usage"`
	Bytes    int64                 `json:"bytes"` // of the file
	Oldest   *time.Time            `json:"oldest,omitempty"`
}

func (c *ledgerStatsCmd) Run(a *app) error {
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	s := ledgerStats{States: map[string]int{}, Statuses: map[ledger.Status]int{}, Tools: map[string]int{}, Codes: map[string]int{}, Rungs: map[string]int{}}
	runs, err := led.Runs(a.ctx, ledger.RunFilter{})
	if err != nil {
		return err
	}
	for _, r := range runs {
		s.Runs++
		s.States[r.State]++
		s.Usage = addUsage(s.Usage, r.Usage)
		started := r.Started
		s.Oldest = &started
	}
	for after := int64(0); ; {
		part, err := led.List(a.ctx, ledger.Filter{After: after, Limit: 10_000})
		if err != nil {
			return err
		}
		for i := range part {
			cmd := &part[i]
			s.Commands++
			s.Statuses[cmd.Status]++
			s.Tools[strings.TrimPrefix(cmd.Tool, "tf-")]++
			if cmd.Code != "" {
				s.Codes[cmd.Code]++
			}
			if cmd.Rung != "" {
				s.Rungs[cmd.Rung]++
			}
			after = cmd.N
		}
		if len(part) < 10_000 {
			break
		}
	}
	for _, suffix := range []string{"", "-wal"} {
		if fi, err := os.Stat(led.Path() + suffix); err == nil {
			s.Bytes += fi.Size()
		}
	}
	if c.JSON {
		return printJSON(a, &s)
	}
	var rows [][2]string
	add := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	add("runs", counted(s.Runs, s.States))
	add("commands", counted(s.Commands, s.Statuses))
	add("tools", counted(0, s.Tools))
	add("failures", counted(0, s.Codes))
	add("edits found by", counted(0, s.Rungs))
	u := s.Usage
	tokens := fmt.Sprintf("%s in (%s cached), %s out, %d requests", humanize.Comma(int64(u.InputTokens)), humanize.Comma(int64(u.CachedTokens)), humanize.Comma(int64(u.OutputTokens)), u.Requests)
	if u.Estimated {
		tokens += ", partly estimated"
	}
	add("tokens", tokens)
	if u.Cost > 0 {
		add("cost", strconv.FormatFloat(u.Cost, 'f', 4, 64))
	}
	add("size", humanize.IBytes(uint64(s.Bytes)))
	add("file", led.Path())
	screen, done := a.screen()
	defer done()
	screen.Fields(rows)
	return nil
}

func addUsage(u agent.Usage, raw json.RawMessage) agent.Usage {
	var r agent.Usage
	if json.Unmarshal(raw, &r) != nil {
		return u
	}
	u.Requests += r.Requests
	u.InputTokens += r.InputTokens
	u.OutputTokens += r.OutputTokens
	u.CachedTokens += r.CachedTokens
	u.ReasoningTokens += r.ReasoningTokens
	u.Estimated = u.Estimated || r.Estimated
	u.Cost += r.Cost
	return u
}

// counted is a total and what it is made of, the most frequent first.
func counted[K ~string](total int, parts map[K]int) string {
	keys := slices.Collect(maps.Keys(parts))
	slices.SortFunc(keys, func(a, b K) int {
		if parts[a] != parts[b] {
			return parts[b] - parts[a]
		}
		return strings.Compare(string(a), string(b))
	})
	var s []string
	for _, k := range keys {
		s = append(s, fmt.Sprintf("%d %s", parts[k], strings.ReplaceAll(string(k), "_", " ")))
	}
	text := strings.Join(s, ", ")
	if total > 0 {
		text = fmt.Sprintf("%d: %s", total, text)
	}
	if text == "" {
		return "none"
	}
	return text
}

type ledgerPruneCmd struct {
	ledgerFlags
	Older  string `placeholder:"AGE" help:"Remove ended runs whose last word is older, such as 30d or 12h."`
	Larger string `placeholder:"SIZE" help:"Remove the oldest ended runs until the ledger is no larger, such as 200MB."`
}

func (c *ledgerPruneCmd) Run(a *app) error {
	age, err := parseAge(c.Older)
	if err != nil {
		return err
	}
	var size uint64
	if c.Larger != "" {
		if size, err = humanize.ParseBytes(c.Larger); err != nil || size == 0 {
			return usagef("--larger %s: give a size such as 200MB", c.Larger)
		}
	}
	if age == 0 && size == 0 {
		return usagef("say what goes: --older AGE or --larger SIZE")
	}
	led, err := c.open(a)
	if led == nil {
		return err
	}
	res, err := led.Prune(a.ctx, age, int64(size))
	if cerr := led.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, res)
	}
	fmt.Fprintf(a.stdout, "%d runs with %d commands removed; %s before, %s now\n", res.Runs, res.Commands,
		humanize.IBytes(uint64(res.BytesBefore)), humanize.IBytes(uint64(res.BytesAfter)))
	return nil
}

// parseAge reads a duration; d stands for days.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n > 0 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, usagef("--older %s: give an age such as 30d or 12h", s)
	}
	return d, nil
}

// contentText is the content of a command for people.
func contentText(data []byte) string {
	c, err := agent.DecodeContent(data)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString(c.Body)
	for _, p := range c.Pairs {
		fmt.Fprintf(&b, "old:\n%s\nnew:\n%s\n", p.Old, p.New)
	}
	return b.String()
}
