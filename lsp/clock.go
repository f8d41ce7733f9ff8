package lsp

import "time"

// Clock is where waiting times come from; tests have a virtual one.
type Clock interface {
	// AfterFunc calls f once, after d, on a goroutine of its own or the one that
	// moves the clock. stop prevents that if f has not been called yet.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type realClock struct{}

func (realClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
