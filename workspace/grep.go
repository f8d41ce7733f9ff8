package workspace

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Bounds of a search.
const (
	DefaultMaxMatches   = 200
	DefaultGrepBytes    = 64 << 10
	maxMatchLine        = 400 // bytes shown of one line
	maxMatchLead        = 100 // of them before the match
	maxSearchedFile     = 64 << 20
	maxGrepContextLines = 10
)

// GrepRequest asks for lines that match.
type GrepRequest struct {
	Pattern    string
	Regex      bool   // RE2 syntax, applied to single lines; otherwise literal
	Glob       string // only files that match it, as in GlobRequest
	Path       string // file or folder to look in; "" = everywhere
	IgnoreCase bool
	Ignored    bool // also what .gitignore excludes
	Context    int  // lines before and after, at most 10
	MaxMatches int  // 0 = DefaultMaxMatches
	MaxBytes   int  // of all lines together; 0 = DefaultGrepBytes
	// AllowSecret: a person agreed that the secret file Path is searched.
	AllowSecret bool
}

// GrepMatch is one line. Text is without line break, in valid UTF-8, and cut
// around the match when it is huge.
type GrepMatch struct {
	Path   string // display path
	Line   int    // 1-based
	Column int    // byte offset of the match in the line, from 0
	Text   string
	Match  bool // false: a line of context
	Cut    bool
}

// GrepResult is in order of path and line.
type GrepResult struct {
	Matches   []GrepMatch
	Files     int  // files with a match
	Truncated bool // MaxMatches or MaxBytes cut it; the first ones by path are kept
}

// String renders the result for the model: a line with the path per file, then
// "line: text", with "-" instead of ":" for lines of context.
func (r GrepResult) String() string {
	var b strings.Builder
	for i, m := range r.Matches {
		if i == 0 || r.Matches[i-1].Path != m.Path {
			fmt.Fprintf(&b, "%s\n", m.Path)
		} else if last := r.Matches[i-1]; m.Line > last.Line+1 && (!m.Match || !last.Match) {
			b.WriteString("--\n")
		}
		sep := ":"
		if !m.Match {
			sep = "-"
		}
		fmt.Fprintf(&b, "%d%s %s\n", m.Line, sep, m.Text)
	}
	switch {
	case len(r.Matches) == 0:
		return "no matches\n"
	case r.Truncated:
		b.WriteString("… more matches were left out; narrow the search\n")
	}
	return b.String()
}

// fileMatches is what one file gave.
type fileMatches struct {
	path    string
	matches []GrepMatch
	count   int // real matches
	more    bool
}

// Grep searches the text of all files below Path: open buffers over the disk,
// without binary files, secrets, version control metadata, what git ignores and
// what is denied; links are not followed. The order, and what a bound cuts, do
// not depend on timing. Errors are *Refusal, or that of ctx.
func (w *Workspace) Grep(ctx context.Context, r GrepRequest) (GrepResult, error) {
	if r.MaxMatches <= 0 {
		r.MaxMatches = DefaultMaxMatches
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultGrepBytes
	}
	r.Context = max(0, min(r.Context, maxGrepContextLines))
	m, ref := newMatcher(r)
	if ref != nil {
		return GrepResult{}, ref
	}
	var g *glob
	if r.Glob != "" {
		compiled, ref := newGlob(r.Glob)
		if ref != nil {
			return GrepResult{}, ref
		}
		g = &compiled
	}
	jobs, file, err := w.starts(r.Path)
	if err != nil {
		return GrepResult{}, err
	}
	top := topList[fileMatches]{max: r.MaxMatches + 1, key: func(f fileMatches) string { return f.path }}
	if file != nil {
		if ref := w.secretRefusal(*file, Op{AllowSecret: r.AllowSecret}); ref != nil {
			return GrepResult{}, ref
		}
		s, err := w.Snapshot(*file)
		if err != nil {
			return GrepResult{}, err
		}
		if f := m.search([]byte(s.Text), file.Display, r); f.count > 0 {
			top.add(f, f.count)
		}
		return finishGrep(top.sorted(), r), nil
	}
	if len(jobs) == 1 && jobs[0].secret && !r.AllowSecret {
		return GrepResult{}, refuse(CodeSecret, r.Path, "this folder holds secrets; it is searched only after a person agreed")
	}
	w.grepUnsaved(jobs, &top, m, g, r)
	k := w.grepWalker(jobs, &top, m, g, r)
	if err := k.run(ctx, jobs); err != nil {
		return GrepResult{}, err
	}
	return finishGrep(top.sorted(), r), nil
}

// grepUnsaved searches documents that are not on disk yet.
func (w *Workspace) grepUnsaved(jobs []walkJob, top *topList[fileMatches], m *matcher, g *glob, r GrepRequest) {
	roots := w.rootList()
	w.unsavedNew(jobs, func(v visited, text string) {
		display := displayOf(roots, v.root, v.rel)
		if v.secret || g != nil && !g.match(v.rel, display, prefixOf(jobRel(jobs, v.root))) {
			return
		}
		if f := m.search([]byte(text), display, r); f.count > 0 {
			top.add(f, f.count)
		}
	})
}

// grepWalker searches files on disk, and buffers in the place of theirs.
func (w *Workspace) grepWalker(jobs []walkJob, top *topList[fileMatches], m *matcher, g *glob, r GrepRequest) *walker {
	roots := w.rootList()
	buffers := map[string]string{} // by root and relative path
	for _, doc := range w.Documents() {
		if d, ok := w.docs.find(doc.Path); ok {
			buffers[samePathKey(d.real)] = d.Text
		}
	}
	k := &walker{w: w, ignored: r.Ignored, maxDepth: -1, secrets: r.AllowSecret && len(jobs) == 1 && jobs[0].secret}
	k.visit = func(s *walkState, d *dirHandle, v visited) {
		if v.kind != entryFile {
			return
		}
		display := v.rel
		if len(roots) > 1 || !plainASCII(v.rel) {
			display = displayOf(roots, v.root, v.rel)
		}
		if g != nil && !g.match(v.rel, display, prefixOf(jobRel(jobs, v.root))) || top.useless(display) {
			return
		}
		if w.docs.isGone(filepath.Join(d.path, v.name)) {
			return
		}
		var data []byte
		if len(buffers) > 0 {
			if text, ok := buffers[samePathKey(filepath.Join(d.path, v.name))]; ok {
				data = []byte(text)
			}
		}
		if data == nil {
			var err error
			data, err = d.readFile(v.name, s.fileBuf, maxSearchedFile)
			if err != nil {
				return
			}
			if cap(data) > cap(s.fileBuf) && cap(data) <= 1<<20 {
				s.fileBuf = data[:cap(data)]
			}
			if isBinary(data) {
				return
			}
		}
		if f := m.search(data, display, r); f.count > 0 {
			top.add(f, f.count)
		}
	}
	return k
}

func plainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// finishGrep cuts to the bounds, in order.
func finishGrep(files []fileMatches, r GrepRequest) GrepResult {
	var res GrepResult
	matches, size := 0, 0
	for _, f := range files {
		res.Files++
		for _, m := range f.matches {
			size += len(m.Text) + 8
			if m.Match {
				matches++
			}
			if matches > r.MaxMatches || size > r.MaxBytes {
				res.Truncated = true
				return res
			}
			res.Matches = append(res.Matches, m)
		}
		if f.more {
			res.Truncated = true
			return res
		}
		size += len(f.path)
	}
	return res
}

// search finds the matching lines of one text.
func (m *matcher) search(data []byte, path string, r GrepRequest) fileMatches {
	f := fileMatches{path: path}
	line, counted := 1, 0
	lastShown := 0 // number of the last line in f.matches
	for at := 0; at <= len(data); {
		start, end, col, ok := m.next(data, at)
		if !ok {
			break
		}
		if f.count > r.MaxMatches {
			f.more = true
			break
		}
		line += bytes.Count(data[counted:start], []byte{'\n'})
		counted = start
		f.addContext(data, start, line, -r.Context, &lastShown)
		f.add(data[start:end], line, col, true, &lastShown)
		f.count++
		after := end + 1
		if r.Context > 0 {
			next := len(data)
			if s, _, _, ok := m.next(data, min(after, len(data))); ok && after < len(data) {
				next = s
			}
			f.addContext(data[:next], after, line+1, r.Context, &lastShown)
		}
		at = after
	}
	return f
}

// add appends one line.
func (f *fileMatches) add(text []byte, line, col int, match bool, last *int) {
	m := GrepMatch{Path: f.path, Line: line, Column: col, Match: match}
	text = bytes.TrimSuffix(text, []byte{'\r'})
	s := string(text)
	if len(s) > maxMatchLine {
		m.Cut = true
		from := 0
		if col > maxMatchLead {
			from = len(cutText(s, col-maxMatchLead))
		}
		shown := cutText(s[from:], maxMatchLine)
		if from > 0 {
			shown = "…" + shown
		}
		if from+maxMatchLine < len(s) {
			shown += "…"
		}
		s = shown
	}
	m.Text = strings.ToValidUTF8(s, "\uFFFD")
	f.matches = append(f.matches, m)
	*last = line
}

// addContext adds lines around a match: n lines from pos on, or -n before it.
func (f *fileMatches) addContext(data []byte, pos, line, n int, last *int) {
	if n < 0 {
		from := pos
		for ; n < 0 && from > 0; n++ {
			from = bytes.LastIndexByte(data[:from-1], '\n') + 1
			line--
		}
		for from < pos {
			end := from + bytes.IndexByte(data[from:], '\n')
			if line > *last {
				f.add(data[from:end], line, 0, false, last)
			}
			from, line = end+1, line+1
		}
		return
	}
	for ; n > 0 && pos < len(data); n-- {
		end := bytes.IndexByte(data[pos:], '\n')
		if end < 0 {
			end = len(data) - pos
		}
		f.add(data[pos:pos+end], line, 0, false, last)
		pos, line = pos+end+1, line+1
	}
}
