//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
