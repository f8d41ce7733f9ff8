package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/term"
	"thinkflow/ledger"
)

// ledgered are what the commands that go on with a run have in common.
type ledgered struct {
	settings
	Dir   string   `short:"C" placeholder:"DIR" help:"Folder of the run (the current one)."`
	JSON  bool     `name:"json" help:"Write events to stdout, one JSON object a line, and nothing else."`
	Allow []string `placeholder:"CLASS" help:"What may be done without asking: bash, delete, secrets, protected."`
}

func (c *ledgered) job(a *app) (job, error) {
	flags := map[string]string{}
	if len(c.Allow) > 0 {
		flags["allow"] = strings.Join(c.Allow, ",")
	}
	loaded, err := a.load(&c.settings, flags, nil)
	if err != nil {
		return job{}, err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(w))
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return job{}, err
	}
	if err := needModel(loaded); err != nil {
		return job{}, err
	}
	return job{cfg: loaded.Config, file: loaded.File, dir: dir, json: c.JSON}, nil
}

type resumeCmd struct {
	ledgered
	Which   string   `arg:"" optional:"" name:"run" default:"last" help:"Id of the run, the beginning of one, or last."`
	Message []string `arg:"" optional:"" help:"What the model is told besides."`
}

func (c *resumeCmd) Run(a *app) error {
	j, err := c.job(a)
	if err != nil {
		return err
	}
	j.resume = &agent.ResumeRequest{Run: c.Which, Message: strings.Join(c.Message, " "), By: "command line"}
	return a.work(j)
}

type approveCmd struct {
	ledgered
	Answer []string `arg:"" optional:"" help:"RUN [APPROVAL] once|session|no. Without it, what waits is listed."`
}

func (c *approveCmd) Run(a *app) error {
	if len(c.Answer) == 0 {
		return c.list(a)
	}
	if n := len(c.Answer); n != 2 && n != 3 {
		return usagef("give RUN [APPROVAL] and one of once, session, no")
	}
	d := agent.Decision(c.Answer[len(c.Answer)-1])
	if !slices.Contains(agent.Decisions, d) {
		return usagef("%q is not one of %v", string(d), agent.Decisions)
	}
	j, err := c.job(a)
	if err != nil {
		return err
	}
	run, id, err := c.find(a)
	if err != nil {
		return err
	}
	j.resume = &agent.ResumeRequest{Run: run, Answers: map[string]agent.Decision{id: d}, By: "command line"}
	return a.work(j)
}

// find finds the approval that is meant.
func (c *approveCmd) find(a *app) (run, id string, err error) {
	waiting, err := c.waiting(a)
	if err != nil {
		return "", "", err
	}
	var found []agent.WaitingApproval
	for _, w := range waiting {
		if (c.Answer[0] == ledger.Last || strings.HasPrefix(w.Run, c.Answer[0])) && (len(c.Answer) == 2 || strings.HasPrefix(w.ID, c.Answer[1])) {
			found = append(found, w)
		}
	}
	switch len(found) {
	case 0:
		return "", "", errors.New("nothing waits for that answer; see what does: thinkflow approve")
	case 1:
		return found[0].Run, found[0].ID, nil
	}
	return "", "", fmt.Errorf("%d approvals wait; name one: thinkflow approve lists them", len(found))
}

func (c *approveCmd) waiting(a *app) ([]agent.WaitingApproval, error) {
	f := ledgerFlags{settings: c.settings, Dir: c.Dir, JSON: true}
	led, err := f.open(a)
	if led == nil {
		return nil, err
	}
	defer led.Close() //nolint:errcheck // read only
	return agent.Waiting(a.ctx, led)
}

func (c *approveCmd) list(a *app) error {
	waiting, err := c.waiting(a)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, w := range waiting {
			if err := printJSON(a, w); err != nil {
				return err
			}
		}
		return nil
	}
	if len(waiting) == 0 {
		fmt.Fprintln(a.stdout, "no run waits for an approval")
		return nil
	}
	screen, done := a.screen()
	defer done()
	var rows [][]string
	for _, w := range waiting {
		rows = append(rows, []string{w.Run, w.ID, w.Action, w.Target, w.Rule})
	}
	screen.Table([]string{"run", "approval", "wants to", "target", "why it asks"}, rows)
	return nil
}

type sessionsCmd struct {
	ledgerFlags
	Last int `short:"n" default:"20" help:"Only so many, the newest ones; 0 lists all."`
}

func (c *sessionsCmd) Run(a *app) error {
	led, err := c.open(a)
	if led == nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	list, err := led.Sessions(a.ctx, max(0, c.Last))
	if err != nil {
		return err
	}
	if c.JSON {
		for _, s := range list {
			if err := printJSON(a, s); err != nil {
				return err
			}
		}
		return nil
	}
	var rows [][]string
	for _, s := range list {
		task, _, _ := strings.Cut(s.Task, "\n")
		rows = append(rows, []string{s.ID, s.Last.Local().Format("2006-01-02 15:04"), strconv.Itoa(s.Runs), s.State, task})
	}
	screen, done := a.screen()
	defer done()
	screen.Table([]string{"session", "last", "runs", "state", "task"}, rows)
	return nil
}
