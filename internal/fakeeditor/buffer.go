package fakeeditor

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Position is a client position: line from 0, character in units of the
// negotiated encoding.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a range of positions.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Buffer is one open document.
type Buffer struct {
	URI      string
	Path     string
	Text     string
	Version  int32
	ReadOnly bool
	Dirty    bool
	reported string // the text as the server knows it
	pending  []contentChange
	timer    func() // stops the wait for the report
	edits    int    // how often it changed
}

type contentChange struct {
	Range *Range `json:"range,omitempty"`
	Text  string `json:"text"`
}

// offset finds the byte offset of a position by walking over the characters;
// a character past the end of the line means the end of the line.
func offset(text string, p Position, enc string) (int, error) {
	lines := strings.SplitAfter(text, "\n")
	if p.Line == len(lines) && p.Character == 0 {
		return len(text), nil
	}
	if p.Line > len(lines) {
		return 0, fmt.Errorf("line %d of %d", p.Line, len(lines))
	}
	at := 0
	for _, l := range lines[:p.Line] {
		at += len(l)
	}
	line := strings.TrimRight(lines[p.Line], "\r\n")
	units := 0
	for i, r := range line {
		if units == p.Character {
			return at + i, nil
		}
		if units > p.Character {
			return 0, fmt.Errorf("%d:%d is inside a character", p.Line, p.Character)
		}
		units += width(r, enc)
	}
	if p.Character > units {
		return 0, fmt.Errorf("%d:%d is past the end of the line (%d)", p.Line, p.Character, units)
	}
	return at + len(line), nil
}

// position is the inverse of offset.
func position(text string, off int, enc string) Position {
	p := Position{Line: strings.Count(text[:off], "\n")}
	for _, r := range text[strings.LastIndexByte(text[:off], '\n')+1 : off] {
		p.Character += width(r, enc)
	}
	return p
}

func width(r rune, enc string) int {
	switch enc {
	case "utf-8":
		return len(string(r))
	case "utf-32":
		return 1
	}
	return len(utf16.Encode([]rune{r}))
}

// change replaces bytes of the buffer and notes the change for the next report.
func (b *Buffer) change(p Profile, enc string, start, end int, text string) {
	b.pending = append(b.pending, contentChange{
		Range: &Range{position(b.Text, start, enc), position(b.Text, end, enc)}, Text: text,
	})
	b.Text = b.Text[:start] + text + b.Text[end:]
	if p.AddEOL && b.Text != "" && !strings.HasSuffix(b.Text, "\n") {
		n := len(b.Text)
		at := position(b.Text, n, enc)
		b.pending = append(b.pending, contentChange{Range: &Range{at, at}, Text: "\n"})
		b.Text += "\n"
	}
	b.Version++
	if b.edits == 0 {
		b.Version += p.FirstJump
	}
	b.edits++
	b.Dirty = true
}

// take returns the changes to report, in the form the profile uses.
func (b *Buffer) take(p Profile, enc string) []contentChange {
	out := b.pending
	switch {
	case p.Whole:
		out = []contentChange{{Text: b.Text}}
	case p.Merged:
		i, j := 0, 0
		for i < len(b.reported) && i < len(b.Text) && b.reported[i] == b.Text[i] {
			i++
		}
		for i > 0 && (!boundary(b.reported, i) || !boundary(b.Text, i)) {
			i--
		}
		for j < len(b.reported)-i && j < len(b.Text)-i && b.reported[len(b.reported)-1-j] == b.Text[len(b.Text)-1-j] {
			j++
		}
		for j > 0 && (!boundary(b.reported, len(b.reported)-j) || !boundary(b.Text, len(b.Text)-j)) {
			j--
		}
		r := Range{position(b.reported, i, enc), position(b.reported, len(b.reported)-j, enc)}
		out = []contentChange{{Range: &r, Text: b.Text[i : len(b.Text)-j]}}
	}
	b.pending, b.reported = nil, b.Text
	return out
}

// boundary reports whether a position can stand at the offset.
func boundary(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	return s[i]&0xC0 != 0x80 && !(s[i] == '\n' && s[i-1] == '\r')
}
