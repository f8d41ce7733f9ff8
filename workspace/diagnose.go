package workspace

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// look is one way in which a quoted text commonly differs from the file. It only
// words the refusal: the edit is refused all the same.
type look struct {
	name string
	// old and file make the same key of what is taken for the same.
	old, file func(string) string
	hint      string // with the line number
}

// looks are tried in order, by whole lines.
var looks = []look{
	{"invisible", visibleKey, visibleKey, "line %d has the same visible text, but invisible characters (%s) differ; quote less of it, around them"},
	{"entities", html.UnescapeString, nil, "line %d has the same text without XML entities; bodies are raw, write < > & as they are, in new as well"},
	{"escapes", unescaped, nil, "line %d has the same text without the backslashes before quotes; bodies are raw, leave them out, in new as well"},
	{"case", foldName, foldName, "line %d has the same text in other letter case"},
	{"ellipsis", dotted, dotted, "line %d has the same text with an ellipsis character (…) in the place of three dots, or the other way round"},
}

// diagnoseLooks recognises, at the most similar place, what a glance at it would
// not show.
func (s *source) diagnoseLooks(path string, lines []string, at int) *Refusal {
	if at+len(lines) > len(s.lines) {
		return nil
	}
	have := s.lines[at : at+len(lines)]
	for _, k := range looks {
		same, differ := true, false
		for i, l := range lines {
			o, f := k.old(l), have[i]
			if k.file != nil {
				f = k.file(f)
			}
			same = same && trailingKey(o) == trailingKey(f)
			differ = differ || o != l || f != have[i]
		}
		if !same || !differ {
			continue
		}
		args := []any{at + 1}
		if k.name == "invisible" {
			args = append(args, invisibleIn(have, lines))
		}
		r := refuse(CodeNoMatch, path, "old text not found; %s.", fmt.Sprintf(k.hint, args...))
		r.Line = at + 1
		r.Nearest = s.show(at, len(lines), false)
		return r
	}
	return nil
}

func visibleKey(l string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) || r == '\r' {
			return -1
		}
		return r
	}, l)
}

func unescaped(l string) string {
	return strings.NewReplacer(`\"`, `"`, `\'`, `'`, "\\`", "`").Replace(l)
}

func dotted(l string) string { return strings.ReplaceAll(l, "…", "...") }

// invisibleIn names the invisible characters that one side has and the other has
// not.
func invisibleIn(file, old []string) string {
	count := map[rune]int{}
	for i, side := range [][]string{file, old} {
		for _, r := range strings.Join(side, "") {
			if isInvisible(r) || r == '\r' {
				count[r] += 1 - 2*i
			}
		}
	}
	var names []string
	for _, r := range strings.Join(file, "") + strings.Join(old, "") {
		if count[r] != 0 {
			names = append(names, fmt.Sprintf("U+%04X", r))
			count[r] = 0
		}
	}
	if len(names) == 0 {
		return "their places"
	}
	return strings.Join(names, ", ")
}

// diagnoseBlanks finds the same text with other blanks or line breaks.
func (s *source) diagnoseBlanks(path, old string) *Refusal {
	want := squeeze(old)
	if len(want) < 4 {
		return nil
	}
	have := squeeze(s.lf)
	i := strings.Index(have, want)
	if i < 0 {
		return nil
	}
	// Walk to the byte that is number i of those that are no blanks.
	line, seen, at := 1, 0, 0
	for k, r := range s.lf {
		if unicode.IsSpace(r) {
			if r == '\n' {
				line++
			}
			continue
		}
		if seen >= i {
			at = k
			break
		}
		seen += len(string(r))
	}
	end, left := at, len(want)
	for k, r := range s.lf[at:] {
		if left <= 0 {
			break
		}
		end = at + k
		if !unicode.IsSpace(r) {
			left -= len(string(r))
		}
	}
	r := refuse(CodeNoMatch, path, "old text not found; line %d has the same text with other blanks or line breaks. Quote them exactly.", line)
	r.Line = line
	r.Nearest = s.show(line-1, strings.Count(s.lf[at:end], "\n")+1, false)
	return r
}

// squeeze leaves out all blanks.
func squeeze(t string) string {
	out := make([]byte, 0, len(t))
	for i := 0; i < len(t); {
		if c := t[i]; c < utf8.RuneSelf {
			if c != ' ' && (c < '\t' || c > '\r') {
				out = append(out, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(t[i:])
		if !unicode.IsSpace(r) {
			out = append(out, t[i:i+size]...)
		}
		i += size
	}
	return string(out)
}
