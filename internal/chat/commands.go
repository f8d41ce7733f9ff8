package chat

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/term"
)

// command is one of the commands that begin with a slash.
type command struct {
	name  string
	takes string // its argument, for help; "" = none
	help  string
	rest  bool // only at rest
	args  func(m *model) []choice
	do    func(m *model, arg string) tea.Cmd
}

// commands are all of them, in the order of /help.
func commands() []command {
	return []command{
		{name: "/help", help: "commands and keys", do: (*model).help},
		{name: "/model", takes: "NAME", help: "another model, from the next request on", args: (*model).models, do: (*model).setModel},
		{name: "/mode", takes: "NAME", help: "what may be done: ask, plan, edit, auto", args: (*model).modes, do: (*model).setMode},
		{name: "/allow", takes: "CLASS", help: "stop asking for an action: bash, delete, secrets, protected, net, git", args: (*model).classes, do: (*model).allow},
		{name: "/diff", takes: "[PATH]", help: "files changed in this session, with their changes", do: (*model).diff},
		{name: "/undo", help: "take back what the last task changed; again for the one before", rest: true, do: (*model).undo},
		{name: "/ledger", help: "what was done here, command by command", do: (*model).ledger},
		{name: "/usage", help: "tokens and cost of this session", do: (*model).showUsage},
		{name: "/config", help: "settings in force, and where they come from", do: (*model).config},
		{name: "/resume", takes: "[SESSION]", help: "go on with what was not finished, or with an earlier conversation", rest: true, do: (*model).resume},
		{name: "/clear", help: "begin a new conversation", rest: true, do: (*model).clear},
		{name: "/quit", help: "end the session", do: func(m *model, _ string) tea.Cmd { return m.quit() }},
	}
}

// slash splits an input that is a command. A path is none.
func slash(input string) (name, arg string, ok bool) {
	name, arg, _ = strings.Cut(input, " ")
	if !strings.HasPrefix(name, "/") || strings.Count(name, "/") > 1 || strings.Contains(name, "\n") {
		return "", "", false
	}
	return name, strings.TrimSpace(arg), true
}

// command finds a command by its name.
func (m *model) command(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

func (m *model) commandNames(prefix string) []choice {
	var out []choice
	for _, c := range commands() {
		if strings.HasPrefix(c.name, prefix) {
			out = append(out, choice{c.name, strings.TrimSpace(c.takes + "  " + c.help)})
		}
	}
	return out
}

// execute runs a command.
func (m *model) execute(name, arg string) tea.Cmd {
	c := m.command(name)
	switch {
	case name == "/exit":
		return m.quit()
	case c == nil:
		m.screen.Notice("there is no command " + name + "; /help lists them")
		return nil
	case c.rest && m.run != nil:
		m.screen.Notice(name + " waits for the end of the run; esc stops it")
		return nil
	}
	return c.do(m, arg)
}

// show lets f write to a screen of its own, on another goroutine, and prints
// that when it is whole.
func (m *model) show(f func(screen *term.Renderer) error) tea.Cmd {
	cols, rows, color := m.cols, m.rows, m.o.Color
	return func() tea.Msg {
		var out sink
		screen := term.New(term.Options{Out: &out, Inline: true, Color: color, Size: func() (int, int) { return cols, rows }})
		if err := f(screen); err != nil {
			screen.Notice(err.Error())
		}
		screen.Close()
		return shown{out.lines}
	}
}

func (m *model) help(string) tea.Cmd {
	var rows [][]string
	for _, c := range commands() {
		rows = append(rows, []string{"  " + strings.TrimSpace(c.name+" "+c.takes), c.help})
	}
	keys := [][]string{
		{"  enter", "send; while a run goes on: tell it something"},
		{"  alt-enter, ctrl-j", "a new line (also: \\ and enter)"},
		{"  esc, ctrl-c", "stop the run; ctrl-c twice on an empty line quits"},
		{"  shift-tab", "the next mode: ask, plan, edit, auto"},
		{"  ctrl-o", "show or fold the model's reasoning"},
		{"  up, down", "what was entered before"},
		{"  tab", "complete a command or an @file"},
		{"  y, s, n", "answer a question: once, for this session, no"},
		{"  w, g, b", "where it is offered: once, with the network, with .git, with both"},
	}
	return m.show(func(s *term.Renderer) error {
		s.Table(nil, rows)
		s.Dim("")
		s.Table(nil, keys)
		return nil
	})
}

// models completes the names that the endpoint offers, as far as it has told.
func (m *model) models() []choice {
	var out []choice
	for _, s := range m.offered {
		out = append(out, choice{text: s})
	}
	return out
}

func (m *model) setModel(arg string) tea.Cmd {
	if arg == "" {
		m.screen.Notice("the model is " + m.settings.Model + "; /model NAME sets another")
		return nil
	}
	if m.change(agent.SessionSettings{Model: arg}) {
		m.screen.Notice("from the next request on the model is " + m.settings.Model)
	}
	return nil
}

func (m *model) modes() []choice {
	return []choice{
		{string(config.ModeAsk), "answers, changes nothing"},
		{string(config.ModePlan), "makes a plan, changes nothing"},
		{string(config.ModeEdit), "changes files, asks before what cannot be taken back"},
		{string(config.ModeAuto), "does not ask for deleting and shell commands"},
	}
}

func (m *model) setMode(arg string) tea.Cmd {
	if arg == "" {
		m.screen.Notice("the mode is " + string(m.settings.Mode) + "; others: ask, plan, edit, auto")
		return nil
	}
	if m.change(agent.SessionSettings{Mode: config.Mode(arg)}) {
		m.screen.Notice("the mode is " + string(m.settings.Mode))
	}
	return nil
}

// cycleMode goes on to the next mode.
func (m *model) cycleMode() {
	i := slices.Index(config.Modes, m.settings.Mode)
	if m.change(agent.SessionSettings{Mode: config.Modes[(i+1)%len(config.Modes)]}) {
		for _, c := range m.modes() {
			if c.text == string(m.settings.Mode) {
				m.hint = "mode " + c.text + ": " + c.remark
			}
		}
	}
}

// change switches settings of the session.
func (m *model) change(s agent.SessionSettings) bool {
	now, err := m.o.Engine.Switch(m.session, s)
	if err != nil {
		m.screen.Notice(err.Error())
		return false
	}
	m.settings = now
	return true
}

func (m *model) classes() []choice {
	return []choice{
		{string(config.AllowBash), "shell commands"},
		{string(config.AllowDelete), "deleting files"},
		{string(config.AllowSecrets), "reading files that may hold secrets"},
		{string(config.AllowProtected), "writing configuration of editors, shells, CI"},
		{string(config.AllowNet), "commands may use the network"},
		{string(config.AllowGit), "commands may change version control metadata"},
	}
}

func (m *model) allow(arg string) tea.Cmd {
	class := config.Class(arg)
	if arg == "" {
		m.screen.Notice("/allow needs an action (bash, delete, secrets, protected, net, git), or one with a pattern, like: bash go test")
		return nil
	}
	if m.o.Allow != nil {
		if err := m.o.Allow(class); err != nil {
			m.screen.Notice(err.Error())
			return nil
		}
	}
	if strings.Contains(arg, " ") { // a rule: runs take the rules of their beginning
		m.screen.Notice(arg + " does not ask from the next task on, until the end of this chat")
		return nil
	}
	m.o.Engine.Allow(m.session, class)
	m.screen.Notice(arg + " no longer asks, until the end of this chat")
	return nil
}

func (m *model) ledger(string) tea.Cmd {
	if m.o.Ledger == nil {
		m.screen.Notice("see: thinkflow ledger list")
		return nil
	}
	ctx, session := m.ctx, m.session
	return m.show(func(s *term.Renderer) error { return m.o.Ledger(ctx, session, s) })
}

func (m *model) config(string) tea.Cmd {
	if m.o.Config == nil {
		m.screen.Notice("see: thinkflow config")
		return nil
	}
	return m.show(m.o.Config)
}

func (m *model) showUsage(string) tea.Cmd {
	u := m.total
	if m.run != nil {
		u = addUsage(u, m.run.usage)
	}
	m.screen.Notice(fmt.Sprintf("%d tasks, %s", m.tasks, usage(u)))
	return nil
}

func (m *model) clear(string) tea.Cmd {
	m.o.Engine.EndSession(m.session) // what it left running in the background ends
	m.session, m.runs, m.unfinished, m.total, m.tasks = agent.NewID(), nil, "", agent.Usage{}, 0
	m.pastes = pastes{}
	m.change(agent.SessionSettings{Model: m.settings.Model, Mode: m.settings.Mode})
	m.screen.Notice("a new conversation; the one before is in the ledger")
	return nil
}
