package chat

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"thinkflow/agent"
	"thinkflow/internal/term"
)

// model is the state of the session. Only Update changes it.
type model struct {
	o     Options
	ctx   context.Context // of the work; ends with the session
	relay *relay
	now   func() time.Time
	after func(time.Duration, func(time.Time) tea.Msg) tea.Cmd // tea.Tick

	cols, rows int
	drawn      drawn
	raw        func(string)   // writes to the terminal; nil in tests
	screen     *term.Renderer // writes to sink
	sink       sink
	style      term.Styles
	queue      []string // finished lines that are not printed yet
	printing   bool
	begun      bool // the size is known

	input      textarea.Model
	pastes     pastes
	history    *history
	completion completion
	typed      time.Time // when a key was pressed last
	hint       string    // what the footer says instead of the usual, until a key

	session    string
	settings   agent.SessionSettings
	offered    []string // models of the endpoint
	run        *run     // what is being worked on; nil = at rest
	questions  []question
	runs       []string    // of the session, oldest first, that can be undone
	unfinished string      // the session's last run, if it can be gone on with
	total      agent.Usage // of the session's ended runs
	tasks      int
	tall       int // lines kept free above the status line while a run goes on

	leaving  bool // quits when the run has ended
	wantQuit time.Time
}

// run is the task that is being worked on.
type run struct {
	id        string
	cancelled bool
	steers    []steer // sent, not yet taken up by a turn
	usage     agent.Usage
}

// steer is a message to a run that goes on.
type steer struct{ text, shown string }

// The messages from other goroutines.
type (
	event   agent.Event
	preview struct {
		path  string
		bytes int
	}
	ended struct {
		id     string
		result agent.RunResult
		err    error
	}
	steered struct { // what became of a steer
		steer
		err error
	}
	notice string
	models []string // what the endpoint offers
	tookUp agent.SessionDetail
	undid  struct {
		run string
		res agent.Reviewed
		err error
	}
	shown struct{ lines []string } // what a command had to show
	tick  struct{}
	quit  struct{}
)

// printed is the type of the message that prints lines above.
var printed = reflect.TypeOf(tea.Println("")())

// Init begins the session.
func (m *model) Init() tea.Cmd { return nil }

// Update takes one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.queue = append(m.queue, m.sink.take()...)
	return m, tea.Batch(cmd, m.print())
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return m.resized(msg)
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		m.typed = m.now()
		m.input.InsertString(m.pastes.put(msg.Content))
		return m.complete()
	case event:
		m.event(agent.Event(msg))
	case preview:
		m.screen.Progress(msg.path, msg.bytes)
	case ended:
		return m.ended(msg)
	case asked:
		m.questions = append(m.questions, question(msg))
		m.ask()
	case withdrawn:
		m.withdraw(msg.id)
	case steered:
		return m.steered(msg)
	case notice:
		m.screen.Notice(string(msg))
	case models:
		m.offered = msg
	case found:
		m.files(msg)
	case tookUp:
		m.takeUp(agent.SessionDetail(msg))
	case undid:
		m.undid(msg)
	case shown:
		m.screen.Lines(msg.lines)
	case tick:
		m.screen.Tick()
		if m.run != nil {
			return m.tick()
		}
	case quit:
		return m.quit()
	default:
		if reflect.TypeOf(msg) == printed {
			m.printing = false
			return nil
		}
		var cmd tea.Cmd
		m.input, cmd = m.input.Update(msg)
		return cmd
	}
	return nil
}

// resized takes the terminal's size. The first time, the session begins.
func (m *model) resized(msg tea.WindowSizeMsg) tea.Cmd {
	if up := m.drawn.broken(msg.Width); up > 0 && m.raw != nil {
		m.raw(fmt.Sprintf("\x1b[%dA", up))
	}
	m.cols, m.rows = max(1, msg.Width), max(1, msg.Height)
	m.input.SetWidth(max(10, m.cols-1))
	m.input.MaxHeight = max(1, min(8, m.rows/3))
	if m.begun {
		return nil
	}
	m.begun = true
	if m.o.Task != "" {
		return m.submit(m.o.Task)
	}
	return nil
}

// print prints finished lines above, as many at a time as there is room for:
// the library's printing needs the room on the screen.
func (m *model) print() tea.Cmd {
	if m.printing || len(m.queue) == 0 || !m.begun {
		return nil
	}
	n := min(len(m.queue), max(1, m.rows-m.height()-1))
	batch := m.queue[:n]
	m.queue = m.queue[n:]
	m.printing = true
	text := strings.Join(batch, "\n")
	if text == "" {
		text = " " // nothing would be printed, and no line either
	}
	return tea.Println(text)
}

// start begins a run.
func (m *model) start(task string) tea.Cmd {
	id := agent.NewID()
	req := agent.RunRequest{
		Run: id, Session: m.session, Task: task,
		Events: m.forward, Preview: m.grows,
	}
	engine, ctx := m.o.Engine, m.ctx
	return m.work(id, func() tea.Msg {
		result, err := engine.Run(ctx, req)
		return ended{id, result, err}
	})
}

// goOn takes an ended run up again.
func (m *model) goOn(id string) tea.Cmd {
	req := agent.ResumeRequest{Run: id, By: "terminal", Events: m.forward, Preview: m.grows}
	engine, ctx := m.o.Engine, m.ctx
	return m.work(id, func() tea.Msg {
		result, err := engine.Resume(ctx, req)
		return ended{id, result, err}
	})
}

// work notes the run and carries it out.
func (m *model) work(id string, do tea.Cmd) tea.Cmd {
	m.run = &run{id: id}
	m.unfinished = ""
	m.tall = 1
	m.tasks++
	if !slices.Contains(m.runs, id) {
		m.runs = append(m.runs, id)
	}
	return tea.Batch(m.tick(), do)
}

func (m *model) forward(e agent.Event) { m.relay.send(event(e)) }

func (m *model) grows(p agent.Preview) { m.relay.send(preview{p.Path, p.Bytes}) }

func (m *model) tick() tea.Cmd {
	return m.after(100*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

// event shows one event of the run.
func (m *model) event(e agent.Event) {
	r := m.run
	if r == nil || e.Run != "" && e.Run != r.id {
		return
	}
	switch e.Type {
	case agent.TurnStarted:
		for _, s := range r.steers {
			m.screen.Said(s.shown, "")
		}
		r.steers = nil
	case agent.UsageReported:
		if e.Usage != nil {
			r.usage = *e.Usage
		}
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled:
		if e.Usage != nil {
			r.usage = *e.Usage
		}
	}
	m.screen.Event(e)
}

// ended is the end of a run. Messages that no turn took up come back: as the
// next task after a good end, else into the input.
func (m *model) ended(msg ended) tea.Cmd {
	r := m.run
	if r == nil || r.id != msg.id {
		return nil
	}
	for len(m.questions) > 0 {
		m.withdraw(m.questions[0].ev.ID)
	}
	m.screen.Settle()
	if msg.err != nil {
		m.screen.Notice(msg.err.Error())
	}
	m.total = addUsage(m.total, r.usage)
	m.run, m.tall = nil, 0
	if msg.err == nil && msg.result.State != agent.StateDone {
		m.unfinished = r.id
	}
	if m.leaving {
		return m.quit()
	}
	var left, asTyped []string
	for _, s := range r.steers {
		left, asTyped = append(left, s.text), append(asTyped, s.shown)
	}
	text := strings.Join(left, "\n")
	switch {
	case text == "":
	case msg.err == nil && msg.result.State == agent.StateDone:
		return m.start(text)
	default:
		if v := m.input.Value(); v != "" {
			asTyped = append(asTyped, v)
		}
		m.input.SetValue(strings.Join(asTyped, "\n"))
	}
	return nil
}

// steered hears what became of a message to the run. If the run was at its end,
// the message is the next task.
func (m *model) steered(msg steered) tea.Cmd {
	if msg.err == nil {
		return nil
	}
	if m.run == nil {
		return m.start(msg.text)
	}
	return nil // it stays among the run's and is dealt with when the run ends
}

// cancel stops the run.
func (m *model) cancel() tea.Cmd {
	if m.run == nil || m.run.cancelled {
		return nil
	}
	m.run.cancelled = true
	engine, id := m.o.Engine, m.run.id
	return func() tea.Msg {
		engine.Cancel(id)
		return nil
	}
}

// quit ends the session, after the run if there is one.
func (m *model) quit() tea.Cmd {
	if m.run != nil {
		m.leaving = true
		return m.cancel()
	}
	m.leaving = true
	m.input.Reset()
	return tea.Quit
}

func addUsage(a, b agent.Usage) agent.Usage {
	a.Requests += b.Requests
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	a.CachedTokens += b.CachedTokens
	a.ReasoningTokens += b.ReasoningTokens
	a.Estimated = a.Estimated || b.Estimated
	a.Cost += b.Cost
	return a
}
