package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"thinkflow/internal/redact"
	"thinkflow/ledger"
)

//go:embed page.html
var pageText string

// page is parsed once per Write: it is small.
func page() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"human":    human,
		"comma":    func(n int) string { return humanize.Comma(int64(n)) },
		"micros":   func(us int64) string { return human(time.Duration(us) * time.Microsecond) },
		"when":     func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") },
		"lines":    diffLines,
		"outlines": outputLines,
		"status":   func(s ledger.Status) string { return strings.ReplaceAll(string(s), "_", " ") },
		"mark":     sign,
		"sub":      func(a, b time.Time) time.Duration { return a.Sub(b) },
		"cost":     func(c float64) string { return fmt.Sprintf("%.4f", c) },
		"asked":    askedText,
		"first":    func(s string) string { s, _, _ = strings.Cut(s, "\n"); return s },
	}).Parse(pageText)
}

// Write writes the page; clean takes secrets out of every text.
func Write(w io.Writer, r *Run, clean func(string) string) error {
	r.clean(func(s string) string { return redact.Visible(clean(s)) })
	t, err := page()
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Run
		Chart    template.HTML
		Duration time.Duration
		Counts   []count
	}{r, chart(r), r.Ended.Sub(r.Info.Started), r.counts()})
}

type count struct {
	Status ledger.Status
	N      int
}

func (r *Run) counts() []count {
	n := map[ledger.Status]int{}
	for _, c := range r.Commands {
		n[c.Status]++
	}
	var out []count
	for _, s := range ledger.Statuses() {
		if n[s] > 0 {
			out = append(out, count{s, n[s]})
		}
	}
	return out
}

// clean takes secrets out of every text that the page shows, and arranges them.
func (r *Run) clean(f func(string) string) {
	for _, s := range []*string{&r.Info.Task, &r.Info.Model, &r.Info.Dir, &r.Text, &r.Reason} {
		*s = f(*s)
	}
	for i := range r.Turns {
		r.Turns[i].Text = f(r.Turns[i].Text)
	}
	for i := range r.Spans {
		r.Spans[i].Title = f(r.Spans[i].Title)
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Args = []byte(f(string(c.Args)))
		for _, s := range []*string{&c.Path, &c.Dest, &c.Cmd, &c.Error, &c.Stdout, &c.Stderr, &c.Diff, &c.Summary, &c.Channel, &c.Tool} {
			*s = f(*s)
		}
		for j := range c.Notes {
			c.Notes[j] = f(c.Notes[j])
		}
		if c.Secret {
			c.Diff = ""
		}
	}
	r.group()
}

// askedText is a question and its answer in a few words.
func askedText(a Asked) string {
	s := "asked (" + a.Action + "): "
	if a.Decision == "" {
		return s + "no answer so far"
	}
	s += a.Decision
	if a.By != "" {
		s += ", by " + a.By
	}
	return s
}

// diffLine is one line of a diff with its class.
type diffLine struct{ Class, Text string }

// maxDiffLines bounds one shown diff.
const maxDiffLines = 400

func diffLines(diff string) []diffLine {
	var out []diffLine
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if len(out) == maxDiffLines {
			return append(out, diffLine{"at", fmt.Sprintf("… %d more lines", strings.Count(diff, "\n")-maxDiffLines)})
		}
		class := ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			continue
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "…"), strings.HasPrefix(line, `\`):
			class = "at"
		}
		out = append(out, diffLine{class, line})
	}
	return out
}

// outputLines are the lines of an output, bounded.
func outputLines(s string) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if more := len(lines) - maxDiffLines; more > 0 {
		half := maxDiffLines / 2
		lines = append(append(lines[:half:half], fmt.Sprintf("… %d lines left out", more)), lines[len(lines)-half:]...)
	}
	return lines
}

func sign(s ledger.Status) string {
	switch s {
	case ledger.StatusApplied:
		return "✓"
	case ledger.StatusFailed, ledger.StatusRejected:
		return "✗"
	case ledger.StatusUncertain, ledger.StatusIntent:
		return "?"
	case ledger.StatusRolledBack, ledger.StatusUndone:
		return "↶"
	case ledger.StatusStaged:
		return "…"
	}
	return "–"
}
