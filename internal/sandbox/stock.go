package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxWalk bounds how many entries of the roots are looked at.
const maxWalk = 500_000

// maxInside bounds how many entries of one protected folder are compared.
const maxInside = 2_000

// bulky are folders of generated content that nobody opens as a workspace: they
// are not searched for protected names.
func bulky(name string) bool {
	switch name {
	case "node_modules", "bower_components", "__pycache__", ".venv", ".tox", ".nox", ".gradle", ".terraform":
		return true
	}
	return false
}

// stock is what stood at the protected places at one moment.
type stock struct {
	entries map[string]entry
	hide    []string // found on the way: may not be read
	cut     bool     // the walk was bounded
}

// entry is one file, folder or link at a protected place.
type entry struct {
	stamp string // what lstat says, as far as a change shows in it
	dir   bool
	vcs   bool
	// guard: held read-only, with all that is in it. In is the metadata folder
	// that a guarded path lies in although that folder may be written.
	guard bool
	in    string
	// open: it may change; only its being there counts.
	open bool
}

// Violation is a protected path that did not stay as it was.
type Violation struct {
	// Path is absolute; Root is the root that holds it.
	Path, Root string
	// What is "created", "changed" or "removed".
	What string
	// VCS: it is version control metadata.
	VCS bool
}

func (v Violation) String() string { return v.What + " " + v.Path }

// Remove takes back a created path, with all that is in it, following no link.
// What was changed or removed cannot be taken back.
func (v Violation) Remove() error {
	if v.What != "created" {
		return fmt.Errorf("%s was %s; restore it from version control or a backup", v.Path, v.What)
	}
	root, err := os.OpenRoot(v.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(v.Root, v.Path)
	if err != nil {
		return err
	}
	return root.RemoveAll(rel)
}

// takeStock walks the roots for protected names, following no link, and notes
// what is at the other watched places.
func takeStock(p *plan) (stock, error) {
	s := stock{entries: map[string]entry{}}
	seen := 0
	if p.spec.Classify != nil {
		for _, root := range p.roots {
			if err := s.walk(p, root, &seen); err != nil {
				return s, err
			}
		}
	}
	for _, path := range slices.Concat(p.spec.ReadOnly, p.spec.Watch) {
		if e, ok := look(path); ok {
			s.entries[path] = e
			s.inside(path, e, func(string) bool { return true })
		}
	}
	return s, nil
}

func (s *stock) walk(p *plan, root string, seen *int) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == root {
				return err
			}
			return nil // unreadable or gone meanwhile
		}
		if *seen++; *seen > maxWalk {
			s.cut = true
			return fs.SkipAll
		}
		if path == root {
			return nil
		}
		class := p.spec.Classify(path, d.IsDir())
		switch {
		case class == Protected, class == VCS:
			s.add(p, path, class)
		case class == Hide:
			s.hide = append(s.hide, path)
		case class == Skip, d.IsDir() && bulky(d.Name()):
		default:
			return nil
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sandbox: looking for protected paths in %s: %w", root, err)
	}
	return nil
}

// add notes a protected path and what matters inside it.
func (s *stock) add(p *plan, path string, class Class) {
	e, ok := look(path)
	if !ok {
		return
	}
	if class != VCS {
		e.guard = true
		s.entries[path] = e
		s.inside(path, e, func(string) bool { return true })
		return
	}
	g := p.spec.Grants
	e.vcs = true
	e.open = g.Git || g.GitConfig
	e.guard = !e.open
	s.entries[path] = e
	if e.dir && !g.GitConfig {
		// What makes git run programs. The rest of the metadata changes whenever
		// an editor asks for the status, and says nothing.
		s.inside(path, e, runsPrograms)
	}
}

// runsPrograms reports whether a path inside version control metadata names
// programs to run: hooks and configuration, also of submodules and worktrees.
func runsPrograms(rel string) bool {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, part := range parts {
		switch strings.ToLower(part) {
		case "hooks", "hgrc":
			return true
		case "config", "config.worktree", "attributes":
			return i == len(parts)-1
		}
	}
	return false
}

// inside notes the entries of a protected folder that matter.
func (s *stock) inside(dir string, e entry, matters func(rel string) bool) {
	if !e.dir {
		return
	}
	n := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil
		}
		if n++; n > maxInside {
			s.cut = true
			return fs.SkipAll
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		hit := matters(rel)
		if e.vcs && d.IsDir() && !hit {
			switch d.Name() { // thousands of files that run nothing
			case "objects", "refs", "logs", "store", "pristine", "lfs":
				return fs.SkipDir
			}
		}
		if !hit {
			return nil
		}
		in, ok := look(path)
		if !ok {
			return nil
		}
		in.vcs = e.vcs
		if e.open && !matters(filepath.Dir(rel)) {
			in.guard, in.in = true, dir
		}
		s.entries[path] = in
		return nil
	})
}

// look describes what is at the path itself.
func look(path string) (entry, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return entry{}, false
		}
		return entry{stamp: "?"}, true
	}
	e := entry{dir: fi.IsDir()}
	switch {
	case fi.IsDir():
		// Its times change with its entries, which are compared by themselves.
		e.stamp = fmt.Sprintf("folder %v %s", fi.Mode(), identity(fi))
	case fi.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(path)
		e.stamp = "link " + to
	default:
		e.stamp = fmt.Sprintf("file %v %d %d %s %s", fi.Mode(), fi.Size(), fi.ModTime().UnixNano(), identity(fi), changeTime(fi))
	}
	return e, true
}

// compare lists what did not stay as it was, sorted by path. What was created
// or removed as a whole is named once.
func compare(p *plan, before, after stock) []Violation {
	var out []Violation
	add := func(path, what string, vcs bool) {
		for _, v := range out {
			if v.What == what && what != "changed" && inside(v.Path, path) {
				return
			}
		}
		v := Violation{Path: path, What: what, VCS: vcs}
		for _, r := range p.roots {
			if inside(r, path) {
				v.Root = r
			}
		}
		out = append(out, v)
	}
	names := make([]string, 0, len(after.entries))
	for n := range after.entries {
		names = append(names, n)
	}
	for n := range before.entries {
		if _, is := after.entries[n]; !is {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		b, was := before.entries[n]
		a, is := after.entries[n]
		switch {
		case !was && (before.cut || a.open):
		case !was:
			add(n, "created", a.vcs)
		case !is:
			if !after.cut {
				add(n, "removed", b.vcs)
			}
		case a.open:
		case a.stamp != b.stamp:
			add(n, "changed", a.vcs)
		}
	}
	return out
}
