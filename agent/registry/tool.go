package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Code names the kind of a failed call. The set is closed.
type Code string

// The codes. With the first four the handler never ran.
const (
	Unknown     Code = "UNKNOWN_TOOL"
	Invalid     Code = "INVALID_ARGUMENT"
	Unavailable Code = "TOOL_UNAVAILABLE"
	Permission  Code = "PERMISSION_DENIED"
	Timeout     Code = "TIMEOUT"
	Execution   Code = "EXECUTION_ERROR"
)

// Error is a failed call: data for the model, worded so that it knows what to
// do next. A handler that returns one failed in an expected way (a file that is
// not there); any other error counts as trouble with the tool itself.
type Error struct {
	Code    Code
	Message string
	// After is what was found out about a call with effects that ran into a
	// time-out: NotExecuted or VerdictUnknown; "" for any other error.
	After Verdict
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an *Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Output is the result of a call.
type Output struct {
	Text string
	// Shrink renders the result in at most max bytes, when several results have
	// to share a budget; nil = the text is cut.
	Shrink func(max int) string
}

// Text is an Output without anything special.
func Text(s string) Output { return Output{Text: s} }

// Verdict is what a probe found out about an attempt that ran into a time-out.
type Verdict string

// The verdicts. After NotExecuted the call is tried once more; VerdictUnknown is
// told as it is.
const (
	Succeeded      Verdict = "SUCCEEDED"
	NotExecuted    Verdict = "NOT_EXECUTED"
	VerdictUnknown Verdict = "UNKNOWN"
)

// Late is the error of a handler that keeps a clock of its own (one that counts
// only the time of a command, or stands still while a person is asked) when its
// time is over. What follows is the same as when Tool.Timeout is over, but that
// the breaker does not count it: what the tool ran took too long, not the tool.
type Late struct {
	Says string // what ran out, for the model: "killed after 2m0s (bash_timeout)"
}

func (e *Late) Error() string { return e.Says }

// Next is what follows an attempt at something with effects that ran into a
// time-out.
type Next int

// What may follow: the result as if nothing had been late, one more attempt, or
// the truth.
const (
	Replay Next = iota
	Retry
	Tell
)

// After is the one rule about time-outs: what is known to have happened counts,
// what is known not to have happened is tried once more, and nothing else is.
// attempt counts from 1.
func After(v Verdict, attempt int) Next {
	switch {
	case v == Succeeded:
		return Replay
	case v == NotExecuted && attempt == 1:
		return Retry
	}
	return Tell
}

// Call is one call on its way to a handler.
type Call[E any] struct {
	Env  E
	ID   string
	N    int // number of the call in its answer, from 1
	Name string
	Args json.RawMessage // a JSON object
	// Budget is how many bytes of result are wanted at most.
	Budget int
	// Attempt counts from 1; 2 is the one retry after a probe said NotExecuted.
	Attempt int
}

// Tool is one native tool. Define makes one of a typed handler.
type Tool[E any] struct {
	Name        string
	Description string
	// Parameters is the JSON schema of the arguments; null = any object.
	Parameters json.RawMessage
	// Effects: the tool changes something. Such calls run alone and in order, and
	// are not retried without a Probe.
	Effects bool
	// Alone tells whether this call must not run beside others; nil = Effects.
	Alone func(args json.RawMessage) bool
	// Timeout bounds one attempt; 0 = the caller's context only, or a clock of the
	// handler's own (see Late).
	Timeout time.Duration
	// Grace is how long a handler may take to return after its context has ended;
	// 0 = 500 ms. One that takes longer is left behind, and is not asked after.
	Grace time.Duration
	// Ready says why the tool cannot be called now; nil = it always can.
	Ready func(E) error
	// Handle does the work. It must return soon after its context ends.
	Handle func(context.Context, Call[E]) (Output, error)
	// Probe finds out, without side effects, what became of an attempt that ran
	// into its time-out. With Succeeded it returns the result; with anything else
	// what the model should know besides, or nothing.
	Probe func(context.Context, Call[E]) (Verdict, Output)
	// Check finds out, without side effects, whether a tool that was in trouble
	// works again; nil = the next call shows it.
	Check func(context.Context, E) error

	schema *jsonschema.Resolved
}

// Define completes t with a typed handler: the schema comes from A and is what
// arguments are validated against. It panics when A has no schema, which is a
// mistake in the program.
func Define[E, A any](t Tool[E], handle func(context.Context, Call[E], A) (Output, error)) Tool[E] {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		panic("tool " + t.Name + ": " + err.Error())
	}
	plainTypes(schema)
	if t.Parameters, err = json.Marshal(schema); err != nil {
		panic("tool " + t.Name + ": " + err.Error())
	}
	if t.schema, err = schema.Resolve(nil); err != nil {
		panic("tool " + t.Name + ": " + err.Error())
	}
	t.Handle = func(ctx context.Context, c Call[E]) (Output, error) {
		var args A
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return Output{}, Errorf(Invalid, "%v", err)
		}
		return handle(ctx, c, args)
	}
	return t
}

// plainTypes leaves only one type where a Go slice or pointer may be null: not
// every provider takes a list of types, and no handler wants a null.
func plainTypes(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	plainTypes(s.Items)
	for _, p := range s.Properties {
		plainTypes(p)
	}
}

// resolve makes the schema of a tool that came with its parameters.
func (t *Tool[E]) resolve() error {
	if t.schema != nil || len(t.Parameters) == 0 {
		return nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(t.Parameters, &s); err != nil {
		return fmt.Errorf("tool %s: its schema cannot be read: %w", t.Name, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("tool %s: its schema cannot be used: %w", t.Name, err)
	}
	t.schema = resolved
	return nil
}

// Validate checks arguments against the schema. The error is an *Error.
func (t *Tool[E]) Validate(args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return Errorf(Invalid, "%v", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return Errorf(Invalid, "arguments must be an object")
	}
	if t.schema == nil {
		return nil
	}
	if err := t.schema.Validate(v); err != nil {
		return Errorf(Invalid, "%s", strings.TrimPrefix(err.Error(), "validating root: "))
	}
	return nil
}

// alone tells whether the call must not run beside others.
func (t *Tool[E]) alone(args json.RawMessage) bool {
	if t.Alone != nil {
		return t.Alone(args)
	}
	return t.Effects
}
