package workspace

import "path"

// NameClass is what an entry of a root is by its name.
type NameClass uint8

// The classes of names.
const (
	NameFree      NameClass = iota
	NameProtected           // may be changed only after a person agreed
	NameForbidden           // version control metadata
	NameDenied              // a deny pattern of the configuration
)

// ClassifyName says what the entry with the absolute real path is, by its name
// and place alone: nothing is looked up on the disk, no link is resolved, and of
// the folders above only those count that a pattern names. It is for walks that
// do not go into what is not free; everything else asks Resolve.
func (w *Workspace) ClassifyName(abs string, dir bool) NameClass {
	_, rel, ok := holder(w.rootList(), abs)
	if !ok || rel == "." {
		return NameFree
	}
	name := path.Base(rel)
	if p := w.rules.checkName(name); p.code == CodeForbidden {
		return NameForbidden
	}
	folded := foldName(rel)
	base := path.Base(folded)
	if p, ok := w.rules.deny.match(folded, base, dir); ok && !p.negated {
		return NameDenied
	}
	if p, ok := w.rules.protected.match(folded, base, dir); ok && !p.negated {
		return NameProtected
	}
	for _, own := range w.opts.Own {
		if _, ok := within(own, abs); ok {
			return NameProtected
		}
	}
	return NameFree
}
