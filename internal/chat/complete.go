package chat

import (
	"context"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"thinkflow/workspace"
)

// choice is one line of the completion list.
type choice struct {
	text   string // replaces the word
	remark string
}

// completion is the list below the input. Empty: none is shown.
type completion struct {
	word    string // of the input, that is completed
	choices []choice
	at      int
	closed  string // the word for which the list was closed
}

// found is the answer of a search for files.
type found struct {
	word  string
	paths []string
}

// rowsOfChoices is how many choices are shown at once.
const rowsOfChoices = 6

// complete updates the list after the input has changed.
func (m *model) complete() tea.Cmd {
	before := m.beforeCursor()
	c := &m.completion
	switch {
	case strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \n"):
		m.offer(before, m.commandNames(before))
		return nil
	case strings.HasPrefix(before, "/") && !strings.Contains(before, "\n"):
		name, arg, _ := strings.Cut(before, " ")
		if cmd := m.command(name); cmd != nil && cmd.args != nil && !strings.Contains(arg, " ") {
			var list []choice
			for _, a := range cmd.args(m) {
				if strings.HasPrefix(a.text, arg) && a.text != arg {
					list = append(list, a)
				}
			}
			m.offer(arg, list)
			return nil
		}
	}
	word := before[strings.LastIndexFunc(before, unicode.IsSpace)+1:]
	if !strings.HasPrefix(word, "@") || m.o.Files == nil {
		*c = completion{closed: c.closed}
		return nil
	}
	if word == c.closed || word == c.word {
		return nil
	}
	c.word, c.closed = word, ""
	files, ctx := m.o.Files, m.ctx
	return func() tea.Msg {
		return found{word, search(ctx, files, strings.TrimPrefix(word, "@"))}
	}
}

// offer shows the choices for a word.
func (m *model) offer(word string, list []choice) {
	c := &m.completion
	if word == c.closed && word != "" {
		return
	}
	at := 0
	if c.word == word && c.at < len(list) {
		at = c.at
	}
	*c = completion{word: word, choices: list, at: at}
}

// search finds files whose name, or else whose path, has the word in it.
func search(ctx context.Context, files Files, word string) []string {
	var out []string
	have := map[string]bool{}
	pattern := func(p string) {
		got, err := files.Glob(ctx, workspace.GlobRequest{Pattern: p, Max: 50})
		if err != nil {
			return
		}
		for _, e := range got.Entries {
			if !have[e.Path] {
				have[e.Path] = true
				out = append(out, e.Path)
			}
		}
	}
	esc := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(word)
	if dir, name, ok := cutLast(esc, "/"); ok {
		pattern(dir + "/" + name + "*")
		pattern(dir + "/**/*" + name + "*")
	} else {
		pattern(esc + "*")
		pattern("**/" + esc + "*")
		if esc != "" {
			pattern("**/*" + esc + "*")
		}
	}
	return out
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// files shows what a search found, if the word is still there.
func (m *model) files(f found) {
	c := &m.completion
	if f.word != c.word || !strings.HasSuffix(m.beforeCursor(), f.word) {
		return
	}
	c.choices, c.at = nil, 0
	for _, p := range f.paths {
		if t := "@" + p; t != f.word {
			c.choices = append(c.choices, choice{text: t})
		}
	}
}

// accept puts the chosen completion into the input.
func (m *model) accept() {
	c := &m.completion
	text := c.choices[c.at].text
	if !strings.HasSuffix(text, "/") {
		text += " "
	}
	for range []rune(c.word) {
		m.input, _ = m.input.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	m.input.InsertString(m.pastes.keep(text))
	*c = completion{}
}

// beforeCursor is the input's text up to the cursor.
func (m *model) beforeCursor() string {
	lines := strings.Split(m.input.Value(), "\n")
	row := min(m.input.Line(), len(lines)-1)
	text := []rune(lines[row])
	lines = append(lines[:row:row], string(text[:min(m.input.Column(), len(text))]))
	return strings.Join(lines, "\n")
}
