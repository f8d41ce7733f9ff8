package workspace

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one line of a .gitignore file, or of a list with its semantics.
type pattern struct {
	rule     string // as written
	glob     string // for doublestar; or the literal text
	need     string // text that every match holds, for a quick no
	kind     patternKind
	negated  bool
	dirOnly  bool
	anchored bool // matched against the path relative to the list's folder
}

type patternKind uint8

const (
	patternLiteral patternKind = iota // the whole name (or path, if anchored)
	patternSuffix                     // "*" and a literal: *.log
	patternPrefix                     // a literal and "*": id_rsa*
	patternTail                       // "**/" and a literal with "/": **/.aws/credentials
	patternGlob
)

// patternSet is a list of patterns; the last one that matches decides.
type patternSet []pattern

// parsePatterns reads lines with gitignore syntax. With fold the patterns are
// folded by foldName, and so must be what is matched.
func parsePatterns(lines []string, fold bool) patternSet {
	var set patternSet
	for _, line := range lines {
		if p, ok := parsePattern(line, fold); ok {
			set = append(set, p)
		}
	}
	return set
}

func parsePattern(line string, fold bool) (pattern, bool) {
	line = strings.TrimSuffix(line, "\r")
	line = trimPatternBlanks(line)
	p := pattern{rule: line}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.negated = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly = true
		line = strings.TrimRight(line, "/")
	}
	if strings.Contains(line, "/") {
		p.anchored = true
		line = strings.TrimPrefix(line, "/")
	}
	if line == "" || endsInBackslash(line) {
		return p, false
	}
	// "a/**/b" and "**/b" mean the same to both; a leading "**/" before a plain
	// name is the same as no anchor, which is quicker.
	if rest, ok := strings.CutPrefix(line, "**/"); ok && !strings.Contains(rest, "/") && rest != "**" {
		line, p.anchored = rest, false
	}
	if fold {
		line = foldName(line)
	}
	meta := strings.IndexAny(line, `*?[\`)
	tail, isTail := strings.CutPrefix(line, "**/")
	switch {
	case p.anchored && isTail && !strings.ContainsAny(tail, `*?[\`):
		p.kind, p.glob = patternTail, "/"+tail
	case meta < 0:
		p.kind, p.glob = patternLiteral, line
	case !p.anchored && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`):
		p.kind, p.glob = patternSuffix, line[1:]
	case !p.anchored && meta == len(line)-1 && line[meta] == '*':
		p.kind, p.glob = patternPrefix, line[:meta]
	default:
		p.kind = patternGlob
		// gitignore has no braces, and "a/**" is not "a" itself.
		p.glob = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
		if strings.HasSuffix(p.glob, "/**") {
			p.glob += "/*"
		}
		if !doublestar.ValidatePattern(p.glob) {
			return p, false
		}
		p.need = literalPart(line)
	}
	return p, true
}

// literalPart is the longest run of plain characters in a glob; "" when a
// backslash or a class makes that hard to tell.
func literalPart(glob string) string {
	if strings.ContainsAny(glob, `\[{`) {
		return ""
	}
	best := ""
	for _, part := range strings.FieldsFunc(glob, func(r rune) bool { return r == '*' || r == '?' || r == '/' }) {
		if len(part) > len(best) {
			best = part
		}
	}
	return best
}

// trimPatternBlanks drops trailing blanks that are not escaped.
func trimPatternBlanks(s string) string {
	for strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\t") {
		if endsInBackslash(s[:len(s)-1]) {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

func endsInBackslash(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// match looks for the last pattern that matches the entry itself. rel is the
// path relative to the list's folder with '/', name its last element.
func (s patternSet) match(rel, name string, isDir bool) (p *pattern, ok bool) {
	for i := len(s) - 1; i >= 0; i-- {
		p := &s[i]
		if p.dirOnly && !isDir {
			continue
		}
		subject := name
		if p.anchored {
			subject = rel
		}
		var hit bool
		switch p.kind {
		case patternLiteral:
			hit = subject == p.glob
		case patternSuffix:
			hit = strings.HasSuffix(subject, p.glob)
		case patternPrefix:
			hit = strings.HasPrefix(subject, p.glob)
		case patternTail:
			hit = strings.HasSuffix(subject, p.glob) || subject == p.glob[1:]
		default:
			hit = strings.Contains(subject, p.need) && doublestar.MatchUnvalidated(p.glob, subject)
		}
		if hit {
			return p, true
		}
	}
	return nil, false
}

// matchPath decides about a path with all its parent folders: what stands in a
// matched folder is matched, whatever is negated inside. It returns the rule.
func (s patternSet) matchPath(rel string, isDir bool) (rule string, ok bool) {
	if len(s) == 0 || rel == "." || rel == "" {
		return "", false
	}
	for i := 0; i < len(rel); i++ {
		if rel[i] != '/' {
			continue
		}
		parent := rel[:i]
		if p, ok := s.match(parent, path.Base(parent), true); ok && !p.negated {
			return p.rule, true
		}
	}
	if p, ok := s.match(rel, path.Base(rel), isDir); ok && !p.negated {
		return p.rule, true
	}
	return "", false
}
