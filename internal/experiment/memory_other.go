//go:build !linux

package experiment

// watchMemory knows nothing here: peak returns -1.
func watchMemory(int) (peak func() int64) { return func() int64 { return -1 } }
