package term

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// screen writes lines and, on a live terminal, keeps one status line below
// them. The status line is erased before anything is written and drawn again
// afterwards, in one Write, so text is never overwritten and nothing flickers.
//
// Its caller never lets a line reach the terminal's last column: the cursor
// then is where col says, and not in the terminal's pending-wrap state.
type screen struct {
	w    io.Writer
	live bool
	size func() (cols, rows int)

	buf    bytes.Buffer
	col    int // cells written on the current line of text
	blank  int // empty lines directly above the cursor; -1 before any output
	status string

	drawn      bool // the status line is on the screen
	drawnCells int
	cols, rows int // of the terminal at that time
	hidden     bool
}

func newScreen(w io.Writer, live bool, size func() (int, int)) *screen {
	return &screen{w: w, live: live, size: size, blank: -1}
}

// put writes a piece of a line: cells wide, without line breaks.
func (s *screen) put(text string, cells int) {
	if text == "" {
		return
	}
	s.lift()
	s.buf.WriteString(text)
	s.col += cells
	s.blank = 0
}

// newline ends the line.
func (s *screen) newline() {
	s.lift()
	s.buf.WriteByte('\n')
	if s.col == 0 && s.blank >= 0 {
		s.blank++
	} else if s.blank < 0 {
		s.blank = 0
	}
	s.col = 0
}

// fresh makes sure that the cursor is at the beginning of a line.
func (s *screen) fresh() {
	if s.col > 0 {
		s.newline()
	}
}

// gap makes sure that there is an empty line above, but at the very top.
func (s *screen) gap() {
	s.fresh()
	if s.blank == 0 {
		s.newline()
	}
}

// The sequences that leave a half-written line and come back to it. The cursor
// is saved by the terminal, not computed: terminals do not agree on how wide
// some characters are. Index and reverse index first make room for the line
// below, so that nothing scrolls after the cursor was saved.
const (
	saveAndLeave = "\x1bD\x1bM\x1b7\r\n"
	comeBack     = "\x1b8"
	eraseBelow   = "\r\x1b[J"
	hideCursor   = "\x1b[?25l"
	showCursor   = "\x1b[?25h"
)

// lift takes the status line off the screen, into the buffer.
func (s *screen) lift() {
	if !s.drawn {
		return
	}
	s.drawn = false
	cols, rows := s.size()
	if cols > 0 && cols < s.cols { // the terminal broke the line when it shrank
		if up := (s.drawnCells - 1) / cols; up > 0 {
			fmt.Fprintf(&s.buf, "\x1b[%dA", up)
		}
	}
	s.buf.WriteString(eraseBelow)
	switch {
	case s.col == 0:
	case cols != s.cols || rows != s.rows:
		s.col = 0 // where the text stands now is unknown: go on below it
	default:
		s.buf.WriteString(comeBack)
	}
}

// setStatus changes the status line, treated and coloured by the caller and
// shorter than the width; "" shows none.
func (s *screen) setStatus(text string) {
	if !s.live || text == s.status && s.drawn {
		return
	}
	s.status = text
	s.lift()
}

// flush draws the status line if there is one, and writes all to the terminal.
func (s *screen) flush() {
	if s.live && s.status != "" && !s.drawn {
		if !s.hidden {
			s.buf.WriteString(hideCursor)
			s.hidden = true
		}
		if s.col > 0 {
			s.buf.WriteString(saveAndLeave)
		}
		s.buf.WriteString(s.status)
		s.drawn = true
		s.drawnCells = cells(stripSGR(s.status))
		s.cols, s.rows = s.size()
	} else if s.hidden && s.status == "" {
		s.buf.WriteString(showCursor)
		s.hidden = false
	}
	if s.buf.Len() == 0 {
		return
	}
	// A terminal that is gone cannot be told so; the run goes on.
	_, _ = s.w.Write(s.buf.Bytes())
	s.buf.Reset()
}

// stripSGR removes colour sequences that we wrote ourselves.
func stripSGR(t string) string {
	var b strings.Builder
	for {
		i := strings.Index(t, "\x1b[")
		if i < 0 {
			b.WriteString(t)
			return b.String()
		}
		b.WriteString(t[:i])
		j := strings.IndexByte(t[i:], 'm')
		if j < 0 {
			return b.String()
		}
		t = t[i+j+1:]
	}
}
