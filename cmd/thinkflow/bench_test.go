package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"thinkflow/internal/scripted"
)

// BenchmarkStart measures, for the real binary, the time from the start of
// `thinkflow run` to the arrival of its first request, and the memory that the
// process then has (peak resident size, Linux).
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "thinkflow")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	script, err := scripted.Parse("bench", []byte("turn\nrepeat\nhang headers\n"))
	if err != nil {
		b.Fatal(err)
	}
	server := scripted.New(script, scripted.Options{})
	url, stop, err := server.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	var total time.Duration
	var kib int64
	for i := range b.N {
		work := filepath.Join(dir, "work")
		if err := os.MkdirAll(work, 0o755); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(bin, "run", "x", "--dir", work)
		cmd.Env = []string{"HOME=" + dir, "OPENAI_BASE_URL=" + url, "THINKFLOW_MODEL=m"}
		start := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if err := server.WaitRequests(context.Background(), i+1); err != nil {
			b.Fatal(err)
		}
		total += server.Requests()[i].At.Sub(start)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		kib = max(kib, peak(cmd))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total.Microseconds())/1e3/float64(b.N), "ms/first-request")
	if runtime.GOOS == "linux" {
		b.ReportMetric(float64(kib)/1024, "MB-peak")
	}
}
