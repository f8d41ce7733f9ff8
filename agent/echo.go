package agent

import "strings"

// echoMemory holds every opening tag that stood in something the model was
// given: user text, results, file text, attached context. A command whose
// opening tag is byte-equal to one of them is an echo, not a wish, and does not
// run (case SE-10). The system prompt is not part of it.
type echoMemory struct {
	tags   map[string]string // opening tag → where it was read
	legacy bool
}

// maxEchoTag bounds one remembered tag, in bytes; the parser refuses longer ones.
const maxEchoTag = 8 << 10

// learn records the opening tags in text; origin names the text for people.
func (m *echoMemory) learn(text, origin string) {
	for i := 0; ; {
		j := strings.IndexByte(text[i:], '<')
		if j < 0 {
			return
		}
		i += j
		if !m.mayOpen(text[i:]) {
			i++
			continue
		}
		for _, end := range tagEnds(text[i:]) {
			if m.tags == nil {
				m.tags = map[string]string{}
			}
			tag := text[i : i+end]
			if _, ok := m.tags[tag]; !ok {
				m.tags[strings.Clone(tag)] = origin
			}
		}
		i++
	}
}

// echo reports where the opening tag was read, or "".
func (m *echoMemory) echo(open string) string { return m.tags[open] }

func (m *echoMemory) mayOpen(s string) bool {
	if strings.HasPrefix(s, "<tf-") {
		return true
	}
	if !m.legacy || len(s) < 2 {
		return false
	}
	return s[1] >= 'a' && s[1] <= 'z'
}

// tagEnds gives the places where a tag that begins at s[0] may end: at the
// first '>' outside quotes and, since a broken quote would hide it, at the very
// first '>'.
func tagEnds(s string) []int {
	if len(s) > maxEchoTag {
		s = s[:maxEchoTag]
	}
	first := strings.IndexByte(s, '>')
	if first < 0 {
		return nil
	}
	ends := []int{first + 1}
	var quote byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			if i != first {
				ends = append(ends, i+1)
			}
			return ends
		}
	}
	return ends
}
