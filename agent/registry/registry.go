package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Bounds of a breaker: so many failures of the tool itself in a row open it, and
// after so long one call (or its check) may show that the tool works again.
const (
	tripAfter = 3
	openFor   = 30 * time.Second
)

// grace is how long a handler may take to return after its context has ended
// unless its tool says otherwise, probeTime how long a probe or a check may take.
const (
	grace     = 500 * time.Millisecond
	probeTime = 10 * time.Second
)

// Registry keeps tools. The zero value is not usable: see New. It is safe for
// concurrent use.
type Registry[E any] struct {
	mu    sync.Mutex // guards entries
	entry []*entry[E]
}

// entry is a tool with its breaker.
type entry[E any] struct {
	Tool[E]
	breaker *gobreaker.TwoStepCircuitBreaker[Output]
}

// New makes a registry that offers the tools in this order. Two tools of one
// name, or a schema that cannot be used, are errors.
func New[E any](tools ...Tool[E]) (*Registry[E], error) {
	r := &Registry[E]{}
	for _, t := range tools {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Clone returns a registry with the same tools and breakers, to which others can
// be added.
func (r *Registry[E]) Clone() *Registry[E] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Registry[E]{entry: slices.Clone(r.entry)}
}

// Add puts a tool behind the others.
func (r *Registry[E]) Add(t Tool[E]) error { return r.AddAs(t, nil) }

// AddAs is Add for a tool that may stand in a registry before this one: what its
// breaker has counted there goes on to count. before may be nil.
func (r *Registry[E]) AddAs(t Tool[E], before *Registry[E]) error {
	if err := t.resolve(); err != nil {
		return err
	}
	var known *entry[E]
	if before != nil {
		known = before.find(t.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.entry, func(e *entry[E]) bool { return e.Name == t.Name }) {
		return fmt.Errorf("there is a tool %s already", t.Name)
	}
	if known != nil {
		r.entry = append(r.entry, &entry[E]{t, known.breaker})
		return nil
	}
	b := gobreaker.NewTwoStepCircuitBreaker[Output](gobreaker.Settings{
		Name: t.Name, MaxRequests: 1, Timeout: openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded: func(err error) bool {
			return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		},
	})
	r.entry = append(r.entry, &entry[E]{t, b})
	return nil
}

// Remove takes a tool away; it reports whether it was there.
func (r *Registry[E]) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.entry)
	r.entry = slices.DeleteFunc(r.entry, func(e *entry[E]) bool { return e.Name == name })
	return len(r.entry) < n
}

// Tools lists the tools in the order in which they were added. They are not to
// be changed.
func (r *Registry[E]) Tools() []*Tool[E] {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Tool[E], len(r.entry))
	for i, e := range r.entry {
		out[i] = &e.Tool
	}
	return out
}

// Find returns the tool, nil when there is none of that name.
func (r *Registry[E]) Find(name string) *Tool[E] {
	if e := r.find(name); e != nil {
		return &e.Tool
	}
	return nil
}

func (r *Registry[E]) find(name string) *entry[E] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entry {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Alone tells whether a call must not run beside others. A call of an unknown
// tool runs nothing and may.
func (r *Registry[E]) Alone(name string, args []byte) bool {
	e := r.find(name)
	return e != nil && e.alone(args)
}

// Call does one call. permit is asked after everything else is known to be in
// order and before the handler runs; its error counts as PERMISSION_DENIED unless
// it is an *Error; nil = everything is permitted. Errors are *Error, or that of
// ctx when it ended.
func (r *Registry[E]) Call(ctx context.Context, c Call[E], permit func(*Tool[E]) error) (Output, error) {
	e := r.find(c.Name)
	if e == nil {
		return Output{}, Errorf(Unknown, "there is no tool %s", c.Name)
	}
	if err := e.Validate(c.Args); err != nil {
		return Output{}, err
	}
	if e.Ready != nil {
		if err := e.Ready(c.Env); err != nil {
			return Output{}, Errorf(Unavailable, "%s", message(err))
		}
	}
	if permit != nil {
		if err := permit(&e.Tool); err != nil {
			var own *Error
			if errors.As(err, &own) {
				return Output{}, own
			}
			return Output{}, &Error{Code: Permission, Message: err.Error()}
		}
	}
	done, err := e.breaker.Allow()
	if err != nil {
		return Output{}, Errorf(Unavailable, "%s failed %d times in a row and is left alone for a while; go on without it", e.Name, tripAfter)
	}
	if e.Check != nil && e.breaker.State() == gobreaker.StateHalfOpen {
		if err := e.check(ctx, c.Env); err != nil {
			done(err)
			return Output{}, Errorf(Unavailable, "%s still does not work: %s", e.Name, message(err))
		}
	}
	out, err := e.attempts(ctx, c)
	var expected *Error
	switch {
	case err == nil:
		done(nil)
		return out, nil
	case ctx.Err() != nil:
		done(ctx.Err()) // nobody's fault: not counted
		return Output{}, ctx.Err()
	case errors.As(err, &expected) && expected.Code == Timeout:
		if e.Timeout > 0 {
			done(err)
		} else {
			done(context.DeadlineExceeded) // not counted
		}
		return Output{}, expected
	case errors.As(err, &expected):
		done(nil) // the tool works, the call did not
		return Output{}, expected
	}
	done(err)
	return Output{}, &Error{Code: Execution, Message: err.Error()}
}

func (e *entry[E]) check(ctx context.Context, env E) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return e.Check(ctx, env)
}

// attempts calls the handler, once more if a probe shows that the first attempt
// did nothing. A time-out is an *Error with the code TIMEOUT.
func (e *entry[E]) attempts(ctx context.Context, c Call[E]) (Output, error) {
	for c.Attempt = 1; ; c.Attempt++ {
		out, returned, err := e.attempt(ctx, c)
		var late *Late
		if err == nil || !errors.As(err, &late) || ctx.Err() != nil {
			return out, err
		}
		if !e.Effects {
			return Output{}, Errorf(Timeout, "%s; ask for less, or go on without it", late.Says)
		}
		verdict := VerdictUnknown
		out = Output{}
		if e.Probe != nil && returned { // a handler that still runs may yet do anything
			verdict, out = e.probe(ctx, c)
		}
		switch After(verdict, c.Attempt) {
		case Replay:
			return out, nil
		case Retry:
			continue
		}
		says := &Error{Code: Timeout, After: verdict}
		if verdict == NotExecuted {
			says.Message = late.Says + ", twice; nothing was done"
		} else {
			says.Message = late.Says + "; whether it was done is unknown: look before you call it again"
		}
		if out.Text != "" {
			says.Message += "\n" + out.Text
		}
		return Output{}, says
	}
}

func (e *entry[E]) probe(ctx context.Context, c Call[E]) (Verdict, Output) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return e.Probe(ctx, c)
}

// attempt runs the handler once. returned is false when the handler did not come
// back although its context has ended; what it still returns is not used.
func (e *entry[E]) attempt(ctx context.Context, c Call[E]) (out Output, returned bool, err error) {
	own := ctx
	if e.Timeout > 0 {
		var cancel context.CancelFunc
		late := &Late{fmt.Sprintf("%s did not answer within %s", e.Name, e.Timeout)}
		own, cancel = context.WithTimeoutCause(ctx, e.Timeout, late)
		defer cancel()
	}
	wait := e.Grace
	if wait == 0 {
		wait = grace
	}
	type answer struct {
		out Output
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("%s broke: %v", e.Name, p)}
			}
			answered <- a
		}()
		a.out, a.err = e.Handle(own, c)
	}()
	var a answer
	select {
	case a = <-answered:
	case <-own.Done():
		select {
		case a = <-answered:
		case <-time.After(wait):
			return Output{}, false, context.Cause(own)
		}
	}
	if a.err != nil && own.Err() != nil && ctx.Err() == nil {
		return Output{}, true, context.Cause(own)
	}
	return a.out, true, a.err
}

// message is the error's text without the code of an *Error.
func message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
