package agent

import (
	"fmt"

	"thinkflow/ledger"
	"thinkflow/parser"
)

// record stores a command without an intent: it had no effect.
func (t *turn) record(c *parser.Command, o outcome, flow ledger.Flow) {
	t.recordAs(t.recordKey(c, o.code), c, o, flow)
}

// recordKey is the key of a command that had no effect; one without a usable
// id gets a number of its own.
func (t *turn) recordKey(c *parser.Command, code string) ledger.Key {
	key := t.key(c)
	if c.ID == 0 || code == string(parser.CodeDuplicateID) {
		key = t.r.nextBadKey(key)
	}
	return key
}

func (t *turn) recordAs(key ledger.Key, c *parser.Command, o outcome, flow ledger.Flow) {
	if t.r.dryRun {
		return
	}
	led, err := t.r.ledger()
	if err != nil {
		return // told where an effect needs it
	}
	if t.staged[key] { // it waited and is in the ledger already
		t.settleOutcome(led, key, o)
		return
	}
	err = led.RecordWith(ledger.Command{
		Key: key, Announced: ledger.Announced{
			Tool: string(c.Name), Path: c.Path, Dest: c.Dest, Cmd: c.Cmd, NeedResult: c.NeedResult,
			Flow: flow, Rung: o.rung, ContentSum: contentHash(c, nil), Summary: summary(c),
		},
		Status: ledger.Status(o.status), Code: o.code, Error: o.message, Notes: o.notes, IntentAt: t.r.e.now(),
	}, t.r.contentOf(c))
	if err != nil {
		t.r.e.log.Warn("ledger: command not recorded", "command", key.String(), "err", err)
	}
}

func (t *turn) settleOutcome(led *ledger.Ledger, key ledger.Key, o outcome) {
	err := led.Outcome(ledger.Outcome{
		Key: key, Status: ledger.Status(o.status), Code: o.code, Error: o.message, Bytes: o.bytes,
		Added: o.added, Removed: o.removed, Rung: o.rung, Notes: o.notes, Stdout: o.stdout, ExitCode: o.exit,
	})
	if err != nil {
		t.r.e.log.Warn("ledger: outcome not recorded; it is settled when the ledger is next opened", "command", key.String(), "err", err)
	}
}

func (t *turn) key(c *parser.Command) ledger.Key {
	return t.ledgerKey(string(c.Channel), c.ID)
}

// retryKey is the key of a further attempt at the same command, on a document
// that moved on.
func retryKey(k ledger.Key, attempt int) ledger.Key {
	k.Channel = fmt.Sprintf("%s.retry%d", k.Channel, attempt)
	return k
}

// nextBadKey makes a key for a tag without a usable id, so that it can be
// recorded: below zero, where no command is.
func (r *run) nextBadKey(k ledger.Key) ledger.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.badKeys++
	k.ID = -r.badKeys
	return k
}
