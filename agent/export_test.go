package agent

import (
	"sync"

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
