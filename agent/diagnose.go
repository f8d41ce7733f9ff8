package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/workspace"
)

// Severity of a diagnostic.
type Severity string

// The severities, the worst first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
	SeverityHint    Severity = "hint"
)

// Diagnostic is what a language server or linter says about a place in a file.
type Diagnostic struct {
	Path     string // absolute
	Line     int    // from 1
	Column   int    // from 1, in UTF-16 units; 0 = unknown
	Severity Severity
	Source   string // "gopls", "eslint", …
	Code     string
	Message  string
}

// Diagnoser is an Editor that knows diagnostics: the editor's own, so that the
// model sees what the person sees.
type Diagnoser interface {
	// CanDiagnose tells whether the client answers at all.
	CanDiagnose() bool
	// Diagnostics returns what is known now about the files (absolute paths;
	// nil = all). It waits for nothing.
	Diagnostics(ctx context.Context, paths []string) ([]Diagnostic, error)
}

// ErrNoDiagnostics: the client cannot tell diagnostics.
var ErrNoDiagnostics = errors.New("the editor does not tell its diagnostics; run the checks with a command, or ask the user")

// Diagnostics are taken as final when they have not changed for quietTime, and
// at the latest after settleMost.
const (
	quietTime  = 500 * time.Millisecond
	settleMost = 5 * time.Second
	quietPoll  = 100 * time.Millisecond
)

func (e *Engine) diagnoser() (Diagnoser, error) {
	if d, ok := e.editor.(Diagnoser); ok && d.CanDiagnose() {
		return d, nil
	}
	return nil, ErrNoDiagnostics
}

// settled asks for diagnostics until they are quiet.
func settled(ctx context.Context, d Diagnoser, paths []string) ([]Diagnostic, error) {
	ctx, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	var last []Diagnostic
	var since time.Time
	for {
		now, err := d.Diagnostics(ctx, paths)
		switch {
		case ctx.Err() != nil && !since.IsZero():
			return last, nil // as far as they have come
		case err != nil:
			return nil, err
		case since.IsZero() || !slices.Equal(now, last):
			last, since = now, time.Now()
		case time.Since(since) >= quietTime:
			return last, nil
		}
		select {
		case <-time.After(quietPoll):
		case <-ctx.Done():
		}
	}
}

type diagnosticsArgs struct {
	Path string `json:"path,omitempty" jsonschema:"file or folder; default: all"`
}

// diagnosticsTool tells what the editor's language servers say.
func diagnosticsTool(ctx context.Context, c toolCall, a diagnosticsArgs) (toolOutput, error) {
	r := c.Env.r
	d, err := r.e.diagnoser()
	if err != nil {
		return toolOutput{}, registry.Errorf(registry.Unavailable, "%v", err)
	}
	within := ""
	var paths []string
	if a.Path != "" {
		t, err := r.e.ws.Resolve(a.Path, workspace.AccessRead)
		if err != nil {
			return toolOutput{}, asToolError(err)
		}
		within = t.Abs
		if !t.IsDir {
			paths = []string{t.Abs}
		}
	}
	found, err := settled(ctx, d, paths)
	if err != nil {
		return toolOutput{}, err
	}
	list := r.readable(found, within)
	if len(list) == 0 {
		return registry.Text("no diagnostics"), nil
	}
	return registry.Text(cutText(renderDiagnostics(list), c.Budget)), nil
}

// shown is a diagnostic with its path as people and models see it.
type shown struct {
	Diagnostic
	display string
}

// readable leaves out what lies outside the workspace or the folder, and sorts:
// the worst first, then by place.
func (r *run) readable(list []Diagnostic, within string) []shown {
	var out []shown
	for _, d := range list {
		if within != "" && d.Path != within && !strings.HasPrefix(d.Path, strings.TrimRight(within, `/\`)+string(filepath.Separator)) {
			continue
		}
		t, err := r.e.ws.Resolve(d.Path, workspace.AccessRead)
		if err != nil {
			continue
		}
		out = append(out, shown{d, t.Display})
	}
	slices.SortStableFunc(out, func(a, b shown) int {
		if n := severityRank(a.Severity) - severityRank(b.Severity); n != 0 {
			return n
		}
		if n := strings.Compare(a.display, b.display); n != 0 {
			return n
		}
		return a.Line - b.Line
	})
	return out
}

func severityRank(s Severity) int {
	return slices.Index([]Severity{SeverityError, SeverityWarning, SeverityInfo, SeverityHint}, s)
}

func renderDiagnostics(list []shown) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%s:%d", d.display, d.Line)
		if d.Column > 0 {
			fmt.Fprintf(&b, ":%d", d.Column)
		}
		fmt.Fprintf(&b, ": %s: %s", d.Severity, oneLine(d.Message, 500))
		if src := strings.TrimSpace(d.Source + " " + d.Code); src != "" {
			b.WriteString(" [" + src + "]")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// errorKey is what makes two errors the same although lines moved between them.
type errorKey struct{ path, source, code, message string }

// errorCounts counts the errors of each kind.
func errorCounts(list []Diagnostic) map[errorKey]int {
	out := map[errorKey]int{}
	for _, d := range list {
		if d.Severity == SeverityError {
			out[errorKey{d.Path, d.Source, d.Code, d.Message}]++
		}
	}
	return out
}

// newErrors are the errors of list that were not there before, the last ones of
// each kind.
func newErrors(list []Diagnostic, before map[errorKey]int) []Diagnostic {
	left := map[errorKey]int{}
	for k, n := range before {
		left[k] = n
	}
	var out []Diagnostic
	for _, d := range list {
		if d.Severity != SeverityError {
			continue
		}
		k := errorKey{d.Path, d.Source, d.Code, d.Message}
		if left[k] > 0 {
			left[k]--
			continue
		}
		out = append(out, d)
	}
	return out
}

func diagnosticsEntry() entry {
	return entry{
		registry.Define(registry.Tool[*turn]{
			Name: "diagnostics", Description: "What the editor's language servers and linters report now: errors and warnings.",
			Ready: func(t *turn) error {
				_, err := t.r.e.diagnoser()
				return err
			},
		}, diagnosticsTool),
		toolFacts{from: config.ModeAsk, permit: permitPath, offer: func(r *run, _ *setup) bool {
			_, err := r.e.diagnoser()
			return err == nil
		}},
	}
}
