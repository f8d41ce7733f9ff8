package parser

import (
	"strings"
	"testing"
)

// textSink keeps what is text and what is reasoning, and notes anything else.
type textSink struct {
	text, reasoning strings.Builder
	other           []string
}

func (s *textSink) Text(t string)      { s.text.WriteString(t) }
func (s *textSink) Reasoning(t string) { s.reasoning.WriteString(t) }
func (s *textSink) Opened(o Opening)   { s.other = append(s.other, "opened "+string(o.Name)) }
func (s *textSink) Progress(Progress)  { s.other = append(s.other, "progress") }
func (s *textSink) Command(c *Command) { s.other = append(s.other, "command "+string(c.Name)) }
func (s *textSink) Error(e *Error)     { s.other = append(s.other, e.Error()) }
func (s *textSink) Note(n Note)        { s.other = append(s.other, "note "+string(n.Kind)) }

// TestNoCommands: tags are text wherever they stand, think blocks are still told
// apart, and nothing is an error.
func TestNoCommands(t *testing.T) {
	const answer = "<think>\n<tf-write id=\"1\" path=\"a\">x</tf-write>\nhm\n</think>\n" +
		"Write <tf-edit> like this:\n<tf-write id=\"1\" path=\"a\">\nx\n</tf-write>\n</tf-write>\n```\n<tf-read id=\"2\" path=\"b\"/>\n```\n<tf-foo id=\"3\">\n"
	_, want, _ := strings.Cut(answer, "</think>\n")
	for cut := range len(answer) {
		s := &textSink{}
		p := New(Options{ReasoningCommands: true, NoCommands: true}, s)
		p.Write(answer[:cut])
		p.Write(answer[cut:])
		p.Close("stop")
		if got := strings.TrimPrefix(s.text.String(), "\n"); got != want {
			t.Fatalf("cut at %d: text %q, want %q", cut, got, want)
		}
		if !strings.Contains(s.reasoning.String(), "</tf-write>") {
			t.Fatalf("cut at %d: reasoning %q", cut, s.reasoning.String())
		}
		if len(s.other) > 0 {
			t.Fatalf("cut at %d: %v", cut, s.other)
		}
	}
}
