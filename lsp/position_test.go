package lsp

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"go.lsp.dev/protocol"
)

func pos(line, char uint32) protocol.Position { return protocol.Position{Line: line, Character: char} }

func TestChooseEncoding(t *testing.T) {
	rows := []struct {
		listed string
		want   encoding
	}{
		{"", utf16Units},
		{"utf-16", utf16Units},
		{"utf-8 utf-16", utf16Units},
		{"utf-8 utf-32 utf-16", utf16Units},
		{"utf-8", utf8Units},
		{"utf-32 utf-8", utf32Units},
		{"utf-7 utf-8", utf8Units},
		{"utf-7", utf16Units},
	}
	for _, row := range rows {
		var listed []protocol.PositionEncodingKind
		for _, e := range strings.Fields(row.listed) {
			listed = append(listed, protocol.PositionEncodingKind(e))
		}
		if got := chooseEncoding(listed); got != row.want {
			t.Errorf("%q: %s, want %s", row.listed, got, row.want)
		}
	}
}

func TestOffset(t *testing.T) {
	const astral = "a := \"😀🏳️\" // old\n" // 2 + 2 + 1 units before the quote
	rows := []struct {
		name, text string
		enc        encoding
		at         protocol.Position
		want       int // -1: an error
	}{
		{"start", "ab", utf16Units, pos(0, 0), 0},
		{"end", "ab", utf16Units, pos(0, 2), 2},
		{"past the end of the line", "ab\ncd", utf16Units, pos(0, 99), 2},
		{"past the end, before crlf", "ab\r\ncd", utf16Units, pos(0, 3), 2},
		{"second line after crlf", "ab\r\ncd", utf16Units, pos(1, 1), 5},
		{"empty last line", "a\nb\n", utf16Units, pos(2, 0), 4},
		{"right after a text without final newline", "a\nb", utf16Units, pos(2, 0), 3},
		{"no such line", "a\nb", utf16Units, pos(2, 1), -1},
		{"far away", "a\nb", utf16Units, pos(999999, 0), -1},
		{"empty text", "", utf16Units, pos(0, 0), 0},
		{"lone cr is a character", "a\rb\nc", utf16Units, pos(1, 0), 4},
		{"astral utf-16", astral, utf16Units, pos(0, 16), 22},
		{"astral utf-32", astral, utf32Units, pos(0, 14), 22},
		{"astral utf-8", astral, utf8Units, pos(0, 22), 22},
		{"inside a surrogate pair", astral, utf16Units, pos(0, 7), -1},
		{"inside utf-8", astral, utf8Units, pos(0, 8), -1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := newText(row.text).offset(row.at, row.enc)
			if row.want < 0 {
				if !errors.Is(err, errPosition) {
					t.Fatalf("got %d, %v; want an error", got, err)
				}
				return
			}
			if err != nil || got != row.want {
				t.Fatalf("got %d, %v; want %d", got, err, row.want)
			}
		})
	}
}

func TestPosition(t *testing.T) {
	for _, row := range []struct {
		name, text string
		off        int
	}{
		{"between cr and lf", "a\r\nb", 2},
		{"inside a character", "é", 1},
		{"negative", "a", -1},
		{"past the end", "a", 2},
	} {
		if p, err := newText(row.text).position(row.off, utf16Units); !errors.Is(err, errPosition) {
			t.Errorf("%s: got %v, %v; want an error", row.name, p, err)
		}
	}
}

// naivePosition counts from the start of the text.
func naivePosition(s string, off int, enc encoding) protocol.Position {
	line := strings.Count(s[:off], "\n")
	before := s[strings.LastIndexByte(s[:off], '\n')+1 : off]
	n := 0
	for _, r := range before {
		switch enc {
		case utf16Units:
			n += len(utf16.Encode([]rune{r}))
		case utf8Units:
			n += len(string(r))
		default:
			n++
		}
	}
	return pos(uint32(line), uint32(n))
}

// FuzzTextReplace: after any edit the index says the same as one made anew, and
// positions and offsets are inverse.
func FuzzTextReplace(f *testing.F) {
	f.Add("a\nb\r\nc😀\n", 1, 3, "x\ny")
	f.Add(strings.Repeat("line\n", 3000), 7000, 9000, strings.Repeat("z\n", 5000))
	f.Add(strings.Repeat("x", 20000), 0, 0, "\n")
	f.Add("", 0, 0, "")
	f.Fuzz(func(t *testing.T, s string, start, end int, repl string) {
		s, repl = strings.ToValidUTF8(s, "?"), strings.ToValidUTF8(repl, "?")
		if start < 0 || end < start || end > len(s) {
			return
		}
		got := newText(s).replace(start, end, repl)
		want := s[:start] + repl + s[end:]
		if got.s != want {
			t.Fatalf("text %q, want %q", got.s, want)
		}
		for i, m := range got.marks {
			if m.off > len(want) || strings.Count(want[:m.off], "\n") != m.line || i > 0 && m.off <= got.marks[i-1].off {
				t.Fatalf("mark %d %+v is wrong", i, m)
			}
		}
		if got.lines() != strings.Count(want, "\n")+1 {
			t.Fatalf("%d lines", got.lines())
		}
		rng := rand.New(rand.NewPCG(1, uint64(len(want))))
		for range 20 {
			off := rng.IntN(len(want) + 1)
			if !got.onBoundary(off) {
				continue
			}
			for _, enc := range []encoding{utf16Units, utf8Units, utf32Units} {
				p, err := got.position(off, enc)
				if !strings.ContainsRune(want, 0xFFFD) && (err != nil || p != naivePosition(want, off, enc)) {
					t.Fatalf("%d: %v %v, want %v", off, p, err, naivePosition(want, off, enc))
				}
				back, err := got.offset(p, enc)
				if err != nil || back != off {
					t.Fatalf("%d -> %v -> %d %v", off, p, back, err)
				}
			}
		}
	})
}
