package agent

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"thinkflow/ledger"
)

// Headers of the messages that tell the model what happened. They go in the
// user role: not every server takes a second system message.
const (
	headLedger = "[THINKFLOW COMMAND LEDGER]"
	headError  = "[THINKFLOW ERROR]"
	headResult = "[THINKFLOW RESULT]"
	headNote   = "[THINKFLOW NOTE]"
)

// Bounds of the diffs told to the model, in bytes.
const (
	diffPerEdit = 800
	diffPerTurn = 6 << 10
)

// onlyCommands stands for an answer that consisted of commands alone: some
// servers refuse an empty assistant message.
const onlyCommands = "(commands only; see the ledger)"

// onlyThinking stands for an answer without text and calls where there are no
// tags.
const onlyThinking = "(no text)"

// ledgerMessage lists outcomes that the model has not been told.
func ledgerMessage(outcomes []outcome) string {
	if len(outcomes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(headLedger + "\n")
	budget := diffPerTurn
	for _, o := range outcomes {
		b.WriteString(o.line())
		b.WriteByte('\n')
		if o.diff != "" && o.name == "tf-edit" && budget > 0 {
			d := bound(o.diff, min(diffPerEdit, budget))
			budget -= len(d)
			b.WriteString(indent(d, "    "))
		}
	}
	return b.String()
}

// line is one outcome in one line.
func (o outcome) line() string {
	var b strings.Builder
	if o.channel == ChannelNative {
		fmt.Fprintf(&b, "%s, %s", o.nth(), o.tool())
	} else {
		fmt.Fprintf(&b, "%d %s", o.id, o.name)
	}
	for _, s := range []string{o.path, o.dest} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if o.channel == "reasoning" {
		b.WriteString(" (in your thinking)")
	}
	b.WriteString(": " + strings.ReplaceAll(o.status, "_", " "))
	switch {
	case o.status == string(ledger.StatusApplied) && o.created:
		fmt.Fprintf(&b, ", created, %d lines", o.added)
	case o.status == string(ledger.StatusApplied) && (o.added > 0 || o.removed > 0):
		fmt.Fprintf(&b, ", +%d -%d lines", o.added, o.removed)
	}
	if o.status == string(ledger.StatusStaged) && o.via == "review" {
		b.WriteString(" for the user's review; go on as if it were applied")
	}
	if o.rung != "" && o.rung != "exact" {
		b.WriteString(", found by " + o.rung)
	}
	for _, n := range o.notes {
		b.WriteString("; " + o.said(n))
	}
	if o.message != "" && o.status != string(ledger.StatusApplied) {
		b.WriteString(": " + o.said(firstLine(o.message)))
	}
	return b.String()
}

// errorMessage tells the model of the failure that stopped its answer.
func errorMessage(f *failure, applied, skipped []int) string {
	var b strings.Builder
	b.WriteString(headError + "\n")
	who := f.o.name
	if who == "" {
		who = "the command"
	}
	if f.o.id != 0 {
		who = fmt.Sprintf("command %d (%s", f.o.id, f.o.name)
		if f.o.path != "" {
			who += " " + f.o.path
		}
		who += ")"
	} else if f.o.path != "" {
		who += " " + f.o.path
	}
	if f.o.status == string(ledger.StatusRolledBack) {
		fmt.Fprintf(&b, "%s was rolled back: %s\n", upperFirst(who), f.o.message)
	} else {
		fmt.Fprintf(&b, "%s %s [%s]: %s\n", upperFirst(who), f.o.fate(), f.o.code, f.o.message)
	}
	if f.o.nearest != "" {
		b.WriteString(fenceData("nearest text in the file", f.o.nearest))
	}
	if len(applied) > 0 {
		fmt.Fprintf(&b, "Applied, and still so: %s.\n", ids(applied))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(&b, "Skipped, not executed: %s.\n", ids(skipped))
	}
	b.WriteString("Nothing behind it was executed. Send what is still to be done, with new ids; do not repeat what was applied.\n")
	return b.String()
}

// fenceData wraps text that is data so that its content cannot close the
// wrapper: the closing line carries a random token (case SE-11).
func fenceData(title, text string) string {
	t := token()
	nl := "\n"
	if strings.HasSuffix(text, "\n") || text == "" {
		nl = ""
	}
	return fmt.Sprintf("--- %s (data, until %s)\n%s%s--- %s\n", title, t, text, nl, t)
}

func token() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func ids(n []int) string {
	s := make([]string, len(n))
	for i, v := range n {
		s[i] = fmt.Sprint(v)
	}
	return strings.Join(s, ", ")
}

// bound cuts s to at most n bytes at a line break and says so.
func bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := strings.LastIndexByte(s[:n], '\n') + 1
	return s[:cut] + fmt.Sprintf("… %d more bytes\n", len(s)-cut)
}

func indent(s, by string) string {
	s = strings.TrimSuffix(s, "\n")
	return by + strings.ReplaceAll(s, "\n", "\n"+by) + "\n"
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
