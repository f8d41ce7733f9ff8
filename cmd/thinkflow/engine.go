package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"thinkflow/agent"
	"thinkflow/agent/openai"
	"thinkflow/internal/config"
	"thinkflow/internal/redact"
	"thinkflow/internal/telemetry"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// parts is what an engine is put together from.
type parts struct {
	cfg      config.Config
	roots    []workspace.Root
	file     string // the user's configuration file: protected
	editor   agent.Editor
	approver agent.Approver
	asks     string // where the approver asks: editor, terminal, http
	notice   func(string)
	log      *slog.Logger
	redact   *redact.Redactor
	env      func(name string) (string, bool) // for telemetry; nil = none
}

// assemble makes workspace, model and engine. It touches neither network nor
// ledger yet.
func assemble(p parts) (*agent.Engine, *workspace.Workspace, error) {
	if len(p.roots) == 0 {
		return nil, nil, usagef("no folder to work in")
	}
	state, err := stateDir(&p.cfg, p.roots[0].Dir)
	if err != nil {
		return nil, nil, err
	}
	own := []string{filepath.Dir(filepath.Dir(state))}
	if p.file != "" {
		own = append(own, p.file)
	}
	deny, asks := agent.Patterns(&p.cfg)
	ws, err := workspace.New(p.roots, workspace.Options{Own: own, Deny: deny, Secrets: asks})
	if err != nil {
		return nil, nil, usageError{err}
	}
	safe := p.redact
	if safe == nil {
		safe = &redact.Redactor{}
	}
	_ = safe.Add(p.cfg.Secrets()...) // one that is too short guards nothing
	tracer, err := newTracer(p)
	if err != nil && p.notice != nil {
		p.notice("telemetry: " + err.Error())
	}
	engine := agent.New(agent.Options{
		Config: p.cfg, Model: newModel(&p.cfg, p.log), Workspace: ws,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			o := ledgerOptions(state, p.roots[0].Dir, p.log, safe)
			o.KeepFor, o.KeepBytes = p.cfg.LedgerAge, int64(p.cfg.LedgerSize)
			return ledger.Open(ctx, o)
		},
		Trust:  trust.Open(own[0], nil),
		Shell:  shell(&p.cfg, state),
		Redact: safe,
		Tracer: tracer,
		Editor: p.editor, Approver: p.approver, Asks: p.asks, Notice: p.notice, Log: p.log,
	})
	return engine, ws, nil
}

// newTracer is a tracer if an OTLP endpoint is set, else nil.
func newTracer(p parts) (agent.Tracer, error) {
	if p.env == nil {
		return nil, nil
	}
	t, err := telemetry.New(telemetry.Options{Env: p.env, Version: shortVersion(), Endpoint: p.cfg.BaseURL, Log: p.log})
	if t == nil {
		return nil, err
	}
	return t, nil
}

// shell says what commands may not see and where their caches are.
func shell(c *config.Config, state string) agent.Shell {
	s := agent.Shell{Hidden: []string{filepath.Dir(filepath.Dir(state))}}
	if c.KeyFile != "" {
		s.Hidden = append(s.Hidden, c.KeyPath())
	}
	if dir, err := os.UserCacheDir(); err == nil {
		s.Cache = filepath.Join(dir, "thinkflow", "commands")
	}
	return s
}

// newModel is the client for the configured endpoint.
func newModel(c *config.Config, log *slog.Logger) *openai.Client {
	return openai.New(openai.Options{
		BaseURL: c.BaseURL, Key: c.APIKey.Reveal(), KeyHint: c.KeyEnv,
		ConnectTimeout: c.ConnectTimeout, FirstTokenTimeout: c.FirstTokenTimeout, IdleTimeout: c.IdleTimeout,
		Headers: c.Headers, Extra: c.ExtraBody, UserAgent: "thinkflow/" + shortVersion(), Log: log,
	})
}

// stateDir is the folder of the ledger of the workspace in dir.
func stateDir(c *config.Config, dir string) (string, error) {
	if c.StateDir == "" {
		return ledger.StateDir(dir)
	}
	root, err := filepath.Abs(c.StateDir)
	if err != nil {
		return "", fmt.Errorf("state_dir %s: %w", c.StateDir, err)
	}
	usual, err := ledger.StateDir(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "workspaces", filepath.Base(usual)), nil
}

func openLedger(ctx context.Context, state, dir string, log *slog.Logger, safe *redact.Redactor) (*ledger.Ledger, error) {
	return ledger.Open(ctx, ledgerOptions(state, dir, log, safe))
}

func ledgerOptions(state, dir string, log *slog.Logger, safe *redact.Redactor) ledger.Options {
	return ledger.Options{
		Redact: safe.String, RedactJSON: safe.JSON,
		Dir: state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp, Log: log,
	}
}

// folder checks that dir is a folder and makes it absolute; "" is the working
// directory.
func folder(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", usagef("--dir %s: %w", dir, err)
	}
	if !info.IsDir() {
		return "", usagef("--dir %s is not a folder", dir)
	}
	return abs, nil
}

// logger writes to the configured file, else to fallback, without secrets.
func logger(c *config.Config, fallback io.Writer, safe *redact.Redactor) (*slog.Logger, func(), error) {
	w, done := fallback, func() {}
	if c.LogFile != "" {
		f, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, usagef("log_file: %w", err)
		}
		w, done = f, func() { _ = f.Close() }
	}
	lines := redact.NewWriter(safe, w)
	close := func() {
		_ = lines.Flush()
		done()
	}
	o := &slog.HandlerOptions{Level: c.Level()}
	if c.LogFormat == config.LogJSON || c.LogFormat == config.LogAuto && c.LogFile != "" {
		return slog.New(slog.NewJSONHandler(lines, o)), close, nil
	}
	return slog.New(slog.NewTextHandler(lines, o)), close, nil
}
