package agent

import (
	"path/filepath"
	"strings"

	"thinkflow/internal/trust"
	"thinkflow/workspace"
)

// rulesName is the file of a project's rules, at the root and in folders.
const rulesName = "AGENTS.md"

// maxRules bounds one file of rules, in bytes.
const maxRules = 16 << 10

// rule is one file of rules that the model has been given.
type rule struct{ path, text string }

// rootRules are the trusted rules at the roots that the session has not been
// given, or whose text is another one now.
func (r *run) rootRules() string {
	var b strings.Builder
	for _, root := range r.e.ws.Roots() {
		b.WriteString(r.takeRules(root.Dir))
	}
	return b.String()
}

// rulesFor are the trusted rules of the folders between a file and its root that
// the session has not been given, the outer ones first.
func (r *run) rulesFor(t workspace.Target) string {
	roots := r.e.ws.Roots()
	if t.Root < 0 || t.Root >= len(roots) {
		return ""
	}
	dir := t.Abs
	if !t.IsDir {
		dir = filepath.Dir(dir)
	}
	rel, err := filepath.Rel(roots[t.Root].Dir, dir)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return "" // the root's own are given with the task
	}
	var b strings.Builder
	dir = roots[t.Root].Dir
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		dir = filepath.Join(dir, part)
		if r.firstLook(dir) {
			b.WriteString(r.takeRules(dir))
		}
	}
	return b.String()
}

// firstLook tells whether this run has not looked for rules there yet.
func (r *run) firstLook(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looked[dir] {
		return false
	}
	if r.looked == nil {
		r.looked = map[string]bool{}
	}
	r.looked[dir] = true
	return true
}

// takeRules reads a folder's rules, if they are trusted and new to the session,
// and words them for the model.
func (r *run) takeRules(dir string) string {
	t, err := r.e.ws.Resolve(filepath.Join(dir, rulesName), workspace.AccessRead)
	if err != nil || !t.Exists || t.IsDir {
		return ""
	}
	snap, err := r.e.ws.Snapshot(t)
	if err != nil || strings.TrimSpace(snap.Text) == "" {
		return ""
	}
	if !r.trusted(trust.Rules, t.Abs, snap.Text) {
		return ""
	}
	text := rule{t.Display, cutText(snap.Text, maxRules)}
	if !r.s.takeRule(text) {
		return ""
	}
	r.s.learn(snap.Text, t.Display)
	return text.String()
}

// String words the rules for the model. They are trusted, so they are no data.
func (u rule) String() string {
	where := "this project"
	if dir := strings.TrimSuffix(u.path, rulesName); dir != "" {
		where = dir
	}
	return "Rules of the user for " + where + " (" + u.path + "):\n" + strings.TrimRight(u.text, "\n") + "\n\n"
}

// takeRule keeps a rule for the session; false = it was there already.
func (s *session) takeRule(u rule) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, have := range s.rules {
		if have.path == u.path {
			s.rules[i] = u
			return have.text != u.text
		}
	}
	s.rules = append(s.rules, u)
	return true
}

// noteRules tells the rules of a folder with the next request, once something in
// it was read or changed.
func (r *run) noteRules(t workspace.Target) {
	if text := r.rulesFor(t); text != "" {
		r.s.addNote(strings.TrimRight(text, "\n"))
	}
}
