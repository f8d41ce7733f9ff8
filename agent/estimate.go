package agent

import (
	"fmt"
	"slices"
	"strings"
)

// tokensPerByte is the field's rule of thumb, four characters a token, until a
// provider has reported better.
const tokensPerByte = 0.25

// tokensFor estimates what n bytes of request are for the model, corrected by
// what the provider reported for earlier ones.
func (s *session) tokensFor(model string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate, ok := s.rates[model]
	if !ok {
		rate = tokensPerByte
	}
	return int(float64(n)*rate) + 1
}

// reported corrects the estimate by what the provider counted for a request of n
// bytes. Small requests say little: templates weigh more than text there.
func (s *session) reported(model string, n, tokens int) {
	if tokens <= 0 || n < 2000 {
		return
	}
	rate := min(max(float64(tokens)/float64(n), 0.05), 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rates == nil {
		s.rates = map[string]float64{}
	}
	if old, ok := s.rates[model]; ok {
		rate = (old + rate) / 2
	}
	s.rates[model] = rate
}

// bytes is the size of a message as far as it counts for the context.
func (m *Message) bytes() int {
	n := len(m.Content) + len(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Arguments) + len(c.Name)
	}
	return n
}

// bytes is the size of the request as far as it counts for the context.
func (q *Request) bytes() int {
	n := q.toolBytes()
	for i := range q.Messages {
		n += q.Messages[i].bytes()
	}
	return n
}

func (q *Request) toolBytes() int {
	n := 0
	for _, t := range q.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}

// reused is how many bytes of the request were the beginning of the one before:
// what a provider's cache can spare. Tools stand before the messages, so other
// tools mean that nothing is reused.
func (q *Request) reused(prev *Request) int {
	if prev == nil || prev.Model != q.Model || !slices.EqualFunc(prev.Tools, q.Tools, func(a, b Tool) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Parameters) == string(b.Parameters)
	}) {
		return 0
	}
	n := q.toolBytes()
	for i := range min(len(prev.Messages), len(q.Messages)) {
		if !prev.Messages[i].equal(&q.Messages[i]) {
			break
		}
		n += q.Messages[i].bytes()
	}
	return n
}

func (m *Message) equal(o *Message) bool {
	return m.Role == o.Role && m.Content == o.Content && m.Reasoning == o.Reasoning && m.ToolCallID == o.ToolCallID && slices.Equal(m.ToolCalls, o.ToolCalls)
}

// largest names the biggest parts of a request, for a person who has to make it
// smaller.
func (r *run) largest(q *Request) string {
	type part struct {
		name string
		n    int
	}
	parts := []part{{"tools", q.toolBytes()}}
	for i := range q.Messages {
		m := &q.Messages[i]
		name := ""
		switch m.Role {
		case RoleSystem:
			name = "the system prompt"
		case RoleUser:
			name = "a message that begins with " + fmt.Sprintf("%q", oneLine(m.Content, 40))
		case RoleAssistant:
			name = "an answer that begins with " + fmt.Sprintf("%q", oneLine(m.Content, 40))
			if m.Content == "" && len(m.ToolCalls) > 0 {
				name = "the arguments of " + m.ToolCalls[0].Name
			}
		case RoleTool:
			name = "a tool's result that begins with " + fmt.Sprintf("%q", oneLine(m.Content, 40))
		}
		parts = append(parts, part{name, m.bytes()})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return b.n - a.n })
	var out []string
	for _, p := range parts[:min(3, len(parts))] {
		out = append(out, fmt.Sprintf("%s (about %d tokens)", p.name, r.s.tokensFor(q.Model, p.n)))
	}
	return strings.Join(out, ", ")
}
