package agent_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"thinkflow/agent"
	"thinkflow/agent/openai"
	"thinkflow/internal/config"
	"thinkflow/internal/scripted"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden sections of the scenarios")

// TestScenarios runs testdata/agent/*.txtar. A scenario is a comment and these
// sections (those marked * are golden, rewritten by -update):
//
//	config        settings, as in the configuration file
//	script        the model's side: see internal/scripted
//	task          tasks, one a line, each a run in the same session
//	drive         what happens meanwhile, a step a line (see driver)
//	trust         what of the workspace is trusted before, a line "KIND PATH" each
//	in/PATH       files before
//	after/PATH  * files afterwards, all of them
//	result      * how each run ended
//	events      * what was told to whoever watches
//	requests    * what each request added to the conversation
//	ledger      * commands as recorded
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../testdata/agent/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScenario(t, file)
		})
	}
}

func runScenario(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	require.NoError(t, err)
	in := map[string]string{}
	for _, f := range ar.Files {
		in[f.Name] = string(f.Data)
	}

	dir := t.TempDir()
	for name, data := range in {
		if path, ok := strings.CutPrefix(name, "in/"); ok {
			writeFile(t, filepath.Join(dir, path), data)
		}
	}
	rig := newRig(t, dir, in["config"], in["script"])
	for line := range strings.Lines(in["trust"]) {
		kind, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.NoError(t, rig.trust.Grant(trust.Kind(kind), filepath.Join(dir, path), trust.Hash(in["in/"+path])))
	}
	var results strings.Builder
	var events eventLog
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	steps := strings.Split(strings.TrimSpace(in["drive"]), "\n")
	driven := make(chan error, 1)
	go func() { driven <- rig.drive(ctx, steps) }()

	session := rig.inSession()
	for i, task := range strings.Split(strings.TrimSpace(in["task"]), "\n") {
		run := fmt.Sprintf("run%d", i+1)
		rig.setRun(run)
		res, err := rig.engine.Run(ctx, agent.RunRequest{
			Run: run, Session: session, Task: task, DryRun: rig.dryRun,
			Events: func(ev agent.Event) { events.add(rig, ev) },
		})
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "the run did not end in time")
		session = res.Session
		fmt.Fprintf(&results, "%s exit %d, turns %d, requests %d, applied %d, failed %d, skipped %d, files %v\n",
			res.State, res.State.ExitCode(), res.Turns, res.Usage.Requests, res.Applied, res.Failed, res.Skipped, res.Files)
		if res.Reason != "" {
			results.WriteString("  " + rig.clean(res.Reason) + "\n")
		}
		if res.Verify != "" {
			results.WriteString("  verify " + rig.clean(res.Verify) + "\n")
		}
		if res.Text != "" {
			results.WriteString("  text " + rig.clean(fmt.Sprintf("%q", res.Text)) + "\n")
		}
	}
	for _, n := range rig.notices {
		results.WriteString("notice " + rig.clean(n) + "\n")
	}
	require.NoError(t, <-driven)
	require.Empty(t, rig.server.Failures(), "the script's expectations")

	got := &txtar.Archive{Comment: ar.Comment}
	for _, f := range ar.Files {
		if !golden(f.Name) {
			got.Files = append(got.Files, f)
		}
	}
	for _, name := range rig.tree(t) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got.Files = append(got.Files, txtar.File{Name: "after/" + name, Data: quoteUnfit(data)})
	}
	got.Files = append(got.Files,
		txtar.File{Name: "result", Data: []byte(results.String())},
		txtar.File{Name: "events", Data: []byte(events.String())},
		txtar.File{Name: "requests", Data: []byte(rig.requests(t))},
		txtar.File{Name: "ledger", Data: []byte(rig.ledgerRows(t))},
	)
	if *update {
		require.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
		return
	}
	require.Equal(t, string(txtar.Format(ar)), string(txtar.Format(got)))
}

func golden(name string) bool {
	return strings.HasPrefix(name, "after/") || slices.Contains([]string{"result", "events", "requests", "ledger"}, name)
}

// quoteUnfit makes a file's bytes fit into a text archive: what has a carriage
// return, no final line break, or a line like a section's head is quoted.
func quoteUnfit(data []byte) []byte {
	s := string(data)
	if s == "" || strings.HasSuffix(s, "\n") && !strings.Contains(s, "\r") && !strings.Contains("\n"+s, "\n-- ") {
		return data
	}
	return fmt.Appendf(nil, "%q\n", s)
}

// rig is an engine with a scripted model, in a folder of its own.
type rig struct {
	dir     string
	state   string
	engine  *agent.Engine
	options agent.Options
	server  *scripted.Server
	ledger  *ledger.Ledger
	trust   *trust.Store
	dryRun  bool

	mu        sync.Mutex
	run       string
	answers   []agent.Decision
	notices   []string
	compacted bool
}

func newRig(t testing.TB, dir, settings, script string) *rig {
	t.Helper()
	r := &rig{dir: dir, state: t.TempDir()}
	settings, r.dryRun = strings.CutPrefix(settings, "# dry run\n")
	cfgFile := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(cfgFile, []byte(settings), 0o600))
	loaded, err := config.Load(config.Options{File: cfgFile, Env: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	cfg := loaded.Config
	cfg.Model = "scripted"

	s, err := scripted.Parse("script", []byte(script))
	require.NoError(t, err)
	r.server = scripted.New(s, scripted.Options{})
	url, stop, err := r.server.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)

	r.trust = trust.Open(t.TempDir(), nil)
	ws, err := workspace.New([]workspace.Root{{Name: "demo", Dir: dir}}, workspace.Options{})
	require.NoError(t, err)
	o := agent.Options{
		Config: cfg,
		Model: openai.New(openai.Options{
			BaseURL: url, Key: "sk-test", ConnectTimeout: cfg.ConnectTimeout, FirstTokenTimeout: cfg.FirstTokenTimeout, IdleTimeout: cfg.IdleTimeout,
		}),
		Workspace: ws, Trust: r.trust, Notice: r.notice,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			led, err := ledger.Open(ctx, ledger.Options{Dir: r.state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
			r.ledger = led
			return led, err
		},
	}
	if strings.Contains(settings, "# approver") {
		o.Approver = r
	}
	r.options, r.engine = o, agent.New(o)
	t.Cleanup(func() { _ = r.engine.Close() })
	return r
}

// Ask answers with what the drive section said, and waits until it has.
func (r *rig) Ask(ctx context.Context, _ agent.ApprovalEvent) (agent.Decision, error) {
	for {
		r.mu.Lock()
		if len(r.answers) > 0 {
			d := r.answers[0]
			r.answers = r.answers[1:]
			r.mu.Unlock()
			return d, nil
		}
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return agent.Deny, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (r *rig) notice(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, text)
}

func (r *rig) setRun(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run = id
}

// inSession is the session of the runs of this scenario.
func (r *rig) inSession() string { return "session" }

func (r *rig) current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.run
}

// drive plays the steps:
//
//	reached NAME      wait until the script awaits NAME
//	release NAME      let it go on
//	exists PATH       wait until the file is there
//	has PATH "text"   wait until the file contains the text
//	write PATH "text" the user writes a file
//	mkdir PATH, remove PATH, chmod MODE PATH
//	answer once|session|no   the next question is answered so
//	mode MODE, model NAME, effort WORD   switched in the running session
//	steer TEXT, cancel
func (r *rig) drive(ctx context.Context, steps []string) error {
	for _, step := range steps {
		verb, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		arg, more, _ := strings.Cut(rest, " ")
		var err error
		switch verb {
		case "", "#":
		case "reached":
			err = r.server.Reached(ctx, rest)
		case "release":
			r.server.Release(rest)
		case "exists":
			err = r.await(ctx, func() bool { _, err := os.Lstat(filepath.Join(r.dir, rest)); return err == nil })
		case "has":
			text := unquote(more)
			err = r.await(ctx, func() bool {
				data, err := os.ReadFile(filepath.Join(r.dir, arg))
				return err == nil && strings.Contains(string(data), text)
			})
		case "write":
			err = os.WriteFile(filepath.Join(r.dir, arg), []byte(unquote(more)), 0o644)
		case "mkdir":
			err = os.MkdirAll(filepath.Join(r.dir, rest), 0o755)
		case "remove":
			err = os.RemoveAll(filepath.Join(r.dir, rest))
		case "answer":
			r.mu.Lock()
			r.answers = append(r.answers, agent.Decision(rest))
			r.mu.Unlock()
		case "mode":
			_, err = r.engine.Switch(r.inSession(), agent.SessionSettings{Mode: config.Mode(rest)})
		case "model":
			_, err = r.engine.Switch(r.inSession(), agent.SessionSettings{Model: rest})
		case "effort":
			_, err = r.engine.Switch(r.inSession(), agent.SessionSettings{ReasoningEffort: rest})
		case "steer":
			err = r.engine.Steer(r.current(), rest)
		case "cancel":
			if !r.engine.Cancel(r.current()) {
				err = fmt.Errorf("nothing to cancel")
			}
		default:
			err = fmt.Errorf("unknown step %q", step)
		}
		if err != nil {
			return fmt.Errorf("drive %q: %w", step, err)
		}
	}
	return nil
}

func unquote(s string) string {
	var out string
	if json.Unmarshal([]byte(s), &out) != nil {
		return s
	}
	return out
}

func (r *rig) await(ctx context.Context, cond func() bool) error {
	for !cond() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// eventLog renders events in an order that does not depend on timing: in each
// turn first what the stream brought, then what became of its commands, by
// channel and id. The order of effects shows in the ledger section.
type eventLog struct {
	b      strings.Builder
	stream []string
	worker []workerLine
	text   string // text of one kind, joined: how it is coalesced depends on time
	kind   agent.EventType
}

type workerLine struct{ key, line string }

func (l *eventLog) String() string { return l.b.String() }

func (l *eventLog) add(r *rig, ev agent.Event) {
	switch ev.Type {
	case agent.Compaction:
		r.mu.Lock()
		r.compacted = true
		r.mu.Unlock()
	}
	switch ev.Type {
	case agent.UsageReported, agent.ToolOutput, agent.ChangesUpdated:
		return
	case agent.TextDelta, agent.ReasoningDelta:
		if ev.Type != l.kind {
			l.endText()
		}
		l.kind, l.text = ev.Type, l.text+ev.Text
		return
	case agent.CommandCompleted, agent.CommandSkipped, agent.ApprovalRequested:
		key := "~" // approvals last
		if c := ev.Command; c != nil {
			key = fmt.Sprintf("%s %06d", c.Channel, c.ID)
		}
		l.worker = append(l.worker, workerLine{key, r.line(ev)})
		return
	case agent.CommandStarted:
		l.endText()
		l.stream = append(l.stream, r.line(ev))
		return
	}
	l.flush()
	l.b.WriteString(r.line(ev) + "\n")
}

func (l *eventLog) endText() {
	if l.text != "" {
		l.stream = append(l.stream, string(l.kind)+" "+quoteJSON(l.text))
	}
	l.text = ""
}

func (l *eventLog) flush() {
	l.endText()
	slices.SortStableFunc(l.worker, func(a, b workerLine) int { return strings.Compare(a.key, b.key) })
	for _, s := range l.stream {
		l.b.WriteString(s + "\n")
	}
	for _, w := range l.worker {
		l.b.WriteString(w.line + "\n")
	}
	l.stream, l.worker = nil, nil
}

// line is one event in one line.
func (r *rig) line(ev agent.Event) string {
	line := string(ev.Type)
	switch {
	case ev.Type == agent.RunStarted:
		line += " " + ev.Task
	case ev.Type == agent.TurnStarted:
		line += fmt.Sprintf(" %d", ev.Turn)
	case ev.Command != nil:
		c := ev.Command
		line += fmt.Sprintf(" %s/%d %s %s", c.Channel, c.ID, c.Name, strings.TrimSpace(c.Path+" "+c.Dest+" "+c.Cmd))
		if c.Status != "" {
			line += " " + c.Status
		}
		for _, s := range []string{c.Code, c.Rung} {
			if s != "" {
				line += " [" + s + "]"
			}
		}
		if c.Added+c.Removed > 0 {
			line += fmt.Sprintf(" +%d -%d", c.Added, c.Removed)
		}
		for _, n := range c.Notes {
			line += "; " + n
		}
		if c.Error != "" {
			line += ": " + firstLineOf(c.Error)
		}
		if ev.Reason != "" {
			line += ": " + ev.Reason
		}
	case ev.Tool != nil:
		line += fmt.Sprintf(" %s %s %s", ev.Tool.Name, ev.Tool.Arguments, ev.Tool.Status)
		if ev.Tool.Code != "" {
			line += " " + ev.Tool.Code + ": " + ev.Tool.Error
		}
	case ev.Type == agent.Thought:
		th := ev.Thinking
		line += fmt.Sprintf(" %d/%d", th.Number, th.Total)
		if th.Revises > 0 {
			line += fmt.Sprintf(" (%s %d)", th.Revision, th.Revises)
		}
		if th.Branch != "" {
			line += fmt.Sprintf(" (branch %s from %d)", th.Branch, th.From)
		}
		line += " " + ev.Text
	case ev.Type == agent.PlanUpdated:
		for _, it := range ev.Plan {
			line += fmt.Sprintf(" [%s] %s;", it.Status, it.Title)
		}
	case ev.Approval != nil:
		line += fmt.Sprintf(" %s %s (%s)", ev.Approval.Action, ev.Approval.Target, ev.Approval.Rule)
	case ev.Reason != "":
		line += " " + ev.Reason
	}
	return strings.TrimRight(r.clean(line), " ")
}

func quoteJSON(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func firstLineOf(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

var (
	reToken  = regexp.MustCompile(`(until |^--- )[0-9a-f]{8}(\)|$)`)
	reTokens = regexp.MustCompile(`about \d+( to \d+)?( tokens)|\d+( fit)`)
	rePort   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	reWait   = regexp.MustCompile(`trying again in \S+`)
)

// clean removes from a text what differs from run to run.
func (r *rig) clean(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = reToken.ReplaceAllString(l, "${1}TOKEN$2")
	}
	s = strings.Join(lines, "\n")
	s = strings.ReplaceAll(s, r.dir, "DIR")
	s = rePort.ReplaceAllString(s, "HOST")
	s = reTokens.ReplaceAllString(s, "about N$2$3")
	return reWait.ReplaceAllString(s, "trying again in WAIT")
}

// ledgerRows lists the commands as recorded, and checks the chain.
func (r *rig) ledgerRows(t *testing.T) string {
	if r.ledger == nil {
		return ""
	}
	_, err := r.ledger.Verify(context.Background())
	require.NoError(t, err)
	cmds, err := r.ledger.List(context.Background(), ledger.Filter{})
	require.NoError(t, err)
	var b strings.Builder
	for _, c := range cmds {
		told := ""
		if c.Injected != nil {
			told = " told"
		}
		fmt.Fprintf(&b, "%s %s %s %s%s\n", c.Key, c.Tool, strings.TrimSpace(c.Path+" "+c.Dest+" "+c.Cmd), strings.TrimSpace(string(c.Status)+" "+c.Code), told)
	}
	return b.String()
}

// tree lists the files of the workspace.
func (r *rig) tree(t *testing.T) []string {
	var out []string
	require.NoError(t, filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(r.dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	slices.Sort(out)
	return out
}

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if strings.HasPrefix(data, `"`) {
		data = unquote(strings.TrimSpace(data))
	}
	require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
}
