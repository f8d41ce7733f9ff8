package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
)

// BenchmarkTenThousandDeltas is one answer of 10,000 deltas with 100 commands in
// it, and how much more memory is in use when the last delta has been read than
// before the run: it must not grow with the answer.
func BenchmarkTenThousandDeltas(b *testing.B) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "Some words about what comes now, and why it has to be so.\n<tf-write id=\"%d\" path=\"f%d.txt\">\n%s</tf-write>\n", i+1, i, strings.Repeat("a line of text\n", 20))
	}
	answer := chop(text.String())
	b.Logf("%d deltas", len(answer))
	peak := uint64(0)
	for range b.N {
		m := &measured{deltas: answer}
		e := benchEngine(b, m)
		m.before = inUse()
		res, err := e.Run(b.Context(), agent.RunRequest{Task: "write"})
		require.NoError(b, err)
		require.Equal(b, 100, res.Applied)
		peak = max(peak, m.grown)
	}
	b.ReportMetric(float64(len(answer)), "deltas")
	b.ReportMetric(float64(peak)/1024, "KiB-grown")
}

// measured notes the memory in use when its answer comes to its end.
type measured struct {
	deltas
	before, grown uint64
}

func (m *measured) Stream(ctx context.Context, req *agent.Request) (agent.Stream, error) {
	s, err := m.deltas.Stream(ctx, req)
	return &measuredStream{s, m}, err
}

type measuredStream struct {
	agent.Stream
	m *measured
}

func (s *measuredStream) Recv() (agent.Delta, error) {
	d, err := s.Stream.Recv()
	if d.Finish != "" {
		if now := inUse(); now > s.m.before {
			s.m.grown = now - s.m.before
		}
	}
	return d, err
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
