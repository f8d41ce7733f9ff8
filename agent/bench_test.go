package agent_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// deltas is a model in the same process: no network in the figures.
type deltas []agent.Delta

func (d deltas) Stream(context.Context, *agent.Request) (agent.Stream, error) {
	return &deltaStream{left: d}, nil
}

type deltaStream struct {
	left  deltas
	every time.Duration // between deltas; 0 = as fast as they are taken
}

func (s *deltaStream) Recv() (agent.Delta, error) {
	if len(s.left) == 0 {
		return agent.Delta{}, io.EOF
	}
	if s.every > 0 {
		time.Sleep(s.every)
	}
	d := s.left[0]
	s.left = s.left[1:]
	return d, nil
}

// paced is a model that sends a delta each 20 ms: a whole command of a quick
// model, 2,000 tokens a second.
type paced deltas

func (d paced) Stream(context.Context, *agent.Request) (agent.Stream, error) {
	return &deltaStream{left: deltas(d), every: 20 * time.Millisecond}, nil
}

func (s *deltaStream) Close() error { return nil }

// chop cuts an answer into deltas of four bytes, about a token each.
func chop(text string) deltas {
	var out deltas
	for chunk := range slices.Chunk([]byte(text), 4) {
		out = append(out, agent.Delta{Text: string(chunk)})
	}
	return append(out, agent.Delta{Finish: "stop"})
}

func benchEngine(b *testing.B, m agent.Model) *agent.Engine {
	b.Helper()
	return benchEngineIn(b, m, b.TempDir(), b.TempDir())
}

func benchEngineIn(b *testing.B, m agent.Model, dir, state string) *agent.Engine {
	b.Helper()
	loaded, err := config.Load(config.Options{NoFile: true, Env: func(string) (string, bool) { return "", false }})
	require.NoError(b, err)
	ws, err := workspace.New([]workspace.Root{{Dir: dir}}, workspace.Options{})
	require.NoError(b, err)
	e := agent.New(agent.Options{
		Config: loaded.Config, Model: m, Workspace: ws,
		Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
			return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
		},
	})
	b.Cleanup(func() { _ = e.Close() })
	return e
}

// BenchmarkDelta is the cost of one delta of text in the loop, without sinks.
func BenchmarkDelta(b *testing.B) {
	e := benchEngine(b, chop(strings.Repeat("some words of an answer\n", max(b.N/6, 1))))
	b.ResetTimer()
	res, err := e.Run(b.Context(), agent.RunRequest{Task: "x", DryRun: true})
	require.NoError(b, err)
	require.Equal(b, agent.StateDone, res.State)
}

// BenchmarkFortyWrites is one answer with 40 writes of 4 KB: one call, and the
// time from a closing tag to its recorded effect, of a model that sends 50
// commands a second and of one that sends all at once.
func BenchmarkFortyWrites(b *testing.B) {
	var all strings.Builder
	var commands paced
	for i := range 40 {
		text := fmt.Sprintf("<tf-write id=\"%d\" path=\"f%d.txt\">\n%s</tf-write>\n", i+1, i, strings.Repeat("a line of text, as long as lines are\n", 110))
		all.WriteString(text)
		commands = append(commands, agent.Delta{Text: text})
	}
	b.Run("50 a second", func(b *testing.B) { fortyWrites(b, append(commands, agent.Delta{Finish: "stop"})) })
	b.Run("at once", func(b *testing.B) { fortyWrites(b, chop(all.String())) })
}

func fortyWrites(b *testing.B, m agent.Model) {
	var micros []int64
	calls := 0
	for range b.N {
		e := benchEngine(b, m)
		res, err := e.Run(b.Context(), agent.RunRequest{Task: "write", Events: func(ev agent.Event) {
			if ev.Type == agent.CommandCompleted {
				micros = append(micros, ev.Command.Micros)
			}
		}})
		require.NoError(b, err)
		require.Equal(b, 40, res.Applied)
		calls = res.Usage.Requests
	}
	slices.Sort(micros)
	b.ReportMetric(float64(calls), "calls")
	b.ReportMetric(float64(micros[len(micros)/2])/1000, "ms-p50")
	b.ReportMetric(float64(micros[len(micros)-1])/1000, "ms-max")
}
