package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/agent/openai"
	"thinkflow/internal/config"
	"thinkflow/internal/scripted"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

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

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	if strings.HasPrefix(data, `"`) {
		data = unquote(strings.TrimSpace(data))
	}
	require.NoError(t, os.WriteFile(path, []byte(data), 0o644))
}
