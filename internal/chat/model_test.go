package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// sgr are the colours that we write ourselves.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// fake is an engine that only notes what it is asked.
type fake struct {
	calls []string
	late  bool // messages to a run come too late

	sessions []agent.SessionInfo
	changes  agent.Changes
}

func (f *fake) Run(_ context.Context, r agent.RunRequest) (agent.RunResult, error) {
	f.calls = append(f.calls, "run "+r.Task)
	return agent.RunResult{}, nil
}

func (f *fake) Cancel(string) bool {
	f.calls = append(f.calls, "cancel")
	return true
}

func (f *fake) Steer(_, text string) error {
	f.calls = append(f.calls, "steer "+text)
	if f.late {
		return agent.ErrNoRun
	}
	return nil
}

func (f *fake) Allow(_ string, c config.Class) bool {
	f.calls = append(f.calls, "allow "+string(c))
	return true
}

func (f *fake) Switch(_ string, s agent.SessionSettings) (agent.SessionSettings, error) {
	if s.Mode == "nonsense" {
		return s, errors.New("mode nonsense is not one of them")
	}
	if s.Mode == "" {
		s.Mode = config.ModeEdit
	}
	if s.Model == "" {
		s.Model = "m"
	}
	return s, nil
}

func (f *fake) Resume(_ context.Context, r agent.ResumeRequest) (agent.RunResult, error) {
	f.calls = append(f.calls, "resume "+r.Run)
	return agent.RunResult{}, nil
}

func (f *fake) Sessions(context.Context, int) ([]agent.SessionInfo, error) { return f.sessions, nil }

func (f *fake) Session(_ context.Context, id string) (agent.SessionDetail, error) {
	for _, s := range f.sessions {
		if s.ID == id {
			return agent.SessionDetail{SessionInfo: s, Members: []ledger.Run{{ID: "r2"}, {ID: "r1"}}}, nil
		}
	}
	return agent.SessionDetail{}, ledger.ErrNotFound
}

func (f *fake) Changes(context.Context, agent.Selection) (agent.Changes, error) {
	return f.changes, nil
}

func (f *fake) Undo(_ context.Context, s agent.Selection) (agent.Reviewed, error) {
	f.calls = append(f.calls, "undo "+s.Run)
	return agent.Reviewed{Files: []string{"a"}}, nil
}

func (f *fake) EndSession(string) { f.calls = append(f.calls, "end session") }

func (f *fake) Glob(_ context.Context, r workspace.GlobRequest) (workspace.ListResult, error) {
	var out workspace.ListResult
	for _, p := range []string{"main.go", "src/main_test.go", "go.mod"} {
		if strings.Contains(p, strings.Trim(r.Pattern, "*/")) {
			out.Entries = append(out.Entries, workspace.Entry{Path: p})
		}
	}
	return out, nil
}

// bench is a model without a terminal. Its clock stands still unless moved.
type bench struct {
	t       *testing.T
	m       *model
	e       *fake
	clock   time.Time
	printed []string
	quit    bool
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, e: &fake{}, clock: time.Unix(1000, 0)}
	b.m = newModel(t.Context(), Options{Engine: b.e, Files: b.e, Model: "m", Dir: "/p", Allow: func(c config.Class) error {
		if c == "everything" {
			return errors.New("no such action")
		}
		return nil
	}, History: filepath.Join(t.TempDir(), "state", "h")}, &relay{})
	b.m.now = func() time.Time { return b.clock }
	b.m.after = func(time.Duration, func(time.Time) tea.Msg) tea.Cmd { return nil } // the test says when time passes
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	return b
}

// send gives a message to the model and follows its commands.
func (b *bench) send(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.m.Update(msg)
	b.follow(cmd)
}

func (b *bench) follow(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	var msg tea.Msg
	select {
	case msg = <-done:
	case <-time.After(time.Minute):
		b.t.Fatal("a command does not end")
	}
	switch msg := msg.(type) {
	case nil, ended: // the test says when a run ends
	case tea.BatchMsg:
		for _, c := range msg {
			b.follow(c)
		}
	case tea.QuitMsg:
		b.quit = true
	default:
		if reflect.TypeOf(msg) == printed {
			b.printed = append(b.printed, strings.Split(strings.Trim(fmt.Sprint(msg), "{}"), "\n")...)
		}
		b.send(msg)
	}
}

// keys types a text; names in <> are keys.
func (b *bench) keys(s string) {
	named := map[string]tea.KeyPressMsg{
		"<enter>": {Code: tea.KeyEnter}, "<esc>": {Code: tea.KeyEscape}, "<tab>": {Code: tea.KeyTab},
		"<up>": {Code: tea.KeyUp}, "<down>": {Code: tea.KeyDown}, "<bs>": {Code: tea.KeyBackspace},
		"<c-c>": {Code: 'c', Mod: tea.ModCtrl}, "<c-d>": {Code: 'd', Mod: tea.ModCtrl}, "<c-o>": {Code: 'o', Mod: tea.ModCtrl},
		"<c-j>": {Code: 'j', Mod: tea.ModCtrl}, "<a-enter>": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "<s-tab>": {Code: tea.KeyTab, Mod: tea.ModShift},
	}
	for s != "" {
		if s[0] == '<' {
			name := s[:strings.IndexByte(s, '>')+1]
			k, ok := named[name]
			require.True(b.t, ok, "no key %s", name)
			b.send(k)
			s = s[len(name):]
			continue
		}
		r := []rune(s)[0]
		b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		s = s[len(string(r)):]
	}
}

// event is an event of the run that goes on.
func (b *bench) event(e agent.Event) {
	e.Run = b.m.run.id
	b.send(event(e))
}

func (b *bench) end(s agent.State) {
	b.send(ended{id: b.m.run.id, result: agent.RunResult{State: s}})
}

// ask opens a question and lets it stand.
func (b *bench) ask(id string) <-chan agent.Decision {
	reply := make(chan agent.Decision, 1)
	b.send(asked{ev: agent.ApprovalEvent{ID: id, Action: "delete", Target: "/p/" + id}, reply: reply})
	b.clock = b.clock.Add(time.Second)
	return reply
}

// view is what is drawn at the bottom.
func (b *bench) view() string {
	lines, _ := b.m.lines()
	return ansi.Strip(strings.Join(lines, "\n"))
}

func TestWhatIsEntered(t *testing.T) {
	tests := []struct {
		name string
		do   func(b *bench)
		want []string
	}{
		{"a task", func(b *bench) { b.keys("do it<enter>") }, []string{"run do it"}},
		{"nothing", func(b *bench) { b.keys("<enter>  <enter>") }, nil},
		{"more lines", func(b *bench) { b.keys("a<a-enter>b<c-j>c<enter>") }, []string{"run a\nb\nc"}},
		{"a backslash goes on", func(b *bench) { b.keys(`a\<enter>b<enter>`) }, []string{"run a\nb"}},
		{"a path is no command", func(b *bench) { b.keys("/etc/hosts is wrong<enter>") }, []string{"run /etc/hosts is wrong"}},
		{"an unknown command is not sent", func(b *bench) { b.keys("/nope<enter>") }, nil},
		{"a message to the run", func(b *bench) { b.keys("a<enter>b<enter>") }, []string{"run a", "steer b"}},
		{"too late for the run: the next task", func(b *bench) {
			b.e.late = true
			b.keys("a<enter>b<enter>")
			b.end(agent.StateDone)
		}, []string{"run a", "steer b", "run b"}},
		{"a cancelled run gives messages back", func(b *bench) {
			b.keys("a<enter>b<enter><esc>")
			b.end(agent.StateCancelled)
			assert.Equal(b.t, "b", b.m.input.Value())
		}, []string{"run a", "steer b", "cancel"}},
		{"a short paste stands in the line", func(b *bench) {
			b.send(tea.PasteMsg{Content: "x\r\ny"})
			b.keys("<enter>")
		}, []string{"run x\ny"}},
		{"a long paste is a mark, and sent whole", func(b *bench) {
			b.keys("see ")
			b.send(tea.PasteMsg{Content: strings.Repeat("a\tb\n", 20)})
			assert.Equal(b.t, "see [paste 1: 20 lines]", b.m.input.Value())
			b.keys("<enter>")
		}, []string{"run see " + strings.Repeat("a\tb\n", 20)}},
		{"history", func(b *bench) {
			b.keys("one<enter>")
			b.end(agent.StateDone)
			b.keys("two<enter>")
			b.end(agent.StateDone)
			b.keys("dra<up><up><down><enter>")
			b.end(agent.StateDone)
			b.keys("x<up><down><enter>")
		}, []string{"run one", "run two", "run two", "run x"}},
		{"escape cancels once", func(b *bench) { b.keys("a<enter><esc><esc>") }, []string{"run a", "cancel"}},
		{"ctrl-c cancels", func(b *bench) { b.keys("a<enter><c-c>") }, []string{"run a", "cancel"}},
		{"ctrl-c empties the line first", func(b *bench) { b.keys("abc<c-c>d<enter>") }, []string{"run d"}},
		{"a command is completed and run", func(b *bench) { b.keys("/allow b<tab><enter>") }, []string{"allow bash"}},
		{"allow needs an action", func(b *bench) { b.keys("/allow<enter>/allow everything<enter>") }, nil},
		{"a file is completed", func(b *bench) { b.keys("see @mai<tab>now<enter>") }, []string{"run see @main.go now"}},
		{"the second file", func(b *bench) { b.keys("@main<down><enter><enter>") }, []string{"run @src/main_test.go"}},
		{"an address is no file", func(b *bench) { b.keys("me@mai<tab><enter>") }, []string{"run me@mai"}},
		{"resume after a cancelled run", func(b *bench) {
			b.keys("a<enter><esc>")
			id := b.m.run.id
			b.end(agent.StateCancelled)
			b.keys("/resume<enter>")
			assert.Equal(b.t, id, b.m.run.id)
			b.e.calls[2] = strings.ReplaceAll(b.e.calls[2], id, "ID")
		}, []string{"run a", "cancel", "resume ID"}},
		{"an earlier conversation", func(b *bench) {
			b.e.sessions = []agent.SessionInfo{{Session: ledger.Session{ID: "abc"}, LastRun: "r2", State: "interrupted", Resumable: true}, {Session: ledger.Session{ID: "abd"}}}
			b.keys("/resume ab<enter>/resume abc<enter>")
			assert.Equal(b.t, "abc", b.m.session)
			b.keys("/undo<enter>/undo<enter>/undo<enter>/resume<enter>")
		}, []string{"undo r2", "undo r1", "resume r2"}},
		{"clear waits for the run", func(b *bench) {
			s := b.m.session
			b.keys("a<enter>/clear<enter>")
			assert.Equal(b.t, s, b.m.session)
			b.end(agent.StateDone)
			b.keys("/clear<enter>")
			assert.NotEqual(b.t, s, b.m.session)
		}, []string{"run a", "end session"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			tt.do(b)
			assert.Equal(t, tt.want, b.e.calls)
		})
	}
}

func TestQuestions(t *testing.T) {
	tests := []struct {
		name string
		do   func(b *bench)
		want string // the decision; "" = still open
	}{
		{"once", func(b *bench) { b.keys("y") }, "once"},
		{"session", func(b *bench) { b.keys("s") }, "session"},
		{"no", func(b *bench) { b.keys("n") }, "deny"},
		{"other keys do not answer", func(b *bench) { b.keys("<enter>xq") }, ""},
		{"someone who is writing does not answer", func(b *bench) { b.keys("easy") }, ""},
		{"after a pause it counts", func(b *bench) {
			b.keys("x")
			b.clock = b.clock.Add(time.Second)
			b.keys("y")
		}, "once"},
		{"its end takes it back", func(b *bench) { b.send(withdrawn{"q"}) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.keys("go<enter>")
			reply := b.ask("q")
			assert.Contains(t, b.view(), "allow this?")
			tt.do(b)
			got := ""
			select {
			case d := <-reply:
				got = string(d)
			default:
			}
			if want := map[string]agent.Decision{"once": agent.AllowOnce, "session": agent.AllowSession, "deny": agent.Deny}[tt.want]; got != string(want) {
				t.Errorf("answered %q, want %q", got, want)
			}
		})
	}
}

// TestAKeyOnItsWayDoesNotAnswer: what was typed before the question appeared.
func TestAKeyOnItsWayDoesNotAnswer(t *testing.T) {
	b := newBench(t)
	b.keys("go<enter>")
	b.clock = b.clock.Add(time.Minute)
	reply := make(chan agent.Decision, 1)
	b.send(asked{ev: agent.ApprovalEvent{ID: "q", Action: "bash", Target: "rm -rf /"}, reply: reply})
	b.keys("y")
	assert.Empty(t, reply)
	assert.Equal(t, "y", b.m.input.Value())
}

func TestQuestionsWaitForEachOther(t *testing.T) {
	b := newBench(t)
	b.keys("go<enter>")
	first, second := b.ask("one"), b.ask("two")
	b.keys("y")
	assert.Equal(t, agent.AllowOnce, <-first)
	assert.Empty(t, second)
	b.clock = b.clock.Add(time.Second)
	b.keys("n")
	assert.Equal(t, agent.Deny, <-second)
	assert.NotContains(t, b.view(), "allow this?")
}

func TestQuitting(t *testing.T) {
	tests := []struct {
		name string
		do   func(b *bench)
		want bool
	}{
		{"ctrl-c once", func(b *bench) { b.keys("<c-c>") }, false},
		{"ctrl-c twice", func(b *bench) { b.keys("<c-c><c-c>") }, true},
		{"ctrl-c twice, but slowly", func(b *bench) {
			b.keys("<c-c>")
			b.clock = b.clock.Add(time.Minute)
			b.keys("<c-c>")
		}, false},
		{"ctrl-d on an empty line", func(b *bench) { b.keys("<c-d>") }, true},
		{"ctrl-d in a line", func(b *bench) { b.keys("x<c-d>") }, false},
		{"/quit", func(b *bench) { b.keys("/quit<enter>") }, true},
		{"/quit waits for the run", func(b *bench) {
			b.keys("a<enter>/quit<enter>")
			assert.False(b.t, b.quit)
			b.end(agent.StateCancelled)
		}, true},
		{"ctrl-c twice while working", func(b *bench) {
			b.keys("a<enter><c-c><c-c>")
			assert.False(b.t, b.quit)
			b.end(agent.StateCancelled)
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			tt.do(b)
			assert.Equal(t, tt.want, b.quit)
		})
	}
}

func TestHistoryIsKeptAndPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history")
	h := openHistory(file)
	for _, s := range []string{"one", "one", "two\nlines", "\x1b[31mred"} {
		require.NoError(t, h.add(s))
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.Equal(t, []string{"one", "two\nlines", "\x1b[31mred"}, openHistory(file).items)
	for range maxHistory * 2 {
		h.file = ""
		_ = h.add(strings.Repeat("x", 1+len(h.items)%7))
	}
	h.file = file
	h.rewrite()
	assert.Len(t, openHistory(file).items, maxHistory)
	info, err = os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestTheLowerLinesFit: whatever the size, no line is wider than the terminal,
// and there are not more of them than rows.
func TestTheLowerLinesFit(t *testing.T) {
	for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 12}, {24, 8}} {
		b := newBench(t)
		b.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		check := func(what string) {
			t.Helper()
			lines := strings.Split(b.view(), "\n")
			assert.LessOrEqual(t, len(lines), size[1], "%v: %s", size, what)
			for _, l := range lines {
				assert.Less(t, ansi.StringWidth(strings.TrimRight(l, " ")), size[0]+1, "%v: %s: %q", size, what, l)
			}
		}
		check("at rest")
		b.keys("/")
		check("commands")
		b.keys("<esc><c-c>世界 go<enter>")
		check("begun")
		b.event(agent.Event{Type: agent.RunStarted, Task: "go", Model: "m"})
		b.event(agent.Event{Type: agent.ReasoningDelta, Text: strings.Repeat("because of this ", 40)})
		check("reasoning")
		b.event(agent.Event{Type: agent.TextDelta, Text: "```\n" + strings.Repeat("世界", 100)})
		check("code")
		b.keys("a rather long message to the run that is going on right now, with 世界<enter>")
		b.keys(strings.Repeat("more and more of it ", 12))
		check("steered")
		b.ask("a-very-long-name-of-a-file-" + strings.Repeat("x", 100))
		check("asked")
		b.keys("<esc>")
		check("stopping")
	}
}

// TestNothingRawReachesTheTerminal: escape sequences in whatever a model, a
// file name or a pasted text holds.
func TestNothingRawReachesTheTerminal(t *testing.T) {
	evil := "\x1b]0;t\x07\x1b[2J\u202e\x9b31m\u200b"
	b := newBench(t)
	b.m.sink.take()
	b.send(tea.PasteMsg{Content: "x" + evil})
	b.keys("<enter>")
	for _, e := range []agent.Event{
		{Type: agent.RunStarted, Task: evil, Model: evil, Dir: evil},
		{Type: agent.ReasoningDelta, Text: evil},
		{Type: agent.TextDelta, Text: "**" + evil + "** `" + evil + "`\n| " + evil + " |\n|-|\n| [" + evil + "](" + evil + ") |\n\n```" + evil + "\n" + evil + "\n```\n" + evil},
		{Type: agent.CommandStarted, Command: &agent.CommandEvent{ID: 1, Name: "tf-write", Path: evil}},
		{Type: agent.CommandCompleted, Command: &agent.CommandEvent{ID: 1, Name: "tf-write", Path: evil, Status: "applied", Diff: "@@ -0,0 +1 @@\n+" + evil, Notes: []string{evil}}},
		{Type: agent.ToolCompleted, Tool: &agent.ToolEvent{Name: evil, Arguments: evil, Error: evil}},
	} {
		b.event(e)
		b.clean()
	}
	b.send(preview{evil, 3})
	b.send(asked{ev: agent.ApprovalEvent{ID: "q", Action: evil, Target: evil, Rule: evil, Diff: evil}, reply: make(chan agent.Decision, 1)})
	b.keys("a " + strings.ReplaceAll(evil, "\x1b", "") + "<enter>")
	b.clean()
	b.send(notice(evil))
	b.send(withdrawn{"q"})
	b.end(agent.StateDone)
	b.e.changes.Files = []agent.FileChanges{{Path: evil, Hunks: []agent.Hunk{{Old: evil, New: evil, From: evil, Commands: []string{b.m.runs[0] + "/1/text/1"}}}}}
	b.keys("/diff<enter>")
	assert.Contains(t, strings.Join(b.printed, "\n"), "moved from")
	b.keys("@x")
	b.m.files(found{b.m.completion.word, []string{evil}})
	b.clean()
	b.keys("<tab>")
	b.clean()
}

// clean checks all that was printed, is waiting to be, and is drawn.
func (b *bench) clean() {
	b.t.Helper()
	b.m.queue = append(b.m.queue, b.m.sink.take()...)
	lines, _ := b.m.lines()
	for _, l := range slices.Concat(b.printed, b.m.queue, lines) {
		for _, r := range ansi.Strip(sgr.ReplaceAllString(l, "")) {
			if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x200b {
				b.t.Errorf("%q would steer the terminal", l)
				return
			}
		}
		if strings.Contains(sgr.ReplaceAllString(l, ""), "\x1b") {
			b.t.Errorf("%q would steer the terminal", l)
		}
	}
	b.printed = nil
}

// TestOpeningTheSandbox: the keys that open it count only where the question
// offers them, and the line that names the keys fits every width.
func TestOpeningTheSandbox(t *testing.T) {
	all := []agent.Decision{agent.AllowOnce, agent.AllowSession, agent.AllowOnceNet, agent.AllowOnceGit, agent.AllowOnceGitNet, agent.Deny}
	tests := []struct {
		key     string
		choices []agent.Decision
		want    agent.Decision // "" = still open
	}{
		{"w", all, agent.AllowOnceNet},
		{"g", all, agent.AllowOnceGit},
		{"b", all, agent.AllowOnceGitNet},
		{"y", all, agent.AllowOnce},
		{"W", all, agent.AllowOnceNet},
		{"w", []agent.Decision{agent.AllowOnce, agent.AllowSession, agent.AllowOnceGit, agent.Deny}, ""},
		{"b", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			b := newBench(t)
			b.keys("go<enter>")
			reply := make(chan agent.Decision, 1)
			b.send(asked{ev: agent.ApprovalEvent{ID: "q", Action: "bash", Target: "git fetch", Choices: tt.choices}, reply: reply})
			b.clock = b.clock.Add(time.Second)
			b.keys(tt.key)
			got := agent.Decision("")
			select {
			case got = <-reply:
			default:
			}
			assert.Equal(t, tt.want, got)
		})
	}
	b := newBench(t)
	b.keys("go<enter>")
	b.send(asked{ev: agent.ApprovalEvent{ID: "q", Action: "bash", Target: "git fetch", Choices: all}, reply: make(chan agent.Decision, 1)})
	for cols := 20; cols <= 140; cols++ {
		b.m.cols = cols
		lines := b.m.asking(&b.m.questions[0])
		for _, l := range lines {
			assert.Less(t, ansi.StringWidth(l), cols, l)
		}
		for _, a := range b.m.questions[0].answers() {
			assert.Contains(t, ansi.Strip(strings.Join(lines, "\n")), a.key)
			shown := ansi.Strip(strings.Join(lines, "\n"))
			if cols >= 36 && !strings.Contains(shown, a.key+" "+a.short) && !strings.Contains(shown, a.key+" "+a.long) {
				t.Errorf("%d columns: what does %s mean? %q", cols, a.key, shown)
			}
		}
	}
}
