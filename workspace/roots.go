package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// New makes a workspace of the given roots, which must be existing folders.
func New(roots []Root, opts Options) (*Workspace, error) {
	if opts.MaxFile <= 0 {
		opts.MaxFile = defaultMaxFile
	}
	w := &Workspace{opts: opts, rules: newRules(opts), docs: newDocuments(), inPlace: map[string]bool{}}
	if err := w.SetRoots(roots); err != nil {
		return nil, err
	}
	return w, nil
}

// SetRoots replaces the roots; on an error the old ones stay. Roots of the same
// name get a number: app, app-2.
func (w *Workspace) SetRoots(roots []Root) error {
	if w.parent != nil {
		return w.parent.SetRoots(roots)
	}
	var rs []root
	taken := map[string]bool{}
	for _, r := range roots {
		dir, err := filepath.Abs(r.Dir)
		if err != nil {
			return fmt.Errorf("workspace folder %s: %w", r.Dir, err)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return fmt.Errorf("workspace folder %s: %w", r.Dir, err)
		}
		if fi, err := os.Stat(real); err != nil {
			return fmt.Errorf("workspace folder %s: %w", r.Dir, err)
		} else if !fi.IsDir() {
			return fmt.Errorf("workspace folder %s is not a folder", r.Dir)
		}
		name := rootName(r.Name, dir)
		for base, n := name, 2; taken[foldName(name)]; n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		taken[foldName(name)] = true
		rs = append(rs, root{name: name, dir: dir, real: real})
	}
	w.mu.Lock()
	w.roots = rs
	w.mu.Unlock()
	return nil
}

// rootName is the given name made fit for the first component of a path.
func rootName(name, dir string) string {
	if name == "" {
		name = filepath.Base(dir)
	}
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r < ' ' {
			return '-'
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	if name == "" {
		name = "root"
	}
	return name
}

// Roots returns the roots; names are unique, Dir is absolute and as given.
func (w *Workspace) Roots() []Root {
	rs := w.rootList()
	out := make([]Root, len(rs))
	for i, r := range rs {
		out[i] = Root{Name: r.name, Dir: r.dir}
	}
	return out
}

func (w *Workspace) rootList() []root {
	if w.parent != nil {
		return w.parent.rootList()
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.roots
}

// within returns path relative to dir by components; ok is false outside.
// Both are absolute and clean.
func within(dir, path string) (rel string, ok bool) {
	if samePathKey(dir) == samePathKey(path) {
		return ".", true
	}
	prefix := dir
	if !strings.HasSuffix(prefix, string(filepath.Separator)) {
		prefix += string(filepath.Separator)
	}
	if len(path) <= len(prefix) || samePathKey(path[:len(prefix)]) != samePathKey(prefix) {
		return "", false
	}
	return filepath.ToSlash(path[len(prefix):]), true
}

// holder finds the innermost root whose real folder holds the real path.
func holder(roots []root, real string) (index int, rel string, ok bool) {
	index = -1
	for i, r := range roots {
		if s, in := within(r.real, real); in && (index < 0 || len(r.real) > len(roots[index].real)) {
			index, rel = i, s
		}
	}
	return index, rel, index >= 0
}
