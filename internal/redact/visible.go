package redact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes every character visible that hides itself or steers what is
// around it: control characters become their pictures (ESC is ␛), direction
// overrides, tag characters, zero-width and blank look-alike characters their
// number (<U+202E>). Line breaks and tabs stay, and a carriage return before a
// line break is dropped. Joiners stay between letters or emoji that need them.
//
// Call it on everything that a person reads before they agree to something, and
// that did not come from them: the target, rule and diff of an approval, command
// lines, previews, titles of commands and tools. Never on what is written to
// files or sent to the model.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hides) && utf8.ValidString(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case !hides(r) || joins(runes, i):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// VisibleLine is Visible for what must stay on one line: names, paths, titles.
// Line breaks, tabs and joiners are shown too.
func VisibleLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hides(r) || r == '\n' || r == '\t' }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case hides(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hides reports characters that do not show, or change how others show.
func hides(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	}
	switch r {
	case 0xad, // soft hyphen
		0x34f,          // combining grapheme joiner
		0x2028, 0x2029, // line and paragraph separator
		0x115f, 0x1160, 0x3164, 0xffa0, // blank letters of Hangul
		0x17b4, 0x17b5, // invisible vowels of Khmer
		0x2800,                         // blank of Braille
		0x180b, 0x180c, 0x180d, 0x180f, // Mongolian variation selectors
		0xfffc: // object replacement
		return true
	}
	switch {
	case unicode.Is(unicode.Cf, r): // bidi, zero width, tags, joiners
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors can carry text
		return true
	}
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// joins reports whether the hidden character at i does its honest work: a joiner
// between letters or symbols, a single variation selector behind a symbol.
func joins(runes []rune, i int) bool {
	if i == 0 {
		return false
	}
	before := runes[i-1]
	switch r := runes[i]; {
	case r == 0x200c || r == 0x200d:
		if i+1 == len(runes) {
			return false
		}
		after := runes[i+1]
		return shows(before) && before >= 0x300 && shows(after) && after >= 0x300 || before == 0xfe0f && shows(after)
	case r == 0xfe0e || r == 0xfe0f:
		return unicode.Is(unicode.So, before) || unicode.Is(unicode.Sm, before) || unicode.Is(unicode.Po, before) || unicode.IsDigit(before) || before == 0x20e3
	}
	return false
}

// shows reports letters, marks and symbols.
func shows(r rune) bool {
	return !hides(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsSymbol(r))
}
