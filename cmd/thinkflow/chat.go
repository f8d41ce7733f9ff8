package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"thinkflow/agent"
	"thinkflow/internal/chat"
	"thinkflow/internal/config"
	"thinkflow/internal/redact"
	"thinkflow/internal/term"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

type chatCmd struct {
	settings
	Task    []string   `arg:"" optional:"" help:"What to begin with."`
	Dir     string     `short:"C" placeholder:"DIR" help:"Folder to work in (the current one)."`
	Mode    string     `placeholder:"MODE" help:"What may be done: ask, plan, edit (the default) or auto."`
	Allow   []string   `placeholder:"CLASS" help:"What may be done without asking: bash, delete, secrets, protected, net, git, or with a pattern, like 'bash go test'."`
	Sandbox string     `placeholder:"HOW" help:"How shell commands are held: auto (the default), or none."`
	Resume  resumeFlag `placeholder:"SESSION" help:"Go on with a conversation: its id, the beginning of one, or nothing for the last."`
}

func (c *chatCmd) Run(a *app) error {
	in, _ := a.stdin.(*os.File)
	out, _ := a.stdout.(*os.File)
	o, restore := term.Detect(a.stdout, a.env)
	defer restore()
	if !a.canAsk() || !o.Live || in == nil || out == nil {
		return usagef("chat needs a terminal to read from and to write to; without one use: thinkflow run \"what is to be done\" (with - the task is read from stdin, with --json events are written)")
	}
	flags := map[string]string{}
	if len(c.Allow) > 0 {
		flags["allow"] = strings.Join(c.Allow, ",")
	}
	if c.Mode != "" {
		flags["mode"] = c.Mode
	}
	if c.Sandbox != "" {
		flags["sandbox"] = c.Sandbox
	}
	loaded, err := a.load(&c.settings, flags, nil)
	if err != nil {
		return err
	}
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	if err := needModel(loaded); err != nil {
		return err
	}
	cfg := loaded.Config
	talk := chat.New()
	for _, w := range loaded.Warnings {
		talk.Notice(w)
	}
	log, closeLog, err := logger(&cfg, talk.LogWriter(), a.redact)
	if err != nil {
		return err
	}
	defer closeLog()
	engine, ws, err := assemble(parts{
		cfg: cfg, roots: []workspace.Root{{Dir: dir}}, file: loaded.File,
		approver: talk.Approver(), asks: "terminal", notice: talk.Notice, log: log, redact: a.redact, env: a.env,
	})
	if err != nil {
		return err
	}
	state, err := stateDir(&cfg, dir)
	if err != nil {
		return err
	}
	resume, task := string(c.Resume), c.Task
	if resume == chat.Last && len(task) > 0 && sessionID.MatchString(task[0]) { // --resume ID
		resume, task = task[0], task[1:]
	}
	session, err := talk.Run(a.ctx, chat.Options{
		Engine: engine, Files: ws, In: in, Out: out, Environ: a.environ, Color: o.Color, Size: o.Size,
		Model: cfg.Model, Dir: dir, Task: strings.Join(task, " "), Resume: resume,
		History: filepath.Join(state, "chat-history.jsonl"),
		Allow: func(class config.Class) error {
			if !slices.Contains(cfg.Allow, class) {
				next := cfg
				next.Allow = append(slices.Clone(cfg.Allow), class)
				if err := agent.RuleProblems(&next); err != nil {
					return err
				}
				cfg = next
				engine.Configure(cfg, newModel(&cfg, log))
			}
			return nil
		},
		Ledger: func(ctx context.Context, _ string, screen *term.Renderer) error {
			return chatLedger(ctx, state, dir, screen)
		},
		Config: func(screen *term.Renderer) error {
			now := *loaded
			now.Config = cfg
			showConfig(screen, &now)
			return nil
		},
	})
	if cerr := engine.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("the ledger was not closed well: %w", cerr))
	}
	if err == nil && session != "" {
		fmt.Fprintf(a.stderr, "to go on: %s chat --resume %s\n", program(), session)
	}
	return err
}

// sessionID is how ids of sessions look, or the beginning of one that is long
// enough to be no word.
var sessionID = regexp.MustCompile(`^[0-9a-v]{8,20}$`)

// resumeFlag is a flag whose value may be left out: --resume, --resume=ID.
type resumeFlag string

// IsBool lets the flag stand alone.
func (resumeFlag) IsBool() bool { return true }

// Decode reads the value if there is one.
func (f *resumeFlag) Decode(ctx *kong.DecodeContext) error {
	*f = chat.Last
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		*f = resumeFlag(ctx.Scan.Pop().String())
	}
	return nil
}

// chatLedger lists the last commands of the folder's ledger.
func chatLedger(ctx context.Context, state, dir string, screen *term.Renderer) error {
	if _, err := os.Stat(state); err != nil {
		screen.Notice("nothing was done here yet")
		return nil
	}
	led, err := openLedger(ctx, state, dir, nil, &redact.Redactor{})
	if err != nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	commands, err := led.List(ctx, ledger.Filter{Last: 20})
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range commands {
		row := commandRow(&commands[i])
		rows = append(rows, []string{row[0], row[1], row[3], row[4], row[5]})
	}
	if len(rows) == 0 {
		screen.Notice("nothing was done here yet")
		return nil
	}
	screen.Table([]string{"no", "time", "status", "lines", "command"}, rows)
	screen.Dim("thinkflow ledger show NUMBER has the texts")
	return nil
}
