//go:build !faults

package workspace

// fault is where a test may end the process; without the build tag faults,
// which only tests use, it is nothing.
func fault(string) {}
