package agent

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScan follows a JSON text that arrives in pieces, cut anywhere. It knows
// when the value is complete, and hands on the strings that somebody wants,
// decoded, while they grow: half an escape or half a surrogate pair is held back.
// It does not check the syntax: what is complete is checked by a decoder.
type jsonScan struct {
	// begin is asked at the start of each string that is a value; true = its text
	// is wanted. where leads to it from the outside in.
	begin func(where []jsonStep) bool
	piece func(text string)
	end   func()

	stack    []jsonStep
	in       scanState
	key      []byte // of the object's member, while it is read
	isKey    bool
	wanted   bool
	escape   []byte // the bytes of an escape sequence so far, with its backslash
	high     rune   // first half of a surrogate pair, 0 = none
	complete bool
}

// jsonStep is a member of an object or an element of an array.
type jsonStep struct {
	array bool
	key   string // of an object
	index int    // of an array, from 0
	value bool   // of an object: the key has been read, a value is due
}

type scanState uint8

const (
	scanOutside scanState = iota
	scanString
	scanLiteral // number, true, false, null
)

// feed takes the next piece; what follows a complete value is ignored.
func (s *jsonScan) feed(text string) {
	for i := 0; i < len(text) && !s.complete; {
		switch s.in {
		case scanString:
			i += s.inString(text[i:])
		case scanLiteral:
			if strings.IndexByte(" \t\r\n,]}", text[i]) < 0 {
				i++
				continue
			}
			s.in = scanOutside
			s.valueEnds()
		default:
			s.outside(text[i])
			i++
		}
	}
}

func (s *jsonScan) outside(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n', ':':
	case ',':
		if n := len(s.stack); n > 0 {
			top := &s.stack[n-1]
			top.index++
			top.value = false
		}
	case '{', '[':
		s.stack = append(s.stack, jsonStep{array: c == '['})
	case '}', ']':
		if len(s.stack) > 0 {
			s.stack = s.stack[:len(s.stack)-1]
		}
		s.valueEnds()
	case '"':
		s.in = scanString
		n := len(s.stack)
		s.isKey = n > 0 && !s.stack[n-1].array && !s.stack[n-1].value
		s.key = s.key[:0]
		s.wanted = !s.isKey && s.begin != nil && s.begin(s.stack)
	default:
		s.in = scanLiteral
	}
}

func (s *jsonScan) valueEnds() { s.complete = len(s.stack) == 0 }

// inString takes bytes of a string and returns how many.
func (s *jsonScan) inString(text string) int {
	if len(s.escape) > 0 {
		return s.inEscape(text)
	}
	n := strings.IndexAny(text, `"\`)
	if n < 0 {
		s.emit(text)
		return len(text)
	}
	s.emit(text[:n])
	if text[n] == '\\' {
		s.escape = append(s.escape, '\\')
		return n + 1
	}
	s.loneHalf()
	s.in = scanOutside
	switch {
	case s.isKey:
		top := &s.stack[len(s.stack)-1]
		top.key, top.value = string(s.key), true
	default:
		if s.wanted {
			s.end()
		}
		s.valueEnds()
	}
	return n + 1
}

// inEscape takes one byte of an escape sequence.
func (s *jsonScan) inEscape(text string) int {
	s.escape = append(s.escape, text[0])
	if s.escape[1] == 'u' && len(s.escape) < 6 {
		return 1
	}
	seq := s.escape
	s.escape = s.escape[:0]
	if seq[1] != 'u' {
		if at := strings.IndexByte(`"\/bfnrt`, seq[1]); at >= 0 {
			s.emit("\"\\/\b\f\n\r\t"[at : at+1])
		}
		return 1
	}
	code, err := strconv.ParseUint(string(seq[2:]), 16, 32)
	if err != nil {
		code = utf8.RuneError
	}
	r := rune(code)
	switch {
	case s.high != 0:
		high := s.high
		s.high = 0
		if pair := utf16.DecodeRune(high, r); pair != utf8.RuneError {
			s.emit(string(pair))
			return 1
		}
		s.emit(string(utf8.RuneError))
		fallthrough
	case utf16.IsSurrogate(r):
		if utf16.IsSurrogate(r) && r < 0xdc00 {
			s.high = r
			return 1
		}
		s.emit(string(r))
	default:
		s.emit(string(r))
	}
	return 1
}

// loneHalf ends a surrogate pair whose second half did not come.
func (s *jsonScan) loneHalf() {
	if s.high != 0 {
		s.high = 0
		s.emit(string(utf8.RuneError))
	}
}

func (s *jsonScan) emit(text string) {
	if text == "" {
		return
	}
	s.loneHalf()
	switch {
	case s.isKey:
		s.key = append(s.key, text...)
	case s.wanted:
		s.piece(text)
	}
}
