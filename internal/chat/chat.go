package chat

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/term"
	"thinkflow/workspace"
)

// Engine is what works on tasks: *agent.Engine.
type Engine interface {
	Run(ctx context.Context, req agent.RunRequest) (agent.RunResult, error)
	Cancel(run string) bool
	Steer(run, text string) error
	Allow(session string, class config.Class) bool
	Switch(session string, s agent.SessionSettings) (agent.SessionSettings, error)
	Resume(ctx context.Context, req agent.ResumeRequest) (agent.RunResult, error)
	Sessions(ctx context.Context, limit int) ([]agent.SessionInfo, error)
	Session(ctx context.Context, id string) (agent.SessionDetail, error)
	Changes(ctx context.Context, sel agent.Selection) (agent.Changes, error)
	Undo(ctx context.Context, sel agent.Selection) (agent.Reviewed, error)
	EndSession(id string)
}

// Files finds files by name, for @file: *workspace.Workspace.
type Files interface {
	Glob(ctx context.Context, r workspace.GlobRequest) (workspace.ListResult, error)
}

// Options is what a chat works with. Engine, In and Out are required.
type Options struct {
	Engine  Engine
	Files   Files // nil: no @file completion
	In, Out *os.File
	Environ []string // as os.Environ has it
	Color   bool
	Size    func() (cols, rows int) // of the terminal, in cells

	Model string // as shown
	Dir   string // as shown
	// Resume is the conversation to go on with: id, the beginning of one, or
	// "last"; "" = a new one.
	Resume  string
	Task    string // what to begin with; "" = nothing
	History string // file; "" = not kept

	// Models lists the models that can be set; nil: not known.
	Models func(ctx context.Context) []string
	// Allow lets a class, or what a rule says, through from the next task on;
	// an error says that it is neither.
	Allow func(class config.Class) error
	// Ledger and Config show what their names say.
	Ledger func(ctx context.Context, session string, screen *term.Renderer) error
	Config func(screen *term.Renderer) error
}

// relay passes messages from other goroutines to the program once it runs.
type relay struct {
	mu      sync.Mutex // guards all below
	program *tea.Program
	early   []tea.Msg
}

func (r *relay) send(msg tea.Msg) {
	r.mu.Lock()
	p := r.program
	if p == nil {
		r.early = append(r.early, msg)
	}
	r.mu.Unlock()
	if p != nil {
		p.Send(msg) // returns when the program has ended
	}
}

func (r *relay) start(p *tea.Program) {
	r.mu.Lock()
	early := r.early
	r.program, r.early = p, nil
	r.mu.Unlock()
	go func() {
		for _, msg := range early {
			p.Send(msg)
		}
	}()
}

// Chat is one session at the terminal. It is made before the engine, which
// needs its approver.
type Chat struct{ r *relay }

// New makes a chat.
func New() *Chat { return &Chat{&relay{}} }

// Approver asks the person in the chat.
func (c *Chat) Approver() agent.Approver { return approver{c.r} }

// Notice shows a remark that belongs to no run.
func (c *Chat) Notice(text string) { c.r.send(notice(text)) }

// LogWriter shows what is logged as remarks.
func (c *Chat) LogWriter() io.Writer { return logWriter{c} }

type logWriter struct{ c *Chat }

func (w logWriter) Write(p []byte) (int, error) {
	w.c.Notice(string(p))
	return len(p), nil
}

// Run is the session, until the person quits or ctx ends. What is going on then
// is cancelled and comes to its end. It returns the id of the last conversation.
func (c *Chat) Run(ctx context.Context, o Options) (session string, err error) {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(work, o, c.r)
	if o.Size != nil {
		m.cols, m.rows = o.Size()
	}
	if o.Resume != "" {
		s, err := findSession(ctx, o.Engine, o.Resume)
		if err != nil {
			return "", err
		}
		m.greet()
		m.takeUp(s)
	} else {
		m.greet()
	}
	for _, line := range m.sink.take() {
		fmt.Fprintln(o.Out, line)
	}
	out := &calm{File: o.Out}
	m.raw = func(s string) { _, _ = out.WriteString(s) }
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(out), tea.WithEnvironment(o.Environ),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond))
	c.r.start(p)
	stop := context.AfterFunc(ctx, func() { c.r.send(quit{}) })
	defer stop()
	_, err = p.Run()
	out.Flush()
	return m.session, err
}

// newModel makes the state at the beginning.
func newModel(ctx context.Context, o Options, r *relay) *model {
	m := &model{
		o: o, ctx: ctx, relay: r, now: time.Now, after: tea.Tick, cols: 80, rows: 24,
		session: agent.NewID(), history: openHistory(o.History), pastes: pastes{},
	}
	m.screen = term.New(term.Options{
		Out: &m.sink, Inline: true, Color: o.Color, Asks: true,
		Size: func() (int, int) { return m.cols, m.rows },
		Now:  func() time.Time { return m.now() },
	})
	m.style = m.screen.Styles()
	m.settings.Model = o.Model
	m.change(agent.SessionSettings{})
	m.input = newInput(m.style)
	return m
}

// newInput is the input: no frame, so that a terminal that gets narrower breaks
// no lines of ours; the terminal's own cursor, which input methods follow.
func newInput(s term.Styles) textarea.Model {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.Placeholder = ""
	in.EndOfBufferCharacter = ' '
	in.CharLimit = 0
	in.DynamicHeight, in.MinHeight, in.MaxHeight, in.MaxContentHeight = true, 1, 8, 10_000
	in.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return s.Bar("› ")
		}
		return "  "
	})
	plain := textarea.StyleState{Prompt: lipgloss.NewStyle()}
	in.SetStyles(textarea.Styles{Focused: plain, Blurred: plain, Cursor: textarea.CursorStyle{Shape: tea.CursorBar, Blink: true}})
	in.SetVirtualCursor(false)
	in.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	in.KeyMap.Paste.SetEnabled(false) // the terminal pastes
	in.Focus()
	return in
}
