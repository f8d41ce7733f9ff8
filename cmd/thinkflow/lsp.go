package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/lsp"
)

type lspCmd struct {
	settings
	Stdio bool `help:"Accepted for editors that say so; there is no other way."`
}

func (c *lspCmd) Run(a *app) error {
	// Settings of the editor are not known yet. What is wrong in the file or the
	// environment must not keep the server from answering: it is told when the
	// engine is built.
	loaded, _ := a.load(&c.settings, nil, nil)
	log, closeLog, err := logger(&loaded.Config, a.stderr, a.redact)
	if err != nil {
		log, closeLog = slog.New(slog.NewTextHandler(a.stderr, nil)), func() {}
		log.Error("the log file cannot be opened; logging to standard error", "error", err)
	}
	defer closeLog()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	code := lsp.Main(a.ctx, a.stdin, a.stdout, a.stderr, lsp.Options{
		Version: shortVersion(), Dir: dir, Log: log,
		New: func(_ context.Context, s lsp.Setup) (*lsp.Backend, error) { return c.backend(a, s) },
	})
	if code != exitOK {
		return exitError(code)
	}
	return nil
}

// backend builds the engine for one editor. A wrong setting is told, and what
// is right counts.
func (c *lspCmd) backend(a *app, s lsp.Setup) (*lsp.Backend, error) {
	read := func(raw json.RawMessage) (*config.Loaded, error) {
		editor := map[string]any{}
		if len(bytes.TrimSpace(raw)) > 0 {
			if err := json.Unmarshal(raw, &editor); err != nil {
				return nil, fmt.Errorf("the editor's settings are no JSON object: %w", err)
			}
		}
		return a.load(&c.settings, nil, editor)
	}
	loaded, err := read(s.Settings)
	if loaded == nil {
		return nil, err
	}
	if err != nil {
		s.Notice("ThinkFlow settings: " + err.Error())
	}
	for _, w := range loaded.Warnings {
		s.Log.Warn(w)
	}
	engine, ws, err := assemble(parts{
		cfg: loaded.Config, roots: s.Roots, file: loaded.File,
		editor: s.Editor, approver: s.Approver, asks: "editor", notice: s.Notice, log: s.Log, redact: a.redact, env: a.env,
	})
	if err != nil {
		return nil, err
	}
	told := &lspNotices{}
	told.set(a, &loaded.Config, s.Log)
	var mu sync.Mutex // guards last
	last := s.Settings
	return &lsp.Backend{
		Engine: engine, Documents: ws, Settled: engine.Settled, Notify: told.event,
		Close: func() error {
			err := engine.Close()
			told.wait()
			return err
		},
		Configure: func(raw json.RawMessage) error {
			mu.Lock()
			defer mu.Unlock()
			if bytes.Equal(raw, last) {
				return nil
			}
			last = bytes.Clone(raw)
			loaded, err := read(raw)
			if err != nil {
				s.Notice("ThinkFlow settings: " + err.Error())
				return err
			}
			told.set(a, &loaded.Config, s.Log)
			engine.Configure(loaded.Config, newModel(&loaded.Config, s.Log))
			return nil
		},
	}, nil
}

// lspNotices runs the user's hook for the runs of an editor, as it is configured
// at the moment. What the editor itself shows is package lsp's.
type lspNotices struct {
	mu    sync.Mutex // guards all below
	tell  func(agent.Event)
	waits []func()
}

func (n *lspNotices) set(a *app, c *config.Config, log *slog.Logger) {
	tell, wait := a.notifying(c, log, false, func(agent.Event) {})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell, n.waits = tell, append(n.waits, wait)
}

func (n *lspNotices) event(ev agent.Event) {
	n.mu.Lock()
	tell := n.tell
	n.mu.Unlock()
	tell(ev)
}

// wait waits for hooks that still run, each of which has ten seconds.
func (n *lspNotices) wait() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, wait := range n.waits {
		wait()
	}
}
