package report

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// Diffs are the diffs that the events of a run told, by the key of the command.
func Diffs(ctx context.Context, led *ledger.Ledger, run string) (map[ledger.Key]string, error) {
	out := map[ledger.Key]string{}
	for after := int64(0); ; {
		events, err := led.Events(ctx, ledger.EventFilter{Run: run, Seq: true, After: after, Limit: 1000})
		if err != nil || len(events) == 0 {
			return out, err
		}
		for _, e := range events {
			after = e.Seq
			var ev agent.Event
			if e.Type != string(agent.CommandCompleted) || json.Unmarshal(e.Body, &ev) != nil || ev.Command == nil {
				continue
			}
			c := ev.Command
			out[ledger.Key{Run: e.Run, Turn: ev.Turn, Channel: c.Channel, ID: c.ID}] = c.Diff
		}
	}
}

// DiffOf is what a command changed, or wanted to change, as a unified diff; ""
// when no text is involved. diffs are those of its run.
func DiffOf(ctx context.Context, led *ledger.Ledger, c *ledger.Command, diffs map[ledger.Key]string) (string, error) {
	key := c.Key
	key.Channel, _, _ = strings.Cut(key.Channel, ".") // a further attempt
	if d := diffs[key]; d != "" {
		return d, nil
	}
	content, err := ContentOf(ctx, led, c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range content.Pairs {
		b.WriteString("@@ wanted @@\n")
		prefixed(&b, "-", p.Old)
		prefixed(&b, "+", p.New)
	}
	if content.Body != "" {
		b.WriteString("@@ wanted @@\n")
		prefixed(&b, "+", content.Body)
	}
	return b.String(), nil
}

func prefixed(b *strings.Builder, sign, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// ContentOf is the body or the pairs of a command; empty when none is kept, or
// when its file may hold secrets.
func ContentOf(ctx context.Context, led *ledger.Ledger, c *ledger.Command) (agent.Content, error) {
	if c.Content == "" || c.Secret {
		return agent.Content{}, nil
	}
	data, err := led.Blob(ctx, c.Content)
	if errors.Is(err, ledger.ErrNotFound) {
		return agent.Content{}, nil // purged
	}
	if err != nil {
		return agent.Content{}, err
	}
	return agent.DecodeContent(data)
}
