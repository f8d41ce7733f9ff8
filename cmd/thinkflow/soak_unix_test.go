//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/need"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// appender is a model that sends appends for ever, each with a line that never
// comes twice.
func appender(t *testing.T) (string, *atomic.Int64) {
	var n atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for id := 1; r.Context().Err() == nil && id <= 200; id++ {
			text, _ := json.Marshal(fmt.Sprintf("<tf-append id=\"%d\" path=\"log.txt\">\nline %d\n</tf-append>\n", id, n.Add(1)))
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<tf-read id=\\\"900\\\" path=\\\"log.txt\\\" line=\\\"1\\\" />\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(h.Close)
	return h.URL + "/v1", &n
}

// TestSoak runs and resumes one task under random kills until so many commands
// were recorded: THINKFLOW_SOAK of them, else a few. No effect is lost, none is
// there twice, and the ledger says which are there.
func TestSoak(t *testing.T) {
	want := 150
	if s := os.Getenv("THINKFLOW_SOAK"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		want = n
	} else if testing.Short() {
		t.Skip("kills many processes")
	}
	url, _ := appender(t)
	dir := t.TempDir()
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_MAX_TURNS=100000")
	args := []string{"run", "fill the log", "--dir", dir, "--json"}
	kills, last := 0, ""
	count := func() int {
		data, err := os.ReadFile(filepath.Join(dir, "log.txt"))
		if err != nil {
			return 0
		}
		return strings.Count(string(data), "\n")
	}
	for count() < want {
		cmd, out := startProgram(t, environ, args...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+rand.IntN(1500))*time.Millisecond) //nolint:forbidigo // the moment of the kill
		<-ctx.Done()
		cancel()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		kills++
		out.mu.Lock()
		last = out.buf.String()
		out.mu.Unlock()
		if count() > 0 { // else it may have had no checkpoint yet
			args = []string{"resume", "last", "--dir", dir, "--json"}
		}
		require.Less(t, kills, want+100, last)
	}
	state, err := ledger.StateDir(dir)
	require.NoError(t, err)
	led, err := ledger.Open(t.Context(), ledger.Options{Dir: state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
	require.NoError(t, err)
	defer led.Close()
	rows, err := led.Verify(t.Context())
	require.NoError(t, err)
	commands, err := led.List(t.Context(), ledger.Filter{})
	require.NoError(t, err)
	var claimed strings.Builder
	statuses := map[ledger.Status]int{}
	for i := range commands {
		c := &commands[i]
		if c.Tool != "tf-append" {
			continue
		}
		statuses[c.Status]++
		if c.Status != ledger.StatusApplied {
			continue
		}
		data, err := led.Blob(t.Context(), c.Content)
		require.NoError(t, err)
		body, err := agent.DecodeContent(data)
		require.NoError(t, err)
		claimed.WriteString(body.Body)
	}
	got, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	require.NoError(t, err)
	assert.Equal(t, claimed.String(), string(got), "what the ledger says was applied, in its order, is what the file holds")
	seen := map[string]bool{}
	for line := range strings.Lines(string(got)) {
		assert.False(t, seen[line], "%s is there twice", line)
		seen[line] = true
	}
	assert.Zero(t, statuses[ledger.StatusIntent])
	assert.Zero(t, statuses[ledger.StatusUncertain])
	t.Logf("%d appends under %d kills: %v; %d rows of the chain hold", len(commands), kills, statuses, rows)
}

// TestDamagedLedgerIsKeptAside through the program: said, kept, and work goes on.
func TestDamagedLedgerIsKeptAside(t *testing.T) {
	_, url := model(t, oneWrite+oneWrite)
	dir := t.TempDir()
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	require.Equal(t, exitOK, call(t.Context(), environ, "", "run", "x", "--dir", dir).code)
	state, err := ledger.StateDir(dir)
	require.NoError(t, err)
	file := filepath.Join(state, "ledger.db")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600))
	r := call(t.Context(), environ, "", "run", "x", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Contains(t, r.stdout+r.stderr, "damaged")
	kept, err := filepath.Glob(file + ".damaged-*")
	require.NoError(t, err)
	assert.NotEmpty(t, kept)
	r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr)
}

// TestSecondProcessIsLeftAlone: what a living process has open is not settled by
// another, and its run cannot be resumed.
func TestSecondProcessIsLeftAlone(t *testing.T) {
	_, url := model(t, hanging)
	dir := t.TempDir()
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	cmd, out := startProgram(t, environ, "run", "x", "--dir", dir)
	out.wait(t, `✓ write  whole.txt`)
	r := call(t.Context(), environ, "", "resume", "--dir", dir)
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.stderr, "going on")
	r = call(t.Context(), environ, "", "ledger", "runs", "--dir", dir)
	assert.Contains(t, r.stdout, "running")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	r = call(t.Context(), environ, "", "ledger", "runs", "--dir", dir)
	assert.Contains(t, r.stdout, "interrupted")
}

// TestFullDiskOfTheLedger: no effect without a record of it.
func TestFullDiskOfTheLedger(t *testing.T) {
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small).CombinedOutput(); err != nil {
		if os.Geteuid() != 0 {
			t.Skip("only root may mount a small file system")
		}
		need.Right(t, "the right to mount a small file system ("+strings.TrimSpace(string(out))+")")
	}
	t.Cleanup(func() { _ = exec.Command("umount", small).Run() })
	_, url := model(t, oneWrite+"turn\ntext \"Well.\"\n")
	dir := t.TempDir()
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_STATE_DIR="+small)
	fill, err := os.Create(filepath.Join(small, "fill"))
	require.NoError(t, err)
	for block := make([]byte, 1024); ; {
		if _, err := fill.Write(block); err != nil {
			break
		}
	}
	_ = fill.Close()
	r := call(t.Context(), environ, "", "run", "x", "--dir", dir)
	assert.NotEqual(t, 0, len(r.stdout+r.stderr))
	assert.Contains(t, r.stdout+r.stderr, "space")
	assert.NoFileExists(t, filepath.Join(dir, "a.txt"))
}
