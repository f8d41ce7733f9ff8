package agent_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
)

// bareWrite is the yardstick: an atomic, fsynced write of one file. With the
// folder synced too it is as durable as what the product does: else a rename may
// be lost with the power, of which the ledger says that it was done.
func bareWrite(tb testing.TB, dir string, i int, data string, folder bool) time.Duration {
	start := time.Now()
	f, err := os.CreateTemp(dir, "tmp")
	require.NoError(tb, err)
	_, err = f.WriteString(data)
	require.NoError(tb, err)
	require.NoError(tb, f.Sync())
	require.NoError(tb, f.Close())
	require.NoError(tb, os.Rename(f.Name(), filepath.Join(dir, "f"+strconv.Itoa(i%64))))
	if folder {
		d, err := os.Open(dir)
		require.NoError(tb, err)
		require.NoError(tb, d.Sync())
		require.NoError(tb, d.Close())
	}
	return time.Since(start)
}

// sources are texts as people write them, of this package, each beginning at
// another place, so that none is like the one before it.
func sources(tb testing.TB, size int) func(i int) string {
	names, err := filepath.Glob("*.go")
	require.NoError(tb, err)
	var b strings.Builder
	for _, n := range names {
		data, err := os.ReadFile(n)
		require.NoError(tb, err)
		b.Write(data)
	}
	all := b.String()
	return func(i int) string {
		at := i * 7919 % (len(all) - size)
		at += strings.IndexByte(all[at:], '\n') + 1
		head := fmt.Sprintf("// version %d\n", i)
		return head + strings.ToValidUTF8(all[at:min(len(all), at+size-len(head))], "?")
	}
}

// oneByOne sends one command, waits until it is done, measures a bare write of
// the same bytes, and sends the next one.
type oneByOne struct {
	b        *testing.B
	dir      string // for the bare writes
	text     func(i int) string
	tag      func(i int, text string) string
	n, sent  int
	begun    time.Time
	finished chan time.Duration
	bare     []time.Duration
	durable  []time.Duration // with the folder
	whole    []time.Duration
}

func (m *oneByOne) Stream(context.Context, *agent.Request) (agent.Stream, error) { return m, nil }
func (m *oneByOne) Close() error                                                 { return nil }

func (m *oneByOne) Recv() (agent.Delta, error) {
	if m.sent > 0 && m.sent <= m.n {
		m.whole = append(m.whole, <-m.finished)
	}
	m.sent++
	switch {
	case m.sent == m.n+1:
		return agent.Delta{Finish: "stop"}, nil
	case m.sent > m.n:
		return agent.Delta{}, io.EOF
	}
	text := m.text(m.sent)
	tag := m.tag(m.sent, text)
	m.bare = append(m.bare, bareWrite(m.b, m.dir, m.sent, text, false))
	m.durable = append(m.durable, bareWrite(m.b, m.dir, m.sent, text, true))
	m.begun = time.Now()
	return agent.Delta{Text: tag}, nil
}

// BenchmarkCommand is a whole command as the product does it (parsed, planned,
// announced with its content and what undoes it, written, recorded, told), in a
// full queue, against a bare atomic write of the same bytes measured in turn
// with it, without and with a sync of the folder, which the product does. The
// goals, for the ledger's part alone, are in package ledger.
func BenchmarkCommand(b *testing.B) {
	for _, size := range []int{4 << 10, 100 << 10} {
		text := sources(b, size)
		for name, path := range map[string]func(i int) string{
			"created":     func(i int) string { return fmt.Sprintf("d%d/f%d.go", i/100, i) },
			"overwritten": func(i int) string { return fmt.Sprintf("f%d.go", i%16) },
		} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				m := &oneByOne{b: b, dir: b.TempDir(), text: text, n: b.N, finished: make(chan time.Duration, 1)}
				m.tag = func(i int, text string) string {
					return fmt.Sprintf("<tf-write id=\"%d\" path=\"%s\" end=\"E0F\">\n%s</tf-write end=\"E0F\">\n", i, path(i), text)
				}
				e := benchEngine(b, m)
				res, err := e.Run(b.Context(), agent.RunRequest{Task: "write", Events: func(ev agent.Event) {
					if ev.Type == agent.CommandCompleted {
						m.finished <- time.Since(m.begun)
					}
				}})
				require.NoError(b, err)
				require.Equal(b, b.N, res.Applied, res.Reason)
				bare, whole := middle(m.bare), middle(m.whole)
				b.ReportMetric(float64(whole)/float64(bare), "x-bare-p50")
				b.ReportMetric(float64(whole)/float64(middle(m.durable)), "x-durable-p50")
				b.ReportMetric(float64(bare.Microseconds()), "bare-µs")
				b.ReportMetric(float64(whole.Microseconds()), "command-µs")
			})
		}
	}
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
