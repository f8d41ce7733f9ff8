package agent

import (
	"sync"
	"time"

	"thinkflow/internal/sandbox"
)

// SlowSandbox makes the first command of the engine wait before it is prepared.
func (e *Engine) SlowSandbox(wait func()) {
	box := e.box
	var once sync.Once
	e.box = func() *sandbox.Sandbox {
		once.Do(wait)
		return box()
	}
}

// HoldOutput lets what a shell left behind hold its output open for so long.
func (e *Engine) HoldOutput(d time.Duration) { e.held = d }
