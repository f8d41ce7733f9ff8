package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"thinkflow/agent"
	"thinkflow/internal/term"
)

// rowsOfPending is how many lines of folded reasoning are shown as they come.
const rowsOfPending = 3

// View draws the lower lines.
func (m *model) View() tea.View {
	if !m.begun || m.leaving && m.run == nil {
		return tea.NewView("")
	}
	lines, at := m.lines()
	v := tea.NewView(strings.Join(lines, "\n"))
	m.drawn = drawn{cols: m.cols, lines: lines}
	if c := m.input.Cursor(); c != nil {
		c.Y += at
		v.Cursor = c
		m.drawn.x, m.drawn.y = c.X, c.Y
	}
	return v
}

// drawn is what the terminal shows of ours, and where its cursor stands.
type drawn struct {
	cols  int
	lines []string
	x, y  int
}

// broken is how many rows lower the cursor stands, counted from our first line,
// once the terminal has become narrower and broken our lines. The library, which
// draws anew from there on, does not count them.
func (d drawn) broken(cols int) (rows int) {
	if cols < 1 || cols >= d.cols {
		return 0
	}
	for _, l := range d.lines[:min(d.y, len(d.lines))] {
		if w := ansi.StringWidth(strings.TrimRight(ansi.Strip(l), " ")); w > cols {
			rows += (w - 1) / cols
		}
	}
	return rows + d.x/cols
}

// height is the number of lines that View draws.
func (m *model) height() int {
	lines, _ := m.lines()
	return len(lines)
}

// lines are the lower lines; at is the first one of the input.
func (m *model) lines() (lines []string, at int) {
	if m.run != nil {
		live := m.live()
		if len(m.questions) > 0 {
			m.tall = 0
		}
		m.tall = max(m.tall, len(live)) // the lines below stay where they are
		lines = append(lines, live...)
		for len(lines) < m.tall {
			lines = append(lines, "")
		}
		lines = append(lines, m.status()...)
		for _, s := range m.run.steers {
			lines = append(lines, m.style.Bar("▌ ")+m.style.Dim(m.fit("next: "+term.VisibleName(s.shown), 2)))
		}
	}
	lines = append(lines, "")
	at = len(lines)
	lines = append(lines, strings.Split(m.input.View(), "\n")...)
	if len(m.completion.choices) > 0 {
		return append(lines, m.choices()...), at
	}
	return append(lines, m.footer()), at
}

// live is what is not finished: the text's last line, or reasoning.
func (m *model) live() []string {
	var lines []string
	if m.sink.part != "" {
		lines = append(lines, m.sink.part)
	}
	return append(lines, m.screen.Pending(max(1, min(rowsOfPending, m.rows-12)))...)
}

func (m *model) status() []string {
	if len(m.questions) > 0 && !m.questions[0].shown.IsZero() {
		return m.asking(&m.questions[0])
	}
	if m.run.cancelled {
		return []string{m.style.Warn("■ ") + "stopping: what has begun comes to its end"}
	}
	if line := m.screen.StatusLine(); line != "" {
		return []string{line}
	}
	return []string{m.style.Dim("…")}
}

// asking names the keys that answer, in the longest words that fit: in one line,
// or in two, where opening the sandbox stands in the second.
func (m *model) asking(q *question) []string {
	keys := q.answers()
	line := func(begin string, word func(answerKey) string, end string, keys []answerKey) string {
		s := m.style.Prompt(begin)
		for _, a := range keys {
			s += m.key1(a.key, word(a))
		}
		return strings.TrimRight(s+m.style.Dim(end), " ")
	}
	long := func(a answerKey) string { return a.long }
	short := func(a answerKey) string { return a.short }
	var plain, opening []answerKey
	for _, a := range keys {
		if a.opens() {
			opening = append(opening, a)
		} else {
			plain = append(plain, a)
		}
	}
	forms := [][]string{
		{line("? allow this?  ", long, "esc stops", keys)}, {line("? ", long, "", keys)},
		{line("? ", short, "esc stops", keys)}, {line("? ", short, "", keys)},
	}
	if len(opening) > 0 {
		forms = append(forms, []string{line("? ", short, "", plain), line("  ", short, "", opening)})
	}
	for _, f := range forms {
		if !slices.ContainsFunc(f, func(l string) bool { return ansi.StringWidth(l) >= m.cols }) {
			return f
		}
	}
	bare := m.style.Prompt("? ")
	for i, a := range keys {
		if i > 0 {
			bare += "/"
		}
		bare += m.style.Bold(a.key)
	}
	return []string{bare}
}

func (m *model) key1(k, what string) string {
	return m.style.Bold(k) + m.style.Dim(" "+what+"  ")
}

func (m *model) choices() []string {
	c := &m.completion
	rows := max(1, min(rowsOfChoices, m.rows/3))
	first := max(0, min(c.at-rows+1, len(c.choices)-rows))
	wide := 0
	for _, o := range c.choices {
		wide = max(wide, term.Width(term.VisibleName(o.text)))
	}
	wide = min(wide, max(12, m.cols-8))
	var lines []string
	for i := first; i < min(len(c.choices), first+rows); i++ {
		o := c.choices[i]
		text := term.Cut(term.VisibleName(o.text), wide)
		rest := ""
		if o.remark != "" {
			rest = m.style.Dim(m.fit(strings.Repeat(" ", wide-term.Width(text))+"  "+term.VisibleName(o.remark), 2+term.Width(text)))
		}
		if i == c.at {
			lines = append(lines, m.style.Info("› ")+m.style.Bold(text)+rest)
		} else {
			lines = append(lines, "  "+text+rest)
		}
	}
	return lines
}

// footer says where one is, and what keys do.
func (m *model) footer() string {
	if m.hint != "" {
		return m.style.Warn(m.fit("  "+m.hint, 0))
	}
	var parts []string
	if m.run != nil {
		parts = []string{"enter sends to the run", "esc stops"}
	} else {
		parts = []string{term.VisibleName(m.settings.Model)}
		if m.settings.Mode != "" {
			parts = append(parts, "mode "+string(m.settings.Mode))
		}
		if n := m.total.InputTokens + m.total.OutputTokens; n > 0 {
			parts = append(parts, term.Tokens(n)+" tokens")
		}
		if m.total.Cost > 0 {
			parts = append(parts, fmt.Sprintf("cost %.4f", m.total.Cost))
		}
		parts = append(parts, "/help", "@file", "alt-enter: new line", "shift-tab: mode", "ctrl-c twice quits")
	}
	line := "  " + parts[0]
	for _, p := range parts[1:] { // what fits
		if term.Width(line)+3+term.Width(p) > m.cols-1 {
			break
		}
		line += " · " + p
	}
	return m.style.Dim(m.fit(line, 0))
}

// fit cuts treated text to what is left of the line after used cells.
func (m *model) fit(text string, used int) string {
	return term.Cut(text, max(1, m.cols-1-used))
}

// greet says where one is and how to begin.
func (m *model) greet() {
	m.screen.Greet("ThinkFlow", m.settings.Model, m.o.Dir)
	if m.o.Task == "" {
		m.screen.Hints([]string{"Say what is to be done. /help lists commands, @ names a file, esc stops a run."})
	}
}

// usage words tokens and cost.
func usage(u agent.Usage) string {
	about := ""
	if u.Estimated {
		about = "about "
	}
	s := fmt.Sprintf("%d API calls, %s%s tokens in, %s out", u.Requests, about, term.Tokens(u.InputTokens), term.Tokens(u.OutputTokens))
	if u.CachedTokens > 0 {
		s += ", " + term.Tokens(u.CachedTokens) + " cached"
	}
	if u.ReasoningTokens > 0 {
		s += ", " + term.Tokens(u.ReasoningTokens) + " for reasoning"
	}
	if u.Cost > 0 {
		s += fmt.Sprintf(", cost %.4f", u.Cost)
	}
	return s
}
