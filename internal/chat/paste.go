package chat

import (
	"fmt"
	"strings"

	"thinkflow/internal/term"
)

// pastes are texts that stand in the input as a short mark, because they are
// long or hold tabs, which the input line could not keep.
type pastes map[string]string

// linesOfPaste is the longest paste that stands in the input as it is.
const linesOfPaste = 6

// put returns what to insert for a pasted text.
func (p pastes) put(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if lines(text) <= linesOfPaste && len(text) <= 1000 {
		return p.keep(text)
	}
	return p.mark(text)
}

// keep returns a text that stands in the input, as it is if it can.
func (p pastes) keep(text string) string {
	if strings.Contains(text, "\t") || term.Visible(text) != text {
		return p.mark(text)
	}
	return text
}

func (p pastes) mark(text string) string {
	mark := fmt.Sprintf("[paste %d: %d lines]", len(p)+1, lines(text))
	if lines(text) == 1 {
		mark = fmt.Sprintf("[paste %d: %d characters]", len(p)+1, len([]rune(text)))
	}
	p[mark] = text
	return mark
}

func lines(text string) int { return strings.Count(strings.TrimRight(text, "\n"), "\n") + 1 }

// expand puts the texts where their marks stand.
func (p pastes) expand(input string) string {
	for mark, text := range p {
		input = strings.ReplaceAll(input, mark, text)
	}
	return input
}
