package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Plan works out what op would change, and changes nothing: no file, no time
// stamp, no document. Errors are *Refusal. Whether the change needs a person's
// consent is for the caller to see from Target and Dest (Protected) and Kind;
// content of secret files is refused here unless op.AllowSecret is set.
func (w *Workspace) Plan(op Op) (*Change, error) {
	c := &Change{Op: op}
	var err error
	switch op.Kind {
	case OpWrite, OpAppend, OpEdit:
		err = w.planText(c)
	case OpTouch:
		err = w.planTouch(c)
	case OpMkdir:
		err = w.planMkdir(c)
	case OpDelete:
		err = w.planDelete(c)
	case OpMove:
		err = w.planMove(c)
	case OpCopy:
		err = w.planCopy(c)
	default:
		err = refuse(CodeInvalid, op.Path, "unknown operation %q", string(op.Kind))
	}
	if err != nil {
		return nil, err
	}
	if ref := checkApproved(c); ref != nil {
		return nil, ref
	}
	c.Notes = dedupe(c.Notes)
	return c, nil
}

// PlanPlaces is Plan for a write, append or edit as far as what would be replaced:
// the text after, its hash and what follows from them are not worked out.
func (w *Workspace) PlanPlaces(op Op) (*Change, error) {
	c := &Change{Op: op}
	if err := w.planEdits(c); err != nil {
		return nil, err
	}
	return c, nil
}

// checkApproved compares the targets with those that were approved.
func checkApproved(c *Change) *Refusal {
	have := []string{c.Target.Abs}
	if c.Dest != nil {
		have = append(have, c.Dest.Abs)
	}
	if len(c.Op.Approved) == 0 || slices.Equal(have, c.Op.Approved) {
		return nil
	}
	return refuse(CodeChanged, c.Target.Display, "the path leads to another file than the one that was approved; nothing was changed")
}

// maxNotes bounds the remarks of one change.
const maxNotes = 8

func dedupe(notes []string) []string {
	var out []string
	for _, n := range notes {
		if !slices.Contains(out, n) && len(out) < maxNotes {
			out = append(out, n)
		}
	}
	return out
}

// filePath refuses a path that is spelled as a folder.
func filePath(path string) *Refusal {
	if strings.HasSuffix(path, "/") {
		return refuse(CodeIsDirectory, path, "a path that ends in / is a folder; give the full path of the file")
	}
	return nil
}

// planText plans write, append and edit.
func (w *Workspace) planText(c *Change) error {
	if err := w.planEdits(c); err != nil {
		return err
	}
	return w.finishText(c)
}

// planEdits finds out what a write, append or edit replaces.
func (w *Workspace) planEdits(c *Change) error {
	if ref := filePath(c.Op.Path); ref != nil {
		return ref
	}
	t, err := w.Resolve(c.Op.Path, AccessWrite)
	if err != nil {
		return err
	}
	c.Target = t
	if t.IsDir {
		return refuse(CodeIsDirectory, t.Display, "this is a folder, not a file")
	}
	if ref := w.secretRefusal(t, c.Op); ref != nil {
		return ref
	}
	if c.Before, err = w.Snapshot(t); err != nil {
		return err
	}
	c.Open, c.BeforeHash = c.Before.Open, c.Before.Hash
	if ref := w.checkDisk(c); ref != nil {
		return ref
	}
	switch c.Op.Kind {
	case OpWrite:
		return w.planWrite(c)
	case OpAppend:
		return w.planAppend(c)
	}
	return w.planEdit(c)
}

// finishText fills in what follows from the edits.
func (w *Workspace) finishText(c *Change) error {
	text, err := ApplyEdits(c.Before.Text, c.Edits)
	if err != nil {
		return fmt.Errorf("plan %s: %w", c.Target.Display, err)
	}
	c.after = text
	switch {
	case !c.Before.Exists:
		c.Kind, c.AfterHash = ChangeCreate, HashText(text)
	case text == c.Before.Text:
		c.Kind, c.AfterHash, c.Edits = ChangeNone, c.BeforeHash, nil
		c.Notes = append(c.Notes, "nothing to change: the file already has this text")
		return nil
	case c.Open:
		c.Kind, c.AfterHash = ChangeModify, w.docs.hashes.plan(c.Before.doc, c.Before.hashed, c.Edits[0].Start, text)
	default:
		c.Kind, c.AfterHash = ChangeModify, HashText(text)
	}
	if !c.Open && c.Before.Exists && c.Before.Mode.Perm()&0o222 == 0 {
		return refuse(CodeReadOnly, c.Target.Display, "the file is read-only (mode %04o); leave it, or ask for it to be made writable", c.Before.Mode.Perm())
	}
	c.Added, c.Removed = countChanged(c.Before.Text, c.Edits)
	if !c.Open {
		c.Parents = w.missingParents(c.Target)
		if !c.Before.InPlace {
			c.Temp = tempName(c.Target.Abs)
		}
	}
	return nil
}

// secretRefusal stands before every use of an existing secret file's content.
func (w *Workspace) secretRefusal(t Target, op Op) *Refusal {
	if !t.Secret || op.AllowSecret {
		return nil
	}
	if _, open := w.docs.find(t.Given, t.Abs); !t.Exists && !open {
		return nil
	}
	return refuse(CodeSecret, t.Display, "this file holds secrets (%s); its content is used only after a person agreed", t.SecretRule)
}

// checkDisk compares a buffer with its file: a clean one that differs is about
// to be reloaded by the editor, or has missed a change.
func (w *Workspace) checkDisk(c *Change) *Refusal {
	d, ok := w.docs.find(c.Target.Given, c.Target.Abs)
	if !ok || w.diskState(d) != diskDiffers {
		return nil
	}
	if d.Dirty {
		c.Notes = append(c.Notes, guardDisk.note())
		return nil
	}
	return refuse(CodeBufferStale, c.Target.Display, "the open buffer differs from the file on disk; the editor has not reloaded it. Ask for the file to be reloaded or closed in the editor, then try again")
}

// planWrite replaces the whole text, by the least edits that do it.
func (w *Workspace) planWrite(c *Change) error {
	body, path := c.Op.Body, c.Target.Display
	if !isMarkdown(c.Target.Rel) {
		if inner, ok := unwrapFence(body); ok {
			body = inner
			c.Notes = append(c.Notes, guardFence.note())
		}
	}
	before := newView(c.Before.Text)
	if ref := checkPlaceholder(c, body, before.lf); ref != nil {
		return ref
	}
	if body == "" && before.lf != "" && !c.Op.Empty {
		return guardEmptyBody.refuse(path, 0, countLines(before.lf))
	}
	text := body
	if c.Before.Exists {
		mark := c.Before.Text[:before.bom]
		plain, had := strings.CutPrefix(body, bom)
		if had && mark == "" && !c.Open {
			mark = bom
		}
		switch {
		case before.lf != "":
			plain = withEnding(plain, endingFor(before.raw, plain))
		case c.Open:
			plain = toLF(plain)
		}
		text = mark + plain
	}
	if text == c.Before.Text && c.Before.Exists {
		return nil
	}
	if c.Op.KnownEver && c.Before.Exists && c.Op.Known != c.Before.Hash {
		how := fmt.Sprintf("it has %d lines now", countLines(c.Before.Text))
		if c.Op.Known == "" {
			how = "it did not exist then"
		}
		return guardChanged.refuse(path, 0, how)
	}
	if was, is := countLines(c.Before.Text), countLines(text); 2*is < was {
		c.Notes = append(c.Notes, guardShrink.note(was, is))
	}
	c.Edits = DiffText(c.Before.Text, text)
	return nil
}

// checkPlaceholder refuses text that stands for code; in a new document, where
// no code can be lost, it is only remarked on.
func checkPlaceholder(c *Change, body, before string) *Refusal {
	line, what := newPlaceholder(body, before)
	if line == 0 {
		return nil
	}
	if strings.TrimSpace(before) == "" && isMarkdown(c.Target.Rel) {
		c.Notes = append(c.Notes, guardPlaceholderNew.note(line))
		return nil
	}
	return guardPlaceholder.refuse(c.Target.Display, line, line, "the body", what)
}

// planAppend adds at the end.
func (w *Workspace) planAppend(c *Change) error {
	body := c.Op.Body
	if !isMarkdown(c.Target.Rel) {
		if inner, ok := unwrapFence(body); ok {
			body = inner
			c.Notes = append(c.Notes, guardFence.note())
		}
	}
	before := newView(c.Before.Text)
	if ref := checkPlaceholder(c, body, before.lf); ref != nil {
		return ref
	}
	if before.lf != "" || c.Open {
		body = strings.TrimPrefix(body, bom)
	}
	if c.Before.Exists && body != "" {
		ending := endingFor(before.raw, body)
		if before.lf != "" || c.Open {
			body = withEnding(body, ending)
		}
		if before.lf != "" && !endsLine(before.lf) {
			body = ending + body
			c.Notes = append(c.Notes, guardAppendBreak.note())
		}
	}
	if body != "" {
		end := len(c.Before.Text)
		c.Edits = []Edit{{Start: end, End: end, New: body}}
	}
	return nil
}

// missingParents are the folders above the target that do not exist.
func (w *Workspace) missingParents(t Target) []string {
	roots := w.rootList()
	if t.Root >= len(roots) {
		return nil
	}
	var out []string
	for dir := filepath.Dir(t.Abs); isSubPath(roots[t.Root].real, dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		out = append(out, dir)
	}
	slices.Reverse(out)
	return out
}

// The names of temporary files: the walker leaves them out, and RemoveTemp
// removes no others.
const (
	tempPrefix = ".thinkflow-"
	tempSuffix = ".tmp"
	tempRandom = 16 // hex digits
)

func tempName(abs string) string {
	var b [tempRandom / 2]byte
	_, _ = rand.Read(b[:]) // never fails
	return filepath.Join(filepath.Dir(abs), tempPrefix+hex.EncodeToString(b[:])+tempSuffix)
}

func isTempName(name string) bool {
	mid, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	mid, ok = strings.CutSuffix(mid, tempSuffix)
	return ok && len(mid) == tempRandom && strings.Trim(mid, "0123456789abcdef") == ""
}
