package ledger

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Text is stored bytes. In JSON it is a string when it is valid UTF-8, else
// {"base64": "…"}.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("null"), nil
	}
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}
