package attacks_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/agent/agenttest"
	"thinkflow/agent/openai"
	"thinkflow/internal/config"
	"thinkflow/internal/need"
	"thinkflow/internal/sandbox"
	"thinkflow/internal/scripted"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// lab is a workspace with something outside of it.
type lab struct {
	*testing.T
	root    string
	outside string // beside the root
	trust   *trust.Store
}

func newLab(t *testing.T) *lab {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	l := &lab{T: t, root: filepath.Join(base, "app"), outside: filepath.Join(base, "outside")}
	require.NoError(t, os.Mkdir(l.root, 0o755))
	l.file("../outside/secret.txt", "outside\n")
	return l
}

// file writes a file below the root, or beside it with "..".
func (l *lab) file(name, text string) {
	path := filepath.Join(l.root, name)
	require.NoError(l, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(l, os.WriteFile(path, []byte(text), 0o644))
}

func (l *lab) link(name, to string) {
	path := filepath.Join(l.root, name)
	require.NoError(l, os.MkdirAll(filepath.Dir(path), 0o755))
	if err := os.Symlink(to, path); err != nil {
		need.Right(l, "the right to make links ("+err.Error()+")")
	}
}

func (l *lab) read(name string) string {
	data, err := os.ReadFile(filepath.Join(l.root, name))
	require.NoError(l, err)
	return string(data)
}

// untouched checks that nothing outside of the root was made or changed.
func (l *lab) untouched() {
	entries, err := os.ReadDir(l.outside)
	require.NoError(l, err)
	require.Len(l, entries, 1)
	require.Equal(l, "outside\n", l.read("../outside/secret.txt"))
}

func (l *lab) space(o workspace.Options) *workspace.Workspace {
	w, err := workspace.New([]workspace.Root{{Dir: l.root}}, o)
	require.NoError(l, err)
	return w
}

// refused checks that the path is refused with the code, for every access.
func (l *lab) refused(w *workspace.Workspace, code workspace.Code, paths ...string) {
	for _, p := range paths {
		for _, a := range []workspace.Access{workspace.AccessRead, workspace.AccessWrite, workspace.AccessCreate} {
			got, err := w.Resolve(p, a)
			ref, ok := workspace.AsRefusal(err)
			require.True(l, ok, "%q was resolved to %s", p, got.Abs)
			require.Equal(l, code, ref.Code, "%q: %v", p, err)
		}
	}
}

// box is the sandbox of this machine.
func (l *lab) box() *sandbox.Sandbox { return agenttest.Sandbox(l) }

// spec describes a command in the root, with the workspace's own protected set.
func (l *lab) spec(line string) sandbox.Spec {
	w := l.space(workspace.Options{})
	return sandbox.Spec{
		Line: line, Roots: []string{l.root}, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
		Classify: func(path string, dir bool) sandbox.Class {
			switch w.ClassifyName(path, dir) {
			case workspace.NameForbidden:
				return sandbox.VCS
			case workspace.NameProtected:
				return sandbox.Protected
			case workspace.NameDenied:
				return sandbox.Hide
			}
			return sandbox.Free
		},
	}
}

func (l *lab) run(s *sandbox.Sandbox, spec sandbox.Spec) (output string, code int, found sandbox.Findings) {
	c, err := s.Command(l.Context(), spec)
	require.NoError(l, err)
	var out bytes.Buffer
	c.Cmd.Stdout, c.Cmd.Stderr = &out, &out
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(l, err)
	}
	found, err = c.Finish()
	require.NoError(l, err)
	return out.String(), c.Cmd.ProcessState.ExitCode(), found
}

// play lets the engine work on a task with a scripted model. answers are those
// of a person, in order; nil means that nobody is there to ask.
func (l *lab) play(settings, script string, answers []agent.Decision) *played {
	cfgFile := filepath.Join(l.TempDir(), "config.toml")
	require.NoError(l, os.WriteFile(cfgFile, []byte(settings), 0o600))
	loaded, err := config.Load(config.Options{File: cfgFile, Env: func(string) (string, bool) { return "", false }})
	require.NoError(l, err)
	cfg := loaded.Config
	cfg.Model = "scripted"

	s, err := scripted.Parse("script", []byte(script))
	require.NoError(l, err)
	p := &played{server: scripted.New(s, scripted.Options{})}
	url, stop, err := p.server.Listen("127.0.0.1:0")
	require.NoError(l, err)
	l.Cleanup(stop)
	state := l.TempDir()
	o := agent.Options{
		Config: cfg, Trust: l.trust,
		Model: openai.New(openai.Options{
			BaseURL: url, Key: "sk-test-key-of-the-lab", ConnectTimeout: cfg.ConnectTimeout, FirstTokenTimeout: cfg.FirstTokenTimeout, IdleTimeout: cfg.IdleTimeout,
		}),
		Workspace: l.space(workspace.Options{}),
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: l.root, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
		},
	}
	who := agenttest.NewPerson(answers)
	if answers != nil {
		o.Approver = who
	}
	e := agent.New(o)
	p.result, err = e.Run(l.Context(), agent.RunRequest{Task: "do it"})
	require.NoError(l, err)
	require.NoError(l, e.Close())
	p.asked = who.Asked()
	require.Empty(l, p.server.Failures())
	return p
}

// played is what came of a task.
type played struct {
	result agent.RunResult
	server *scripted.Server
	asked  []agent.ApprovalEvent
}

// told is all that the model was given, in all requests.
func (p *played) told() string {
	var b strings.Builder
	for _, r := range p.server.Requests() {
		for _, m := range r.Messages() {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}
