package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// largeLedger adds n commands to a ledger, in runs of 200 on 500 files, as
// months of work do. Many at once share a commit, so that it takes seconds.
func largeLedger(b *testing.B, led *ledger.Ledger, dir string, n int) {
	b.Helper()
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 256 {
		wg.Go(func() {
			for i := range numbers {
				path := fmt.Sprintf("f%d.go", i%500)
				u := workspace.Undo{Kind: workspace.ChangeModify, Path: filepath.Join(dir, path), BeforeHash: fmt.Sprint("before", i), AfterHash: fmt.Sprint("after", i),
					Edits: []workspace.Edit{{Start: 10, End: 20, New: fmt.Sprint("old text ", i)}}}
				k := ledger.Key{Run: fmt.Sprintf("run%05d", i/200), Turn: 1 + i/20%10, Channel: "text", ID: 1 + i%20}
				require.NoError(b, led.Intent(context.Background(), ledger.Intent{Key: k, Tool: "tf-edit", Path: path, Abs: u.Path, BeforeHash: u.BeforeHash, AfterHash: u.AfterHash,
					Undo: u.Encode(), ContentHash: fmt.Sprint(i), Content: []byte(fmt.Sprint("content ", i))}))
				require.NoError(b, led.Outcome(ledger.Outcome{Key: k, Status: ledger.StatusApplied}))
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	for i := range n / 200 {
		require.NoError(b, led.EndRun(fmt.Sprintf("run%05d", i), "done", "", nil))
	}
}

// BenchmarkUndoLarge plans and carries out undos in a ledger with 100,000 later
// commands, 4,000 of them on the files that they are about, which have changed
// since. The goal is 200 ms for each.
func BenchmarkUndoLarge(b *testing.B) {
	var edits strings.Builder
	for i := range 20 {
		fmt.Fprintf(&edits, "<tf-edit id=\"%d\" path=\"f%d.go\"><old>line 7 of it</old><new>changed</new></tf-edit>\n", i+1, i)
	}
	text := strings.Repeat("a line\n", 50) + "line 7 of it\n" + strings.Repeat("another line\n", 50)
	state, dir := b.TempDir(), b.TempDir()
	for i := range 20 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.go", i)), []byte(text), 0o644))
	}
	e := benchEngineIn(b, chop(edits.String()), dir, state)
	res, err := e.Run(b.Context(), agent.RunRequest{Run: "first", Task: "edit"})
	require.NoError(b, err)
	require.Equal(b, 20, res.Applied, res.Reason)
	require.NoError(b, e.Close())
	led, err := ledger.Open(b.Context(), ledger.Options{Dir: state, Workspace: dir})
	require.NoError(b, err)
	largeLedger(b, led, dir, 100_000)
	require.NoError(b, led.Close())
	for i := range 20 { // and a person went on with them
		name := filepath.Join(dir, fmt.Sprintf("f%d.go", i))
		data, err := os.ReadFile(name)
		require.NoError(b, err)
		require.NoError(b, os.WriteFile(name, append([]byte("// mine\n"), data...), 0o644))
	}
	undo := func(b *testing.B, sel agent.Selection, want int) {
		e := benchEngineIn(b, nil, dir, state)
		_, err := e.Waiting(b.Context()) // opens the ledger
		require.NoError(b, err)
		for b.Loop() {
			res, err := e.Undo(b.Context(), sel)
			require.NoError(b, err)
			require.Empty(b, res.Problems)
			if sel.Preview {
				require.Len(b, res.Effects, want)
				continue
			}
			b.StopTimer() // and back
			require.Len(b, res.Files, want)
			for _, key := range res.Undo {
				_, err := e.Undo(b.Context(), agent.Selection{Command: key})
				require.NoError(b, err)
			}
			b.StartTimer()
		}
	}
	b.Run("plan for a command", func(b *testing.B) { undo(b, agent.Selection{Command: "first/1/text/3", Preview: true}, 1) })
	b.Run("plan for a run", func(b *testing.B) { undo(b, agent.Selection{Run: "first", Preview: true}, 20) })
	b.Run("a command", func(b *testing.B) { undo(b, agent.Selection{Command: "first/1/text/3"}, 1) })
	b.Run("a run", func(b *testing.B) { undo(b, agent.Selection{Run: "first"}, 20) })
}
