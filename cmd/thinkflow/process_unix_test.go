//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startProgram starts this test binary as the program.
func startProgram(t *testing.T, environ []string, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(environ, asProgram+"=1", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
	out := newLines()
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	return cmd, out
}

// ownDisk mounts a file system in memory over a new folder, with these options of
// mount, until the test ends. The error says which right is missing.
func ownDisk(t *testing.T, options string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("the right to mount a file system (%w: %s)", err, strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	return dir, nil
}

// hanging writes one whole file and then stops in the middle of the next one.
const hanging = `
turn
text <<END
<tf-write id="1" path="whole.txt">
all of it
</tf-write>
Next:
<tf-write id="2" path="torn.txt">
only the begin
END
hang
`

// A key, a supervisor and a terminal that closes end a run alike.
func TestSignalEndsTheRunAndSaysSo(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			_, url := model(t, hanging)
			dir := t.TempDir()
			cmd, out := startProgram(t, home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m"), "run", "x", "--dir", dir)
			out.wait(t, `✓ write  whole.txt`)
			require.NoError(t, cmd.Process.Signal(sig))
			err := cmd.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, exitCancelled, exit.ExitCode())
			out.wait(t, `cancelled`)
			assert.FileExists(t, filepath.Join(dir, "whole.txt"))
			assert.NoFileExists(t, filepath.Join(dir, "torn.txt"))
		})
	}
}

// TestKillLeavesWholeFilesAndALedgerThatSettles: kill -9 in the middle.
func TestKillLeavesWholeFilesAndALedgerThatSettles(t *testing.T) {
	_, url := model(t, hanging)
	dir := t.TempDir()
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	cmd, out := startProgram(t, environ, "run", "x", "--dir", dir)
	out.wait(t, `✓ write  whole.txt`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary files")
	got, err := os.ReadFile(filepath.Join(dir, "whole.txt"))
	require.NoError(t, err)
	assert.Equal(t, "all of it\n", string(got))

	r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Contains(t, r.stdout, "applied")
	assert.NotContains(t, r.stdout, "intent")
	r = call(t.Context(), environ, "", "ledger", "runs", "--dir", dir)
	assert.Contains(t, r.stdout, "interrupted")
	assert.Equal(t, 1, strings.Count(r.stdout, "\n")-1)
	r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
}
