package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxMoveScan is how many entries of a folder are looked at before it is moved.
const maxMoveScan = 20_000

// planTouch creates an empty file, or sets the times of an existing one.
func (w *Workspace) planTouch(c *Change) error {
	if ref := filePath(c.Op.Path); ref != nil {
		return ref
	}
	t, err := w.Resolve(c.Op.Path, AccessWrite)
	if err != nil {
		return err
	}
	c.Target = t
	if t.IsDir {
		return refuse(CodeIsDirectory, t.Display, "this is a folder; tf-touch is for files")
	}
	if _, open := w.docs.find(t.Given, t.Abs); open {
		s, err := w.Snapshot(t)
		if err != nil {
			return err
		}
		c.Before, c.Open, c.Kind = s, true, ChangeNone
		c.BeforeHash, c.AfterHash = s.Hash, s.Hash
		c.Notes = []string{"the file is open in the editor; nothing was changed"}
		return nil
	}
	if !t.Exists {
		c.Before = Snapshot{Target: t}
		return w.finishText(c)
	}
	hash, _, err := ProbeFile(t.Abs)
	if err != nil {
		return readRefusal(t, err)
	}
	c.Kind, c.BeforeHash, c.AfterHash = ChangeTouch, hash, hash
	c.Before = Snapshot{Target: t, Hash: hash, Exists: true, Mode: statMode(t.Abs)}
	return nil
}

// planMkdir creates a folder with those above it.
func (w *Workspace) planMkdir(c *Change) error {
	t, err := w.Resolve(c.Op.Path, AccessCreate)
	if err != nil {
		return err
	}
	c.Target, c.AfterHash = t, HashDir
	c.Before = Snapshot{Target: t}
	switch {
	case t.IsDir:
		c.Kind, c.BeforeHash = ChangeNone, HashDir
		c.Notes = []string{"the folder exists already"}
	case t.Exists:
		return refuse(CodeExists, t.Display, "a file of this name exists, so no folder can be made")
	default:
		c.Kind = ChangeMkdir
		c.Parents = w.missingParents(t)
	}
	return nil
}

// planDelete removes one file, or one symbolic link (not what it points to).
func (w *Workspace) planDelete(c *Change) error {
	t, err := w.Resolve(c.Op.Path, AccessDelete)
	if err != nil {
		return err
	}
	c.Target, c.Kind = t, ChangeDelete
	if t.IsDir {
		return refuse(CodeIsDirectory, t.Display, "this is a folder; tf-delete removes single files, name them one by one")
	}
	if ref := filePath(c.Op.Path); ref != nil {
		return ref
	}
	return w.beforeRemoval(c)
}

// beforeRemoval records what goes away, so that it can be brought back.
func (w *Workspace) beforeRemoval(c *Change) error {
	t := c.Target
	if ref := w.secretRefusal(t, c.Op); ref != nil {
		return ref
	}
	if d, ok := w.docs.find(t.Given, t.Abs); ok && !t.IsLink {
		c.Open = true
		if d.Dirty || !t.Exists {
			s, err := w.Snapshot(t)
			if err != nil {
				return err
			}
			c.Before, c.BeforeHash = s, s.Hash
			c.Removed = countLines(s.Text)
			return nil
		}
	}
	if !t.Exists {
		return w.missing(t, "there is nothing to remove")
	}
	if t.IsLink {
		to, err := os.Readlink(t.Abs)
		if err != nil {
			return readRefusal(t, err)
		}
		c.link, c.BeforeHash = to, hashLink(to)
		c.Before = Snapshot{Target: t, Hash: c.BeforeHash, Exists: true, Mode: fs.ModeSymlink}
		return nil
	}
	s, ref := w.snapshotDisk(t, w.opts.MaxFile)
	if ref != nil {
		if ref.Code == CodeTooLarge {
			ref.Message = "the file is too large to be brought back later, so it is not removed here"
		}
		return ref
	}
	s.Open = c.Open
	c.Before, c.BeforeHash = s, s.Hash
	if undecodable(s.Text) == "" {
		c.Removed = countLines(s.Text)
	}
	return nil
}

// destination resolves where a copy or move goes; nothing may be there.
func (w *Workspace) destination(c *Change) (Target, *Refusal) {
	if c.Op.Dest == "" {
		return Target{}, refuse(CodeInvalid, c.Target.Display, "dest is missing")
	}
	d, err := w.Resolve(c.Op.Dest, AccessCreate)
	if err != nil {
		r, _ := AsRefusal(err)
		return d, r
	}
	name := filepath.Base(c.Target.Abs)
	switch {
	case d.Abs == c.Target.Abs:
		return d, refuse(CodeNoChange, d.Display, "source and destination are the same")
	case d.IsDir && !sameEntry(c.Target.Abs, d.Abs):
		return d, refuse(CodeExists, d.Display, "the destination is an existing folder; give the full new path, e.g. %s/%s", d.Display, name)
	case strings.HasSuffix(c.Op.Dest, "/") && !c.Target.IsDir:
		return d, refuse(CodeIsDirectory, d.Display, "the destination ends in /; give the full new path, e.g. %s/%s", d.Display, name)
	}
	if _, open := w.docs.find(d.Given, d.Abs); d.Exists && !sameEntry(c.Target.Abs, d.Abs) || open {
		return d, refuse(CodeExists, d.Display, "the destination exists already; choose another one, or remove or edit that file first")
	}
	return d, nil
}

// sameEntry reports two spellings of one entry on a file system that ignores
// letter case.
func sameEntry(a, b string) bool {
	if foldName(a) != foldName(b) {
		return false
	}
	fa, errA := os.Lstat(a)
	fb, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// planMove moves a file or a folder.
func (w *Workspace) planMove(c *Change) error {
	t, err := w.Resolve(c.Op.Path, AccessDelete)
	if err != nil {
		return err
	}
	c.Target, c.Kind = t, ChangeMove
	if t.Rel == "." {
		return refuse(CodeInvalid, t.Display, "the workspace folder itself is not moved")
	}
	if ref := w.secretRefusal(t, c.Op); ref != nil {
		return ref
	}
	d, open := w.docs.find(t.Given, t.Abs)
	if open && !t.IsDir {
		c.Open = true
	}
	if !t.Exists {
		if open {
			return refuse(CodeDirty, t.Display, "the file is open in the editor but was never saved; it cannot be moved")
		}
		return w.missing(t, "there is nothing to move")
	}
	dest, ref := w.destination(c)
	if ref != nil {
		return ref
	}
	c.Dest = &dest
	if isSubPath(t.Abs, dest.Abs) {
		return refuse(CodeInvalid, dest.Display, "a folder cannot be moved into itself")
	}
	hash, _, err := ProbeFile(t.Abs)
	if err != nil {
		return readRefusal(t, err)
	}
	c.BeforeHash, c.AfterHash = hash, hash
	c.Before = Snapshot{Target: t, Hash: hash, Exists: true, Open: c.Open, Mode: statMode(t.Abs)}
	if c.Open {
		c.Before.URI, c.Before.Version, c.Before.Dirty = d.URI, d.Version, d.Dirty
	}
	if t.IsDir {
		if ref := w.scanMove(c); ref != nil {
			return ref
		}
	}
	c.Parents = w.missingParents(dest)
	return nil
}

// scanMove looks at what a moved folder holds: nothing denied or secret may
// slip out of its rule by the move, nothing protected into its place.
func (w *Workspace) scanMove(c *Change) *Refusal {
	for _, d := range w.Documents() {
		if doc, ok := w.docs.find(d.Path); ok && isSubPath(c.Target.Abs, doc.real) {
			c.Open = true
			c.Before.Open = true
			c.Before.Dirty = c.Before.Dirty || d.Dirty
		}
	}
	n := 0
	var ref *Refusal
	err := filepath.WalkDir(c.Target.Abs, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n++; n > maxMoveScan {
			c.Dest.Protected, c.Dest.ProtectedRule = true, "a folder with many files"
			return fs.SkipAll
		}
		rel, _ := within(c.Target.Abs, path)
		if rel == "." {
			return nil
		}
		from := Target{Root: c.Target.Root, Rel: c.Target.Rel + "/" + rel, IsDir: e.IsDir(), Exists: true}
		to := Target{Root: c.Dest.Root, Rel: c.Dest.Rel + "/" + rel, IsDir: e.IsDir(), Exists: true}
		if isForbiddenName(foldName(e.Name())) {
			ref = refuse(CodeForbidden, c.Target.Display, "the folder holds version control metadata (%s), which is never touched; move its other files one by one", rel)
			return fs.SkipAll
		}
		if rule, denied := w.denied(from, from.Rel); denied {
			ref = refuse(CodeDenied, c.Target.Display, "the folder holds %s, which the configuration denies (%q)", rel, rule)
			return fs.SkipAll
		}
		w.classify(&from, from.Rel)
		w.classify(&to, to.Rel)
		if from.Secret && !c.Op.AllowSecret {
			ref = refuse(CodeSecret, c.Target.Display, "the folder holds the secret file %s; it is moved only after a person agreed", rel)
			return fs.SkipAll
		}
		if (from.Protected || to.Protected) && !c.Dest.Protected {
			c.Dest.Protected, c.Dest.ProtectedRule = true, from.ProtectedRule
			if to.Protected {
				c.Dest.ProtectedRule = to.ProtectedRule
			}
		}
		return nil
	})
	if ref == nil && err != nil {
		ref = &Refusal{Code: CodeIO, Path: c.Target.Display, Message: "cannot look into the folder: " + plainError(err), Err: err}
	}
	return ref
}

// planCopy copies one file; of an open document, the buffer's text.
func (w *Workspace) planCopy(c *Change) error {
	t, err := w.Resolve(c.Op.Path, AccessRead)
	if err != nil {
		return err
	}
	c.Target, c.Kind = t, ChangeCopy
	if t.IsDir {
		return refuse(CodeIsDirectory, t.Display, "this is a folder; tf-copy copies single files")
	}
	if ref := w.secretRefusal(t, c.Op); ref != nil {
		return ref
	}
	s, err := w.Snapshot(t)
	if r, ok := AsRefusal(err); ok && (r.Code == CodeBinary || r.Code == CodeUndecodable) {
		var ref *Refusal
		s, ref = w.snapshotDisk(t, w.opts.MaxFile)
		err = nil
		if ref != nil {
			err = ref
		}
	}
	if err != nil {
		return err
	}
	if !s.Exists {
		return w.missing(t, "there is nothing to copy")
	}
	dest, ref := w.destination(c)
	if ref != nil {
		return ref
	}
	c.Dest, c.Before = &dest, s
	c.BeforeHash, c.AfterHash = s.Hash, s.Hash
	c.after, c.mode = s.Text, s.Mode.Perm()
	c.Parents = w.missingParents(dest)
	c.Temp = tempName(dest.Abs)
	if undecodable(s.Text) == "" {
		c.Added = countLines(s.Text)
	}
	return nil
}

var errNotPlanned = errors.New("this change was not made by Plan or Revert")
