package agent

import (
	"slices"

	"thinkflow/ledger"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// opKinds are the commands that change files, as the workspace has them.
var opKinds = map[parser.Name]workspace.OpKind{
	parser.Write: workspace.OpWrite, parser.Append: workspace.OpAppend, parser.Edit: workspace.OpEdit,
	parser.Mkdir: workspace.OpMkdir, parser.Touch: workspace.OpTouch, parser.Delete: workspace.OpDelete,
	parser.Copy: workspace.OpCopy, parser.Move: workspace.OpMove,
}

// operation is the command as the workspace has it.
func operation(c *parser.Command) workspace.Op {
	op := workspace.Op{Kind: opKinds[c.Name], Path: c.Path, Dest: c.Dest, Body: c.Body, All: c.All, Line: c.Line, Empty: c.Empty}
	for _, p := range c.Pairs {
		op.Pairs = append(op.Pairs, workspace.Pair{Old: p.Old, New: p.New})
	}
	return op
}

func (t *turn) outcomeOf(c *parser.Command) outcome {
	return outcome{key: t.key(c), id: c.ID, channel: c.Channel, name: string(c.Name), path: c.Path, dest: c.Dest, cmd: c.Cmd}
}

func describeChange(o *outcome, ch *workspace.Change) {
	o.rung, o.notes, o.added, o.removed = ch.Rung, ch.Notes, ch.Added, ch.Removed
	o.created = ch.Kind == workspace.ChangeCreate
	o.diff = ch.Diff(eventDiff)
}

// eventDiff bounds the diff of one command.completed event, in bytes.
const eventDiff = 16 << 10

func (r *run) intentOf(key ledger.Key, c *parser.Command, ch *workspace.Change, flow ledger.Flow) ledger.Intent {
	in := ledger.Intent{
		Key: key, Tool: string(c.Name), Path: c.Path, Dest: c.Dest, Cmd: c.Cmd,
		Abs: ch.Target.Abs, BeforeHash: ch.BeforeHash, AfterHash: ch.AfterHash,
		NeedResult: c.NeedResult, Flow: flow, Via: ledger.ViaDisk, Risk: risk(c, ch), Rung: ch.Rung, Temp: ch.Temp,
		Undo: ch.Undo().Encode(), ContentHash: contentHash(c, nil), Summary: summary(c), Content: r.keepable(c), Secret: ch.Target.Secret,
	}
	if u := ch.Undo(); r.e.redact.Holds(append(editTexts(u.Edits), u.Text)...) {
		in.Undo = nil // a key is kept nowhere, not even for an undo
	}
	if r.throughEditor(ch) {
		in.Via = ledger.ViaEditor
	}
	if ch.Dest != nil {
		in.AbsDest = ch.Dest.Abs
	}
	return in
}

// risk is how much care a change deserves, for reading the ledger.
func risk(c *parser.Command, ch *workspace.Change) string {
	switch {
	case ch.Target.Protected || ch.Dest != nil && ch.Dest.Protected:
		return "protected"
	case c.Name == parser.Delete, c.Name == parser.Move:
		return "high"
	case c.Name == parser.Write && ch.Kind == workspace.ChangeModify:
		return "medium"
	}
	return "low"
}

func describe(c *parser.Command) string {
	if c.Name == parser.Bash {
		return c.Cmd
	}
	s := string(c.Name) + " " + c.Path
	if c.Dest != "" {
		s += " → " + c.Dest
	}
	return s
}

func absPaths(targets []workspace.Target) []string {
	out := make([]string, len(targets))
	for i, t := range targets {
		out[i] = t.Abs
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pairTexts are the texts that an edit carries.
func pairTexts(pairs []parser.Pair) []string {
	out := make([]string, 0, 2*len(pairs)+1)
	for _, p := range pairs {
		out = append(out, p.Old, p.New)
	}
	return out
}

// editTexts are the texts that edits put in.
func editTexts(edits []workspace.Edit) []string {
	out := make([]string, 0, len(edits)+1)
	for _, e := range edits {
		out = append(out, e.New)
	}
	return out
}

// resolve finds the real targets of an operation: path, then dest.
func (r *run) resolve(op workspace.Op) ([]workspace.Target, error) {
	access := workspace.AccessWrite
	switch op.Kind {
	case workspace.OpDelete, workspace.OpMove: // the entry itself goes away
		access = workspace.AccessDelete
	case workspace.OpCopy:
		access = workspace.AccessRead
	}
	t, err := r.e.ws.Resolve(op.Path, access)
	if err != nil {
		return nil, err
	}
	out := []workspace.Target{t}
	if op.Dest != "" {
		d, err := r.e.ws.Resolve(op.Dest, workspace.AccessCreate)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}
