package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath bounds the length of a path in bytes, before anything looks at it.
const maxPath = 4096

// Resolve is the one path function: tags, tools, search, copy sources and
// attached files all go through it (DESIGN, Files: Paths; Safety). The path is
// relative with '/', or absolute inside a root; it is cleaned, never decoded.
// Containment is decided by components on the resolved path: the root and the
// deepest existing ancestor of the target, by lstat, so that a dangling link
// counts as what it points to. Errors are *Refusal.
func (w *Workspace) Resolve(path string, access Access) (Target, error) {
	roots := w.rootList()
	idx, rel, ref := w.locate(roots, path, access)
	if ref != nil {
		return Target{}, ref
	}
	shown := displayOf(roots, idx, rel)
	if ref := w.checkNames(rel, shown); ref != nil {
		return Target{}, ref
	}
	found, ref := resolveLinks(roots[idx].real, splitRel(rel), access != AccessDelete, shown)
	if ref != nil {
		return Target{}, ref
	}
	t := Target{
		Given: filepath.Join(roots[idx].dir, filepath.FromSlash(rel)),
		Abs:   found.path, Exists: found.exists, IsDir: found.mode.IsDir(), IsLink: found.mode&fs.ModeSymlink != 0,
	}
	var ok bool
	if t.Root, t.Rel, ok = holder(roots, found.path); !ok {
		return Target{}, refuse(CodeOutside, shown, "this leads through a symbolic link to %s, which is outside the workspace; nothing outside it may be read or written", found.path)
	}
	t.Display = displayOf(roots, t.Root, t.Rel)
	if ref := w.checkNames(t.Rel, shown); ref != nil {
		return Target{}, ref
	}
	if insideGitDir(roots[t.Root].real, t.Rel) {
		return Target{}, refuse(CodeForbidden, shown, "this is inside a git directory, and version control metadata is never touched")
	}
	w.staged(&t)
	w.classify(&t, rel)
	if t.IsLink {
		// The entry itself goes, but it may stand for something protected.
		if end, ref := resolveLinks(roots[idx].real, splitRel(rel), true, shown); ref == nil {
			if ri, rrel, ok := holder(roots, end.path); ok {
				far := Target{Root: ri, Rel: rrel, IsDir: end.mode.IsDir()}
				w.classify(&far, rrel)
				t.Protected, t.ProtectedRule = t.Protected || far.Protected, t.ProtectedRule+far.ProtectedRule
			}
		}
	}
	if rule, denied := w.denied(t, rel); denied {
		return Target{}, refuse(CodeDenied, shown, "the configuration denies %q; leave this file alone", rule)
	}
	return t, nil
}

// locate turns a path as written into a root and a cleaned path relative to it.
func (w *Workspace) locate(roots []root, path string, access Access) (idx int, rel string, ref *Refusal) {
	if ref := checkSpelling(path); ref != nil {
		return 0, "", ref
	}
	if len(roots) == 0 {
		return 0, "", refuse(CodeOutside, path, "no workspace folder is open")
	}
	if runtime.GOOS == "windows" {
		path = filepath.ToSlash(path)
	}
	if filepath.IsAbs(path) {
		return locateAbs(roots, path)
	}
	rel, ok := cleanRel(path)
	if !ok {
		return 0, "", refuse(CodeOutside, path, "this is outside the workspace; use a path inside it, relative to its root")
	}
	if len(roots) == 1 {
		return 0, rel, nil
	}
	first, rest, _ := strings.Cut(rel, "/")
	for i, r := range roots {
		if first == r.name {
			if rest == "" {
				rest = "."
			}
			return i, rest, nil
		}
	}
	return w.locateBare(roots, path, rel, access)
}

// locateBare handles a path without root name among several roots: good when
// exactly one of them has it, refused otherwise.
func (w *Workspace) locateBare(roots []root, path, rel string, access Access) (int, string, *Refusal) {
	var names, holders []string
	at := -1
	for i, r := range roots {
		names = append(names, r.name+"/")
		abs := filepath.Join(r.dir, filepath.FromSlash(rel))
		_, err := os.Lstat(abs)
		if _, open := w.Document(abs); (err == nil || open) && rel != "." {
			holders = append(holders, r.name+"/"+rel)
			at = i
		}
	}
	switch len(holders) {
	case 1:
		if access != AccessCreate {
			return at, rel, nil
		}
		return 0, "", refuse(CodeAmbiguousPath, path, "begin the path of a new file with the folder it belongs to: one of %s", strings.Join(names, ", "))
	case 0:
		return 0, "", refuse(CodeAmbiguousPath, path, "no workspace folder has this; begin the path with the folder's name: one of %s", strings.Join(names, ", "))
	}
	return 0, "", refuse(CodeAmbiguousPath, path, "ambiguous: %s; write one of these", strings.Join(holders, ", "))
}

// locateAbs accepts an absolute path inside a root, spelled with the root's
// given or real folder, or leading there through links above the root.
func locateAbs(roots []root, path string) (int, string, *Refusal) {
	clean := filepath.Clean(filepath.FromSlash(path))
	best, rel := -1, ""
	for i, r := range roots {
		for _, dir := range []string{r.dir, r.real} {
			if s, ok := within(dir, clean); ok && (best < 0 || len(s) < len(rel)) {
				best, rel = i, s
			}
		}
	}
	if best >= 0 {
		return best, rel, nil
	}
	vol := filepath.VolumeName(clean) + string(filepath.Separator)
	found, ref := resolveLinks(vol, splitRel(filepath.ToSlash(clean[len(vol):])), true, path)
	if ref == nil {
		if i, rel, ok := holder(roots, found.path); ok {
			return i, rel, nil
		}
	}
	return 0, "", refuse(CodeOutside, path, "this is outside the workspace; use a path inside it, relative to its root")
}

// checkSpelling refuses what cannot be a path here, whatever the disk says.
func checkSpelling(path string) *Refusal {
	shown := printable(path)
	switch {
	case path == "":
		return refuse(CodeBadPath, "", "the path is empty")
	case len(path) > maxPath:
		return refuse(CodeBadPath, shown[:60]+"…", "the path has %d bytes; at most %d are allowed", len(path), maxPath)
	case !utf8.ValidString(path):
		return refuse(CodeBadPath, shown, "the path is not valid UTF-8")
	case strings.ContainsFunc(path, isControl):
		return refuse(CodeBadPath, shown, "the path holds a control character or a line break")
	case strings.Contains(path, "://"):
		return refuse(CodeBadPath, shown, "URLs are not paths; use a path relative to the workspace root")
	case path == "~" || path[0] == '~' && strings.Contains(path, "/"):
		return refuse(CodeOutside, shown, "~ is not expanded, and the home folder is outside the workspace; use a path relative to its root")
	}
	if runtime.GOOS != "windows" {
		if strings.ContainsRune(path, '\\') || len(path) >= 2 && path[1] == ':' && isLetter(path[0]) {
			return refuse(CodeBadPath, shown, "this is a Windows spelling; use a path relative to the workspace root, with '/'")
		}
	}
	return nil
}

func isControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// printable makes a path safe to show: control and invisible characters escaped.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return isControl(r) || isInvisible(r) || r == utf8.RuneError }) {
		return s
	}
	q := strconv.QuoteToASCII(s)
	return q[1 : len(q)-1]
}

func quote(s string) string { return strconv.Quote(s) }

// cleanRel cleans a relative path by components; ok is false when it leaves.
func cleanRel(path string) (rel string, ok bool) {
	var out []string
	for _, c := range strings.Split(path, "/") {
		switch c {
		case "", ".":
		case "..":
			if len(out) == 0 {
				return "", false
			}
			out = out[:len(out)-1]
		default:
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return ".", true
	}
	return strings.Join(out, "/"), true
}

func splitRel(rel string) []string {
	var out []string
	for _, c := range strings.Split(rel, "/") {
		if c != "" && c != "." {
			out = append(out, c)
		}
	}
	return out
}

func displayOf(roots []root, idx int, rel string) string {
	if len(roots) == 1 {
		return printable(rel)
	}
	if rel == "." {
		return printable(roots[idx].name)
	}
	return printable(roots[idx].name + "/" + rel)
}

// checkNames applies the rules for single components.
func (w *Workspace) checkNames(rel, shown string) *Refusal {
	for _, c := range splitRel(rel) {
		if p := w.rules.checkName(c); p.code != "" {
			return refuse(p.code, shown, "%s", p.text)
		}
	}
	if rule, ok := w.rules.hidden(rel); ok {
		return refuse(CodeBadPath, shown, "the path holds invisible or look-alike characters; without them it would be %q", rule)
	}
	return nil
}

// classify sets Protected and Secret from the resolved path and the path as
// asked for (given, relative to its root).
func (w *Workspace) classify(t *Target, given string) {
	for _, rel := range []string{t.Rel, given} {
		folded := foldName(rel)
		if rule, ok := w.rules.protected.matchPath(folded, t.IsDir || !t.Exists); ok && !t.Protected {
			t.Protected, t.ProtectedRule = true, rule
		}
		if rule, ok := w.rules.secret.matchPath(folded, t.IsDir); ok && !t.Secret {
			t.Secret, t.SecretRule = true, rule
		}
	}
	for _, own := range w.opts.Own {
		if _, ok := within(own, t.Abs); ok {
			t.Protected, t.ProtectedRule = true, "ThinkFlow's own files"
		}
	}
}

func (w *Workspace) denied(t Target, given string) (rule string, ok bool) {
	for _, rel := range []string{t.Rel, given} {
		if rule, ok := w.rules.deny.matchPath(foldName(rel), t.IsDir); ok {
			return rule, true
		}
	}
	return "", false
}
