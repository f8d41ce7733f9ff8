package agent

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"thinkflow/agent/thinking"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// After every turn, and before the first one, the state of a run goes into the
// ledger: the messages that the conversation grew by, and everything else of
// session and run in a head that replaces the one before. It costs no sync of
// its own; what a crash takes with it is found again in the recorded commands.

// maxCheckpoint bounds the head and each delta, in bytes, packed. A run whose
// state is larger goes on and cannot be resumed.
const maxCheckpoint = 64 << 20

// savedState is the head of a checkpoint.
type savedState struct {
	Format  int          `json:"format"`
	Session savedSession `json:"session"`
	Run     savedRun     `json:"run"`
}

const checkpointFormat = 1

type savedSession struct {
	ID       string            `json:"id"`
	Settings SessionSettings   `json:"settings"`
	Messages int               `json:"messages"`
	Pending  []savedOutcome    `json:"pending,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Known    map[string]string `json:"known,omitempty"` // real path → hash
	Echo     map[string]string `json:"echo,omitempty"`  // opening tag → where it was read
	Key      string            `json:"key,omitempty"`
	Granted  []config.Class    `json:"granted,omitempty"`
	Thoughts []thinking.Step   `json:"thoughts,omitempty"`
	Plan     []PlanItem        `json:"plan,omitempty"`
	NoTags   map[string]bool   `json:"noTags,omitempty"`

	Memory   savedMemory        `json:"memory"`
	Rules    [][2]string        `json:"rules,omitempty"` // path, text
	Rates    map[string]float64 `json:"rates,omitempty"`
	Contexts map[string]int     `json:"contexts,omitempty"`
}

// savedMemory is what a session keeps for shortening its history: see memory.
type savedMemory struct {
	Tasks    []string    `json:"tasks,omitempty"`
	Attached []string    `json:"attached,omitempty"`
	Touched  [][3]string `json:"touched,omitempty"`  // path, what, hash
	Problems [][2]string `json:"problems,omitempty"` // about, text
	Said     []string    `json:"said,omitempty"`
}

func (m *memory) save() savedMemory {
	s := savedMemory{Tasks: slices.Clone(m.tasks), Attached: slices.Clone(m.attached), Said: slices.Clone(m.said)}
	for _, t := range m.touched {
		s.Touched = append(s.Touched, [3]string{t.path, t.what, t.hash})
	}
	for _, p := range m.problems {
		s.Problems = append(s.Problems, [2]string{p.about, p.text})
	}
	return s
}

func (s savedMemory) restore() memory {
	m := memory{tasks: s.Tasks, attached: s.Attached, said: s.Said}
	for _, t := range s.Touched {
		m.touched = append(m.touched, touch{t[0], t[1], t[2]})
	}
	for _, p := range s.Problems {
		m.problems = append(m.problems, problem{p[0], p[1]})
	}
	return m
}

type savedRun struct {
	Task     string         `json:"task"`
	Turn     int            `json:"turn"`
	Usage    Usage          `json:"usage"`
	Text     string         `json:"text,omitempty"`
	Steer    []string       `json:"steer,omitempty"`
	Files    map[string]int `json:"files,omitempty"`
	Applied  int            `json:"applied,omitempty"`
	Failed   int            `json:"failed,omitempty"`
	Skipped  int            `json:"skipped,omitempty"`
	Failures map[string]int `json:"failures,omitempty"`
	BadKeys  int            `json:"badKeys,omitempty"`
	Waiting  []held         `json:"waiting,omitempty"`
}

// savedOutcome is an outcome that the model has not been told.
type savedOutcome struct {
	ID      int            `json:"id"`
	Channel parser.Channel `json:"channel"`
	Name    string         `json:"name"`
	Path    string         `json:"path,omitempty"`
	Dest    string         `json:"dest,omitempty"`
	Cmd     string         `json:"cmd,omitempty"`
	Status  string         `json:"status"`
	Code    string         `json:"code,omitempty"`
	Message string         `json:"message,omitempty"`
	Nearest string         `json:"nearest,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
	Rung    string         `json:"rung,omitempty"`
	Diff    string         `json:"diff,omitempty"`
	Created bool           `json:"created,omitempty"`
	Added   int            `json:"added,omitempty"`
	Removed int            `json:"removed,omitempty"`
	Bytes   int64          `json:"bytes,omitempty"`
	Via     string         `json:"via,omitempty"`
	Output  string         `json:"output,omitempty"`
	Stdout  string         `json:"stdout,omitempty"`
	Exit    *int           `json:"exit,omitempty"`
	Key     ledger.Key     `json:"key"`
}

func saveOutcome(o outcome) savedOutcome {
	return savedOutcome{o.id, o.channel, o.name, o.path, o.dest, o.cmd, o.status, o.code, o.message, o.nearest, o.notes, o.rung, o.diff,
		o.created, o.added, o.removed, o.bytes, o.via, o.output, o.stdout, o.exit, o.key}
}

func (s savedOutcome) outcome() outcome {
	return outcome{s.ID, s.Channel, s.Name, s.Path, s.Dest, s.Cmd, s.Status, s.Code, s.Message, s.Nearest, s.Notes, s.Rung, s.Diff,
		s.Created, s.Added, s.Removed, s.Bytes, s.Via, s.Output, s.Stdout, s.Exit, s.Key}
}

// save copies what the session is; messages is its history.
func (s *session) save() (saved savedSession, messages []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved = savedSession{
		ID: s.id, Settings: s.settings, Messages: len(s.history), Notes: slices.Clone(s.notes), Key: s.key,
		Echo: maps.Clone(s.echo.tags), Granted: s.perms.granted(), Thoughts: s.thoughts.Steps(), Plan: slices.Clone(s.plan),
		NoTags: maps.Clone(s.noTags), Memory: s.memory.save(), Rates: maps.Clone(s.rates), Contexts: maps.Clone(s.contexts), Known: make(map[string]string, len(s.known)),
	}
	for _, o := range s.pending {
		saved.Pending = append(saved.Pending, saveOutcome(o))
	}
	for abs, k := range s.known {
		saved.Known[abs] = k.hash
	}
	for _, u := range s.rules {
		saved.Rules = append(saved.Rules, [2]string{u.path, u.text})
	}
	return saved, slices.Clone(s.history)
}

// restore makes a session of what was saved.
func (saved savedSession) restore(c *config.Config, messages []Message) *session {
	s := newSession(saved.ID, c)
	s.settings, s.history, s.notes, s.key, s.plan, s.noTags = saved.Settings, messages, saved.Notes, saved.Key, saved.Plan, saved.NoTags
	s.memory, s.rates, s.contexts = saved.Memory.restore(), saved.Rates, saved.Contexts
	s.echo.tags = saved.Echo
	for _, o := range saved.Pending {
		s.pending = append(s.pending, o.outcome())
	}
	for abs, hash := range saved.Known {
		s.known[abs] = knowledge{hash}
	}
	for _, u := range saved.Rules {
		s.rules = append(s.rules, rule{u[0], u[1]})
	}
	for _, class := range saved.Granted {
		s.perms.grant(class)
	}
	for _, step := range saved.Thoughts {
		s.thoughts.Add(step)
	}
	return s
}

// checkpoint stores the state after turn n.
func (r *run) checkpoint(n int) {
	if r.dryRun || r.parent != nil {
		return
	}
	c, err := r.makeCheckpoint(n)
	if err != nil {
		r.e.log.Warn("the run's state was not stored; it cannot be resumed from here", "run", r.id, "turn", n, "err", err)
		return
	}
	r.journal.checkpoint(c)
}

func (r *run) makeCheckpoint(n int) (ledger.Checkpoint, error) {
	c := ledger.Checkpoint{Run: r.id, Turn: n}
	state := savedState{Format: checkpointFormat}
	var messages []Message
	state.Session, messages = r.s.save()
	r.mu.Lock()
	state.Run = savedRun{
		Task: r.task, Turn: n, Usage: r.usage, Text: r.text, Steer: slices.Clone(r.steer), Files: maps.Clone(r.files),
		Applied: r.applied, Failed: r.failed, Skipped: r.skipped, Failures: maps.Clone(r.failures), BadKeys: r.badKeys,
		Waiting: slices.Clone(r.held),
	}
	r.mu.Unlock()
	// The history only grows, but for a compaction.
	grown := len(messages) >= len(r.saved) && slices.EqualFunc(r.saved, messages[:len(r.saved)], sameMessage)
	c.Fresh = r.saved == nil || !grown
	from := len(r.saved)
	if c.Fresh {
		from = 0
	}
	var err error
	if c.Head, err = r.e.pack(state); err != nil {
		return c, err
	}
	if len(messages) > from {
		if c.Delta, err = r.e.pack(messages[from:]); err != nil {
			return c, err
		}
	}
	r.saved = messages
	if r.saved == nil {
		r.saved = []Message{}
	}
	return c, nil
}

// sameMessage compares quickly: the texts of an unchanged message are the same
// memory.
func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning && a.ToolCallID == b.ToolCallID &&
		slices.Equal(a.ToolCalls, b.ToolCalls)
}

// pack is the package's pack without keys. A command that holds one is not the
// one that was asked about any more, and asks again.
func (e *Engine) pack(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return pack(json.RawMessage(e.redact.Values(string(raw))))
}

// pack is deflated JSON.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if b.Len() > maxCheckpoint {
		return nil, fmt.Errorf("it has %d bytes, more than %d", b.Len(), maxCheckpoint)
	}
	return b.Bytes(), nil
}

// maxUnpacked bounds what unpack makes of a packed text, in bytes.
const maxUnpacked = 1 << 30

func unpack(data []byte, v any) error {
	return json.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxUnpacked)).Decode(v)
}

// errCheckpoint: a checkpoint cannot be read.
var errCheckpoint = errors.New("its stored state cannot be read")

// loadCheckpoint reads what a checkpoint holds.
func loadCheckpoint(c ledger.SavedCheckpoint) (savedState, []Message, error) {
	var state savedState
	if err := unpack(c.Head, &state); err != nil {
		return state, nil, fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	if state.Format != checkpointFormat {
		return state, nil, fmt.Errorf("%w: it was written by another version of ThinkFlow", errCheckpoint)
	}
	var all []Message
	for _, d := range c.Deltas {
		var part []Message
		if err := unpack(d, &part); err != nil {
			return state, nil, fmt.Errorf("%w: %w", errCheckpoint, err)
		}
		all = append(all, part...)
	}
	if len(all) != state.Session.Messages {
		return state, nil, fmt.Errorf("%w: %d of %d messages are there", errCheckpoint, len(all), state.Session.Messages)
	}
	return state, all, nil
}
