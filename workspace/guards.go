package workspace

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// GuardKind says what a guard does.
type GuardKind string

// Refused: nothing is changed. Repaired: the intended change is made, and said.
// Flagged: the change is made as asked, with a remark.
const (
	Refused  GuardKind = "refused"
	Repaired GuardKind = "repaired"
	Flagged  GuardKind = "flagged"
)

// Guard is one entry of the list of guards and repairs. Nothing else in this
// package alters what the model asked for. Wording is a format string.
type Guard struct {
	Name    string
	Kind    GuardKind
	Code    Code // of refusals
	Wording string
}

// The guards and repairs, by name.
var (
	guardEmptyOld = Guard{"empty-old", Refused, CodeEmptyOld,
		"old text is empty; to add text use tf-append, to replace all of it tf-write, or quote a line next to the place"}
	guardNoChange = Guard{"no-change", Refused, CodeNoChange,
		"old and new are the same, so the edit changes nothing and sending it again will not help; %s"}
	guardPlaceholder = Guard{"placeholder", Refused, CodePlaceholder,
		"line %d of %s looks like a placeholder for omitted code (%s); write out all of the text, or edit only the part that changes"}
	guardOverlap = Guard{"overlap", Refused, CodeOverlap,
		"pairs %d and %d overlap at line %d; nothing was changed. Join them into one pair"}
	guardLineNumbers = Guard{"line-numbers", Refused, CodeLineNumbers,
		"not found; every line of old starts with a line-number prefix, which is not part of the file%s. Send it without the prefixes, in new as well"}
	guardIndentStyle = Guard{"indent-style", Refused, CodeIndentation,
		"not found; line %d has the same text with %s indentation, old has %s. Quote the indentation of the file, in new as well (shown: → is a tab, · a blank)"}
	guardIndentDepth = Guard{"indent-depth", Refused, CodeIndentation,
		"not found; the same text exists at line %d with %s. Quote the indentation of the file, in new as well"}
	guardShiftNew = Guard{"indent-shift-new", Refused, CodeIndentation,
		"old matches line %d with one level of indentation less, but a line of new has not that indentation, so it cannot be moved along. Quote the indentation of the file, in new as well"}
	guardEmptyBody = Guard{"empty-body", Refused, CodeEmptyBody,
		"the body is empty and the file is not (%d lines); if it shall become empty say empty=\"true\""}
	guardChanged = Guard{"changed", Refused, CodeChanged,
		"the file changed since it was read or written last (%s); read it again before replacing all of it, or use tf-edit"}

	guardFence = Guard{"code-fence", Repaired, "",
		"unwrapped code fence: the body was one fence, and its two fence lines were left out"}
	guardAppendBreak = Guard{"append-break", Repaired, "",
		"a line break was put before the appended text, because the file did not end with one"}
	guardSeam = Guard{"seam-break", Repaired, "",
		"a line break was added at the end of new%s, because old ended with one"}

	guardShrink = Guard{"shrink", Flagged, "",
		"%d -> %d lines: the write left less than half of the file"}
	guardMidIndent = Guard{"after-indent", Flagged, "",
		"old matched behind the indentation of line %d; further lines of new were put in as written, check their indentation"}
	guardMidWord = Guard{"mid-word", Flagged, "",
		"old matched in the middle of a word in line %d, check that this is the place"}
	guardBlankLine = Guard{"blank-line", Flagged, "",
		"new ends with a line break and old does not, which left an empty line after line %d"}
	guardPlaceholderNew = Guard{"placeholder-new", Flagged, "",
		"line %d of the new file looks like a placeholder for omitted text"}
	guardDisk = Guard{"disk-differs", Flagged, "",
		"the file on disk differs from the unsaved text in the editor; the text in the editor was changed"}
	guardMoved = Guard{"changed-since-read", Flagged, "",
		"file changed since it was read; the old text was still unique"}
)

func (g Guard) refuse(path string, line int, args ...any) *Refusal {
	return &Refusal{Code: g.Code, Path: path, Line: line, Message: fmt.Sprintf(g.Wording, args...)}
}

func (g Guard) note(args ...any) string { return fmt.Sprintf(g.Wording, args...) }

// markdownNames are files in which a code fence is content.
var markdownNames = map[string]bool{
	".md": true, ".markdown": true, ".mdx": true, ".rst": true, ".txt": true,
	".mdc": true, ".mkd": true, ".mdown": true, ".qmd": true, ".rmd": true, ".adoc": true,
}

func isMarkdown(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return markdownNames[ext] || ext == "" && hasPrefixFold(filepath.Base(path), "readme")
}

// unwrapFence takes a body out of the one code fence that it consists of: the
// first non-blank line opens it, the last one closes it, no line between does.
func unwrapFence(body string) (inner string, ok bool) {
	lines := splitLines(body)
	from, to := 0, len(lines)-1
	for from < len(lines) && strings.TrimSpace(lines[from]) == "" {
		from++
	}
	for to > from && strings.TrimSpace(lines[to]) == "" {
		to--
	}
	if from >= to {
		return body, false
	}
	mark := fenceOpening(lines[from])
	if mark == "" || !fenceCloses(lines[to], mark) {
		return body, false
	}
	for _, l := range lines[from+1 : to] {
		if fenceCloses(l, mark) {
			return body, false
		}
	}
	return strings.Join(lines[from+1:to], ""), true
}

// fenceOpening returns the run of ` or ~ that opens a fence, or "".
func fenceOpening(line string) string {
	s := strings.TrimRight(line, " \t\r\n")
	t := strings.TrimLeft(s, " ")
	if len(s)-len(t) > 3 || t == "" || t[0] != '`' && t[0] != '~' {
		return ""
	}
	n := len(t) - len(strings.TrimLeft(t, t[:1]))
	if n < 3 || t[0] == '`' && strings.Contains(t[n:], "`") {
		return ""
	}
	return t[:n]
}

func fenceCloses(line, mark string) bool {
	m := fenceOpening(line)
	return m != "" && m[0] == mark[0] && len(m) >= len(mark) && strings.Trim(line, " \t\r\n") == m
}

// placeholderWords turn a comment with an ellipsis into a placeholder.
var placeholderWords = regexp.MustCompile(`(?i)\b(rest|unchanged|existing|remaining|same as before|omitted)\b`)

// commentOpeners and their ends; "" = the end of the line.
var commentMarks = [][2]string{
	{"//", ""}, {"#", ""}, {"--", ""}, {";", ""}, {"%", ""}, {"REM ", ""},
	{"/*", "*/"}, {"<!--", "-->"}, {"{/*", "*/}"}, {"{#", "#}"}, {"{{!", "}}"}, {"<%--", "--%>"}, {"(*", "*)"}, {"{-", "-}"},
}

// isPlaceholder reports a line that is only a comment, or only a parenthesis,
// holding an ellipsis and a word for what was left out. A bare ellipsis (Python,
// spread) is none.
func isPlaceholder(line string) bool {
	s := strings.TrimSpace(line)
	if len(s) < 7 || len(s) > 300 || !strings.Contains(s, "...") && !strings.Contains(s, "…") || !placeholderWords.MatchString(s) {
		return false
	}
	for _, m := range commentMarks {
		if strings.HasPrefix(s, m[0]) && (m[1] == "" || strings.HasSuffix(s, m[1])) {
			return true
		}
	}
	if inner, ok := strings.CutPrefix(s, "("); ok && strings.HasSuffix(inner, ")") {
		inner = strings.TrimSuffix(inner, ")")
		// (...rest) is a parameter
		return strings.ContainsAny(strings.TrimSpace(inner), " \t")
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		inner = strings.TrimSuffix(inner, "]")
		return len(strings.Fields(inner)) >= 3 && !strings.ContainsAny(inner, ",()[]")
	}
	return false
}

// newPlaceholder finds the first placeholder line of text that before does not
// hold; the line is 1-based, 0 = none.
func newPlaceholder(text, before string) (line int, what string) {
	if !strings.Contains(text, "...") && !strings.Contains(text, "…") {
		return 0, ""
	}
	var had map[string]bool
	for i, l := range splitLines(text) {
		if !isPlaceholder(l) {
			continue
		}
		if had == nil {
			had = map[string]bool{}
			for _, b := range splitLines(toLF(before)) {
				had[strings.TrimSpace(b)] = true
			}
		}
		if what := strings.TrimSpace(l); !had[what] {
			return i + 1, cutText(what, 80)
		}
	}
	return 0, ""
}

// linePrefix is what readers put before lines: "12 | ", "12: ", "12→", "12\t".
var linePrefix = regexp.MustCompile(`^[ \t]*[0-9]+(?: ?[|│:→]|\t) ?`)

// stripLineNumbers removes the prefixes, if every non-blank line has one.
func stripLineNumbers(text string) (stripped string, ok bool) {
	var b strings.Builder
	n := 0
	for _, l := range splitLines(text) {
		if strings.TrimSpace(l) == "" {
			b.WriteString(l)
			continue
		}
		p := linePrefix.FindString(l)
		if p == "" {
			return text, false
		}
		n++
		b.WriteString(l[len(p):])
	}
	return b.String(), n > 0
}
