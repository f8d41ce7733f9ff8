package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// maxFrame bounds one incoming message in bytes. A longer one is skipped and
// answered with an error.
const maxFrame = 256 << 20

// frames is the byte connection that jsonrpc2 reads from. It lets only whole
// frames with a valid JSON-RPC envelope through, because jsonrpc2 ends the
// connection at the first bad one without an answer: here a bad message is
// answered with an error of null id, as JSON-RPC wants it, and dropped. It also
// tells when the editor hangs up, which jsonrpc2 does not (handlers' contexts
// live on).
type frames struct {
	in     *bufio.Reader
	out    io.Writer
	log    *slog.Logger
	hangup func(error) // called when nothing more can be read
	once   sync.Once   // of hangup

	pending []byte // of the current frame, header included; read loop only
	frame   []byte // storage of pending, reused
	max     int    // longest body that is taken

	mu     sync.Mutex // serialises writes: one frame, one Write
	closed bool       // guarded by mu
}

func newFrames(in io.Reader, out io.Writer, log *slog.Logger, hangup func(error)) *frames {
	return &frames{in: bufio.NewReaderSize(in, 64<<10), out: out, log: log, hangup: hangup, max: maxFrame}
}

// Read hands out the bytes of whole, valid frames.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		if err := f.next(); err != nil {
			f.once.Do(func() { f.hangup(err) })
			return 0, err
		}
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

// next reads one frame; f.pending stays empty if it was dropped.
func (f *frames) next() error {
	length, err := f.header()
	if err != nil {
		return err
	}
	if length > f.max {
		if _, err := io.CopyN(io.Discard, f.in, int64(length)); err != nil {
			return noEOF(err)
		}
		f.refuse(jsonrpc2.InvalidRequest, fmt.Sprintf("a message of %d bytes is over the limit of %d", length, f.max))
		return nil
	}
	f.frame = append(f.frame[:0], "Content-Length: "...)
	f.frame = strconv.AppendInt(f.frame, int64(length), 10)
	f.frame = append(f.frame, "\r\n\r\n"...)
	start := len(f.frame)
	if cap(f.frame) < start+length {
		f.frame = append(make([]byte, 0, start+length), f.frame...)
	}
	f.frame = f.frame[:start+length]
	body := f.frame[start:]
	if _, err := io.ReadFull(f.in, body); err != nil {
		return noEOF(err)
	}
	if err := checkEnvelope(body); err != nil {
		code := jsonrpc2.ParseError
		if errors.Is(err, jsonrpc2.ErrInvalidRequest) {
			code = jsonrpc2.InvalidRequest
		}
		f.refuse(code, fmt.Sprintf("%v: %.80q", err, body))
		return nil
	}
	f.pending = f.frame
	return nil
}

// checkEnvelope says what is wrong with one message. Params and results are not
// looked into: the handler that decodes them finds out.
func checkEnvelope(body []byte) error {
	if b := bytes.TrimLeft(body, " \t\r\n"); len(b) > 0 && b[0] == '[' {
		if !json.Valid(body) {
			return jsonrpc2.ErrParse
		}
		return nil
	}
	_, err := jsonrpc2.ScanMessageView(body)
	return err
}

// header reads up to the blank line after a Content-Length. Lines in front of
// it that are no header (something printed into the pipe) are skipped.
func (f *frames) header() (length int, err error) {
	length = -1
	for {
		raw, err := f.in.ReadSlice('\n')
		line := strings.TrimSpace(string(raw))
		switch {
		case err == bufio.ErrBufferFull: // no header is as long as this
		case err == io.EOF && line == "" && length < 0:
			return 0, io.EOF
		case err != nil:
			return 0, noEOF(err)
		}
		name, value, isField := strings.Cut(line, ":")
		switch {
		case line == "" && length >= 0:
			return length, nil
		case isField && strings.EqualFold(strings.TrimSpace(name), "Content-Length"):
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || n <= 0 {
				f.refuse(jsonrpc2.InvalidRequest, fmt.Sprintf("bad header %.80q", line))
				length = -1
				continue
			}
			length = n
		case line != "" && length < 0 && !(isField && strings.EqualFold(strings.TrimSpace(name), "Content-Type")):
			f.log.Warn("skipped a line that is no message", "line", fmt.Sprintf("%.80q", line))
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// refuse answers a message whose id cannot be known.
func (f *frames) refuse(code jsonrpc2.Code, message string) {
	f.log.Warn("dropped a malformed message", "code", int64(code), "error", message)
	body := jsonrpc2.AppendResponse(nil, jsonrpc2.ID{}, nil, jsonrpc2.NewError(code, message))
	_, _ = f.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
}

// Write writes one whole frame.
func (f *frames) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, io.ErrClosedPipe
	}
	return f.out.Write(p)
}

// Close stops writing. It does not touch the input: a blocked read of stdin
// cannot be interrupted, and the process ends without waiting for it.
func (f *frames) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}
