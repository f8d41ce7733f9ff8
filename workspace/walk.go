package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// entryKind is what a folder's entry is, links not followed.
type entryKind uint8

const (
	entryOther entryKind = iota
	entryFile
	entryDir
	entryLink
)

type dirEntry struct {
	name string
	kind entryKind
}

func (d *dirHandle) kindOf(name string) entryKind {
	mode, err := d.lstat(name)
	switch {
	case err != nil:
		return entryOther
	case mode.IsDir():
		return entryDir
	case mode&fs.ModeSymlink != 0:
		return entryLink
	case mode.IsRegular():
		return entryFile
	}
	return entryOther
}

// ignorer is the .gitignore of one folder and those above it.
type ignorer struct {
	up  *ignorer
	set patternSet
	// cut is how many bytes of a path relative to the root lead to the folder;
	// prefix, for a folder above the root, is what must be put before instead.
	cut    int
	prefix string
}

// ignored asks the innermost .gitignore that has an opinion.
func (g *ignorer) ignored(rel, name string, isDir bool) bool {
	for ; g != nil; g = g.up {
		sub := rel
		if g.prefix != "" {
			sub = g.prefix + rel
		} else {
			sub = rel[g.cut:]
		}
		if p, ok := g.set.match(sub, name, isDir); ok {
			return !p.negated
		}
	}
	return false
}

// withFile adds the .gitignore in dir, if there is one.
func (g *ignorer) withFile(d *dirHandle, name string, cut int, prefix string, buf []byte) *ignorer {
	data, err := d.readFile(name, buf, 1<<20)
	if err != nil {
		return g
	}
	set := parsePatterns(strings.Split(strings.TrimPrefix(string(data), bom), "\n"), false)
	if len(set) == 0 {
		return g
	}
	return &ignorer{up: g, set: set, cut: cut, prefix: prefix}
}

// walker goes through the folders below some starts, in parallel.
type walker struct {
	w        *Workspace
	ignored  bool // also what .gitignore excludes
	secrets  bool // also secret files
	maxDepth int  // of folders below the start; -1 = no limit
	// visit is called for every file, folder and link that is not left out, from
	// several goroutines. d is the open folder that holds it.
	visit func(s *walkState, d *dirHandle, v visited)

	mu    sync.Mutex // guards what follows
	ready *sync.Cond
	queue []walkJob
	busy  int
	err   error
}

// walkState belongs to one goroutine: scratch space of the visitor.
type walkState struct {
	dirBuf  []byte
	fileBuf []byte
}

// visited is one entry.
type visited struct {
	root   int
	rel    string // relative to the root, with '/'
	name   string
	kind   entryKind
	secret bool
}

// walkJob is one folder, or a part of its files.
type walkJob struct {
	root   int
	rel    string // "." for the root
	abs    string
	depth  int
	ignore *ignorer
	files  []visited // set: only these
	secret bool      // the start is a folder of secrets
}

// filesPerJob is how many files of a folder one goroutine takes at a time.
const filesPerJob = 128

// run walks below the starts and returns when all is visited, or ctx ends.
func (k *walker) run(ctx context.Context, starts []walkJob) error {
	k.ready = sync.NewCond(&k.mu)
	k.queue = slices.Clone(starts) // it grows and shrinks; starts is read meanwhile
	stop := context.AfterFunc(ctx, func() {
		k.mu.Lock()
		k.err = ctx.Err()
		k.queue = nil
		k.mu.Unlock()
		k.ready.Broadcast()
	})
	defer stop()
	var wg sync.WaitGroup
	for range max(1, min(runtime.GOMAXPROCS(0), 8)) {
		wg.Go(func() {
			s := &walkState{dirBuf: make([]byte, 32<<10), fileBuf: make([]byte, 64<<10)}
			for {
				job, ok := k.next()
				if !ok {
					return
				}
				k.do(s, job)
				k.done()
			}
		})
	}
	wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *walker) next() (walkJob, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) == 0 {
		if k.busy == 0 || k.err != nil {
			return walkJob{}, false
		}
		k.ready.Wait()
	}
	job := k.queue[len(k.queue)-1]
	k.queue = k.queue[:len(k.queue)-1]
	k.busy++
	return job, true
}

func (k *walker) done() {
	k.mu.Lock()
	k.busy--
	last := k.busy == 0 && len(k.queue) == 0
	k.mu.Unlock()
	if last {
		k.ready.Broadcast()
	}
}

func (k *walker) push(jobs []walkJob) {
	if len(jobs) == 0 {
		return
	}
	k.mu.Lock()
	if k.err == nil {
		k.queue = append(k.queue, jobs...)
	}
	k.mu.Unlock()
	k.ready.Broadcast()
}

// do visits one folder. What cannot be opened is passed over.
func (k *walker) do(s *walkState, job walkJob) {
	d, err := openDir(job.abs)
	if err != nil {
		return
	}
	defer d.close()
	if job.files != nil {
		for _, v := range job.files {
			k.visit(s, d, v)
		}
		return
	}
	list, err := d.entries(s.dirBuf)
	if err != nil && len(list) == 0 {
		return
	}
	if job.rel != "." && shapeOfGitDir(list) {
		return
	}
	base := ""
	if job.rel != "." {
		base = job.rel + "/"
	}
	ignore := job.ignore
	if !k.ignored {
		for _, e := range list {
			if e.name == ".gitignore" && e.kind == entryFile {
				ignore = ignore.withFile(d, e.name, len(base), "", s.fileBuf)
			}
		}
	}
	var files []visited
	var jobs []walkJob
	for _, e := range list {
		v := visited{root: job.root, rel: base + e.name, name: e.name, kind: e.kind}
		if !k.wanted(&v, ignore) {
			continue
		}
		if e.kind == entryDir {
			k.visit(s, d, v)
			if k.maxDepth < 0 || job.depth < k.maxDepth {
				jobs = append(jobs, walkJob{root: job.root, rel: v.rel, abs: filepath.Join(job.abs, e.name), depth: job.depth + 1, ignore: ignore})
			}
			continue
		}
		files = append(files, v)
	}
	for len(files) > filesPerJob {
		n := len(files) - filesPerJob
		part := job
		part.files = files[n:]
		jobs = append(jobs, part)
		files = files[:n]
	}
	k.push(jobs)
	for _, v := range files {
		k.visit(s, d, v)
	}
}

// wanted leaves out version control metadata, temporary files of ours, what the
// configuration denies, what git ignores, and secrets where asked.
func (k *walker) wanted(v *visited, ignore *ignorer) bool {
	if v.kind == entryOther {
		return false
	}
	folded := foldName(v.name)
	if isForbiddenName(folded) || isTempName(v.name) {
		return false
	}
	isDir := v.kind == entryDir
	if ignore.ignored(v.rel, v.name, isDir) {
		return false
	}
	rel := folded
	if len(v.rel) > len(v.name) {
		rel = foldName(v.rel)
	}
	if p, ok := k.w.rules.deny.match(rel, folded, isDir); ok && !p.negated {
		return false
	}
	if p, ok := k.w.rules.secret.match(rel, folded, isDir); ok && !p.negated {
		v.secret = true
		return k.secrets
	}
	return true
}

// shapeOfGitDir is git's own test on a folder's listing.
func shapeOfGitDir(list []dirEntry) bool {
	var head, objects, refs, common, gitdir bool
	for _, e := range list {
		switch e.name {
		case "HEAD":
			head = true
		case "objects":
			objects = true
		case "refs":
			refs = true
		case "commondir":
			common = true
		case "gitdir":
			gitdir = true
		}
	}
	return head && (objects && refs || common && gitdir)
}

// start makes the job for a folder: with the .gitignore files above it, up to
// the top of the git work tree. A folder that was named is walked even if it is
// ignored itself.
func (w *Workspace) start(t Target, roots []root) walkJob {
	job := walkJob{root: t.Root, rel: t.Rel, abs: t.Abs}
	r := roots[t.Root]
	buf := make([]byte, 8<<10)
	var g *ignorer
	tops := gitTops(r.real)
	for i, dir := range slices.Backward(tops) {
		if d, err := openDir(dir); err == nil {
			rel, _ := within(dir, r.real)
			if i == len(tops)-1 {
				if info, err := d.openSub(".git"); err == nil {
					if sub, err := info.openSub("info"); err == nil {
						g = g.withFile(sub, "exclude", 0, prefixOf(rel), buf)
						sub.close()
					}
					info.close()
				}
			}
			if rel != "." { // the root's own one is read by the walk
				g = g.withFile(d, ".gitignore", 0, prefixOf(rel), buf)
			}
			d.close()
		}
	}
	if t.Rel == "." {
		job.ignore = g
		return job
	}
	parts := strings.Split(t.Rel, "/")
	dir, rel := r.real, ""
	for _, p := range parts {
		if d, err := openDir(dir); err == nil {
			g = g.withFile(d, ".gitignore", len(rel), "", buf)
			d.close()
		}
		if g.ignored(rel+p, p, true) {
			return job
		}
		dir, rel = filepath.Join(dir, p), rel+p+"/"
	}
	job.ignore = g
	return job
}

func prefixOf(rel string) string {
	if rel == "." {
		return ""
	}
	return rel + "/"
}

// gitTops are the folders from dir up to the one that holds .git; only dir
// itself, when there is none.
func gitTops(dir string) []string {
	var out []string
	for at := dir; ; at = filepath.Dir(at) {
		out = append(out, at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return out
		}
		if at == filepath.Dir(at) {
			return out[:1]
		}
	}
}
