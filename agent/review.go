package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"thinkflow/ledger"
	"thinkflow/workspace"
	"thinkflow/workspace/review"
)

// Hunk is one change of the agent that waits for a person: whole lines of a
// file, or the file itself. Lines count from 0, ends are exclusive.
type Hunk struct {
	ID   string      `json:"id"`
	Kind review.Kind `json:"kind"` // edit, create, delete, move
	From string      `json:"from,omitempty"`
	// StartLine and EndLine are in the text as it is (of a proposal: as it is
	// proposed); BaseStartLine and BaseEndLine in the text without the changes.
	StartLine     int      `json:"startLine"`
	EndLine       int      `json:"endLine"`
	BaseStartLine int      `json:"baseStartLine"`
	BaseEndLine   int      `json:"baseEndLine"`
	Old           string   `json:"old"`
	New           string   `json:"new"`
	Commands      []string `json:"commands,omitempty"` // keys, run/turn/channel/id
	Edited        bool     `json:"edited,omitempty"`   // a person changed it since
}

// FileChanges is what waits in one file. Version changes whenever that does;
// requests carry it, so that what is kept or undone is what was looked at.
type FileChanges struct {
	Path    string `json:"path"` // as people see it
	Abs     string `json:"abs"`
	Version int64  `json:"version"`
	Staged  bool   `json:"staged,omitempty"` // a proposal: nothing of it is in the file yet
	Added   int    `json:"added"`            // lines
	Removed int    `json:"removed"`
	Hunks   []Hunk `json:"hunks"`
	// DocumentVersion is that of the open document which the lines refer to.
	DocumentVersion *int32 `json:"documentVersion,omitempty"`
}

// Changes is all that waits for a person, by path.
type Changes struct {
	Files []FileChanges `json:"files"`
	// Problems are changes that cannot be shown: the text moved on.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is something that could not be done, and why.
type Problem struct {
	Path    string `json:"path,omitempty"`
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason"`
}

// Selection says which changes are meant: those with these ids, of this file,
// of this command or of this run; with All, every one. Version, when set, is
// that of the one file they are in.
type Selection struct {
	Hunks   []string `json:"hunks,omitempty"`
	Path    string   `json:"path,omitempty"`
	Command string   `json:"command,omitempty"` // key
	Run     string   `json:"runId,omitempty"`
	All     bool     `json:"all,omitempty"`
	Staged  bool     `json:"staged,omitempty"` // only proposals
	Version int64    `json:"version,omitempty"`
	By      string   `json:"by,omitempty"` // editor, terminal
	// Preview says what would be done and does nothing (Undo by command or run).
	Preview bool `json:"preview,omitempty"`
}

func (s *Selection) empty() bool {
	return len(s.Hunks) == 0 && s.Path == "" && s.Command == "" && s.Run == "" && !s.All
}

// Reviewed is what Keep or Undo did.
type Reviewed struct {
	Hunks    int       `json:"hunks"` // kept, undone, accepted or rejected
	Commands []string  `json:"commands,omitempty"`
	Files    []string  `json:"files,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	// Undo are the keys that take it back, for Undo by command.
	Undo []string `json:"undo,omitempty"`
	// Effects is what happens to files, for a preview.
	Effects []FileEffect `json:"effects,omitempty"`
}

// FileEffect is what an undo does to one file.
type FileEffect struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // edit, create, delete, move
	Dest string `json:"dest,omitempty"`
	Diff string `json:"diff,omitempty"` // bounded
}

// reviewer knows what of the agent's work waits for a person.
type reviewer struct {
	live   *review.Tracker // applied
	staged *review.Tracker // proposed; the base is the real file

	mu       sync.Mutex // guards all below
	sessions map[string]*session
	fate     map[string]*fate // by command key
	told     map[string]string
	loaded   map[string]bool // runs that were looked up in the ledger
	shown    map[string]bool // paths that the overlay covers
	dirs     []stagedDir
	ready    bool // proposals of earlier processes were loaded
}

// fate is what people decided about the hunks of one command.
type fate struct{ kept, undone bool }

func newReviewer() *reviewer {
	return &reviewer{
		live: review.NewTracker(), staged: review.NewTracker(), sessions: map[string]*session{},
		fate: map[string]*fate{}, told: map[string]string{}, loaded: map[string]bool{}, shown: map[string]bool{},
	}
}

// begin notes whose run it is.
func (v *reviewer) begin(run string, s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions[run] = s
}

func (v *reviewer) tracker(staged bool) *review.Tracker {
	if staged {
		return v.staged
	}
	return v.live
}

// errNothing: a selection that names nothing is a mistake, not everything.
var errNothing = errors.New("say what is meant: hunks, a path, a command, a run, or all")

// Changes lists what waits. A run that another process worked on is looked up
// in the ledger.
func (e *Engine) Changes(ctx context.Context, sel Selection) (Changes, error) {
	e.resolvePath(&sel)
	problems, err := e.load(ctx, &sel)
	if err != nil {
		return Changes{}, err
	}
	out := Changes{Files: []FileChanges{}, Problems: problems}
	for _, staged := range []bool{true, false} {
		if sel.Staged && !staged {
			continue
		}
		for _, abs := range e.review.tracker(staged).Paths() {
			if sel.Path != "" && sel.Path != abs {
				continue
			}
			f, ok := e.fileChanges(abs, staged, &sel)
			if ok {
				out.Files = append(out.Files, f)
			}
		}
	}
	slices.SortStableFunc(out.Files, func(a, b FileChanges) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// resolvePath makes the real path of one as people and editors spell it.
func (e *Engine) resolvePath(sel *Selection) {
	if sel.Path == "" {
		return
	}
	if t, err := e.under.Resolve(sel.Path, workspace.AccessRead); err == nil {
		sel.Path = t.Abs
	}
}

// fileChanges describes one file, as it is now.
func (e *Engine) fileChanges(abs string, staged bool, sel *Selection) (FileChanges, bool) {
	unlock := e.locks.lock([]string{abs})
	defer unlock()
	e.syncReview(abs, staged)
	tr := e.review.tracker(staged)
	f := FileChanges{Path: e.display(abs), Abs: abs, Staged: staged, Version: tr.Revision(abs)}
	changes := slices.DeleteFunc(tr.Changes(abs), func(c review.Change) bool { return !sel.takes(&c) })
	if len(changes) == 0 {
		return f, false
	}
	text, _, _ := tr.Text(abs)
	base, _, _ := tr.Base(abs)
	if doc, ok := e.under.Document(abs); ok && !staged {
		f.DocumentVersion = &doc.Version
	}
	now, was := lineCounter{s: text}, lineCounter{s: base}
	for _, c := range changes {
		h := Hunk{ID: c.ID.String(), Kind: c.Kind, Old: c.Old, New: c.New, Commands: c.Keys, Edited: c.Edited}
		if c.From != "" {
			h.From = e.display(c.From)
		}
		h.StartLine, h.EndLine = now.line(c.Start), now.line(c.End)
		h.BaseStartLine, h.BaseEndLine = was.line(c.BaseStart), was.line(c.BaseEnd)
		f.Added += countLines(c.New)
		f.Removed += countLines(c.Old)
		f.Hunks = append(f.Hunks, h)
	}
	return f, true
}

// takes reports whether the change is among those that are meant.
func (s *Selection) takes(c *review.Change) bool {
	switch {
	case len(s.Hunks) > 0:
		return slices.Contains(s.Hunks, c.ID.String())
	case s.Path != "":
		return s.Path == c.Path
	case s.Command != "":
		return slices.Contains(c.Keys, s.Command)
	case s.Run != "":
		return slices.ContainsFunc(c.Keys, func(k string) bool { return strings.HasPrefix(k, s.Run+"/") })
	}
	return true
}

// lineCounter turns growing offsets into lines, from 0; an end inside of a last
// line without line break is the line behind it.
type lineCounter struct {
	s         string
	at, line0 int
}

func (l *lineCounter) line(off int) int {
	if off < l.at {
		l.at, l.line0 = 0, 0
	}
	l.line0 += strings.Count(l.s[l.at:off], "\n")
	l.at = off
	if off == len(l.s) && off > 0 && l.s[off-1] != '\n' {
		return l.line0 + 1
	}
	return l.line0
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

func (e *Engine) display(abs string) string {
	t, err := e.under.Resolve(abs, workspace.AccessDelete)
	if err != nil {
		return abs
	}
	return t.Display
}

// textNow is the file as it is: the buffer where there is one. ok is false for
// what is no text.
func (e *Engine) textNow(abs string) (text string, exists, ok bool) {
	t, err := e.under.Resolve(abs, workspace.AccessRead)
	if err != nil || t.IsDir {
		return "", false, false
	}
	s, err := e.under.Snapshot(t)
	if err != nil {
		return "", false, false
	}
	return s.Text, s.Exists, true
}

// syncReview takes in what people did to the file since. The path is locked.
func (e *Engine) syncReview(abs string, staged bool) {
	text, exists, ok := e.textNow(abs)
	if !ok {
		return
	}
	if staged {
		e.review.staged.SyncBase(abs, text, exists)
		e.showStaged()
		return
	}
	e.review.live.Sync(abs, text, exists)
}

// trackApplied notes a change that a command (key "": nobody's) has made. The
// paths are locked.
func (e *Engine) trackApplied(key string, ch *workspace.Change) {
	a := review.Applied{
		Key: key, Kind: ch.Kind, Path: ch.Target.Abs, Before: ch.Before.Text, After: ch.After(), Edits: ch.Edits,
		Mode: ch.Before.Mode.Perm(), Link: ch.Link(),
	}
	if ch.Dest != nil {
		a.Dest = ch.Dest.Abs
	}
	if ch.Kind == workspace.ChangeMove {
		if ch.AfterHash == workspace.HashDir {
			e.review.live.MoveFolder(a.Path, a.Dest, key)
			return
		}
		a.Before, _, _ = e.textNow(a.Dest)
	}
	e.review.live.Agent(a)
}

// group is what is meant in one file.
type group struct {
	abs     string
	staged  bool
	changes []review.Change
}

func (g *group) ids() []review.ID {
	out := make([]review.ID, len(g.changes))
	for i, c := range g.changes {
		out[i] = c.ID
	}
	return out
}

func (g *group) names() []string {
	out := make([]string, len(g.changes))
	for i, c := range g.changes {
		out[i] = c.ID.String()
	}
	return out
}

func (g *group) keys() []string {
	var out []string
	for _, c := range g.changes {
		for _, k := range c.Keys {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// selected finds the files and changes that are meant. Hunks that are not there
// (any more) are an error: nothing is guessed.
func (e *Engine) selected(ctx context.Context, sel *Selection) ([]group, error) {
	if sel.empty() {
		return nil, errNothing
	}
	e.resolvePath(sel)
	if _, err := e.load(ctx, sel); err != nil {
		return nil, err
	}
	var out []group
	found := 0
	for _, staged := range []bool{true, false} {
		tr := e.review.tracker(staged)
		if sel.Staged && !staged {
			continue
		}
		for _, abs := range tr.Paths() {
			g := group{abs: abs, staged: staged}
			for _, c := range tr.Changes(abs) {
				if sel.takes(&c) {
					g.changes = append(g.changes, c)
				}
			}
			if len(g.changes) > 0 {
				found += len(g.changes)
				out = append(out, g)
			}
		}
	}
	if found < len(sel.Hunks) {
		for _, id := range sel.Hunks {
			_, err := e.review.live.Find(id)
			if _, serr := e.review.staged.Find(id); err != nil && serr != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// within runs do for each file that is meant, with its path locked, after what
// people did to it has been taken in. An error of one file is a problem; the
// others go on.
func (e *Engine) within(ctx context.Context, sel *Selection, res *Reviewed, do func(g *group) error) error {
	groups, err := e.selected(ctx, sel)
	if err != nil {
		return err
	}
	for _, g := range groups {
		err := func() error {
			paths := []string{g.abs}
			for _, c := range g.changes {
				if c.From != "" {
					paths = append(paths, c.From)
				}
			}
			slices.Sort(paths)
			unlock := e.locks.lock(slices.Compact(paths))
			defer unlock()
			tr := e.review.tracker(g.staged)
			e.syncReview(g.abs, g.staged)
			if rev := tr.Revision(g.abs); sel.Version != 0 && sel.Version != rev {
				return fmt.Errorf("%w: version %d was asked for, it is %d now; look again", review.ErrStale, sel.Version, rev)
			}
			now := tr.Changes(g.abs)
			var still []review.Change
			for _, c := range g.changes {
				i := slices.IndexFunc(now, func(n review.Change) bool { return n.ID == c.ID })
				if i >= 0 {
					still = append(still, now[i])
				}
			}
			if g.changes = still; len(still) == 0 {
				return nil // a person has done it already
			}
			if err := do(&g); err != nil {
				return err
			}
			res.Hunks += len(g.changes)
			res.Files = append(res.Files, e.display(g.abs))
			for _, k := range g.keys() {
				if !slices.Contains(res.Commands, k) {
					res.Commands = append(res.Commands, k)
				}
			}
			return nil
		}()
		switch {
		case err != nil && errors.Is(err, review.ErrStale) && len(groups) == 1:
			return err
		case err != nil:
			res.Problems = append(res.Problems, Problem{Path: e.display(g.abs), Reason: err.Error()})
		}
	}
	slices.Sort(res.Files)
	res.Files = slices.Compact(res.Files)
	return nil
}

// Keep ends the wait of changes: they are the person's own from now on.
// Proposals are accepted: written to their files.
func (e *Engine) Keep(ctx context.Context, sel Selection) (Reviewed, error) {
	var res Reviewed
	err := e.within(ctx, &sel, &res, func(g *group) error {
		if g.staged {
			keys, err := e.accept(ctx, g)
			res.Undo = append(res.Undo, keys...)
			return err
		}
		if err := e.review.live.Keep(g.abs, g.ids()...); err != nil {
			return err
		}
		e.decided(g, "keep", sel.By)
		return nil
	})
	if err == nil {
		err = e.acceptDirs(ctx, &sel, &res)
	}
	return res, err
}

// Undo takes changes back: by hunk or file as they stand, by command or run as
// the ledger has them, in whatever process they were made. Proposals are
// rejected. An undo is recorded like any change and can be undone.
func (e *Engine) Undo(ctx context.Context, sel Selection) (Reviewed, error) {
	if sel.Command != "" || sel.Run != "" {
		return e.undoRecorded(ctx, sel)
	}
	var res Reviewed
	id := NewID()
	err := e.within(ctx, &sel, &res, func(g *group) error {
		if g.staged {
			return e.reject(g, sel.By)
		}
		keys, err := e.undoHunks(ctx, g, id, len(res.Undo))
		res.Undo = append(res.Undo, keys...)
		if err != nil {
			return err
		}
		e.decided(g, "undo", sel.By)
		return nil
	})
	return res, err
}

// undoHunks changes the file so that the hunks are gone.
func (e *Engine) undoHunks(ctx context.Context, g *group, id string, n int) (undo []string, err error) {
	actions, err := e.review.live.Undo(g.abs, g.ids()...)
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		ch, err := e.planAction(e.under, &a)
		if err != nil {
			return undo, err
		}
		key := ledger.Key{Run: runOf(g.keys()), Channel: "undo." + id, ID: n + len(undo) + 1}
		if err := e.perform(ctx, key, toolUndo, ch, g.keys()); err != nil {
			return undo, err
		}
		undo = append(undo, key.String())
		e.trackApplied("", ch)
	}
	return undo, nil
}

// planAction plans what an action of a tracker asks for.
func (e *Engine) planAction(ws *workspace.Workspace, a *review.Action) (*workspace.Change, error) {
	switch a.Kind {
	case review.KindMove:
		return ws.Plan(workspace.Op{Kind: workspace.OpMove, Path: a.Path, Dest: a.Dest, AllowSecret: true})
	case review.KindDelete:
		return ws.Plan(workspace.Op{Kind: workspace.OpDelete, Path: a.Path, AllowSecret: true})
	case review.KindCreate:
		return ws.PlanCreate(a.Path, a.Text, a.Link, a.Mode)
	}
	text, _, _ := e.textNow(a.Path)
	return ws.PlanEdits(a.Path, workspace.HashText(text), a.Edits)
}

// runOf is the run that the first key names.
func runOf(keys []string) string {
	if len(keys) == 0 {
		return "review"
	}
	run, _, _ := strings.Cut(keys[0], "/")
	return run
}

// Content is the text of a file: as it is ("text"), without what waits ("base"),
// or as it is proposed ("staged"). exists is false when it is not there.
func (e *Engine) Content(ctx context.Context, path, side string) (text string, exists bool, err error) {
	t, err := e.under.Resolve(path, workspace.AccessRead)
	if err != nil {
		return "", false, err
	}
	unlock := e.locks.lock([]string{t.Abs})
	defer unlock()
	e.syncReview(t.Abs, false)
	e.syncReview(t.Abs, true)
	ok := false
	switch side {
	case "", "text":
	case "base":
		text, exists, ok = e.review.live.Base(t.Abs)
	case "staged":
		text, exists, ok = e.review.staged.Text(t.Abs)
	default:
		return "", false, fmt.Errorf("side %q: there are text, base and staged", side)
	}
	if ok {
		return text, exists, nil
	}
	s, err := e.under.Snapshot(t)
	if err != nil {
		return "", false, err
	}
	return s.Text, s.Exists, nil
}
