package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/sandbox"
	"thinkflow/internal/term"
	"thinkflow/workspace"
)

type doctorCmd struct {
	settings
	Dir     string `short:"C" placeholder:"DIR" help:"Folder whose ledger is looked at (the current one)."`
	Offline bool   `help:"Send no request."`
}

// doctor collects what was found; each check says what to do about a failure.
type doctor struct {
	*app
	screen *term.Renderer
	cfg    *config.Config
	failed bool
}

func (d *doctor) ok(name, format string, args ...any) {
	d.screen.Check("ok", name, d.redact.String(fmt.Sprintf(format, args...)), "")
}

func (d *doctor) warn(name, hint, format string, args ...any) {
	d.screen.Check("warn", name, d.redact.String(fmt.Sprintf(format, args...)), hint)
}

func (d *doctor) fail(name, hint, format string, args ...any) {
	d.failed = true
	d.screen.Check("fail", name, d.redact.String(fmt.Sprintf(format, args...)), hint)
}

func (c *doctorCmd) Run(a *app) error {
	loaded, loadErr := a.load(&c.settings, nil, nil)
	screen, done := a.screen()
	defer done()
	d := &doctor{app: a, screen: screen, cfg: &loaded.Config}
	d.configuration(loaded, loadErr)
	dir, err := folder(c.Dir)
	if err != nil {
		return err
	}
	reachable := d.endpoint(loaded)
	context := d.cfg.ContextTokens
	if d.model() && reachable && !c.Offline && d.request() && context == 0 {
		context = d.offered()
	}
	d.context(dir, context)
	d.state(dir)
	d.sandbox()
	if a.ctx.Err() != nil {
		return exitError(exitCancelled)
	}
	if d.failed {
		return exitError(exitFailed)
	}
	return nil
}

func (d *doctor) configuration(l *config.Loaded, err error) {
	for _, w := range l.Warnings {
		d.warn("environment", "", "%s", w)
	}
	switch {
	case err != nil:
		d.fail("settings", "the defaults stand in for what is wrong", "%v", err)
	case l.FileRead:
		d.ok("settings", "%s", l.File)
	default:
		d.ok("settings", "no file at %s: defaults and environment", l.File)
	}
}

// endpoint looks at URL and key and reports whether a request makes sense.
func (d *doctor) endpoint(l *config.Loaded) bool {
	u, err := url.Parse(d.cfg.BaseURL)
	if err != nil || u.Host == "" {
		d.fail("endpoint", "set OPENAI_BASE_URL to something like https://host/v1", "%q is no URL", d.cfg.BaseURL)
		return false
	}
	d.ok("endpoint", "%s (%s)", d.cfg.BaseURL, l.Sources["base_url"])
	local := u.Hostname() == "localhost"
	if ip := net.ParseIP(u.Hostname()); ip != nil && (ip.IsLoopback() || ip.IsPrivate()) {
		local = true
	}
	switch {
	case d.cfg.APIKey.Set() && u.Scheme == "http" && !local:
		d.warn("key", "use https, or a host on your own network", "set, from %s, and sent without encryption", l.KeySource)
	case d.cfg.APIKey.Set():
		d.ok("key", "set, from %s", l.KeySource)
	case local:
		d.ok("key", "none, and a server of your own mostly needs none")
	default:
		d.fail("key", "set "+d.cfg.KeyEnv+", or key_file in "+l.File, "there is no key for %s", u.Host)
		return false
	}
	return true
}

func (d *doctor) model() bool {
	if d.cfg.Model == "" {
		d.fail("model", "set THINKFLOW_MODEL, or model in the configuration file", "no model is set")
		return false
	}
	d.ok("model", "%s", d.cfg.Model)
	return true
}

// offered asks for the list of models and returns the model's context in
// tokens, 0 if it is not told. Many endpoints have no list: that is no failure.
func (d *doctor) offered() int {
	models, err := newModel(d.cfg, nil).Models(d.ctx)
	if err != nil {
		return 0
	}
	for _, m := range models {
		if m.ID == d.cfg.Model {
			return m.ContextTokens
		}
	}
	return 0
}

// request sends one small request and reads the answer to its end.
func (d *doctor) request() bool {
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.ConnectTimeout+d.cfg.FirstTokenTimeout)
	defer cancel()
	start := time.Now()
	first := time.Duration(0)
	text, usage := "", (*agent.TurnUsage)(nil)
	answered := d.screen.Busy(ctx, "waiting for the model's answer to a test request")
	err := func() error {
		stream, err := newModel(d.cfg, nil).Stream(ctx, &agent.Request{
			Model: d.cfg.Model, ReasoningEffort: d.cfg.ReasoningEffort,
			Messages: []agent.Message{{Role: agent.RoleUser, Content: "Answer with the single word: ready"}},
		})
		if err != nil {
			return err
		}
		defer stream.Close() //nolint:errcheck // read to its end, or failed
		for {
			delta, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if first == 0 && delta.Text+delta.Reasoning != "" {
				first = time.Since(start)
			}
			text += delta.Text
			if delta.Usage != nil {
				usage = delta.Usage
			}
		}
	}()
	answered()
	var me *agent.ModelError
	switch {
	case errors.As(err, &me) && d.app.ctx.Err() == nil:
		d.fail("test request", me.Hint, "%s", me.Message)
		return false
	case d.app.ctx.Err() != nil:
		d.fail("test request", "", "cancelled")
		return false
	case err != nil:
		d.fail("test request", "", "%v", err)
		return false
	default:
		word := strings.TrimSpace(text)
		if len(word) > 40 {
			word = word[:40] + "…"
		}
		d.ok("test request", "%q after %s, all after %s", word, term.Elapsed(first), term.Elapsed(time.Since(start)))
		if usage == nil || usage.Input < 0 {
			d.warn("usage", "bounds on tokens and money work with estimates", "the server does not report token counts")
		}
	}
	return true
}

// context compares the model's context, in tokens, with what every request pays.
func (d *doctor) context(dir string, size int) {
	engine, _, err := assemble(parts{cfg: *d.cfg, roots: []workspace.Root{{Dir: dir}}})
	if err != nil {
		return
	}
	bytes := engine.FirstRequestBytes()
	tokens := bytes / 4
	if size == 0 {
		d.warn("context", "set context_tokens, so that long conversations are shortened in time",
			"prompt and tools take about %d tokens (%d bytes); the size of the model's context is not known", tokens, bytes)
		return
	}
	if tokens*4 > size {
		d.fail("context", "use a model with a larger context, or start the server with one (llama.cpp: -c, Ollama: num_ctx)",
			"prompt and tools take about %d of %d tokens: too little is left for work", tokens, size)
		return
	}
	d.ok("context", "prompt and tools take about %d of %d tokens (%d bytes)", tokens, size, bytes)
}

// state checks that the ledger's folder can be written to.
func (d *doctor) state(dir string) {
	state, err := stateDir(d.cfg, dir)
	if err != nil {
		d.fail("state", "", "%v", err)
		return
	}
	// The nearest folder that exists must be writable: nothing is made here.
	at := state
	for {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".thinkflow-doctor-*")
	if err != nil {
		d.fail("state", "make it writable, or set THINKFLOW_STATE_DIR to a folder that is", "%v", err)
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	d.ok("state", "%s", state)
}

// sandbox says what holds shell commands, found out by trying.
func (d *doctor) sandbox() {
	if d.cfg.Sandbox == config.SandboxNone {
		d.warn("sandbox", "set sandbox to auto", "switched off (sandbox = none): commands run as you would run them")
		return
	}
	report := sandbox.Detect(d.ctx, sandbox.Options{}).Report()
	name := strings.TrimSpace(string(report.Kind) + " " + report.Version)
	why := strings.Join(report.Missing, "; ")
	if !report.Confines() {
		d.warn("sandbox", "install bubblewrap (Linux); or set sandbox to none to let commands run unconfined", "none: every shell command asks. %s", why)
		return
	}
	text := fmt.Sprintf("%s: files: %s; network: %s; processes: %s", name, report.Files, report.Network, report.Processes)
	for _, l := range report.Limits {
		text += "; but " + l
	}
	if why != "" {
		text += ". Not in force: " + why
	}
	d.ok("sandbox", "%s", text)
}
