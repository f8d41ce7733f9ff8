package chat

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"thinkflow/internal/term"
)

// againWithin is how long the first Ctrl-C on an empty line counts.
const againWithin = 2 * time.Second

// key takes one key press.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.hint = ""
	k := msg.String()
	switch k {
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if m.input.Value() == "" {
			return m.quit()
		}
	case "esc":
		return m.escape()
	case "ctrl+o":
		if m.screen.ToggleReasoning() {
			m.hint = "reasoning is shown; ctrl-o folds it"
		} else {
			m.hint = "reasoning is folded; ctrl-o shows it"
		}
		return nil
	case "shift+tab":
		m.cycleMode()
		return nil
	case "ctrl+l":
		return tea.ClearScreen
	}
	if m.armed() {
		for _, a := range m.questions[0].answers() {
			if strings.EqualFold(k, a.key) {
				m.answer(a.means)
				return nil
			}
		}
	}
	m.typed = m.now()
	if term.Visible(msg.Text) != msg.Text { // nothing that hides itself or what is beside it
		return nil
	}
	if len(m.completion.choices) > 0 {
		if done, cmd := m.choose(k); done {
			return cmd
		}
	}
	switch k {
	case "enter":
		return m.enter()
	case "tab":
		return m.complete()
	case "up":
		if m.input.Line() == 0 && m.input.LineInfo().RowOffset == 0 && m.look(true) {
			return nil
		}
	case "down":
		if m.history.looking() && m.input.Line() == m.input.LineCount()-1 && m.look(false) {
			return nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return tea.Batch(cmd, m.complete())
}

// choose takes the keys of the completion list.
func (m *model) choose(k string) (done bool, cmd tea.Cmd) {
	c := &m.completion
	switch k {
	case "up", "ctrl+p":
		c.at = (c.at + len(c.choices) - 1) % len(c.choices)
	case "down", "ctrl+n":
		c.at = (c.at + 1) % len(c.choices)
	case "tab":
		m.accept()
		return true, m.complete()
	case "enter":
		if c.choices[c.at].text == c.word {
			return false, nil
		}
		command := strings.HasPrefix(c.word, "/")
		m.accept()
		if cmd := m.command(strings.TrimSpace(m.input.Value())); command && cmd != nil && cmd.takes == "" {
			return true, m.enter()
		}
		return true, m.complete()
	default:
		return false, nil
	}
	return true, nil
}

// look shows an older or newer input.
func (m *model) look(older bool) bool {
	text, ok := "", false
	if older {
		text, ok = m.history.older(m.input.Value())
	} else {
		text, ok = m.history.newer()
	}
	if ok {
		m.input.SetValue(m.pastes.keep(text))
		m.completion = completion{}
	}
	return ok
}

// escape closes the list, or stops the run.
func (m *model) escape() tea.Cmd {
	if len(m.completion.choices) > 0 {
		m.completion = completion{closed: m.completion.word}
		return nil
	}
	return m.cancel()
}

// interrupt is Ctrl-C: it stops the run; at rest it empties the line, and twice
// on an empty line it quits.
func (m *model) interrupt() tea.Cmd {
	now := m.now()
	again := now.Sub(m.wantQuit) < againWithin
	m.completion = completion{}
	switch {
	case m.run != nil && !m.run.cancelled:
		m.wantQuit = now
		return m.cancel()
	case m.input.Value() != "":
		m.input.Reset()
		m.wantQuit = time.Time{}
		return nil
	case again:
		return m.quit()
	}
	m.wantQuit = now
	m.hint = "ctrl-c once more quits"
	return nil
}

// enter sends the input: to the run that goes on, or as the next task.
func (m *model) enter() tea.Cmd {
	value := m.input.Value()
	if strings.HasSuffix(value, `\`) && m.input.Line() == m.input.LineCount()-1 { // the usual way to go on in a new line
		m.input, _ = m.input.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
		m.input.InsertString("\n")
		return nil
	}
	if strings.TrimSpace(value) == "" || m.leaving {
		return nil
	}
	m.input.Reset()
	m.completion = completion{}
	return m.submit(value)
}

// submit takes an input: a command, a message to the run, or a task.
func (m *model) submit(input string) tea.Cmd {
	input = strings.TrimSpace(input)
	if err := m.history.add(m.pastes.expand(input)); err != nil {
		m.screen.Notice("the history is not kept: " + err.Error())
		m.history.file = ""
	}
	if name, arg, ok := slash(input); ok {
		m.screen.Echo(input)
		return m.execute(name, arg)
	}
	text := m.pastes.expand(input)
	if m.run == nil {
		return m.start(text)
	}
	s := steer{text, input}
	m.run.steers = append(m.run.steers, s)
	engine, id := m.o.Engine, m.run.id
	return func() tea.Msg { return steered{s, engine.Steer(id, s.text)} }
}
