package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/redact"
	"thinkflow/internal/report"
	"thinkflow/internal/term"
	"thinkflow/ledger"
)

// An export is JSON lines, each an object with one member that names its kind:
//
//	export   what it is of: format, ledger, folder, time
//	session  a conversation
//	run      a run, followed by its commands, oldest first
//	command  a command with its content
//	event    a row of the hash chain, with all that its hash is made of
//	end      how many there are of each, and the SHA-256 of all lines before
//
// Secrets are taken out of every text; of files that may hold some, texts stay
// away altogether. A row from which something was taken says so ("redacted");
// its hash can be checked all the same, since the digest of the text stands
// beside it. `thinkflow ledger verify FILE` checks all of that.

// exportFormat is the version of the form.
const exportFormat = 1

type exportHead struct {
	Format    int             `json:"format"`
	Program   string          `json:"program"`
	Ledger    ledger.Identity `json:"ledger"`
	Workspace string          `json:"workspace"`
	Run       string          `json:"run,omitempty"` // only this one
	Exported  time.Time       `json:"exported"`
}

type exportEnd struct {
	Sessions int    `json:"sessions"`
	Runs     int    `json:"runs"`
	Commands int    `json:"commands"`
	Events   int    `json:"events"`
	SHA256   string `json:"sha256"` // of all bytes before this line
}

// exportedRow is a row of the chain; Redacted says that Body is not the text of
// the digest.
type exportedRow struct {
	ledger.Link
	Redacted bool `json:"redacted,omitempty"`
}

type exported struct {
	ledger.Command
	Body agent.Content `json:"content"`
}

type ledgerExportCmd struct {
	ledgerFlags
	Only   string `name:"run" placeholder:"ID" help:"Only this run: id, the beginning of one, or last."`
	Out    string `short:"o" placeholder:"FILE" help:"File instead of stdout."`
	Events bool   `default:"true" negatable:"" help:"With the rows of the hash chain (the default)."`
}

func (c *ledgerExportCmd) Run(a *app) (err error) {
	loaded, err := a.load(&c.settings, nil, nil)
	if err != nil {
		return err
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	led, err := c.need(a)
	if err != nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	out := a.stdout
	if c.Out != "" {
		f, err := os.OpenFile(c.Out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			if cerr := f.Close(); err == nil && cerr != nil {
				err = fmt.Errorf("%s: %w", c.Out, cerr)
			}
		}()
		out = f
	}
	x := &exporter{a: a, led: led, secrets: redactor(a, loaded), w: bufio.NewWriter(out), sum: sha256.New(), hidden: map[ledger.Key]bool{}}
	if err := x.export(dir, c.Only, c.Events); err != nil {
		return err
	}
	if err := x.w.Flush(); err != nil {
		return err
	}
	if c.Out != "" {
		fmt.Fprintf(a.stderr, "thinkflow: %s: %d runs, %d commands, %d rows; check it with: thinkflow ledger verify %s\n",
			term.VisibleName(c.Out), x.end.Runs, x.end.Commands, x.end.Events, term.VisibleName(c.Out))
	}
	return nil
}

// exporter writes one export.
type exporter struct {
	a       *app
	led     *ledger.Ledger
	secrets *redact.Redactor
	w       *bufio.Writer
	sum     hash.Hash
	end     exportEnd
	hidden  map[ledger.Key]bool // commands on files that may hold secrets
}

func (x *exporter) export(dir, only string, events bool) error {
	ctx := x.a.ctx
	id, err := x.led.Identity(ctx)
	if err != nil {
		return err
	}
	runs, err := x.runs(only)
	if err != nil {
		return err
	}
	head := exportHead{Format: exportFormat, Program: "thinkflow " + shortVersion(), Ledger: id, Workspace: dir, Exported: time.Now().UTC()}
	if only != "" {
		head.Run = runs[0].ID
	}
	if err := x.line("export", head); err != nil {
		return err
	}
	if only == "" {
		sessions, err := x.led.Sessions(ctx, 0)
		if err != nil {
			return err
		}
		for _, s := range slices.Backward(sessions) {
			x.end.Sessions++
			if err := x.clean("session", s); err != nil {
				return err
			}
		}
	}
	for _, run := range slices.Backward(runs) {
		if err := x.run(run); err != nil {
			return err
		}
	}
	if events {
		if err := x.led.Chain(ctx, head.Run, x.row); err != nil {
			return err
		}
	}
	x.end.SHA256 = hex.EncodeToString(x.sum.Sum(nil))
	return x.line("end", x.end)
}

func (x *exporter) runs(only string) ([]ledger.Run, error) {
	if only == "" {
		return x.led.Runs(x.a.ctx, ledger.RunFilter{})
	}
	run, err := x.led.FindRun(x.a.ctx, only)
	return []ledger.Run{run}, err
}

func (x *exporter) run(run ledger.Run) error {
	x.end.Runs++
	if err := x.clean("run", run); err != nil {
		return err
	}
	commands, err := x.led.List(x.a.ctx, ledger.Filter{Run: run.ID})
	if err != nil {
		return err
	}
	for i := range commands {
		cmd := &commands[i]
		content, err := report.ContentOf(x.a.ctx, x.led, cmd)
		if err != nil {
			return err
		}
		if cmd.Secret {
			x.hidden[cmd.Key] = true
		}
		x.end.Commands++
		if err := x.clean("command", exported{*cmd, content}); err != nil {
			return err
		}
	}
	return nil
}

// row writes a row of the chain.
func (x *exporter) row(k *ledger.Link) error {
	x.end.Events++
	r := exportedRow{Link: *k}
	if k.Body != nil {
		clean, changed, err := x.cleanBody(k)
		if err != nil {
			return err
		}
		r.Body, r.Redacted = clean, changed
	}
	return x.line("event", r)
}

// cleanBody takes out of a row what must not leave.
func (x *exporter) cleanBody(k *ledger.Link) (body json.RawMessage, changed bool, err error) {
	var plain any
	dec := json.NewDecoder(bytes.NewReader(k.Body))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return nil, true, nil //nolint:nilerr // it is no JSON: only its digest leaves
	}
	if x.withoutSecretTexts(k, plain) {
		changed = true
	}
	body, err = encode(redactValue(x.secrets, plain, &changed))
	if err != nil || changed {
		return body, true, err
	}
	var same bytes.Buffer // as the encoder of the line would have it
	if err := json.Compact(&same, k.Body); err != nil || !bytes.Equal(same.Bytes(), k.Body) {
		return body, true, err
	}
	return k.Body, false, nil
}

// withoutSecretTexts takes diffs and output of commands on secret files away.
func (x *exporter) withoutSecretTexts(k *ledger.Link, plain any) (changed bool) {
	var ev struct {
		Turn    int                 `json:"turn"`
		Command *agent.CommandEvent `json:"command"`
	}
	if json.Unmarshal(k.Body, &ev) != nil || ev.Command == nil ||
		!x.hidden[ledger.Key{Run: k.Run, Turn: ev.Turn, Channel: ev.Command.Channel, ID: ev.Command.ID}] {
		return false
	}
	cmd, _ := plain.(map[string]any)["command"].(map[string]any)
	for _, name := range []string{"diff", "output", "error"} {
		if _, ok := cmd[name]; ok {
			delete(cmd, name)
			changed = true
		}
	}
	return changed
}

// clean writes a line without secrets.
func (x *exporter) clean(kind string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return err
	}
	return x.line(kind, redactValue(x.secrets, plain, new(bool)))
}

func (x *exporter) line(kind string, v any) error {
	b, err := encode(map[string]any{kind: v})
	if err != nil {
		return err
	}
	b = append(b, '\n')
	x.sum.Write(b)
	_, err = x.w.Write(b)
	return err
}

// encode is JSON on one line, with < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func redactValue(r *redact.Redactor, v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		s := r.String(v)
		*changed = *changed || s != v
		return s
	case []any:
		for i := range v {
			v[i] = redactValue(r, v[i], changed)
		}
	case map[string]any:
		for k, x := range v {
			v[k] = redactValue(r, x, changed)
		}
	}
	return v
}

type ledgerVerifyCmd struct {
	ledgerFlags
	File string `arg:"" optional:"" help:"An export instead of the folder's ledger; - reads stdin."`
}

// verified is what verify answers.
type verified struct {
	Path     string `json:"path"`
	Rows     int64  `json:"rows"`           // of the chain that were checked
	Head     string `json:"head,omitempty"` // hash of the last one
	Runs     int    `json:"runs,omitempty"` // of an export, as the next two
	Commands int    `json:"commands,omitempty"`
	Redacted int    `json:"redacted,omitempty"` // rows without their own text
	Whole    bool   `json:"whole"`              // the chain from its beginning on
}

func (c *ledgerVerifyCmd) Run(a *app) error {
	v, err := c.verify(a)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, v)
	}
	what := "the chain is whole"
	if !v.Whole {
		what = "complete and unchanged; without the rows of other runs the chain cannot be followed"
	}
	if c.File != "" {
		what = fmt.Sprintf("%d runs, %d commands, %s", v.Runs, v.Commands, what)
		if v.Redacted > 0 {
			what += fmt.Sprintf("; %d rows without texts that may hold secrets", v.Redacted)
		}
	}
	fmt.Fprintf(a.stdout, "%s: %d rows, %s\n", term.VisibleName(v.Path), v.Rows, what)
	if v.Head != "" && v.Whole {
		fmt.Fprintf(a.stdout, "last row: %s\n", v.Head)
	}
	return nil
}

func (c *ledgerVerifyCmd) verify(a *app) (verified, error) {
	switch c.File {
	case "":
	case "-":
		return verifyExport(a.stdin, "stdin")
	default:
		f, err := os.Open(c.File)
		if err != nil {
			return verified{}, err
		}
		defer f.Close() //nolint:errcheck // read only
		return verifyExport(f, c.File)
	}
	led, err := c.need(a)
	if err != nil {
		return verified{}, err
	}
	defer led.Close() //nolint:errcheck // read only
	rows, err := led.Verify(a.ctx)
	if err != nil {
		return verified{}, err
	}
	id, err := led.Identity(a.ctx)
	return verified{Path: led.Path(), Rows: rows, Head: id.Head, Whole: true}, err
}

// verifyExport checks an export against itself: its lines by the sum at its end,
// its rows by their hashes, and that none is missing.
func verifyExport(r io.Reader, name string) (verified, error) {
	v := verified{Path: name, Whole: true}
	in := bufio.NewReader(r)
	sum := sha256.New()
	var head exportHead
	var have exportEnd
	var row int64
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return v, fmt.Errorf("%s: it is cut off: the line with the counts is missing", name)
		}
		if err != nil && err != io.EOF {
			return v, err
		}
		bad := func(format string, args ...any) (verified, error) {
			return v, fmt.Errorf("%s, line %d: %s", name, n, fmt.Sprintf(format, args...))
		}
		var l struct {
			Export  *exportHead
			Session json.RawMessage
			Run     json.RawMessage
			Command json.RawMessage
			Event   *exportedRow
			End     *exportEnd
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return bad("this is no line of an export (%v)", err)
		}
		switch {
		case n == 1 && l.Export == nil:
			return bad("this is no export of a ledger, or one of an earlier version")
		case n == 1 && l.Export.Format != exportFormat:
			return bad("this is an export of form %d; this program knows %d", l.Export.Format, exportFormat)
		case n == 1:
			head = *l.Export
			v.Head, row = head.Ledger.Genesis, head.Ledger.Pruned
			v.Whole = head.Run == ""
		case l.Session != nil:
			have.Sessions++
		case l.Run != nil:
			have.Runs++
		case l.Command != nil:
			have.Commands++
		case l.Event != nil:
			e := l.Event
			have.Events++
			body := []byte(e.Body)
			switch {
			case e.Redacted || e.Pruned:
				body = nil
				v.Redacted++
			case body == nil:
				body = []byte{}
			}
			if err := e.Check(body); err != nil {
				return bad("%v", err)
			}
			if v.Whole && (e.Row != row+1 || e.Prev != v.Head) {
				return bad("row %d does not follow row %d: rows are missing or were replaced", e.Row, row)
			}
			row, v.Head = e.Row, e.Hash
		case l.End != nil:
			have.SHA256 = hex.EncodeToString(sum.Sum(nil))
			if have != *l.End {
				return bad("%s", difference(*l.End, have))
			}
			if rest, _ := in.Peek(1); len(rest) > 0 {
				return bad("there is more behind its end")
			}
			v.Rows, v.Runs, v.Commands = int64(have.Events), have.Runs, have.Commands
			v.Whole = v.Whole && have.Events > 0
			if v.Whole && head.Ledger.Rows > row {
				return bad("the rows after %d are missing (there were %d)", row, head.Ledger.Rows)
			}
			return v, nil
		default:
			return bad("this is no line of an export")
		}
		sum.Write(line)
	}
}

// difference says how an export differs from what its end says.
func difference(want, have exportEnd) string {
	var s []string
	for _, n := range []struct {
		what       string
		want, have int
	}{{"sessions", want.Sessions, have.Sessions}, {"runs", want.Runs, have.Runs}, {"commands", want.Commands, have.Commands}, {"rows", want.Events, have.Events}} {
		if n.want != n.have {
			s = append(s, fmt.Sprintf("%d %s instead of %d", n.have, n.what, n.want))
		}
	}
	if len(s) == 0 {
		return "a line was changed: the sum at the end is another one"
	}
	return "it is not complete: " + strings.Join(s, ", ")
}
