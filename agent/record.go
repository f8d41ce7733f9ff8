package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// What is written into the ledger about commands, calls and answers. The intents
// of commands that change files are in describe.go.

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
	cmd := ledger.Command{
		Key: key, Announced: ledger.Announced{
			Tool: string(c.Name), Path: c.Path, Dest: c.Dest, Cmd: c.Cmd, NeedResult: c.NeedResult || c.Name == parser.Read || c.Name == parser.Bash,
			Flow: flow, Rung: o.rung, ContentSum: contentHash(c, nil), Summary: summary(c), Risk: "none",
		},
		Status: ledger.Status(o.status), Code: o.code, Error: o.message, Notes: o.notes,
		Bytes: o.bytes, Added: o.added, Removed: o.removed, Output: o.output, Stdout: o.stdout, ExitCode: o.exit,
		IntentAt: t.r.e.now(),
	}
	cmd.Abs, cmd.Secret = t.r.realPath(c.Path)
	if c.Name == parser.Read {
		cmd.Risk = readRisk(cmd.Secret)
	}
	if err := led.RecordWith(cmd, t.r.contentOf(c)); err != nil {
		t.r.e.log.Warn("ledger: command not recorded", "command", key.String(), "err", err)
	}
}

// realPath is where a path leads, for the ledger; "" when it cannot be used.
func (r *run) realPath(path string) (abs string, secret bool) {
	if path == "" {
		return "", false
	}
	t, err := r.e.ws.Resolve(path, workspace.AccessRead)
	if err != nil {
		return "", false
	}
	return t.Abs, t.Secret
}

func readRisk(secret bool) string {
	if secret {
		return "secret"
	}
	return "low"
}

func (t *turn) settleOutcome(led *ledger.Ledger, key ledger.Key, o outcome) {
	err := led.Outcome(ledger.Outcome{
		Key: key, Status: ledger.Status(o.status), Code: o.code, Error: o.message, Bytes: o.bytes,
		Added: o.added, Removed: o.removed, Rung: o.rung, Notes: o.notes, Output: o.output, Stdout: o.stdout, ExitCode: o.exit,
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

// recordDropped records the commands that stood behind one whose result had not
// been seen, and returns their keys. The turn is over.
func (t *turn) recordDropped() []ledger.Key {
	var keys []ledger.Key
	for _, c := range t.unrun {
		o := t.outcomeOf(c)
		o.status, o.code, o.message = string(ledger.StatusSkipped), "skipped", "it came after a command whose result the model had not seen"
		key := t.recordKey(c, "")
		t.recordAs(key, c, o, flowOf(c))
		keys = append(keys, key)
	}
	t.unrun = nil
	return keys
}

// bashIntent announces a shell command.
func bashIntent(key ledger.Key, args json.RawMessage, a shellAsk) ledger.Intent {
	return ledger.Intent{
		Key: key, Tool: "bash", Cmd: a.line, NeedResult: true, Flow: ledger.FlowNative, Risk: "high",
		ContentHash: a.hash(), Args: args, Summary: strings.Join(a.wishes(), ", "),
	}
}

// wishes are what a shell command asked for besides.
func (a shellAsk) wishes() []string {
	var out []string
	if a.with.Net {
		out = append(out, "with the network")
	}
	if a.with.Git {
		out = append(out, "with .git")
	}
	if a.background {
		out = append(out, "in the background")
	}
	return out
}

// recordBackground records the end of a command of the background under the key
// of the command that started it.
func (r *run) recordBackground(at ledger.Key, p *process) {
	led, err := r.ledger()
	if err != nil {
		return
	}
	p.mu.Lock()
	res := p.res
	p.mu.Unlock()
	out := p.out.String()
	notes := []string{fmt.Sprintf("ended after %s in the background as %s: %s", r.e.now().Sub(p.started).Round(1e6), p.id, res.state())}
	if res.remark != "" {
		notes = append(notes, strings.TrimSpace(res.remark))
	}
	err = led.Outcome(ledger.Outcome{
		Key: at, Status: ledger.StatusApplied, Bytes: int64(len(out)), Output: cameBack(out), Stdout: out, ExitCode: res.exit, Notes: notes,
	})
	if err != nil {
		r.e.log.Warn("ledger: the end of a background command was not recorded", "command", at.String(), "err", err)
	}
}

// cameBack describes a result in a few words.
func cameBack(s string) string {
	if s == "" {
		return "nothing"
	}
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return fmt.Sprintf("%s, %s", plural(n, "line"), plural(len(s), "byte"))
}

// recordCall stores a native call that has no intent of its own.
// after is what was found out about one that ran into a time-out.
func (t *turn) recordCall(c PreparedCall, ev ToolEvent, after registry.Verdict, result string) {
	if t.r.dryRun || t.shellJob(c.History.ID) != nil || t.announced(c.History.ID) != (ledger.Key{}) {
		return // it had an intent, which has its outcome
	}
	cmd := t.callCommand(c)
	cmd.Status, cmd.Code, cmd.Error, cmd.Bytes, cmd.Output = statusAfter(ev.Status == "ok", after), ev.Code, ev.Error, int64(ev.Bytes), cameBack(result)
	if ev.Status != "ok" {
		cmd.Output = ""
		if ev.Code == string(registry.Permission) {
			cmd.Status = ledger.StatusRejected
		}
	}
	t.storeCall(cmd)
}

// recordBarred stores a call that was not tried.
func (t *turn) recordBarred(c PreparedCall, why string) {
	if t.r.dryRun {
		return
	}
	cmd := t.callCommand(c)
	cmd.Status, cmd.Code, cmd.Error = ledger.StatusSkipped, "skipped", why
	if t.r.ctx.Err() != nil {
		cmd.Status, cmd.Code = ledger.StatusCancelled, codeCancelled
	}
	t.storeCall(cmd)
}

// callCommand is what the ledger has of a call, whatever became of it.
func (t *turn) callCommand(c PreparedCall) ledger.Command {
	cmd := ledger.Command{
		Key: t.callKey(c.N), IntentAt: t.r.e.now(), Announced: ledger.Announced{
			Tool: c.Name, Args: c.Arguments, NeedResult: true, Flow: ledger.FlowNative, Risk: "none",
			ContentSum: workspace.HashText(c.Name + "\n" + c.History.Arguments), Summary: oneLine(summarise(c), 120),
		},
	}
	if c.Arguments == nil { // they could not be read: as they came, bounded
		cmd.Args = json.RawMessage(c.History.Arguments)
	}
	var named struct{ Path, Dest, Command string }
	if json.Unmarshal(c.Arguments, &named) == nil {
		cmd.Path, cmd.Dest, cmd.Cmd = named.Path, named.Dest, named.Command
		cmd.Abs, cmd.Secret = t.r.realPath(named.Path)
	}
	if tool := t.set.tools.Find(c.Name); tool != nil && !tool.Effects {
		cmd.Risk = readRisk(cmd.Secret)
	}
	return cmd
}

func (t *turn) storeCall(c ledger.Command) {
	led, err := t.r.ledger()
	if err != nil {
		return
	}
	if t.staged[c.Key] { // it waited and is in the ledger already
		err = led.Outcome(ledger.Outcome{Key: c.Key, Status: c.Status, Code: c.Code, Error: c.Error, Bytes: c.Bytes, Output: c.Output})
	} else {
		err = led.Record(c)
	}
	if err != nil {
		t.r.e.log.Warn("ledger: tool call not recorded", "tool", c.Tool, "err", err)
	}
}

// stageCall records a shell command that waits for a person, durably, under its
// own key. A read that waits changes nothing and is recorded when it is read.
func (t *turn) stageCall(c PreparedCall) {
	var a bashArgs
	if c.Name != "bash" || json.Unmarshal(c.Arguments, &a) != nil {
		return
	}
	ask, err := a.ask()
	if err != nil {
		return
	}
	led, err := t.r.ledger()
	if err == nil {
		in := bashIntent(t.callKey(c.N), c.Arguments, ask)
		in.Staged = true
		err = led.Intent(t.r.effectCtx(), in)
	}
	if err != nil {
		t.r.e.log.Warn("ledger: a waiting command was not recorded", "command", t.callKey(c.N).String(), "err", err)
	}
}

// byNobody answers for a person where none can be asked.
const byNobody = "nobody"

// recordAsked stores a question and its answer with the command that it is
// about. A question that was not answered stays open.
func (r *run) recordAsked(at ledger.Key, ev ApprovalEvent, action, subject string, d Decision, err error) {
	a := ledger.Approval{ID: ev.ID, Action: action, Subject: subject, Target: ev.Target, Hash: ev.Hash}
	if err == nil && d != "" {
		a.Decision, a.By = string(d), r.e.asks
	}
	r.recordApproval(at, a)
}

func (r *run) recordApproval(at ledger.Key, a ledger.Approval) {
	if r.dryRun {
		return
	}
	led, err := r.ledger()
	if err == nil {
		err = led.Approval(at, a)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		r.e.log.Warn("ledger: an answer was not recorded", "command", at.String(), "err", err)
	}
}

// injected notes in the ledger that the model has been told of these commands.
func (r *run) injected(keys []ledger.Key) {
	var told []ledger.Key
	for _, k := range keys {
		for _, a := range attempts(k) {
			if a.Run != "" && !slices.Contains(told, a) {
				told = append(told, a)
			}
		}
	}
	if len(told) == 0 || r.dryRun {
		return
	}
	led, err := r.ledger()
	if err != nil {
		return
	}
	if err := led.Injected(told...); err != nil {
		r.e.log.Warn("ledger: injection not recorded", "err", err)
	}
}

// attempts are the keys of a command up to this attempt at it.
func attempts(k ledger.Key) []ledger.Key {
	base, number, _ := strings.Cut(k.Channel, ".retry")
	last, err := strconv.Atoi(number)
	if err != nil {
		return []ledger.Key{k}
	}
	k.Channel = base
	out := []ledger.Key{k}
	for i := 1; i <= last; i++ {
		out = append(out, retryKey(k, i))
	}
	return out
}

// recordSteer stores a further message of a person, as the model gets it.
func (r *run) recordSteer(text string) {
	if r.dryRun {
		return
	}
	led, err := r.ledger()
	if err == nil {
		err = led.Request(r.id, ledger.Request{Action: "steer", Text: text})
	}
	if err != nil {
		r.e.log.Warn("ledger: a further message was not recorded", "run", r.id, "err", err)
	}
}
