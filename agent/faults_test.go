package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// faults are what a provider may do. A fault of the answer breaks the stream
// where it stands; a fault of the request takes the place of an answer.
var faults = []struct {
	name    string
	request bool
	steps   string
}{
	{"connection cut", false, "cut\n"},
	{"connection reset", false, "cut reset\n"},
	{"ends without a finish", false, "eof\n"},
	{"stalls", false, "hang\n"},
	{"stalls with keep-alives", false, "keepalive 50ms\nhang\n"},
	{"error in the stream", false, "error {\"message\":\"capacity exhausted\",\"code\":502}\n"},
	{"error event", false, "error-event {\"message\":\"overloaded\"}\n"},
	{"error that is final", false, "error {\"message\":\"invalid request\",\"type\":\"invalid_request_error\",\"code\":400}\n"},
	{"overflow in the stream", false, "error {\"message\":\"too long\",\"code\":\"context_length_exceeded\"}\n"},
	{"garbage", false, "data {\"choices\":[{]}\ndone none\n"},
	{"output limit", false, "finish length\n"},
	{"content filter", false, "finish content_filter\n"},
	{"no finish reason", false, "finish none\n"},
	{"no usage, no done", false, "usage none\ndone none\n"},
	{"401", true, "status 401\nbody {\"error\":{\"message\":\"bad key\"}}\n"},
	{"404", true, "status 404\nbody {\"error\":{\"message\":\"no such model\"}}\n"},
	{"400", true, "status 400\nbody {\"error\":{\"message\":\"unknown field\"}}\n"},
	{"429", true, "status 429\nheader Retry-After: 0\n"},
	{"429, a day", true, "status 429\nheader Retry-After: 86400\n"},
	{"500", true, "status 500\n"},
	{"503 as a page", true, "status 503\nheader Content-Type: text/html\nbody <html>busy</html>\n"},
	{"a page as an answer", true, "status 200\nheader Content-Type: text/html\nbody <html>login</html>\n"},
	{"an empty answer", true, "status 200\nheader Content-Type: text/event-stream\nbody \"\"\n"},
	{"no headers", true, "hang headers\n"},
}

type place struct {
	name, answer string
	// next: the fault strikes in the turn behind the answer.
	next bool
}

// places are where the fault strikes: before the first command, inside the body
// of the second, behind the second, and after a read that ended the answer.
var places = []place{
	{"before", "", false},
	{"within", "text \"<tf-write id=\\\"1\\\" path=\\\"a.txt\\\">\\none\\n</tf-write>\\n<tf-append id=\\\"2\\\" path=\\\"a.txt\\\">\\nha\"\n", false},
	{"after", "text \"<tf-write id=\\\"1\\\" path=\\\"a.txt\\\">\\none\\n</tf-write>\\n<tf-append id=\\\"2\\\" path=\\\"a.txt\\\">\\ntwo\\n</tf-append>\\nmore\"\n", false},
	{"in the next turn", "text \"<tf-write id=\\\"1\\\" path=\\\"a.txt\\\">\\none\\n</tf-write>\\n<tf-read id=\\\"2\\\" path=\\\"a.txt\\\"/>\"\n", true},
}

// nativePlaces are the same for commands that come as calls.
var nativePlaces = []place{
	{"within a call", "call write_file {\"path\":\"a.txt\",\"content\":\"one\\n\"}\ntool-delta {\"index\":1,\"id\":\"c\",\"function\":{\"name\":\"append_file\",\"arguments\":\"{\\\"path\\\":\\\"a.txt\\\",\\\"content\\\":\\\"ha\"}}\n", false},
	{"after calls", "call write_file {\"path\":\"a.txt\",\"content\":\"one\\n\"}\ncall append_file {\"path\":\"a.txt\",\"content\":\"two\\n\"}\n", false},
}

// TestFaultMatrix: whatever the provider does and wherever it does it, the run
// ends in a stated way, no command runs twice, and the files are what the ledger
// says. The outcomes stand in testdata/agent/faults.golden.
func TestFaultMatrix(t *testing.T) {
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("fault", func(t *testing.T) {
		for _, f := range faults {
			for i, p := range slices.Concat(places, nativePlaces) {
				protocol := "tags"
				if i >= len(places) {
					protocol = "native"
				}
				if f.request && !p.next && p.answer != "" {
					continue // a request has no middle
				}
				script := "turn\n" + p.answer
				if p.next {
					script += "turn\n"
				}
				script += f.steps + "turn\ntext \"Going on.\"\nrepeat\n"
				name := f.name + ", " + p.name
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					row := faultRun(t, protocol, script)
					mu.Lock()
					defer mu.Unlock()
					rows[name] = row
				})
			}
		}
	})
	var b strings.Builder
	for _, f := range faults {
		for _, p := range slices.Concat(places, nativePlaces) {
			if row, ok := rows[f.name+", "+p.name]; ok {
				fmt.Fprintf(&b, "%-24s %-17s %s\n", f.name, p.name, row)
			}
		}
	}
	const golden = "../testdata/agent/faults.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// faultRun plays a script and says how the run ended.
func faultRun(t *testing.T, protocol, script string) string {
	t.Helper()
	dir := t.TempDir()
	// Where nothing hangs, a machine that is busy with something else must not look
	// like a provider that stalls.
	patience := "20s"
	if strings.Contains(script, "hang") {
		patience = "800ms"
	}
	r := newRig(t, dir, fmt.Sprintf("protocol = %q\nretries = 2\nretry_cap = \"1s\"\nidle_timeout = %q\nfirst_token_timeout = %q\n", protocol, patience, patience), script)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var last agent.Event
	res, err := r.engine.Run(ctx, agent.RunRequest{Run: "run1", Task: "go", Events: func(ev agent.Event) { last = ev }})
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "it did not end")
	require.Equal(t, &res, last.Result, "the last event tells the result")
	if res.State != agent.StateDone {
		require.NotEmpty(t, res.Reason)
	}

	cmds, err := r.ledger.List(context.Background(), ledger.Filter{Run: "run1"})
	require.NoError(t, err)
	hashes := map[string]string{}
	for _, c := range cmds {
		require.NotEqual(t, ledger.StatusIntent, c.Status, "%s was left open", c.Key)
		if c.Status == ledger.StatusApplied && c.AfterHash != "" {
			hashes[c.Path] = c.AfterHash
		}
	}
	for _, name := range r.tree(t) {
		hash, _, err := workspace.ProbeFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, hashes[name], hash, "%s is not what the ledger says", name)
		delete(hashes, name)
	}
	require.Empty(t, hashes, "the ledger says more than there is")
	text := "-"
	if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err == nil {
		text = strings.Join(strings.Fields(string(data)), "+")
	}
	require.NotContains(t, text, "two+two")
	return strings.TrimSpace(fmt.Sprintf("%s, %d requests sent, a.txt %-8s %s", res.State, len(r.server.Requests()), text, firstLineOf(r.clean(res.Reason))))
}
