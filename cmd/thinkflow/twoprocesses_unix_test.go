//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/redact"
	"thinkflow/workspace"
)

// TestNobodyReadsAnyLonger: `thinkflow ledger … | head -1` ends quietly, without
// a complaint and without hanging.
func TestNobodyReadsAnyLonger(t *testing.T) {
	environ, dir := afterLedgerScript(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, args := range [][]string{{"ledger", "export"}, {"ledger", "list", "--json"}, {"ledger", "show"}, {"report", "last", "-o", "-"}} {
		cmd := exec.CommandContext(t.Context(), exe, append(args, "--dir", dir)...)
		cmd.Env = append(environ, asProgram+"=1", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
		r, w, err := os.Pipe()
		require.NoError(t, err)
		cmd.Stdout = w
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.NoError(t, r.Close()) // before the first byte
		require.NoError(t, cmd.Start())
		require.NoError(t, w.Close())
		err = cmd.Wait()
		assert.Error(t, err, args)
		assert.Empty(t, stderr.String(), args)
	}
}

// TestApproveTwiceAtOnce: two processes answer the same question at the same
// moment; one of them goes on with the run, and the command runs once.
func TestApproveTwiceAtOnce(t *testing.T) {
	_, url := model(t, "turn\ntext <<END\n<tf-bash id=\"1\">echo ran >> out.txt</tf-bash>\nEND\nturn\nrepeat\ntext \"Done.\"\n")
	dir := t.TempDir()
	a := &auditor{t: t, dir: dir, answer: "leave"}
	a.environ = home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted")
	prog := &app{ctx: t.Context(), stdout: os.Stderr, stderr: os.Stderr, environ: a.environ, redact: &redact.Redactor{}}
	loaded, err := prog.load(&settings{Set: map[string]string{"sandbox": "none", "approval_wait": "20ms"}}, nil, nil)
	require.NoError(t, err)
	engine, _, err := assemble(parts{cfg: loaded.Config, roots: []workspace.Root{{Dir: dir}}, redact: prog.redact, asks: "test", approver: a})
	require.NoError(t, err)
	res, err := engine.Run(t.Context(), agent.RunRequest{Task: "x"})
	require.NoError(t, err)
	require.Equal(t, agent.StateSuspended, res.State)
	require.NoError(t, engine.Close())

	r := call(t.Context(), a.environ, "", "approve", "--dir", dir, "--json")
	require.Equal(t, exitOK, r.code, r.stderr)
	assert.Contains(t, r.stdout, res.Run)
	r = call(t.Context(), a.environ, "", "approve", "--dir", dir, res.Run, "other", "once")
	assert.Equal(t, exitFailed, r.code, "an approval that it does not wait for")

	exe, err := os.Executable()
	require.NoError(t, err)
	var procs []*exec.Cmd
	for range 2 {
		cmd := exec.CommandContext(t.Context(), exe, "approve", "--dir", dir, "--set", "sandbox=none", res.Run, "once")
		cmd.Env = append(append([]string(nil), a.environ...), asProgram+"=1", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
		require.NoError(t, cmd.Start())
		procs = append(procs, cmd)
	}
	won := 0
	for _, cmd := range procs {
		if cmd.Wait() == nil {
			won++
		}
	}
	assert.Equal(t, 1, won)
	got, err := os.ReadFile(filepath.Join(dir, "out.txt"))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(got))
	r = call(t.Context(), a.environ, "", "approve", "--dir", dir, res.Run, "once")
	assert.Equal(t, exitFailed, r.code, "answered already")
	r = call(t.Context(), a.environ, "", "ledger", "show", "--dir", dir, res.Run+"/1/1")
	assert.Contains(t, r.stdout, "bash: once, by command line")
}
