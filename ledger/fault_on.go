//go:build faults && unix

package ledger

import (
	"os"
	"sync/atomic"
	"syscall"
)

// fault kills this process, as kill -9 does, when THINKFLOW_FAULT names the
// point. It exists only in binaries that tests build with the tag faults.
func fault(point string) {
	if os.Getenv("THINKFLOW_FAULT") == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// writing says which of SQLite's writes are meant: those of the commit that
// holds an intent, or an outcome.
var writing atomic.Value

// faultCommit kills this process as soon as the write-ahead log grows: between
// two of the writes of one commit, before its sync, or at the latest behind it:
// what it returns does not come back.
func (t *txn) faultCommit() (committed func()) {
	point := os.Getenv("THINKFLOW_FAULT")
	if now, _ := writing.Load().(string); now == "" || point != now {
		return func() {}
	}
	var name string
	if err := t.conn.QueryRowContext(bg, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&name); err != nil {
		panic(err)
	}
	size := func() int64 {
		fi, err := os.Stat(name + "-wal")
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	before := size()
	go func() {
		for size() == before {
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	return func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// faultWriting says whose commit comes next.
func faultWriting(what string) { writing.Store(what) }
