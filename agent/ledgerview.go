package agent

import (
	"context"
	"fmt"
	"slices"

	"thinkflow/ledger"
)

// Bounds of what an editor is told of the ledger.
const (
	usualCommands = 50
	mostCommands  = 500
	listedOutput  = 500      // bytes of each text of a listed command
	shownOutput   = 64 << 10 // bytes of each text of one command
)

// CommandQuery selects recorded commands. The zero value is the last 50.
type CommandQuery struct {
	Session string          `json:"session,omitempty"`
	Run     string          `json:"runId,omitempty"` // id, the beginning of one, or last
	Path    string          `json:"path,omitempty"`  // as it is shown
	Status  []ledger.Status `json:"status,omitempty"`
	Limit   int             `json:"limit,omitempty"`  // the last ones; 0 = 50, at most 500
	Before  int64           `json:"before,omitempty"` // only numbers below, for going back; 0 = all
}

// CommandList is an answer, the oldest command first.
type CommandList struct {
	Commands []ledger.Command `json:"commands"`
	// More: there are earlier ones; ask again with before = the first one's n.
	More bool `json:"more,omitempty"`
}

// CommandDetail is one command with its texts.
type CommandDetail struct {
	ledger.Command
	// Content is what the command carried; absent when it was not kept.
	Content *CommandContent `json:"content,omitempty"`
	// Events are the rows of the chain about it, without their bodies.
	Events []ledger.Event `json:"events"`
}

// CommandContent is a body, or what is replaced by what.
type CommandContent struct {
	Body  string        `json:"body,omitempty"`
	Pairs []CommandPair `json:"pairs,omitempty"`
}

// CommandPair is one replacement of an edit.
type CommandPair struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Commands lists recorded commands, with the beginnings of their outputs.
func (e *Engine) Commands(ctx context.Context, q CommandQuery) (CommandList, error) {
	for _, s := range q.Status {
		if !slices.Contains(ledger.Statuses(), s) {
			return CommandList{}, fmt.Errorf("status %q is not one of %v", s, ledger.Statuses())
		}
	}
	switch {
	case q.Limit < 0 || q.Before < 0:
		return CommandList{}, fmt.Errorf("limit and before are not below 0")
	case q.Limit == 0:
		q.Limit = usualCommands
	}
	q.Limit = min(q.Limit, mostCommands)
	led, err := e.openLedger()
	if err != nil {
		return CommandList{}, err
	}
	f := ledger.Filter{Run: q.Run, Session: q.Session, Path: q.Path, Status: q.Status, Before: q.Before, Last: q.Limit + 1}
	list, err := led.List(ctx, f)
	if err != nil {
		return CommandList{}, err
	}
	out := CommandList{Commands: list, More: len(list) > q.Limit}
	if out.More {
		out.Commands = list[1:]
	}
	for i := range out.Commands {
		boundCommand(&out.Commands[i], listedOutput)
	}
	if out.Commands == nil {
		out.Commands = []ledger.Command{}
	}
	return out, nil
}

// Command is one recorded command: by its number, run/turn/id, or last.
func (e *Engine) Command(ctx context.Context, ref string) (CommandDetail, error) {
	led, err := e.openLedger()
	if err != nil {
		return CommandDetail{}, err
	}
	d, err := led.Show(ctx, ref)
	if err != nil {
		return CommandDetail{}, err
	}
	out := CommandDetail{Command: d.Command, Events: d.Events}
	if len(d.ContentText) > 0 {
		content, err := DecodeContent(d.ContentText)
		if err != nil {
			return out, err
		}
		out.Content = &CommandContent{Body: cutText(content.Body, shownOutput)}
		for _, p := range content.Pairs {
			out.Content.Pairs = append(out.Content.Pairs, CommandPair{cutText(p.Old, shownOutput), cutText(p.New, shownOutput)})
		}
	}
	boundCommand(&out.Command, shownOutput)
	for i := range out.Events {
		out.Events[i].Body = nil
	}
	return out, nil
}

func boundCommand(c *ledger.Command, most int) {
	c.Args = nil
	for _, s := range []*string{&c.Stdout, &c.Stderr, &c.Error, &c.Cmd} {
		*s = cutText(*s, most)
	}
}
