package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// memoryFirst and memoryEvery are how soon the processes of an agent are looked
// at, and how often at last: between them the time grows. The kernel keeps the
// peak of each process, so a look sees all that was before it.
const (
	memoryFirst = 2 * time.Millisecond
	memoryEvery = 250 * time.Millisecond
)

// watchMemory follows the process and all that it started. peak ends it and
// returns the most that they held together, in bytes: the sum of the peaks of
// those that were alive at the same time. The resource usage that wait4 reports
// would not do: after fork and exec it begins with the peak of the parent.
func watchMemory(pid int) (peak func() int64) {
	done, ended := make(chan struct{}), make(chan int64, 1)
	go func() {
		most := heldBy(pid, 0)
		for wait := memoryFirst; ; wait = min(wait+wait/2, memoryEvery) {
			select {
			case <-done:
				ended <- most
				return
			case <-time.After(wait):
				most = max(most, heldBy(pid, 0))
			}
		}
	}()
	return func() int64 {
		close(done)
		if n := <-ended; n > 0 {
			return n
		}
		return -1
	}
}

// heldBy is the peak of the process and of its children as they are now, in
// bytes; 0 when it is gone.
func heldBy(pid, depth int) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
	sum := peakOf(dir)
	lists, _ := filepath.Glob(dir + "/task/*/children")
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil || depth > 8 {
			continue
		}
		for _, f := range bytes.Fields(data) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				sum += heldBy(child, depth+1)
			}
		}
	}
	return sum
}

func peakOf(dir string) int64 {
	data, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(data, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	f := bytes.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(f[0]), 10, 64)
	return kib << 10
}
