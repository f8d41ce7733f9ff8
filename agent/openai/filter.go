package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Marks that the filter puts before a payload, so that the library passes every
// event through untouched and the stream knows errors from data.
const (
	markData  = 'd'
	markError = 'e'
)

// errNotStream: the body is neither events nor JSON. The text is an excerpt.
type errNotStream struct{ excerpt string }

func (e *errNotStream) Error() string { return "the answer is no event stream: " + e.excerpt }

// errTooLong: one event is over the limit.
type errTooLong struct{ limit int }

func (e *errTooLong) Error() string {
	return fmt.Sprintf("one event of the answer is longer than %d bytes", e.limit)
}

// filter reads server-sent events (WHATWG HTML, section 9.2) and gives one line
// per data event: "data: " + mark + payload + "\n", or "data: [DONE]\n". A JSON
// document in place of events counts as one event. A Read returns bytes of one
// event at most, so that nothing waits behind a line that was already complete.
//
// An event whose first data line is a whole JSON value is given out at once;
// strictly it would last until the next blank line, for which some servers let
// one wait. Any other event is joined until that blank line.
type filter struct {
	src io.Reader
	max int // bytes

	buf     []byte
	r, w    int // unread part of buf
	scanned int // no line end in buf[r:scanned]
	srcErr  error
	skipLF  bool // the last line ended in CR
	begun   bool // the byte order mark was dealt with

	data    []byte // joined data lines of the open event
	hasData bool
	isError bool   // the open event is named error
	doc     []byte // JSON document being collected
	events  int
	junk    []byte // beginning of what is neither events nor JSON

	out  []byte // to be read
	pos  int
	done bool // [DONE] was given out
}

func newFilter(src io.Reader, max int) *filter { return &filter{src: src, max: max} }

// maxJunk bounds, in bytes, what is kept to show of a body that is no stream.
const maxJunk = 4096

// Read implements io.Reader. A body that ends inside an event is an
// io.ErrUnexpectedEOF.
func (f *filter) Read(p []byte) (int, error) {
	for f.pos == len(f.out) {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.out[f.pos:])
	f.pos += n
	return n, nil
}

// next reads lines until an event is complete.
func (f *filter) next() error {
	for {
		line, err := f.readLine()
		if err != nil {
			return f.end(err)
		}
		if f.line(line) {
			return nil
		}
		if len(f.data) > f.max || len(f.doc) > f.max {
			return &errTooLong{f.max}
		}
		if f.events == 0 && len(f.junk) > 0 && f.junk[0] == '<' && len(f.junk) >= maxJunk {
			return &errNotStream{string(f.junk)}
		}
	}
}

// line takes one line; true when it completed an event.
func (f *filter) line(line []byte) bool {
	if f.doc != nil {
		f.doc = append(append(f.doc, ' '), line...)
		if len(line) > 0 && line[0] == '}' && json.Valid(f.doc) {
			f.give(f.doc)
			f.doc = nil
			return true
		}
		return false
	}
	if len(line) == 0 {
		complete := f.hasData && len(bytes.TrimSpace(f.data)) > 0
		if complete {
			f.give(f.data)
		}
		f.data, f.hasData, f.isError = f.data[:0], false, false
		return complete
	}
	field, value, colon := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(field) == 0 && colon: // comment
	case string(field) == "data":
		return f.dataLine(value)
	case string(field) == "event":
		f.isError = string(bytes.TrimSpace(value)) == "error"
	case string(field) == "id", string(field) == "retry":
	case string(field) == "error" && len(value) > 0: // llama.cpp, until it learnt SSE
		f.isError = true
		f.give(value)
		return true
	case line[0] == '{':
		if json.Valid(line) {
			f.give(line)
			return true
		}
		f.doc = append(make([]byte, 0, 2*len(line)), line...)
	default:
		if room := maxJunk - len(f.junk); room > 0 {
			f.junk = append(append(f.junk, line[:min(len(line), room)]...), ' ')
		}
	}
	return false
}

func (f *filter) dataLine(value []byte) bool {
	if f.hasData {
		f.data = append(append(f.data, ' '), value...)
		return false
	}
	if v := bytes.TrimSpace(value); isDone(v) || len(v) > 0 && v[0] == '{' && v[len(v)-1] == '}' && json.Valid(v) {
		f.give(v)
		return true
	}
	f.data, f.hasData = append(f.data[:0], value...), true
	return false
}

// isDone tells whether this ends the answer, however it is written.
func isDone(payload []byte) bool {
	return bytes.EqualFold(bytes.Trim(payload, `"`), []byte("[DONE]"))
}

// give makes the payload the next output.
func (f *filter) give(payload []byte) {
	payload = bytes.TrimSpace(payload)
	f.events++
	f.pos = 0
	f.out = append(f.out[:0], "data: "...)
	if isDone(payload) && !f.isError {
		f.done = true
		payload = []byte("[DONE]")
	} else if f.isError {
		f.out = append(f.out, markError)
	} else {
		f.out = append(f.out, markData)
	}
	f.out = append(append(f.out, payload...), '\n')
}

// end settles what is open when the source ended with err.
func (f *filter) end(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	open := bytes.TrimSpace(f.data)
	if !f.hasData {
		open = bytes.TrimSpace(f.doc)
	}
	f.data, f.doc, f.hasData = nil, nil, false
	switch {
	case len(open) > 0 && (json.Valid(open) || f.isError):
		f.give(open)
		f.isError = false
		return nil
	case len(open) > 0:
		return io.ErrUnexpectedEOF
	case f.events == 0 && len(f.junk) > 0:
		return &errNotStream{string(f.junk)}
	}
	return io.EOF
}

// readLine returns the next line without its end (LF, CR LF or CR). It is valid
// until the next call. A last line without an end is a line.
func (f *filter) readLine() ([]byte, error) {
	for {
		if f.skipLF && f.r < f.w {
			f.skipLF = false
			if f.buf[f.r] == '\n' {
				f.r++
			}
		}
		if !f.begun && f.dropMark() {
			f.begun = true
		}
		if f.begun {
			f.scanned = max(f.scanned, f.r)
			if i := lineEnd(f.buf[f.scanned:f.w]); i >= 0 {
				end := f.scanned + i
				line := f.buf[f.r:end]
				f.skipLF = f.buf[end] == '\r'
				f.r = end + 1
				f.scanned = f.r
				return line, nil
			}
			f.scanned = f.w
		}
		if f.w-f.r > f.max {
			return nil, &errTooLong{f.max}
		}
		if f.srcErr != nil {
			if f.r < f.w && errors.Is(f.srcErr, io.EOF) {
				line := f.buf[f.r:f.w]
				f.r = f.w
				return line, nil
			}
			return nil, f.srcErr
		}
		f.fill()
	}
}

// dropMark skips a byte order mark; false when more bytes are needed to tell.
func (f *filter) dropMark() bool {
	const mark = "\xef\xbb\xbf"
	have := f.buf[f.r:f.w]
	if len(have) < len(mark) && f.srcErr == nil && bytes.HasPrefix([]byte(mark), have) {
		return false
	}
	if bytes.HasPrefix(have, []byte(mark)) {
		f.r += len(mark)
	}
	return true
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func (f *filter) fill() {
	if f.r == f.w {
		f.r, f.w, f.scanned = 0, 0, 0
	}
	if f.w == len(f.buf) {
		if f.r > 0 {
			copy(f.buf, f.buf[f.r:f.w])
			f.w -= f.r
			f.scanned -= f.r
			f.r = 0
		} else {
			f.buf = append(f.buf, make([]byte, max(8<<10, len(f.buf)))...)
		}
	}
	n, err := f.src.Read(f.buf[f.w:])
	f.w += n
	if err != nil {
		f.srcErr = err
	}
}
