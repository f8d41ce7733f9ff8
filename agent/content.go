package agent

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"thinkflow/parser"
	"thinkflow/workspace"
)

// Content is what a command itself carries, as the ledger keeps it.
type Content struct {
	Body  string        `json:"body,omitempty"`
	Pairs []parser.Pair `json:"pairs,omitempty"`
}

// Forms of stored content: the first byte.
const (
	contentBody    = 'b' // the body as it is
	contentJSON    = 'j' // Content as JSON
	contentDeflate = 'z' // one of the other two, deflated, by older versions
	contentS2      = 's' // one of the first two, packed with S2 (see workspace.Undo.Encode)
	contentStaged  = 'p' // of a proposal: length and bytes of one of the others, then the change itself
)

// encodeContent is nil for a command that carries nothing.
func encodeContent(c *parser.Command) []byte {
	var b []byte
	switch {
	case len(c.Pairs) > 0:
		raw, err := json.Marshal(Content{Pairs: c.Pairs})
		if err != nil {
			return nil // strings cannot fail
		}
		b = append([]byte{contentJSON}, raw...)
	case c.Body != "":
		b = append([]byte{contentBody}, c.Body...)
	default:
		return nil
	}
	if len(b) < workspace.PackFrom {
		return b
	}
	z := make([]byte, 1+max(0, s2.MaxEncodedLen(len(b))))
	z[0] = contentS2
	if n := len(s2.Encode(z[1:], b)); n > 0 && n < len(b) {
		return z[:1+n]
	}
	return b
}

// encodeStaged keeps with what a command carries the change that is proposed, so
// that it can be accepted later.
func encodeStaged(content, redo []byte) []byte {
	b := binary.AppendUvarint([]byte{contentStaged}, uint64(len(content)))
	return append(append(b, content...), redo...)
}

// splitStaged takes a stored proposal apart. Earlier versions stored the change
// alone.
func splitStaged(data []byte) (content, redo []byte, err error) {
	if len(data) == 0 || data[0] != contentStaged {
		return nil, data, nil
	}
	n, size := binary.Uvarint(data[1:])
	if size <= 0 || n > uint64(len(data)-1-size) {
		return nil, nil, errors.New("the content is damaged")
	}
	rest := data[1+size:]
	return rest[:n], rest[n:], nil
}

// contentOf is the content of a command that had no effect. That of a file that
// may hold secrets is not kept: nothing would purge it.
func (r *run) contentOf(c *parser.Command) []byte {
	if t, err := r.e.ws.Resolve(c.Path, workspace.AccessRead); c.Path != "" && (err != nil || t.Secret) {
		return nil
	}
	return r.keepable(c)
}

// keepable is the content of a command, unless it holds a key.
func (r *run) keepable(c *parser.Command) []byte {
	if r.e.redact.Holds(append(pairTexts(c.Pairs), c.Body)...) {
		return nil
	}
	return encodeContent(c)
}

// DecodeContent reads the content of a command as the ledger has it.
func DecodeContent(data []byte) (Content, error) {
	var c Content
	if len(data) == 0 {
		return c, nil
	}
	if data[0] < ' ' { // a proposal of an earlier version: the change alone
		return c, nil
	}
	switch data[0] {
	case contentDeflate, contentS2:
		raw, err := unpackContent(data)
		if err != nil || len(raw) == 0 || raw[0] == contentDeflate || raw[0] == contentS2 {
			return c, errors.New("the content is damaged")
		}
		return DecodeContent(raw)
	case contentBody:
		c.Body = string(data[1:])
		return c, nil
	case contentStaged:
		content, _, err := splitStaged(data)
		if err != nil || len(content) > 0 && content[0] == contentStaged {
			return c, errors.New("the content is damaged")
		}
		return DecodeContent(content)
	case contentJSON:
		return c, json.Unmarshal(data[1:], &c)
	}
	return c, errors.New("the content has an unknown form")
}

func unpackContent(data []byte) ([]byte, error) {
	if data[0] == contentDeflate {
		return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data[1:])), maxUnpacked))
	}
	if n, err := s2.DecodedLen(data[1:]); err != nil || n > maxUnpacked {
		return nil, errors.Join(err, errors.New("it cannot be unpacked"))
	}
	return s2.Decode(nil, data[1:])
}

// summary describes what a command carries in a few words.
func summary(c *parser.Command) string {
	switch {
	case len(c.Pairs) > 0:
		return fmt.Sprintf("%d pairs, %d bytes", len(c.Pairs), pairBytes(c.Pairs))
	case c.Body != "":
		return fmt.Sprintf("%d bytes", len(c.Body))
	}
	return ""
}

// contentHash identifies what is asked for: what was approved is what runs.
func contentHash(c *parser.Command, targets []workspace.Target) string {
	h := sha256.New()
	put := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	for _, s := range []string{string(c.Name), c.Path, c.Dest, c.Cmd, c.Body, fmt.Sprint(c.All, c.Line, c.Empty)} {
		put(s)
	}
	for _, p := range c.Pairs {
		put(p.Old)
		put(p.New)
	}
	for _, t := range targets {
		put(t.Abs)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// signature tells identical failing calls apart from others: ids do not count.
func signature(c *parser.Command) string { return contentHash(c, nil) }
