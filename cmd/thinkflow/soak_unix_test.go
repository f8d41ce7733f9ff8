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
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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
func appender(t *testing.T) string {
	var n atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for id := 1; r.Context().Err() == nil && id <= 60; id++ {
			text, _ := json.Marshal(fmt.Sprintf("<tf-append id=\"%d\" path=\"log.txt\">\nline %d\n</tf-append>\n", id, n.Add(1)))
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", text)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<tf-read id=\\\"900\\\" path=\\\"log.txt\\\" line=\\\"1\\\" />\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(h.Close)
	return h.URL + "/v1"
}

// soakCount is how many commands a soak takes: THINKFLOW_SOAK, else a few.
func soakCount(t *testing.T, few int) int {
	s := os.Getenv("THINKFLOW_SOAK")
	if s == "" {
		if testing.Short() {
			t.Skip("kills many processes")
		}
		return few
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// TestSoak runs and resumes one task under random kills until so many effects
// are in the file: THINKFLOW_SOAK of them, else a few. No effect is lost, none
// is there twice, and the ledger says which are there.
func TestSoak(t *testing.T) {
	want := soakCount(t, 150)
	url := appender(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log.txt")
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_MAX_TURNS=1000000")
	args := []string{"run", "fill the log", "--dir", dir, "--json"}
	begun := time.Now()
	kills, early, last := 0, 0, ""
	for lineCount(log) < want {
		cmd, out := startProgram(t, environ, args...)
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		// Most are killed in the middle of their commands, the others while they
		// start: settle, resume, say what they found.
		moment := time.Duration(rand.IntN(3000)) * time.Microsecond
		if rand.IntN(4) > 0 {
			out.times(`"command.completed"`, 1+rand.IntN(40), ended)
		} else {
			moment = time.Duration(rand.IntN(120)) * time.Millisecond
			early++
		}
		ctx, cancel := context.WithTimeout(t.Context(), moment) //nolint:forbidigo // the moment of the kill
		<-ctx.Done()
		cancel()
		_ = cmd.Process.Kill()
		<-ended
		require.True(t, cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(), "it ended by itself: %s", out.text())
		kills++
		last = out.text()
		if lineCount(log) > 0 { // else it may have had no checkpoint yet
			args = []string{"resume", "last", "--dir", dir, "--json"}
		}
		require.Less(t, kills, want+200, last)
	}
	took := time.Since(begun)
	c := soakClaims(t, dir)
	got, err := os.ReadFile(log)
	require.NoError(t, err)
	lost, doubled := 0, 0
	times := map[string]int{}
	for line := range strings.Lines(string(got)) {
		times[line]++
	}
	for _, body := range c.applied {
		if times[body] == 0 {
			lost++
		}
	}
	for line, n := range times {
		if n > 1 {
			doubled++
			t.Errorf("%q is there %d times", line, n)
		}
	}
	assert.Zero(t, lost, "effects that the ledger claims and the file does not have")
	assert.Equal(t, strings.Join(c.applied, ""), string(got), "what the ledger says was applied, in its order, is what the file holds")
	assert.Zero(t, c.statuses[ledger.StatusIntent])
	assert.Zero(t, c.statuses[ledger.StatusUncertain])
	t.Logf("%d commands under %d kills (%d of them at the start) in %s: %v; lost %d, doubled %d; %d rows of the chain hold",
		c.commands, kills, early, took.Round(time.Second), c.statuses, lost, doubled, c.rows)
}

func lineCount(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "\n")
}

// claims is what the ledger says of a soak.
type claims struct {
	rows     int64
	commands int
	statuses map[ledger.Status]int
	applied  []string // bodies, in the ledger's order
}

func soakClaims(t *testing.T, dir string) claims {
	t.Helper()
	state, err := ledger.StateDir(dir)
	require.NoError(t, err)
	led, err := ledger.Open(t.Context(), ledger.Options{Dir: state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
	require.NoError(t, err)
	defer led.Close()
	c := claims{statuses: map[ledger.Status]int{}}
	c.rows, err = led.Verify(t.Context())
	require.NoError(t, err)
	commands, err := led.List(t.Context(), ledger.Filter{Tool: "tf-append"})
	require.NoError(t, err)
	c.commands = len(commands)
	for i := range commands {
		cmd := &commands[i]
		c.statuses[cmd.Status]++
		if cmd.Status != ledger.StatusApplied {
			continue
		}
		data, err := led.Blob(t.Context(), cmd.Content)
		require.NoError(t, err)
		body, err := agent.DecodeContent(data)
		require.NoError(t, err)
		c.applied = append(c.applied, body.Body)
	}
	return c
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
	small, err := ownDisk(t, "size=256k")
	if err != nil {
		need.Right(t, err.Error())
	}
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
