//go:build unix

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/config"
)

// TestHookOfAnEditor: the user's hook hears of the runs of an editor, as it is
// configured at the moment, and sees no key.
func TestHookOfAnEditor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "told")
	a := &app{ctx: t.Context(), stdout: os.Stderr, stderr: os.Stderr, environ: []string{"PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-secret"}}
	log := slog.New(slog.DiscardHandler)
	told := &lspNotices{}
	told.set(a, &config.Config{Notify: "off", NotifyAfter: time.Minute, NotifyHook: `echo "$THINKFLOW_EVENT $THINKFLOW_TASK $OPENAI_API_KEY" >> ` + file}, log)
	start := time.Now()
	run := func(id string, took time.Duration) {
		told.event(agent.Event{Type: agent.RunStarted, Run: id, Task: "task of " + id, Time: start})
		told.event(agent.Event{Type: agent.RunCompleted, Run: id, Time: start.Add(took), Result: &agent.RunResult{State: agent.StateDone}})
		told.wait()
	}
	run("short", time.Second)
	run("long", time.Hour)
	told.event(agent.Event{Type: agent.ApprovalRequested, Run: "third", Approval: &agent.ApprovalEvent{Action: "delete", Target: "x"}})
	told.wait()
	told.set(a, &config.Config{Notify: "off"}, log)
	run("later", time.Hour)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "done task of long \nasks  \n", string(got))
}
