package agent

import (
	"context"
	"fmt"
)

// unrecordable says that commands need a ledger and that there is none. Without
// one no command can ever run, so asking the model again is of no use; a run
// that only answers needs none.
func (r *run) unrecordable() error {
	if !r.needsLedger.Load() {
		return nil
	}
	_, err := r.ledger()
	if err != nil {
		return fmt.Errorf("nothing can be executed, because it could not be recorded: %w", err)
	}
	return nil
}

// flushDecision makes what a person decided durable before it is told: another
// process, or the next one after a crash, must see it as it is in the files.
func (e *Engine) flushDecision(ctx context.Context, res *Reviewed) error {
	if len(res.Files) == 0 && len(res.Commands) == 0 && len(res.Undo) == 0 {
		return nil
	}
	led, err := e.openLedger()
	if err != nil {
		return err
	}
	return led.Flush(context.WithoutCancel(ctx))
}
