package redact

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxHeld is the length of a line, in bytes, from which it is passed on in
// pieces.
const maxHeld = 64 << 10

// Writer redacts what is written to it, line by line, and passes it on: put it
// in front of a log file. A line waits until it is complete; Flush passes on
// what waits. It is safe for concurrent use.
type Writer struct {
	r *Redactor
	w io.Writer

	mu    sync.Mutex // guards all below
	buf   []byte
	inKey bool
	err   error // of w; sticky
}

// NewWriter makes a Writer.
func NewWriter(r *Redactor, w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write takes all of p; the error is that of the underlying writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	w.pass(false)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush passes on a line that is not complete. A secret whose other half comes
// later is no longer seen: flush when nothing more comes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass(true)
	return w.err
}

// Close flushes, and closes the underlying writer if it can be closed.
func (w *Writer) Close() error {
	err := w.Flush()
	if c, ok := w.w.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// pass writes what cannot become part of a secret any more.
func (w *Writer) pass(all bool) {
	w.r.mu.RLock()
	defer w.r.mu.RUnlock()
	for w.err == nil {
		cut := w.cut(all)
		if cut == 0 {
			return
		}
		var out string
		out, w.inKey = w.r.text(string(w.buf[:cut]), w.inKey)
		w.buf = append(w.buf[:0], w.buf[cut:]...)
		_, w.err = io.WriteString(w.w, out)
	}
}

// cut is how much can go: whole lines, but a value of several lines must not be
// cut; or a piece of a line that is too long to wait for.
func (w *Writer) cut(all bool) int {
	if all {
		return len(w.buf)
	}
	longest, lines := 0, 0
	for _, v := range w.r.values {
		longest = max(longest, len(v))
		for i := range len(v) {
			if v[i] == '\n' {
				lines = max(lines, len(v))
				break
			}
		}
	}
	end := len(w.buf)
	if lines > 0 {
		end = max(0, end-lines+1)
	}
	cut := bytes.LastIndexByte(w.buf[:end], '\n') + 1
	if cut == 0 && len(w.buf) > maxHeld+longest {
		cut = len(w.buf) - longest - 1<<10
		if i := bytes.LastIndexAny(w.buf[cut/2:cut], " \t,;"); i >= 0 {
			cut = cut/2 + i + 1
		}
	}
	if cut == 0 {
		return 0
	}
	for _, sp := range w.r.spans(string(w.buf)) {
		if sp.start < cut && cut < sp.end {
			cut = sp.end
		}
	}
	return cut
}
