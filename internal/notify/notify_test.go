package notify

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/agent"
)

func TestSequence(t *testing.T) {
	for _, row := range []struct {
		way  Way
		text string
		want string
	}{
		{Off, "x", ""},
		{Bell, "x", "\a"},
		{OSC9, "build\x1b]0;evil\a the\nthing", "\x1b]9;T: build ]0;evil the thing\a"},
		{OSC777, "a;b\x9c\u009c", "\x1b]777;notify;T;a,b\a"},
	} {
		assert.Equal(t, row.want, Sequence(row.way, "T", row.text))
	}
	assert.Less(t, len(Sequence(OSC9, "T", strings.Repeat("é", 500))), 250)
}

func TestWhenAPersonIsTold(t *testing.T) {
	start := time.Now()
	for _, row := range []struct {
		name string
		ev   agent.Event
		want string
	}{
		{"short run", agent.Event{Type: agent.RunCompleted, Time: start.Add(time.Second)}, ""},
		{"long run", agent.Event{Type: agent.RunCompleted, Time: start.Add(time.Minute)}, "\a"},
		{"question", agent.Event{Type: agent.ApprovalRequested, Time: start, Approval: &agent.ApprovalEvent{}}, "\a"},
		{"suspended", agent.Event{Type: agent.RunSuspended, Time: start}, "\a"},
		{"text", agent.Event{Type: agent.TextDelta, Time: start}, ""},
	} {
		var out strings.Builder
		n := &Notifier{Way: Bell, Out: &out, After: 10 * time.Second}
		n.Event(agent.Event{Type: agent.RunStarted, Time: start})
		n.Event(row.ev)
		assert.Equal(t, row.want, out.String(), row.name)
	}
}

func TestHook(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the hook of this test is a shell script")
	}
	file := filepath.Join(t.TempDir(), "told")
	n := &Notifier{Hook: `printf '%s|%s|%s' "$THINKFLOW_EVENT" "$THINKFLOW_RUN" "$THINKFLOW_TASK" > "$OUT.part"; mv "$OUT.part" "$OUT"`, Env: append(os.Environ(), "OUT="+file)}
	n.Event(agent.Event{Type: agent.RunStarted, Run: "r1", Task: "a $(touch x) task"})
	n.Event(agent.Event{Type: agent.RunCompleted, Run: "r1", Result: &agent.RunResult{State: agent.StateDone}})
	n.Wait()
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "done|r1|a $(touch x) task", string(got))
}
