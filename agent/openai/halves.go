package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Servers that cut texts by UTF-16 units or by bytes send one half of a character
// in one event and the other in the next: as two \u escapes, or as raw bytes. A
// half is kept as it is (of a pair: in the three bytes that UTF-8 would have if it
// knew surrogates) until the joiner has the other one.

// unquote decodes a JSON string and keeps halves of characters. b is known to be
// well-formed.
func unquote(b []byte) (string, error) {
	if utf8.Valid(b) && !bytes.Contains(b, []byte(`\ud`)) && !bytes.Contains(b, []byte(`\uD`)) {
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	}
	out := make([]byte, 0, len(b))
	for i := 1; i < len(b)-1; i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		i++
		switch b[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := unit(b[i+1:])
			i += 4
			if low := unit(after(b[i+1:], `\u`)); utf16.IsSurrogate(r) && utf16.DecodeRune(r, low) != utf8.RuneError {
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			out = appendUnit(out, r)
		default:
			out = append(out, b[i])
		}
	}
	return string(out), nil
}

// after is what follows a prefix, nil without it.
func after(b []byte, prefix string) []byte {
	rest, ok := bytes.CutPrefix(b, []byte(prefix))
	if !ok {
		return nil
	}
	return rest
}

// unit reads four hex digits; -1 when there are none.
func unit(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// appendUnit is utf8.AppendRune that keeps surrogates.
func appendUnit(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xed, 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(b, r)
}

// joiner joins the pieces of a text. The zero value is ready.
type joiner struct{ held string }

// add returns what of the text is whole. What can be no character becomes U+FFFD.
func (j *joiner) add(s string) string {
	if j.held == "" && utf8.ValidString(s) {
		return s
	}
	b := []byte(j.held + s)
	j.held = ""
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r != utf8.RuneError || size > 1 {
			out, b = append(out, b[:size]...), b[size:]
			continue
		}
		if high, ok := surrogate(b); ok {
			low, also := surrogate(b[3:])
			switch pair := utf16.DecodeRune(high, low); {
			case also && pair != utf8.RuneError:
				out, b = utf8.AppendRune(out, pair), b[6:]
				continue
			case high < 0xdc00 && len(b) < 6:
				j.held = string(b)
				return string(out)
			}
			out, b = utf8.AppendRune(out, utf8.RuneError), b[3:]
			continue
		}
		if !utf8.FullRune(b) {
			j.held = string(b)
			return string(out)
		}
		out, b = utf8.AppendRune(out, utf8.RuneError), b[1:]
	}
	return string(out)
}

// surrogate reads what appendUnit wrote.
func surrogate(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2] < 0x80 || b[2] > 0xbf {
		return -1, false
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), true
}
