package workspace

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"time"
)

// similarNames lists names close to that of a missing file: in its folder, or
// in the deepest one above it that exists.
func (w *Workspace) similarNames(t Target) []string {
	roots := w.rootList()
	if t.Root >= len(roots) {
		return nil
	}
	root := roots[t.Root].real
	dir, name := filepath.Dir(t.Abs), filepath.Base(t.Abs)
	for dir != root && isSubPath(root, dir) {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
			break
		}
		dir, name = filepath.Dir(dir), filepath.Base(dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(5000)
	type cand struct {
		name string
		dist int
	}
	var cands []cand
	for _, n := range names {
		if isForbiddenName(foldName(n)) || isTempName(n) {
			continue
		}
		if d := nameDistance(foldName(n), foldName(name)); d*3 <= len(name)+2 {
			cands = append(cands, cand{n, d})
		}
	}
	sort.Slice(cands, func(i, j int) bool {
		if cands[i].dist != cands[j].dist {
			return cands[i].dist < cands[j].dist
		}
		return cands[i].name < cands[j].name
	})
	var out []string
	for _, c := range cands[:min(len(cands), 4)] {
		rel, _ := within(root, filepath.Join(dir, c.name))
		if _, denied := w.rules.deny.matchPath(foldName(rel), false); !denied {
			out = append(out, displayOf(roots, t.Root, rel))
		}
	}
	if len(out) == 0 {
		return w.sameNames(filepath.Base(t.Abs))
	}
	return out
}

// sameNameTime bounds the search for files of the same name elsewhere: it only
// words a refusal.
const sameNameTime = 150 * time.Millisecond

// sameNames looks for the name in all folders.
func (w *Workspace) sameNames(name string) []string {
	roots := w.rootList()
	var jobs []walkJob
	for i, r := range roots {
		jobs = append(jobs, w.start(Target{Root: i, Rel: ".", Abs: r.real}, roots))
	}
	top := topList[string]{max: 4, key: func(s string) string { return s }}
	want := foldName(name)
	k := walker{w: w, maxDepth: -1}
	k.visit = func(_ *walkState, _ *dirHandle, v visited) {
		if len(v.name) == len(name) && foldName(v.name) == want {
			top.add(displayOf(roots, v.root, v.rel), 1)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), sameNameTime)
	defer cancel()
	_ = k.run(ctx, jobs)
	return top.sorted()
}

// nameDistance is the edit distance of two short names, in bytes.
func nameDistance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 1000
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
