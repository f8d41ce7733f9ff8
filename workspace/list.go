package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// DefaultMaxEntries bounds listings.
const DefaultMaxEntries = 1000

// ListRequest asks for a folder's entries. Path "" means the root, or all roots.
type ListRequest struct {
	Path       string
	Depth      int  // levels of folders; 0 = 1, -1 = all the way down
	Ignored    bool // also what .gitignore excludes
	MaxEntries int  // 0 = DefaultMaxEntries
}

// Entry is one file or folder. Path is a display path; of folders it ends in
// "/".
type Entry struct {
	Path   string
	IsDir  bool
	IsLink bool
	Secret bool
}

// ListResult is sorted by path; folders that are not shown are left out with all
// they hold (version control metadata, what git ignores, what is denied).
type ListResult struct {
	Entries   []Entry
	Truncated bool // there is more
}

// List lists a folder. Errors are *Refusal, or that of ctx.
func (w *Workspace) List(ctx context.Context, r ListRequest) (ListResult, error) {
	if r.MaxEntries <= 0 {
		r.MaxEntries = DefaultMaxEntries
	}
	depth := r.Depth - 1
	switch {
	case r.Depth == 0:
		depth = 0
	case r.Depth < 0:
		depth = -1
	}
	return w.collect(ctx, r.Path, r.Ignored, depth, r.MaxEntries, func(visited, string) bool { return true })
}

// GlobRequest asks for files by name. In Pattern, "*" and "?" stay within a
// component, "**" crosses folders, {a,b} and [a-z] work; a pattern without "/"
// matches names in any folder.
type GlobRequest struct {
	Pattern string
	Path    string // folder to look in; "" = everywhere
	Ignored bool   // also what .gitignore excludes
	Max     int    // 0 = DefaultMaxEntries
}

// Glob finds files by name. Errors are *Refusal, or that of ctx.
func (w *Workspace) Glob(ctx context.Context, r GlobRequest) (ListResult, error) {
	m, ref := newGlob(r.Pattern)
	if ref != nil {
		return ListResult{}, ref
	}
	if r.Max <= 0 {
		r.Max = DefaultMaxEntries
	}
	var base string
	if t, err := w.Resolve(orDot(r.Path), AccessRead); err == nil && r.Path != "" {
		base = prefixOf(t.Rel)
	}
	return w.collect(ctx, r.Path, r.Ignored, -1, r.Max, func(v visited, display string) bool {
		return v.kind != entryDir && m.match(v.rel, display, base)
	})
}

func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// glob matches paths of files.
type glob struct {
	pattern string
	anyDir  bool // no "/": only names are compared
}

func newGlob(pattern string) (glob, *Refusal) {
	p := strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	if p == "" || !doublestar.ValidatePattern(p) {
		return glob{}, refuse(CodeInvalid, "", "%q is no valid glob pattern", pattern)
	}
	if strings.HasSuffix(p, "/") {
		p += "**"
	}
	return glob{pattern: p, anyDir: !strings.Contains(p, "/")}, nil
}

// match tries the path relative to the root, as displayed, and below base.
func (g glob) match(rel, display, base string) bool {
	if g.anyDir {
		return doublestar.MatchUnvalidated(g.pattern, rel[strings.LastIndexByte(rel, '/')+1:])
	}
	if doublestar.MatchUnvalidated(g.pattern, rel) || display != rel && doublestar.MatchUnvalidated(g.pattern, display) {
		return true
	}
	sub, ok := strings.CutPrefix(rel, base)
	return ok && base != "" && doublestar.MatchUnvalidated(g.pattern, sub)
}

// starts resolves where a walk begins: one folder, or all roots. A file comes
// back as its target with ok unset.
func (w *Workspace) starts(path string) (jobs []walkJob, file *Target, err error) {
	roots := w.rootList()
	if isEverywhere(path) {
		for i, r := range roots {
			jobs = append(jobs, w.start(Target{Root: i, Rel: ".", Abs: r.real}, roots))
		}
		return jobs, nil, nil
	}
	t, err := w.Resolve(path, AccessRead)
	if err != nil {
		return nil, nil, err
	}
	if !t.IsDir {
		if _, open := w.docs.find(t.Given, t.Abs); !t.Exists && !open {
			return nil, nil, w.missing(t, "there is nothing to look into")
		}
		return nil, &t, nil
	}
	job := w.start(t, roots)
	job.secret = t.Secret
	return []walkJob{job}, nil, nil
}

func isEverywhere(path string) bool { return path == "" || path == "." || path == "./" || path == "/" }

// collect walks and keeps the first max entries in order of their path.
func (w *Workspace) collect(ctx context.Context, path string, ignored bool, depth, max int, keep func(visited, string) bool) (ListResult, error) {
	jobs, file, err := w.starts(path)
	if err != nil {
		return ListResult{}, err
	}
	if file != nil {
		return ListResult{Entries: []Entry{{Path: file.Display, Secret: file.Secret}}}, nil
	}
	roots := w.rootList()
	top := topList[Entry]{max: max + 1, key: func(e Entry) string { return e.Path }}
	k := walker{w: w, ignored: ignored, secrets: true, maxDepth: depth}
	k.visit = func(_ *walkState, _ *dirHandle, v visited) {
		display := displayOf(roots, v.root, v.rel)
		if w.docs.isGone(filepath.Join(roots[v.root].real, filepath.FromSlash(v.rel))) || !keep(v, display) {
			return
		}
		e := Entry{Path: display, IsDir: v.kind == entryDir, IsLink: v.kind == entryLink, Secret: v.secret}
		if e.IsDir {
			e.Path += "/"
		}
		top.add(e, 1)
	}
	if len(roots) > 1 && isEverywhere(path) {
		for i, r := range roots {
			if keep(visited{kind: entryDir}, r.name) {
				top.add(Entry{Path: r.name + "/", IsDir: true}, 1)
			}
			jobs[i].depth = 1
		}
		if depth == 0 {
			jobs = nil
		}
	}
	if err := k.run(ctx, jobs); err != nil {
		return ListResult{}, err
	}
	w.unsavedNew(jobs, func(v visited, _ string) {
		rest := strings.TrimPrefix(v.rel, prefixOf(jobRel(jobs, v.root)))
		if depth < 0 || strings.Count(rest, "/") <= depth {
			k.visit(nil, nil, v)
		}
	})
	res := ListResult{Entries: top.sorted()}
	if len(res.Entries) > max {
		res.Entries, res.Truncated = res.Entries[:max], true
	}
	return res, nil
}

func jobRel(jobs []walkJob, root int) string {
	for _, j := range jobs {
		if j.root == root {
			return j.rel
		}
	}
	return "."
}

// unsavedNew calls do for open documents below the starts that are not on disk.
func (w *Workspace) unsavedNew(jobs []walkJob, do func(v visited, text string)) {
	roots := w.rootList()
	for _, doc := range w.Documents() {
		d, ok := w.docs.find(doc.Path)
		if !ok {
			continue
		}
		if _, err := os.Lstat(d.real); err == nil {
			continue
		}
		i, rel, ok := holder(roots, d.real)
		if !ok {
			continue
		}
		t, err := w.Resolve(filepath.Join(roots[i].real, filepath.FromSlash(rel)), AccessRead)
		if err != nil {
			continue
		}
		for _, j := range jobs {
			if j.root == i && (j.rel == "." || strings.HasPrefix(rel, j.rel+"/")) {
				do(visited{root: i, rel: rel, name: filepath.Base(d.real), kind: entryFile, secret: t.Secret}, d.Text)
			}
		}
	}
}

// topList keeps what comes first by key, whatever order it arrives in, and knows
// beyond which key nothing can matter any more.
type topList[T any] struct {
	max int // units of weight
	key func(T) string

	mu     sync.Mutex // guards what follows
	items  []weighted[T]
	weight int
	limit  string // keys behind it are of no use; "" = none yet
}

type weighted[T any] struct {
	item   T
	key    string
	weight int
}

func (l *topList[T]) add(item T, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.key(item)
	if l.limit != "" && key > l.limit {
		return
	}
	l.items = append(l.items, weighted[T]{item, key, weight})
	l.weight += weight
	if l.weight > 2*l.max+64 {
		l.shrinkLocked()
	}
}

// useless reports a key behind the limit.
func (l *topList[T]) useless(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit != "" && key > l.limit
}

func (l *topList[T]) shrinkLocked() {
	slices.SortStableFunc(l.items, func(a, b weighted[T]) int { return strings.Compare(a.key, b.key) })
	sum := 0
	for i, it := range l.items {
		sum += it.weight
		if sum >= l.max {
			clear(l.items[i+1:])
			l.items = l.items[:i+1]
			l.limit = it.key
			l.weight = sum
			return
		}
	}
}

func (l *topList[T]) sorted() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shrinkLocked()
	out := make([]T, len(l.items))
	for i, it := range l.items {
		out[i] = it.item
	}
	return out
}
