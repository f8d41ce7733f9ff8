package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/alecthomas/kong"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/redact"
	"thinkflow/internal/term"
)

// The exit codes; agent.State.ExitCode has the same for runs.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 130
)

// cli is the command line.
type cli struct {
	Chat     chatCmd     `cmd:"" help:"Work on tasks in a conversation, at the terminal."`
	Run      runCmd      `cmd:"" help:"Work on a task in a folder."`
	Demo     demoCmd     `cmd:"" help:"Watch an agent work: a scripted model, no key, no network."`
	Lsp      lspCmd      `cmd:"" name:"lsp" help:"Serve an editor over stdin and stdout."`
	Resume   resumeCmd   `cmd:"" help:"Go on with a run that was suspended, cancelled or cut short."`
	Approve  approveCmd  `cmd:"" help:"Answer what a suspended run waits for, and go on with it."`
	Sessions sessionsCmd `cmd:"" help:"List conversations that can be gone on with."`
	Review   reviewCmd   `cmd:"" help:"Look at what a run changed or proposes: keep, undo, patch."`
	Undo     undoCmd     `cmd:"" help:"Undo a run or one of its commands, from the ledger."`
	Ledger   ledgerCmd   `cmd:"" help:"What runs did: list and show their commands."`
	Serve    serveCmd    `cmd:"" help:"Serve runs over HTTP: requests, server-sent events, a page that follows them."`
	Report   reportCmd   `cmd:"" help:"Make an HTML page of a run: timeline, changes, failures, tokens and cost."`
	Doctor   doctorCmd   `cmd:"" help:"Check settings, endpoint, key, model and state folder."`
	Config   configCmd   `cmd:"" help:"Print the effective configuration and where each value comes from."`
	Replay   replayCmd   `cmd:"" help:"Serve a scripted model to any OpenAI-compatible client."`
	Key      keyCmd      `cmd:"" help:"Keep the API key of an endpoint in the key ring of the operating system: set, delete."`
	Trust    trustCmd    `cmd:"" help:"Rules and commands of workspaces that you agreed to: list, add, remove."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

// settings are the flags of every command that reads the configuration.
type settings struct {
	ConfigFile string            `name:"config" placeholder:"FILE" help:"Configuration file instead of the user's."`
	Model      string            `short:"m" placeholder:"NAME" help:"Name of the model."`
	BaseURL    string            `name:"base-url" placeholder:"URL" help:"Base URL of an OpenAI-compatible API, up to and including /v1."`
	Set        map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Any other setting; see docs/configuration.md."`
}

// app is what commands work with instead of the process.
type app struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	redact         *redact.Redactor // knows the keys that were loaded
	keys           keyRing          // nil = there is none
}

// keyRing is where keys are filed by endpoint.
type keyRing interface {
	Lookup(baseURL string) (key, source string, err error)
	Set(baseURL, key string) error
	Delete(baseURL string) error
}

// usageError is a mistake on the command line or in the configuration.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError ends the program with a code; everything has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// run is the program. It returns the exit code; environ is as os.Environ has it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) (code int) {
	return runWith(&app{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}, args)
}

func runWith(a *app, args []string) (code int) {
	a.redact = &redact.Redactor{}
	var grammar cli
	parser, err := kong.New(&grammar,
		kong.Name("thinkflow"),
		kong.Description("An agent that edits files while the model is still speaking."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(c int) { panic(exitError(c)) }), // --help
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.UsageOnError(),
	)
	if err != nil {
		panic(err) // the grammar is wrong: a bug
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exitError:
			code = int(r)
		default:
			panic(r)
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(args)
	if err != nil {
		return a.fail(usagef("%w\nsee: thinkflow --help", err))
	}
	return a.fail(kctx.Run(a))
}

// fail says what went wrong and returns the exit code for it.
func (a *app) fail(err error) int {
	if err == nil {
		return exitOK
	}
	var exit exitError
	if errors.As(err, &exit) {
		return int(exit)
	}
	if errors.Is(err, context.Canceled) && a.ctx.Err() != nil {
		return exitCancelled
	}
	text := term.Visible(a.redact.String(err.Error()))
	fmt.Fprintf(a.stderr, "thinkflow: %s\n", strings.ReplaceAll(text, "\n", "\nthinkflow: "))
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// env looks up a variable; the last one of a name counts.
func (a *app) env(name string) (value string, ok bool) {
	for _, kv := range a.environ {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// load reads the configuration. Errors are usage errors.
func (a *app) load(s *settings, flags map[string]string, editor map[string]any) (*config.Loaded, error) {
	all := map[string]string{}
	maps.Copy(all, s.Set)
	maps.Copy(all, flags)
	if s.Model != "" {
		all["model"] = s.Model
	}
	if s.BaseURL != "" {
		all["base_url"] = s.BaseURL
	}
	o := config.Options{Env: a.env, Environ: a.environ, File: s.ConfigFile, Editor: editor, Flags: all}
	if a.keys != nil {
		o.KeyRing = a.keys.Lookup
	}
	loaded, err := config.Load(o)
	// One that is too short to be told from text ("none") guards nothing.
	_ = a.redact.Add(loaded.Config.Secrets()...)
	if rerr := agent.RuleProblems(&loaded.Config); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return loaded, usageError{err}
	}
	return loaded, nil
}

// screen is a renderer on stdout; done takes it down and gives the console back.
func (a *app) screen() (screen *term.Renderer, done func()) {
	o, restore := term.Detect(a.stdout, a.env)
	o.Asks = a.canAsk()
	screen = term.New(o)
	return screen, func() {
		screen.Close()
		restore()
	}
}

// canAsk reports whether a person sits at the terminal.
func (a *app) canAsk() bool { return term.IsTerminal(a.stdin) && term.IsTerminal(a.stdout) }
