package chat

import (
	"os"
	"strings"
	"sync"
	"time"
)

// sink takes the renderer's output apart: finished lines, and the line that may
// go on.
type sink struct {
	lines []string
	part  string
}

// Write never fails.
func (s *sink) Write(p []byte) (int, error) {
	text := s.part + string(p)
	for {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		s.lines = append(s.lines, line)
		text = rest
	}
	s.part = text
	return len(p), nil
}

// take hands over the finished lines.
func (s *sink) take() []string {
	l := s.lines
	s.lines = nil
	return l
}

// calm is a terminal that is written to at most once in a while. Printing a
// line above and drawing the lines below anew are two writes of the library;
// together they leave the lower lines where they are, one by one they would
// make them jump.
type calm struct {
	*os.File

	mu    sync.Mutex // guards all below
	buf   []byte
	timer *time.Timer
	err   error
}

// calmFor is longer than the time between two frames (see framesPerSecond).
const (
	calmFor         = 12 * time.Millisecond
	framesPerSecond = 120
)

func (c *calm) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.buf = append(c.buf, p...)
	if c.timer == nil {
		c.timer = time.AfterFunc(calmFor, c.Flush)
	}
	return len(p), nil
}

// WriteString is Write.
func (c *calm) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// Flush writes what is held.
func (c *calm) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if len(c.buf) > 0 {
		_, c.err = c.File.Write(c.buf)
		c.buf = c.buf[:0]
	}
}
