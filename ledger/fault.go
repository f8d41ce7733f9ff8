//go:build !faults

package ledger

// fault is where a test may end the process; without the build tag faults,
// which only tests use, it is nothing.
func fault(string) {}

// faultWriting says whose commit comes next; faultCommit is where a test may end
// the process inside SQLite's own writes, or right behind them (what it returns).
func faultWriting(string) {}

func (t *txn) faultCommit() func() { return func() {} }
