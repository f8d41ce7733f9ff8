package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scanAll feeds the pieces and renders what was handed on, joined by place.
func scanAll(pieces ...string) (strs map[string]string, complete bool) {
	strs = map[string]string{}
	where := ""
	s := &jsonScan{}
	s.begin = func(steps []jsonStep) bool {
		var b strings.Builder
		for _, st := range steps {
			if st.array {
				fmt.Fprintf(&b, "/%d", st.index)
			} else {
				b.WriteString("/" + st.key)
			}
		}
		where = b.String()
		strs[where] = ""
		return true
	}
	s.piece = func(text string) { strs[where] += text }
	s.end = func() { strs[where] += "$" }
	for _, p := range pieces {
		s.feed(p)
	}
	return strs, s.complete
}

var scanTexts = []struct {
	name, text string
	want       map[string]string
}{
	{"write", `{"path":"a.txt","content":"x\ny"}`, map[string]string{"/path": "a.txt$", "/content": "x\ny$"}},
	{"edits", `{"path":"a","edits":[{"old":"1","new":"2"}, {"old":"3","new":""}],"all":true,"line":12}`,
		map[string]string{"/path": "a$", "/edits/0/old": "1$", "/edits/0/new": "2$", "/edits/1/old": "3$", "/edits/1/new": "$"}},
	{"escapes", `{"q":"\ud83d\ude00 \n\u00e9\"\\\/\t"}`, map[string]string{"/q": "😀 \né\"\\/\t$"}},
	{"lone halves", `{"q":"\ud83dx\ude00\ud83d\ud83d\ude00\ud83d"}`, map[string]string{"/q": "\ufffdx\ufffd\ufffd😀\ufffd$"}},
	{"escaped key", `{"\u0071":"v"}`, map[string]string{"/q": "v$"}},
	{"braces in strings", `{"q":"}]{[\"}"}`, map[string]string{"/q": "}]{[\"}$"}},
	{"nothing", `{}`, map[string]string{}},
	{"a string", ` "{\"q\":1}" `, map[string]string{"": "{\"q\":1}$"}},
	{"literals", `[1,-2e3,true,null,"s"]`, map[string]string{"/4": "s$"}},
	{"blanks", "{ \"a\" : \n\"b\" , \"c\":[ ] }", map[string]string{"/a": "b$"}},
}

// TestJSONScan: any cut of the same text gives the same strings, and the text is
// complete exactly at its last byte.
func TestJSONScan(t *testing.T) {
	for _, tt := range scanTexts {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(tt.text)))
			got, complete := scanAll(tt.text)
			require.True(t, complete)
			require.Equal(t, tt.want, got)
			for cut := range len(tt.text) {
				got, complete := scanAll(tt.text[:cut], tt.text[cut:])
				require.True(t, complete)
				require.Equal(t, tt.want, got, "cut at %d", cut)
				_, early := scanAll(tt.text[:cut])
				require.Equal(t, json.Valid([]byte(tt.text[:cut])), early, "complete at %d", cut)
			}
			got, _ = scanAll(strings.Split(tt.text, "")...)
			require.Equal(t, tt.want, got, "byte by byte")
		})
	}
}

func FuzzJSONScan(f *testing.F) {
	for _, tt := range scanTexts {
		f.Add(tt.text, 3)
	}
	f.Add(`{"a":"\ud8`, 5)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		if cut < 0 || cut > len(text) {
			cut = len(text) / 2
		}
		whole, complete := scanAll(text)
		parts, same := scanAll(text[:cut], text[cut:])
		require.Equal(t, whole, parts)
		require.Equal(t, complete, same)
		var v map[string]any
		if json.Unmarshal([]byte(text), &v) == nil && v != nil {
			require.True(t, complete, "a valid object is complete")
		}
	})
}
