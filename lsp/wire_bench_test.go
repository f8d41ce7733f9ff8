package lsp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thinkflow/agent"
	iconfig "thinkflow/internal/config"
	"thinkflow/internal/fakeeditor"
	"thinkflow/ledger"
	"thinkflow/lsp"
	"thinkflow/workspace"
)

// editStream is a model whose answer is edits of one document, each sent when
// the one before it is done. Closing gets the moment before each closing tag.
type editStream struct {
	n       int
	next    int
	done    <-chan struct{}
	closing []time.Time
}

func (s *editStream) Stream(context.Context, *agent.Request) (agent.Stream, error) { return s, nil }
func (s *editStream) Close() error                                                 { return nil }

func (s *editStream) Recv() (agent.Delta, error) {
	i := s.next / 2
	if i == s.n {
		if s.next == 2*s.n {
			s.next++
			return agent.Delta{Finish: "stop"}, nil
		}
		return agent.Delta{}, io.EOF
	}
	s.next++
	if s.next%2 == 1 {
		if i > 0 {
			<-s.done
		}
		return agent.Delta{Text: fmt.Sprintf("<tf-edit id=\"%d\" path=\"doc.go\"><old>\tvalue%d := %d\n</old><new>\tvalue%d := %d\n</new>", i+1, i, i, i, i+1)}, nil
	}
	s.closing = append(s.closing, time.Now())
	return agent.Delta{Text: "</tf-edit>\n"}, nil
}

// hooked passes the events of a run on to one more listener.
type hooked struct {
	*agent.Engine
	on func(agent.Event)
}

func (h hooked) Run(ctx context.Context, req agent.RunRequest) (agent.RunResult, error) {
	events := req.Events
	req.Events = func(ev agent.Event) {
		h.on(ev)
		if events != nil {
			events(ev)
		}
	}
	return h.Engine.Run(ctx, req)
}

// BenchmarkTagToWire: from the bytes that close a tag to the arrival of the
// applyEdit request at the client, for an open document of 100 KiB: with the
// ledger on a disk (durable intent), and in memory (the same without the
// disk's part).
func BenchmarkTagToWire(b *testing.B) {
	b.Run("durable", func(b *testing.B) { tagToWire(b, b.TempDir()) })
	b.Run("in memory", func(b *testing.B) {
		dir, err := os.MkdirTemp("/dev/shm", "thinkflow-bench")
		if err != nil {
			b.Skip("no /dev/shm: ", err)
		}
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		tagToWire(b, dir)
	})
}

func tagToWire(b *testing.B, state string) {
	var doc strings.Builder
	for i := 0; doc.Len() < 100<<10 || i < b.N; i++ {
		fmt.Fprintf(&doc, "\tvalue%d := %d\n", i, i)
	}
	root, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	p, err := fakeeditor.ProfileNamed("vscode")
	if err != nil {
		b.Fatal(err)
	}
	loaded, err := iconfig.Load(iconfig.Options{NoFile: true, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{}, 1)
	model := &editStream{n: b.N, done: done}
	var mu sync.Mutex
	var arrived []time.Time
	clock := new(fakeeditor.Clock)
	ed := fakeeditor.Start(b, fakeeditor.Options{
		Profile: p, Clock: clock, Root: root, Capabilities: capsDir,
		OnEdit: func() {
			mu.Lock()
			arrived = append(arrived, time.Now())
			mu.Unlock()
		},
	}, func(r io.Reader, w io.WriteCloser) {
		lsp.Main(context.Background(), r, w, io.Discard, lsp.Options{Clock: clock, Log: slog.New(slog.DiscardHandler), New: func(_ context.Context, s lsp.Setup) (*lsp.Backend, error) {
			ws, err := workspace.New(s.Roots, workspace.Options{})
			if err != nil {
				return nil, err
			}
			e := agent.New(agent.Options{Config: loaded.Config, Model: model, Workspace: ws, Editor: s.Editor, Approver: s.Approver,
				Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
					return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: root})
				}})
			on := func(ev agent.Event) {
				if ev.Type == agent.CommandCompleted {
					done <- struct{}{}
				}
			}
			return &lsp.Backend{Engine: hooked{e, on}, Documents: ws, Settled: e.Settled, Close: e.Close}, nil
		}})
	})
	ed.OpenText("file://"+filepath.ToSlash(root)+"/doc.go", doc.String())
	var res agent.RunResult
	stop := make(chan struct{})
	defer close(stop)
	go func() { // the client's own delay before didChange, made short: it is not what is measured
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				clock.Advance(5 * time.Millisecond)
			case <-stop:
				return
			}
		}
	}()
	b.ResetTimer()
	ed.Request("thinkflow/run", map[string]any{"task": "go on"}, &res)
	b.StopTimer()
	if res.Applied != b.N {
		b.Fatalf("applied %d of %d: %s", res.Applied, b.N, res.Reason)
	}
	took := make([]float64, b.N)
	for i := range took {
		took[i] = float64(arrived[i].Sub(model.closing[i]).Microseconds()) / 1000
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-p50")
	b.ReportMetric(took[len(took)*99/100], "ms-p99")
}
