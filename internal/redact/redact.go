package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// minValue is the length from which a value is registered, in bytes: shorter
// ones would turn ordinary text into markers, and are no secrets.
const minValue = 6

// Redactor replaces secrets in text. It is safe for concurrent use; the zero
// value knows shapes only.
type Redactor struct {
	mu     sync.RWMutex // guards all below
	values []string     // all spellings, longest first
	marker string
}

// New registers values, the API key first of all. Empty ones are left out; the
// error names those that are too short to be told from ordinary text.
func New(values ...string) (*Redactor, error) {
	r := &Redactor{}
	return r, r.Add(values...)
}

// Add registers further values.
func (r *Redactor) Add(values ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	short := 0
	for _, v := range values {
		v = strings.TrimSpace(v)
		switch {
		case v == "":
		case len(v) < minValue:
			short++
		default:
			r.values = append(r.values, spellings(v)...)
		}
	}
	slices.SortFunc(r.values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	r.values = slices.Compact(r.values)
	r.marker = chooseMarker(r.values)
	if short > 0 {
		return fmt.Errorf("%d of the secrets have fewer than %d characters and cannot be kept out of logs", short, minValue)
	}
	return nil
}

// spellings lists how encoders write the value. The lines of a value of several
// lines are registered by themselves as well.
func spellings(v string) []string {
	var out []string
	add := func(s string) {
		if len(s) >= minValue {
			out = append(out, s)
		}
	}
	add(v)
	for _, html := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) == nil {
			add(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`))
		}
	}
	q := strconv.Quote(v)
	add(q[1 : len(q)-1])
	add(url.QueryEscape(v))
	add(url.PathEscape(v))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		add(strings.TrimRight(enc.EncodeToString([]byte(v)), "="))
	}
	for line := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\n' || r == '\r' }) {
		add(line)
	}
	return out
}

// marks may stand for a secret. One is chosen whose ends occur in no value, so
// that no value can arise across the edge of a mark, and that holds no value.
var marks = []string{"[redacted]", "<redacted>", "{redacted}", "(redacted)", "‹redacted›", "[hidden]", "<hidden>", "‹hidden›", "|*****|", "█████"}

// chooseMarker returns "" when every mark meets a value.
func chooseMarker(values []string) string {
	for _, m := range marks {
		first, last := m[0], m[len(m)-1]
		if !slices.ContainsFunc(values, func(v string) bool {
			return strings.IndexByte(v, first) >= 0 || strings.IndexByte(v, last) >= 0 || strings.Contains(m, v)
		}) {
			return m
		}
	}
	return ""
}

// String returns s without secrets. Its time is linear in the length of s.
func (r *Redactor) String(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out, _ := r.text(s, false)
	return out
}

// Values returns s without registered values; shapes stay. It is for text in
// which a shape is more likely to be the subject than a secret: diffs, answers.
func (r *Redactor) Values(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.values) == 0 {
		return s
	}
	if r.marker == "" {
		return ""
	}
	return r.redactValues(s)
}

// Holds reports whether a registered value is in one of the texts.
func (r *Redactor) Holds(texts ...string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, v := range r.values {
		for _, s := range texts {
			if strings.Contains(s, v) {
				return true
			}
		}
	}
	return false
}

// Tail is how many bytes at the end of s may be the beginning of a registered
// value: hold them back until more comes.
func (r *Redactor) Tail(s string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	most := 0
	for _, v := range r.values {
		for n := min(len(v)-1, len(s)); n > most; n-- {
			if strings.HasPrefix(v, s[len(s)-n:]) {
				most = n
				break
			}
		}
	}
	return most
}

// JSON returns a JSON text without registered values, and without shapes in its
// strings. What is no JSON is redacted as text.
func (r *Redactor) JSON(raw []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return []byte(r.String(string(raw)))
	}
	changed := false
	v = r.walk(v, &changed)
	if !changed {
		return validJSON(r.Values(string(raw)))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null")
	}
	return validJSON(r.Values(strings.TrimSuffix(b.String(), "\n")))
}

// validJSON makes a string of what is no JSON any more: a value stood in a number.
func validJSON(s string) []byte {
	if !json.Valid([]byte(s)) {
		if quoted, err := json.Marshal(s); err == nil {
			return quoted
		}
	}
	return []byte(s)
}

func (r *Redactor) walk(v any, changed *bool) any {
	switch x := v.(type) {
	case string:
		s := r.String(x)
		*changed = *changed || s != x
		return s
	case []any:
		for i := range x {
			x[i] = r.walk(x[i], changed)
		}
	case map[string]any:
		for k, e := range x {
			x[k] = r.walk(e, changed)
		}
	}
	return v
}

// text redacts whole lines. inKey says that a private key began before them,
// and after them.
//
// Where no mark is safe beside the values, nothing is let through.
func (r *Redactor) text(s string, inKey bool) (string, bool) {
	if len(r.values) > 0 && r.marker == "" {
		return "", false
	}
	s = r.redactValues(s)
	s, inKey = redactKeys(s, inKey, r.mark())
	s = redactShapes(s, r.mark())
	// A shape may have been cut out of something that now reads as a value.
	return r.redactValues(s), inKey
}

// mark stands for a secret. Without values any will do.
func (r *Redactor) mark() string {
	if len(r.values) == 0 {
		return marks[0]
	}
	return r.marker
}

// redactValues replaces every registered value, overlapping ones as one.
func (r *Redactor) redactValues(s string) string {
	spans := r.spans(s)
	if len(spans) == 0 {
		return s
	}
	return replaceSpans(s, spans, r.marker)
}

type span struct{ start, end int }

// spans finds all occurrences of all values, merged and sorted.
func (r *Redactor) spans(s string) []span {
	var all []span
	for _, v := range r.values {
		for at := 0; ; {
			i := strings.Index(s[at:], v)
			if i < 0 {
				break
			}
			all = append(all, span{at + i, at + i + len(v)})
			at += i + 1
		}
	}
	return merge(all)
}

func merge(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return a.start - b.start })
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

func replaceSpans(s string, spans []span, mark string) string {
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.start])
		b.WriteString(mark)
		at = sp.end
	}
	b.WriteString(s[at:])
	return b.String()
}
