package ledger

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// bareWrite is the yardstick: an atomic, fsynced write of one file.
func bareWrite(tb testing.TB, dir string, i int, data []byte) {
	f, err := os.CreateTemp(dir, "tmp")
	must(tb, err)
	_, err = f.Write(data)
	must(tb, err)
	must(tb, f.Sync())
	must(tb, f.Close())
	must(tb, os.Rename(f.Name(), filepath.Join(dir, "f"+strconv.Itoa(i%64))))
}

func mean(d []time.Duration) (sum time.Duration) {
	for _, x := range d {
		sum += x
	}
	return sum / time.Duration(len(d))
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// benchText is text as people write it: the sources of this package, from another
// place each time.
func benchText(b *testing.B, size int) func(i int) []byte {
	names, err := filepath.Glob("*.go")
	must(b, err)
	var all []byte
	for _, n := range names {
		data, err := os.ReadFile(n)
		must(b, err)
		all = append(all, data...)
	}
	return func(i int) []byte {
		at := i * 7919 % (len(all) - size)
		return append([]byte(fmt.Sprintf("%09d\n", i)), all[at:at+size-10]...)
	}
}

// BenchmarkCommand measures the ledger's part of a command (intent, atomic write,
// outcome) in a full queue, against the bare write of the same bytes in turn with
// it. As in the product, the content is stored with the intent, and of a file
// that is overwritten what undoes it, both as they are: texts of this size are not
// packed (workspace.PackFrom).
// The goals are 2.3 times at 4 KiB and 2.5 times at 100 KiB. The whole command is
// the benchmark of the same name in package agent.
func BenchmarkCommand(b *testing.B) {
	for _, size := range []int{4 << 10, 100 << 10} {
		text := benchText(b, size)
		for _, kind := range []string{"created", "overwritten"} {
			b.Run(fmt.Sprintf("%s/%dKiB", kind, size>>10), func(b *testing.B) {
				l := openAt(b, b.TempDir())
				files := b.TempDir()
				must(b, l.StartRun(Run{ID: "run", Task: "bench"}))
				var bare, whole []time.Duration
				for i := 0; b.Loop(); i++ {
					before, data := text(i), text(i+1)
					start := time.Now()
					bareWrite(b, files, i, data)
					mid := time.Now()
					k := key("run", 1+i/50, 1+i%50)
					in := Intent{Key: k, Tool: "tf-write", Path: "src/app.py", Abs: filepath.Join(files, "f"), BeforeHash: sum("before"),
						AfterHash: sum("after"), Flow: FlowStreamed, Temp: filepath.Join(files, "tmp"), ContentHash: sum("x"), Summary: "12 lines",
						Content: data}
					if kind == "overwritten" {
						in.Undo = before
					}
					must(b, l.Intent(ctx, in))
					bareWrite(b, files, i, data)
					must(b, l.Outcome(Outcome{Key: k, Status: StatusApplied, Bytes: int64(size)}))
					bare = append(bare, mid.Sub(start))
					whole = append(whole, time.Since(mid))
				}
				b.ReportMetric(float64(median(whole))/float64(median(bare)), "x-bare-p50")
				b.ReportMetric(float64(mean(whole))/float64(mean(bare)), "x-bare-mean")
				b.ReportMetric(float64(median(bare).Microseconds()), "bare-µs")
				b.ReportMetric(float64(l.w.commits)/float64(b.N), "commits/cmd")
			})
		}
	}
}

// BenchmarkOpenNew is the cold opening of a ledger that does not exist yet.
func BenchmarkOpenNew(b *testing.B) {
	root := b.TempDir()
	for i := 0; b.Loop(); i++ {
		l := openAt(b, filepath.Join(root, strconv.Itoa(i)))
		b.StopTimer()
		must(b, l.Close())
		b.StartTimer()
	}
}

// BenchmarkFirstCommand is what `thinkflow run` pays once: opening a new ledger,
// the first command, closing. -benchtime 1x shows it in a cold process.
func BenchmarkFirstCommand(b *testing.B) {
	root := b.TempDir()
	var open, intent, shut []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		l := openAt(b, filepath.Join(root, strconv.Itoa(i)))
		opened := time.Now()
		must(b, l.StartRun(Run{ID: "r"}))
		must(b, l.Intent(ctx, Intent{Key: key("r", 1, 1), Tool: "tf-write"}))
		begun := time.Now()
		must(b, l.Close())
		open, intent, shut = append(open, opened.Sub(start)), append(intent, begun.Sub(opened)), append(shut, time.Since(begun))
	}
	for name, d := range map[string][]time.Duration{"open-µs": open, "first-intent-µs": intent, "close-µs": shut} {
		b.ReportMetric(float64(median(d).Microseconds()), name)
	}
}

// fill records n commands in runs of 200, as a busy user has after months.
func fill(b *testing.B, dir string, n int) {
	l := openAt(b, dir)
	for i := range n {
		run := fmt.Sprintf("run%05d", i/200)
		if i%200 == 0 {
			must(b, l.StartRun(Run{ID: run, Task: "task " + run}))
		}
		k := key(run, 1+i/20%10, 1+i%20)
		o, err := l.intentOp(Intent{Key: k, Tool: "tf-edit", Path: fmt.Sprintf("src/file%d.go", i%500), Abs: fmt.Sprintf("/ws/src/file%d.go", i%500),
			BeforeHash: sum(fmt.Sprint(i)), AfterHash: sum(fmt.Sprint(i + 1)), Undo: []byte(fmt.Sprint("undo", i)), ContentHash: sum(fmt.Sprint("c", i))})
		must(b, err)
		must(b, l.w.put(o)) // without waiting
		l.setLive(k, StatusIntent)
		must(b, l.Outcome(Outcome{Key: k, Status: StatusApplied, Bytes: 1000}))
		must(b, l.Event(run, int64(1+i%200), "command.completed", json.RawMessage(`{"id":1,"path":"src/file.go"}`)))
		if i%200 == 199 {
			must(b, l.EndRun(run, "done", "", nil))
		}
	}
	must(b, l.Close())
}

// BenchmarkLarge reads a ledger of 100,000 commands; the goal is 200 ms each.
func BenchmarkLarge(b *testing.B) {
	dir := b.TempDir()
	fill(b, dir, 100_000)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			must(b, openAt(b, dir).Close())
		}
	})
	l := openAt(b, dir)
	for _, c := range []struct {
		name string
		f    func() error
	}{
		{"list last 100", func() error { _, err := l.List(ctx, Filter{Last: 100}); return err }},
		{"list a run", func() error { _, err := l.List(ctx, Filter{Run: "run00250"}); return err }},
		{"list last run", func() error { _, err := l.List(ctx, Filter{Run: Last, Last: 50}); return err }},
		{"list by path", func() error { _, err := l.List(ctx, Filter{Path: "src/file7.go"}); return err }},
		{"list failed", func() error { _, err := l.List(ctx, Filter{Status: []Status{StatusFailed}}); return err }},
		{"runs", func() error { _, err := l.Runs(ctx, RunFilter{}); return err }},
		{"last 20 runs", func() error { _, err := l.Runs(ctx, RunFilter{Limit: 20}); return err }},
		{"show", func() error { _, err := l.Show(ctx, "run00250/3/7"); return err }},
		{"show last", func() error { _, err := l.Show(ctx, Last); return err }},
		{"resume", func() error { // what a resumed run reads, but for its own conversation
			run, err := l.LookUpRun(ctx, "run00250")
			if err == nil {
				_, err = l.List(ctx, Filter{Run: run.ID, AfterTurn: 9})
			}
			if err == nil {
				_, err = l.LastSeq(ctx, run.ID)
			}
			return err
		}},
		{"events of a run", func() error { _, err := l.Events(ctx, EventFilter{Run: "run00250"}); return err }},
		{"list all", func() error { _, err := l.List(ctx, Filter{}); return err }},
		{"verify", func() error { _, err := l.Verify(ctx); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				must(b, c.f())
			}
		})
	}
}
