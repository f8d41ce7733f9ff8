package lsp

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.lsp.dev/protocol"
)

// encoding is the unit in which the client counts characters in a line.
type encoding string

// The encodings of LSP 3.17.
const (
	utf16Units encoding = "utf-16"
	utf8Units  encoding = "utf-8"
	utf32Units encoding = "utf-32"
)

// errPosition marks positions that no document can have: they are errors, not
// guesses, because a wrong guess corrupts the user's text.
var errPosition = errors.New("invalid position")

// chooseEncoding picks utf-16 whenever the client lists it or lists nothing
// (Neovim warns when the servers of one buffer differ), else the first of
// utf-8 and utf-32 that it lists.
func chooseEncoding(listed []protocol.PositionEncodingKind) encoding {
	chosen := utf16Units
	for _, e := range listed {
		switch enc := encoding(e); enc {
		case utf16Units:
			return utf16Units
		case utf8Units, utf32Units:
			if chosen == utf16Units {
				chosen = enc
			}
		}
	}
	return chosen
}

// units is the width of r in the encoding.
func (e encoding) units(r rune, size int) int {
	switch e {
	case utf8Units:
		return size
	case utf32Units:
		return 1
	}
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// offset converts a client position to a byte offset. A character past the end
// of the line means the end of the line's content (LSP 3.17, Position), which
// excludes "\r\n"; the line right after the last one with character 0 means the
// end of the text, as gopls reads it. Everything else that does not exist, the
// middle of a character included, is an error.
func (t text) offset(p protocol.Position, enc encoding) (int, error) {
	start, ok := t.lineStart(int(p.Line))
	if !ok {
		if n := t.lines(); int(p.Line) == n && p.Character == 0 {
			return len(t.s), nil
		}
		return 0, fmt.Errorf("%w: line %d of a text of %d lines", errPosition, p.Line, t.lines())
	}
	line := t.s[start:t.lineEnd(start)]
	want, at := int(p.Character), 0
	for i := 0; i < len(line); {
		if at == want {
			return start + i, nil
		}
		r, size := rune(line[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(line[i:])
		}
		at += enc.units(r, size)
		if at > want {
			return 0, fmt.Errorf("%w: %d:%d (%s) is inside a character", errPosition, p.Line, p.Character, enc)
		}
		i += size
	}
	return start + len(line), nil
}

// position converts a byte offset to a client position. An offset inside a
// character, or between '\r' and '\n', has no position and is an error.
func (t text) position(off int, enc encoding) (protocol.Position, error) {
	if off < 0 || off > len(t.s) {
		return protocol.Position{}, fmt.Errorf("%w: offset %d of a text of %d bytes", errPosition, off, len(t.s))
	}
	if !t.onBoundary(off) {
		return protocol.Position{}, fmt.Errorf("%w: offset %d is inside a character or line break", errPosition, off)
	}
	line, start := t.lineAt(off)
	return protocol.Position{Line: uint32(line), Character: uint32(enc.width(t.s[start:off]))}, nil
}

// onBoundary reports whether a position can stand at the offset: not inside a
// UTF-8 sequence and not between '\r' and '\n'.
func (t text) onBoundary(off int) bool {
	if off <= 0 || off >= len(t.s) {
		return true
	}
	if t.s[off] == '\n' && t.s[off-1] == '\r' {
		return false
	}
	return utf8.RuneStart(t.s[off])
}

// width counts the units of s.
func (e encoding) width(s string) int {
	if e == utf8Units {
		return len(s)
	}
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n++
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		n += e.units(r, size)
		i += size
	}
	return n
}
