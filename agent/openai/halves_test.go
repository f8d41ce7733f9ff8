package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzHalves: a JSON string decodes to what encoding/json makes of it, and a text
// that is cut anywhere between two events, into halves of characters too, is the
// same text again.
func FuzzHalves(f *testing.F) {
	for _, s := range []string{`"a\ud83d\ude00b"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83dx"`, "\"\xc3\"", "\"\xed\xa0\xbd\"", `"\u00e9\n\"\\\/"`, `"\uD83D\u0041"`, "\"\xf0\x9f\x98\x80\""} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		var want string
		if json.Unmarshal([]byte(s), &want) != nil || len(s) == 0 || s[0] != '"' {
			return
		}
		got, err := unquote([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		var whole joiner
		text := whole.add(got) + strings.Repeat("\ufffd", utf8.RuneCountInString(whole.held))
		if utf8.ValidString(s) && !strings.Contains(s, `\`) && text != want {
			t.Fatalf("%q is %q, want %q", s, text, want)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q is not UTF-8", text)
		}
		if cut < 0 || cut > len(got) {
			return
		}
		var parts joiner
		if again := parts.add(got[:cut]) + parts.add(got[cut:]); again != strings.TrimSuffix(text, strings.Repeat("\ufffd", utf8.RuneCountInString(whole.held))) || parts.held != whole.held {
			t.Fatalf("cut at %d: %q, want %q", cut, again, text)
		}
	})
}
