package agent

import (
	"context"
	"time"
)

// Sizer is a Model that may know how large a model's context is, because its
// endpoint tells.
type Sizer interface {
	// ContextTokens is the size of the context in tokens; 0 = not known.
	ContextTokens(ctx context.Context, model string) int
}

// sizeTime bounds the question for the size of a context.
const sizeTime = 10 * time.Second

// askContext asks the endpoint once for each model, beside the first request.
// What a server was started with counts more than what the model could do.
func (r *run) askContext(model string) {
	sizer, ok := r.model.(Sizer)
	if !ok || r.cfg.ContextTokens > 0 || !r.e.firstAsk(model) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(r.ctx, sizeTime)
		defer cancel()
		if n := sizer.ContextTokens(ctx, model); n > 0 {
			r.e.mu.Lock()
			r.e.contexts[model] = n
			r.e.mu.Unlock()
		}
	}()
}

// firstAsk tells whether nobody has asked for the model yet.
func (e *Engine) firstAsk(model string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.contexts[model]; ok {
		return false
	}
	if e.contexts == nil {
		e.contexts = map[string]int{}
	}
	e.contexts[model] = 0
	return true
}

// contextOf is what the endpoint told; 0 = nothing yet.
func (e *Engine) contextOf(model string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.contexts[model]
}
