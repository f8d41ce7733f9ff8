package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/term"
	"thinkflow/workspace"
)

type runCmd struct {
	settings
	Task    []string `arg:"" help:"What is to be done; - reads it from stdin."`
	Dir     string   `short:"C" placeholder:"DIR" help:"Folder to work in (the current one)."`
	JSON    bool     `name:"json" help:"Write events to stdout, one JSON object a line, and nothing else."`
	DryRun  bool     `name:"dry-run" help:"Plan and show every change; write nothing."`
	Session string   `placeholder:"ID" help:"Go on with this conversation; see: thinkflow sessions."`
	Mode    string   `placeholder:"MODE" help:"What may be done: ask, plan, edit (the default) or auto."`
	Allow   []string `placeholder:"CLASS" help:"What may be done without asking: bash, delete, secrets, protected, net, git, or with a pattern, like 'bash go test'."`
	Sandbox string   `placeholder:"HOW" help:"How shell commands are held: auto (the default), or none."`
}

func (c *runCmd) Run(a *app) error {
	flags := map[string]string{}
	if len(c.Allow) > 0 {
		flags["allow"] = strings.Join(c.Allow, ",")
	}
	if c.Sandbox != "" {
		flags["sandbox"] = c.Sandbox
	}
	if c.Mode != "" {
		flags["mode"] = c.Mode
	}
	loaded, err := a.load(&c.settings, flags, nil)
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(w))
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	task, err := a.task(c.Task)
	if err != nil {
		return err
	}
	if err := needModel(loaded); err != nil {
		return err
	}
	return a.work(job{
		cfg: loaded.Config, file: loaded.File, dir: dir, task: task, json: c.JSON, dryRun: c.DryRun, session: c.Session,
	})
}

func needModel(l *config.Loaded) error {
	if l.Config.Model != "" {
		return nil
	}
	return usagef("no model is set: use --model NAME, or the variable THINKFLOW_MODEL, or `model = \"NAME\"` in %s", l.File)
}

// task is the task as given, or as read from stdin.
func (a *app) task(words []string) (string, error) {
	task := strings.Join(words, " ")
	if task == "-" {
		const most = 1 << 20
		data, err := io.ReadAll(io.LimitReader(a.stdin, most+1))
		if err != nil {
			return "", fmt.Errorf("cannot read the task from stdin: %w", err)
		}
		if len(data) > most {
			return "", usagef("the task on stdin is longer than 1 MiB; put it into a file and name that in the task")
		}
		task = string(data)
	}
	if strings.TrimSpace(task) == "" {
		return "", usagef("the task is empty: say what is to be done")
	}
	return task, nil
}

// job is one run for the command line.
type job struct {
	cfg    config.Config
	file   string
	dir    string
	task   string
	json   bool
	dryRun bool
	// session is a conversation to go on with; "" = a new one.
	session string
	// resume goes on with a run instead.
	resume *agent.ResumeRequest
	// ended says what to do next; nil = nothing is said.
	ended func(agent.RunResult) []string
}

// work does the job and returns an exitError unless the run is done.
func (a *app) work(j job) error {
	out := a.output(&j)
	defer out.close()
	log, closeLog, err := logger(&j.cfg, out.log, a.redact)
	if err != nil {
		return err
	}
	defer closeLog()
	engine, _, err := assemble(parts{
		cfg: j.cfg, roots: []workspace.Root{{Dir: j.dir}}, file: j.file,
		approver: out.approver, asks: "terminal", notice: out.notice, log: log, redact: a.redact, env: a.env,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	out.broken = cancel
	event, told := a.notifying(&j.cfg, log, !j.json, out.event)
	out.event = event
	defer told()
	var result agent.RunResult
	if j.resume != nil {
		j.resume.Events, j.resume.Preview = out.event, out.preview
		result, err = engine.Resume(ctx, *j.resume)
	} else {
		result, err = engine.Run(ctx, agent.RunRequest{Session: j.session, Task: j.task, DryRun: j.dryRun, Events: out.event, Preview: out.preview})
	}
	if cerr := engine.Close(); cerr != nil {
		log.Error("the ledger was not closed well", "error", cerr)
	}
	if err != nil {
		return err
	}
	if j.ended != nil {
		out.hints(j.ended(result))
	}
	if code := result.State.ExitCode(); code != 0 {
		return exitError(code)
	}
	return nil
}

// output is where a run's events go.
type output struct {
	event    func(agent.Event)
	preview  func(agent.Preview)
	approver agent.Approver
	notice   func(string)
	log      io.Writer
	hints    func([]string)
	close    func()
	broken   func() // called once nobody reads any longer
}

// output is NDJSON or a person's terminal.
func (a *app) output(j *job) *output {
	if j.json {
		return a.jsonOutput()
	}
	screen, done := a.screen()
	stop := screen.Animate(a.ctx)
	o := &output{
		event:   screen.Event,
		preview: func(p agent.Preview) { screen.Progress(p.Path, p.Bytes) },
		notice:  screen.Notice,
		log:     screen.LogWriter(),
		hints:   screen.Hints,
		close: func() {
			stop()
			done()
		},
	}
	if a.canAsk() {
		o.approver = term.NewApprover(screen, a.stdin)
	}
	return o
}

func (a *app) jsonOutput() *output {
	o := &output{
		notice: func(s string) { fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(s)) },
		log:    a.stderr, hints: func([]string) {}, close: func() {}, broken: func() {},
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	failed := false
	o.event = func(e agent.Event) {
		if failed {
			return
		}
		if err := enc.Encode(e); err != nil {
			failed = true
			fmt.Fprintln(a.stderr, "thinkflow: nobody reads the events any longer; the run is cancelled:", err)
			o.broken()
		}
	}
	return o
}
