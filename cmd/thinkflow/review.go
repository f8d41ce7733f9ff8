package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/term"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

type reviewCmd struct {
	settings
	Which  string `arg:"" optional:"" name:"run" help:"Id of a run, the beginning of one, or last. Default: all proposals, and the last run."`
	Dir    string `short:"C" placeholder:"DIR" help:"Folder of the run (the current one)."`
	Path   string `placeholder:"FILE" help:"Only changes of this file."`
	Patch  string `placeholder:"FILE" help:"Write what waits as a patch that git apply takes; - is stdout."`
	Keep   bool   `help:"Keep all that is shown; proposals are accepted and written." xor:"what"`
	Undo   bool   `help:"Undo all that is shown; proposals are rejected." xor:"what"`
	Staged bool   `help:"Only proposals."`
	JSON   bool   `name:"json" help:"Print what waits as JSON."`
}

// reviewing is an engine for review and undo: it works offline.
func (a *app) reviewing(s *settings, dir string) (*agent.Engine, *workspace.Workspace, func(), error) {
	loaded, err := a.load(s, nil, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if dir, err = folder(dir); err != nil {
		return nil, nil, nil, err
	}
	log, closeLog, err := logger(&loaded.Config, a.stderr, a.redact)
	if err != nil {
		return nil, nil, nil, err
	}
	engine, ws, err := assemble(parts{
		cfg: loaded.Config, roots: []workspace.Root{{Dir: dir}}, file: loaded.File, log: log, redact: a.redact,
		notice: func(m string) { fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(m)) },
	})
	if err != nil {
		closeLog()
		return nil, nil, nil, err
	}
	return engine, ws, func() {
		if err := engine.Close(); err != nil {
			log.Error("the ledger was not closed well", "error", err)
		}
		closeLog()
	}, nil
}

func (c *reviewCmd) Run(a *app) error {
	engine, ws, done, err := a.reviewing(&c.settings, c.Dir)
	if err != nil {
		return err
	}
	defer done()
	r := &reviewer{a: a, c: c, e: engine, ws: ws}
	if err := r.look(); err != nil {
		return err
	}
	switch {
	case c.Keep || c.Undo:
		return r.all(c.Keep)
	case c.Patch != "":
		return r.patch(c.Patch)
	case c.JSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r.changes)
	}
	screen, restore := a.screen()
	defer restore()
	r.screen = screen
	if len(r.items()) == 0 {
		screen.Say("Nothing waits for review.")
		r.problems(r.changes.Problems)
		return nil
	}
	if a.canAsk() {
		return r.interact()
	}
	r.list()
	return nil
}

// reviewer is one review at the command line.
type reviewer struct {
	a       *app
	c       *reviewCmd
	e       *agent.Engine
	ws      *workspace.Workspace
	screen  *term.Renderer
	changes agent.Changes
}

// look finds what waits: of the run, or all proposals and what the last run did.
func (r *reviewer) look() error {
	ctx := r.a.ctx
	sel := agent.Selection{Run: r.c.Which, Staged: r.c.Staged, All: r.c.Which == ""}
	if r.c.Which != "" || r.c.Staged {
		ch, err := r.e.Changes(ctx, sel)
		r.changes = ch
		r.only()
		return err
	}
	staged, err := r.e.Changes(ctx, agent.Selection{All: true, Staged: true})
	if err != nil {
		return err
	}
	last, err := r.e.Changes(ctx, agent.Selection{Run: ledger.Last})
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	r.changes = staged
	for _, f := range last.Files {
		if !f.Staged {
			r.changes.Files = append(r.changes.Files, f)
		}
	}
	r.changes.Problems = append(r.changes.Problems, last.Problems...)
	r.only()
	return nil
}

// only leaves the file that was asked for.
func (r *reviewer) only() {
	if r.c.Path == "" {
		return
	}
	abs, _ := filepath.Abs(r.c.Path)
	var files []agent.FileChanges
	for _, f := range r.changes.Files {
		if f.Path == r.c.Path || f.Abs == abs {
			files = append(files, f)
		}
	}
	r.changes.Files = files
}

// item is one hunk with its file.
type item struct {
	file *agent.FileChanges
	hunk *agent.Hunk
}

func (r *reviewer) items() []item {
	var out []item
	for i := range r.changes.Files {
		f := &r.changes.Files[i]
		for j := range f.Hunks {
			out = append(out, item{f, &f.Hunks[j]})
		}
	}
	return out
}

func (r *reviewer) show(it item, n, of int) {
	side := "text"
	if it.file.Staged {
		side = "staged"
	}
	text, _, err := r.e.Content(r.a.ctx, it.file.Abs, side)
	if err != nil {
		text = ""
	}
	shown := term.ReviewItem{Path: it.file.Path, Staged: it.file.Staged, Hunk: *it.hunk, N: n, Of: of}
	shown.Before, shown.After = term.Around(text, it.hunk)
	r.screen.Review(shown)
}

func (r *reviewer) list() {
	for _, it := range r.items() {
		r.show(it, 0, 0)
	}
	r.problems(r.changes.Problems)
}

func (r *reviewer) problems(list []agent.Problem) {
	for _, p := range list {
		text := p.Path + ": " + p.Reason
		if p.Command != "" {
			text += " (" + p.Command + ")"
		}
		if r.screen != nil {
			r.screen.Say(text)
		} else {
			fmt.Fprintln(r.a.stderr, "thinkflow: "+term.Visible(text))
		}
	}
}

const reviewKeys = "n next, p previous, k keep, u undo, f keep file, F undo file, a keep all, U undo all, q quit"

// interact goes through the changes with the keys of a person.
func (r *reviewer) interact() error {
	keys, err := term.NewKeys(r.a.stdin)
	if err != nil {
		return err
	}
	defer keys.Close()
	at := 0
	for {
		items := r.items()
		if len(items) == 0 {
			resume := keys.Pause()
			r.screen.Say("Nothing waits any more.")
			resume()
			return nil
		}
		at = (at%len(items) + len(items)) % len(items)
		it := items[at]
		resume := keys.Pause()
		r.show(it, at+1, len(items))
		r.screen.AskKeys(reviewKeys)
		resume()
		key := keys.Read(r.a.ctx)
		resume = keys.Pause()
		r.screen.AnsweredKey(key)
		file := agent.Selection{Path: it.file.Abs, Staged: it.file.Staged, Version: it.file.Version, By: "terminal"}
		for i := range it.file.Hunks {
			file.Hunks = append(file.Hunks, it.file.Hunks[i].ID)
		}
		one := file
		one.Hunks = []string{it.hunk.ID}
		switch key {
		case "n", "j", "down", " ", "enter":
			at++
		case "p", "up":
			at--
		case "k", "y":
			r.do(r.e.Keep, one)
		case "u":
			r.do(r.e.Undo, one)
		case "f":
			r.do(r.e.Keep, file)
		case "F":
			r.do(r.e.Undo, file)
		case "a", "U":
			err = r.all(key == "a")
		case "q", "", "esc":
			resume()
			return r.a.ctx.Err()
		default:
			r.screen.Say(reviewKeys)
		}
		if err == nil {
			err = r.look()
		}
		resume()
		if err != nil {
			return err
		}
	}
}

type decision func(context.Context, agent.Selection) (agent.Reviewed, error)

// do decides about hunks and says what could not be done.
func (r *reviewer) do(f decision, sel agent.Selection) {
	sel.Path = "" // the hunks say it
	res, err := f(r.a.ctx, sel)
	if err != nil {
		r.screen.Say(err.Error())
	}
	r.problems(res.Problems)
}

// all decides about everything that is shown.
func (r *reviewer) all(keep bool) error {
	var ids []string
	for _, it := range r.items() {
		ids = append(ids, it.hunk.ID)
	}
	if len(ids) == 0 {
		fmt.Fprintln(r.a.stdout, "Nothing waits for review.")
		return nil
	}
	f, what := r.e.Undo, "undone or rejected"
	if keep {
		f, what = r.e.Keep, "kept or accepted"
	}
	// The numbers of proposals and of changes are told apart by their files.
	var failed bool
	for _, staged := range []bool{true, false} {
		var mine []string
		for _, it := range r.items() {
			if it.file.Staged == staged {
				mine = append(mine, it.hunk.ID)
			}
		}
		if len(mine) == 0 {
			continue
		}
		res, err := f(r.a.ctx, agent.Selection{Hunks: mine, Staged: staged, By: "terminal"})
		if err != nil {
			return err
		}
		fmt.Fprintf(r.a.stdout, "%d %s: %s\n", res.Hunks, what, strings.Join(visible(res.Files), ", "))
		r.problems(res.Problems)
		failed = failed || len(res.Problems) > 0
	}
	if failed {
		return exitError(exitFailed)
	}
	return nil
}

func visible(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = term.VisibleName(n)
	}
	return out
}

// patch writes what waits.
func (r *reviewer) patch(to string) error {
	var files []workspace.PatchFile
	for i := range r.changes.Files {
		f := &r.changes.Files[i]
		was, is := "base", "text"
		if f.Staged {
			was, is = "text", "staged"
		}
		p := workspace.PatchFile{From: f.Path, To: f.Path}
		var before, after bool
		var err error
		if p.Before, before, err = r.e.Content(r.a.ctx, f.Abs, was); err != nil {
			return err
		}
		if p.After, after, err = r.e.Content(r.a.ctx, f.Abs, is); err != nil {
			return err
		}
		for _, h := range f.Hunks {
			if h.From != "" {
				p.From, before = h.From, true
				if f.Staged {
					if p.Before, _, err = r.e.Content(r.a.ctx, h.From, was); err != nil {
						return err
					}
				}
			}
		}
		if !before {
			p.From = ""
		}
		if !after {
			p.To = ""
		}
		p.Mode = modeOf(f.Abs)
		files = append(files, p)
	}
	text := workspace.Patch(files...)
	if to == "-" {
		_, err := fmt.Fprint(r.a.stdout, text)
		return err
	}
	return os.WriteFile(to, []byte(text), 0o644) //nolint:gosec // a patch is no secret
}

func modeOf(abs string) fs.FileMode {
	if info, err := os.Stat(abs); err == nil {
		return info.Mode()
	}
	return 0
}
