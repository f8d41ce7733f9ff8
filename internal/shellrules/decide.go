package shellrules

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Decision is the answer to one line.
type Decision struct {
	Allowed bool
	// Reason says why it is not allowed, for the question that a person gets.
	Reason string
}

// List is an allow list. It is immutable.
type List struct {
	entries [][]string
}

// NewList reads entries such as "go test" or "git log --oneline". An entry is a
// plain simple command; the error names the first that is not.
func NewList(entries []string) (*List, error) {
	l := &List{}
	for _, e := range entries {
		words, err := Words(e)
		if err != nil {
			return nil, fmt.Errorf("allow entry %q: %w; write a program and its first words, like \"go test\"", e, err)
		}
		l.entries = append(l.entries, words)
	}
	return l, nil
}

// Words reads a line that is one plain simple command.
func Words(line string) ([]string, error) {
	cmds, why := parse(line)
	switch {
	case why != "":
		return nil, fmt.Errorf("this is not a plain command: %s", why)
	case len(cmds) != 1:
		return nil, fmt.Errorf("this is %d commands, and one is needed", len(cmds))
	}
	var words []string
	for _, w := range cmds[0].words {
		if !w.literal {
			return nil, fmt.Errorf("%s is expanded by the shell; quote it", w.text)
		}
		words = append(words, w.text)
	}
	return words, nil
}

// Decide says whether all that the line runs is on the list.
func (l *List) Decide(line string) Decision {
	cmds, why := parse(line)
	if why != "" {
		return Decision{Reason: why}
	}
	moved := false
	for _, c := range cmds {
		if why := l.command(c, moved); why != "" {
			return Decision{Reason: why}
		}
		switch c.words[0].text {
		case "cd", "pushd", "popd":
			moved = true
		}
	}
	return Decision{Allowed: true}
}

// command says why one simple command is not allowed; "" means that it is.
func (l *List) command(c command, moved bool) string {
	program := c.words[0]
	if !program.literal {
		return fmt.Sprintf("the program is %s, which the shell expands", program.text)
	}
	best, full := 0, false
	for _, e := range l.entries {
		if n := len(e); c.begins(e) {
			best = max(best, n)
			full = full || n == len(c.words)
		}
	}
	if best == 0 {
		return fmt.Sprintf("%s is not on the allow list", c.short())
	}
	if moved && strings.Contains(program.text, "/") && !strings.HasPrefix(program.text, "/") {
		return fmt.Sprintf("%s is another program after a change of folder", program.text)
	}
	if moved && programName(program.text) == "git" {
		return "git after a change of folder reads the configuration there, which can name programs to run"
	}
	if full {
		return "" // spelled out
	}
	return dangers(c, best)
}

// command is one simple command.
type command struct{ words []word }

// word is one word of it. If it is not literal the shell expands it (a pattern,
// a tilde), and text is how it was written.
type word struct {
	text    string
	literal bool
	// first is how the result begins whatever it expands to; 0 when unknown.
	first byte
}

// begins reports whether the command begins with the words of the entry.
func (c command) begins(entry []string) bool {
	if len(c.words) < len(entry) {
		return false
	}
	for i, e := range entry {
		if w := c.words[i]; !w.literal || w.text != e {
			return false
		}
	}
	return true
}

// short is the command for a message.
func (c command) short() string {
	var s []string
	for _, w := range c.words[:min(len(c.words), 3)] {
		s = append(s, w.text)
	}
	out := strings.Join(s, " ")
	if len(out) > 60 {
		out = strings.ToValidUTF8(out[:60], "") + "…"
	} else if len(c.words) > 3 {
		out += " …"
	}
	return out
}

// Mentions reports whether the words stand one after the other in any command
// of the line, also in substitutions and behind other programs. It is meant for
// rules that forbid: it finds what is written plainly, not what is hidden, and
// may find what is only an argument.
func Mentions(line string, words []string) bool {
	if len(words) == 0 {
		return false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return contains(strings.Fields(line), words)
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || found {
			return !found
		}
		var have []string
		for _, w := range call.Args {
			text, why := plain(w)
			if why != "" {
				text.text = "\x00" // equal to nothing
			}
			have = append(have, text.text)
			// sh -c 'git push'
			if strings.ContainsAny(text.text, " \t\n;") && len(text.text) < len(line) {
				found = found || Mentions(text.text, words)
			}
		}
		found = found || contains(have, words)
		return !found
	})
	return found
}

func contains(have, words []string) bool {
	for i := 0; i+len(words) <= len(have); i++ {
		if slices.Equal(have[i:i+len(words)], words) {
			return true
		}
	}
	return false
}
