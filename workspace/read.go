package workspace

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultReadBytes bounds what one read returns, in bytes.
const DefaultReadBytes = 64 << 10

// ReadRequest asks for a part of a file. Line (1-based) and Lines select whole
// lines; Byte (from 0) and Bytes select bytes, and win when Bytes > 0 or
// Byte > 0; neither means from the start. MaxBytes bounds the text;
// 0 = DefaultReadBytes.
type ReadRequest struct {
	Path        string
	Line, Lines int
	Byte, Bytes int
	MaxBytes    int
	// AllowSecret: a person agreed that a secret file is read.
	AllowSecret bool
}

// ReadResult is a part of a file, as it stands there, without line numbers (they
// would be quoted back); a byte order mark is left out.
type ReadResult struct {
	Target Target
	// Header is one line that says what the text is: "a.go: lines 1-40 of 200".
	Header     string
	Text       string
	StartLine  int // 1-based
	EndLine    int // the last line of which Text holds something
	TotalLines int
	StartByte  int
	EndByte    int // exclusive
	TotalBytes int
	Truncated  bool   // MaxBytes cut it
	Hash       string // of the whole text
	Open       bool   // from the editor's buffer
	Version    int32
}

// Read reads a part of a file, from the open buffer if there is one (unsaved text
// included). Errors are *Refusal.
func (w *Workspace) Read(ctx context.Context, r ReadRequest) (ReadResult, error) {
	if err := ctx.Err(); err != nil {
		return ReadResult{}, err
	}
	t, err := w.Resolve(r.Path, AccessRead)
	if err != nil {
		return ReadResult{}, err
	}
	if ref := w.secretRefusal(t, Op{AllowSecret: r.AllowSecret}); ref != nil {
		return ReadResult{}, ref
	}
	s, err := w.Snapshot(t)
	if err != nil {
		return ReadResult{}, err
	}
	if !s.Exists {
		return ReadResult{}, w.missing(t, "there is nothing to read")
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = DefaultReadBytes
	}
	res := ReadResult{Target: t, TotalBytes: len(s.Text), TotalLines: countLines(s.Text), Hash: s.Hash, Open: s.Open, Version: s.Version}
	if r.Byte > 0 || r.Bytes > 0 {
		return res, res.bytes(s.Text, r)
	}
	return res, res.lines(s.Text, r, s.Open && s.Dirty)
}

// bytes cuts a range of bytes, moved to character boundaries.
func (res *ReadResult) bytes(text string, r ReadRequest) error {
	if r.Byte >= len(text) && r.Byte > 0 || r.Byte < 0 || r.Bytes < 0 {
		return refuse(CodeInvalid, res.Target.Display, "byte %d is outside the file, which has %d bytes", r.Byte, len(text))
	}
	start, end := r.Byte, len(text)
	if r.Bytes > 0 && r.Bytes < end-start {
		end = start + r.Bytes
	}
	if end-start > r.MaxBytes {
		end = start + r.MaxBytes
		res.Truncated = true
	}
	for start < end && !utf8.RuneStart(text[start]) {
		start++
	}
	for end > start && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	res.set(text, start, end)
	res.Header = fmt.Sprintf("%s: bytes %d to %d of %d, from line %d", res.Target.Display, start, max(start, end-1), len(text), res.StartLine)
	if res.Truncated {
		res.Header += fmt.Sprintf("; truncated, continue with byte %d", end)
	}
	return nil
}

// lines cuts a range of lines, whole ones as long as they fit.
func (res *ReadResult) lines(text string, r ReadRequest, unsaved bool) error {
	from := max(r.Line, 1)
	if r.Line < 0 || r.Lines < 0 || from > max(1, res.TotalLines) {
		return refuse(CodeInvalid, res.Target.Display, "line %d is outside the file, which has %d lines", r.Line, res.TotalLines)
	}
	start := lineOffset(text, 0, from-1)
	if start == 0 && strings.HasPrefix(text, bom) {
		start = len(bom)
	}
	end := len(text)
	if r.Lines > 0 {
		end = lineOffset(text, start, r.Lines)
	}
	cut := false
	if end-start > r.MaxBytes {
		res.Truncated = true
		end = start + r.MaxBytes
		if i := strings.LastIndexByte(text[start:end], '\n'); i >= 0 {
			end = start + i + 1
		} else {
			cut = true
			for end > start && !utf8.RuneStart(text[end]) {
				end--
			}
		}
	}
	res.set(text, start, end)
	name := res.Target.Display
	if unsaved {
		name += " (unsaved text in the editor)"
	}
	switch {
	case text == "" || text == bom:
		res.Header = name + ": empty file"
	case cut:
		res.Header = fmt.Sprintf("%s: truncated: bytes %d to %d of %d; line %d is cut; continue with a byte range from %d", name, start, end-1, len(text), res.EndLine, end)
	case res.Truncated:
		res.Header = fmt.Sprintf("%s: lines %d-%d of %d, truncated: bytes %d to %d of %d; continue with line %d", name, res.StartLine, res.EndLine, res.TotalLines, start, end-1, len(text), res.EndLine+1)
	default:
		res.Header = fmt.Sprintf("%s: lines %d-%d of %d", name, res.StartLine, res.EndLine, res.TotalLines)
	}
	return nil
}

func (res *ReadResult) set(text string, start, end int) {
	res.StartByte, res.EndByte = start, end
	res.Text = text[start:end]
	res.StartLine = lineAt(text, start)
	res.EndLine = res.StartLine + max(0, countLines(res.Text)-1)
}

// lineOffset is the offset n lines behind off.
func lineOffset(text string, off, n int) int {
	for ; n > 0; n-- {
		i := strings.IndexByte(text[off:], '\n')
		if i < 0 {
			return len(text)
		}
		off += i + 1
	}
	return off
}
