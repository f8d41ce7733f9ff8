package workspace

import (
	"fmt"
	"strings"
)

// Patterns is a list of patterns with the semantics of a .gitignore file:
// the last one that matches decides, "!" lifts, what stands in a matched folder
// is matched. Letter case is ignored.
type Patterns struct{ set patternSet }

// NewPatterns reads patterns, one each. The error names the first that is none.
func NewPatterns(lines []string) (Patterns, error) {
	var p Patterns
	for _, line := range lines {
		pat, ok := parsePattern(line, true)
		if !ok {
			return Patterns{}, fmt.Errorf("%q is not a pattern as in .gitignore", line)
		}
		p.set = append(p.set, pat)
	}
	return p, nil
}

// Match reports whether the list matches the path, which is relative with '/',
// and which pattern does.
func (p Patterns) Match(rel string, dir bool) (pattern string, ok bool) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		parts[i] = foldName(parts[i])
	}
	return p.set.matchPath(strings.Join(parts, "/"), dir)
}
