package chat

import (
	"fmt"
	"strings"
)

// pastes are texts that stand in the input as a short mark, because they are
// long or hold tabs, which the input line could not keep.
type pastes map[string]string

// linesOfPaste is the longest paste that stands in the input as it is.
const linesOfPaste = 6

// put returns what to insert for a pasted text.
func (p pastes) put(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	n := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	if n <= linesOfPaste && len(text) <= 1000 && !strings.Contains(text, "\t") {
		return text
	}
	mark := fmt.Sprintf("[paste %d: %d lines]", len(p)+1, n)
	if n == 1 {
		mark = fmt.Sprintf("[paste %d: %d characters]", len(p)+1, len([]rune(text)))
	}
	p[mark] = text
	return mark
}

// expand puts the texts where their marks stand.
func (p pastes) expand(input string) string {
	for mark, text := range p {
		input = strings.ReplaceAll(input, mark, text)
	}
	return input
}
