package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/agent/registry"
)

// world is what handlers of these tests work on.
type world struct {
	handled, probed, checked atomic.Int32

	late   int // attempts that run into the time-out
	deaf   bool
	own    bool // the handler keeps a clock of its own
	effect bool // the effect of a late attempt happens all the same
	done   atomic.Bool
	probe  registry.Verdict // "" = look at done
	broken error
	down   error
	hurt   error // Check's answer
}

type args struct {
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

const timeout = time.Second

func newTool(withProbe bool) registry.Tool[*world] {
	t := registry.Tool[*world]{
		Name: "send", Description: "Send a text.", Effects: true, Timeout: timeout,
		Ready: func(w *world) error { return w.down },
	}
	if withProbe {
		t.Probe = func(_ context.Context, c registry.Call[*world]) (registry.Verdict, registry.Output) {
			w := c.Env
			w.probed.Add(1)
			switch {
			case w.probe != "":
				return w.probe, registry.Text("as far as it came")
			case w.done.Load():
				return registry.Succeeded, registry.Text("sent")
			}
			return registry.NotExecuted, registry.Output{}
		}
	}
	return registry.Define(t, func(ctx context.Context, c registry.Call[*world], a args) (registry.Output, error) {
		w := c.Env
		n := w.handled.Add(1)
		if int(n) <= w.late {
			w.done.Store(w.effect)
			if w.deaf {
				time.Sleep(time.Minute) // virtual
			}
			if w.own {
				return registry.Output{}, &registry.Late{Says: "its own time was over"}
			}
			<-ctx.Done()
			return registry.Output{}, ctx.Err()
		}
		if w.broken != nil {
			return registry.Output{}, w.broken
		}
		w.done.Store(true)
		return registry.Text("sent " + a.Text), nil
	})
}

// TestScenes are the ways in which a call can go, with how often the handler ran.
func TestScenes(t *testing.T) {
	tests := []struct {
		name    string
		world   *world
		tool    string
		args    string
		noProbe bool
		permit  error
		want    string
		code    registry.Code
		says    string
		handled int32
		probed  int32
	}{
		{name: "unknown", tool: "fetch", code: registry.Unknown, says: "there is no tool fetch"},
		{name: "unavailable", world: &world{down: errors.New("no editor is connected")}, code: registry.Unavailable, says: "no editor"},
		{name: "invalid: a property that is not there", args: `{"text":"x","to":"y"}`, code: registry.Invalid, says: `"to"`},
		{name: "invalid: a missing one", args: `{}`, code: registry.Invalid, says: `"text"`},
		{name: "invalid: wrong type", args: `{"text":"x","n":"7"}`, code: registry.Invalid, says: "integer"},
		{name: "invalid: no object", args: `[1]`, code: registry.Invalid, says: "object"},
		{name: "invalid: no JSON", args: `{"text"`, code: registry.Invalid, says: "JSON"},
		{name: "not permitted", permit: errors.New("not in this run"), code: registry.Permission, says: "not in this run"},
		{name: "normal", want: "sent x", handled: 1},
		{name: "failed as can be expected", world: &world{broken: registry.Errorf(registry.Execution, "no such address")}, code: registry.Execution, says: "no such address", handled: 1},
		{name: "in trouble", world: &world{broken: errors.New("pipe broke")}, code: registry.Execution, says: "pipe broke", handled: 1},
		{name: "time-out, but done", world: &world{late: 1, effect: true}, want: "sent", handled: 1, probed: 1},
		{name: "time-out, not done", world: &world{late: 1}, want: "sent x", handled: 2, probed: 1},
		{name: "time-out, not done, twice", world: &world{late: 2}, code: registry.Timeout, says: "nothing was done", handled: 2, probed: 2},
		{name: "time-out, nobody knows", world: &world{late: 1, probe: registry.VerdictUnknown}, code: registry.Timeout, says: "unknown", handled: 1, probed: 1},
		{name: "time-out, nobody knows, and what is known", world: &world{late: 1, probe: registry.VerdictUnknown}, code: registry.Timeout, says: "as far as it came", handled: 1, probed: 1},
		{name: "own time-out, but done", world: &world{late: 1, own: true, effect: true}, want: "sent", handled: 1, probed: 1},
		{name: "own time-out, not done", world: &world{late: 1, own: true}, want: "sent x", handled: 2, probed: 1},
		{name: "own time-out, nobody knows", world: &world{late: 1, own: true, probe: registry.VerdictUnknown}, code: registry.Timeout, says: "its own time was over; whether it was done is unknown", handled: 1, probed: 1},
		{name: "time-out without a probe", world: &world{late: 1}, noProbe: true, code: registry.Timeout, says: "unknown", handled: 1},
		{name: "time-out of a handler that does not stop", world: &world{late: 1, deaf: true}, code: registry.Timeout, says: "unknown", handled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tt.world
				if w == nil {
					w = &world{}
				}
				c := registry.Call[*world]{Env: w, Name: "send", Args: json.RawMessage(`{"text":"x"}`)}
				if tt.tool != "" {
					c.Name = tt.tool
				}
				if tt.args != "" {
					c.Args = json.RawMessage(tt.args)
				}
				r, err := registry.New(newTool(!tt.noProbe))
				require.NoError(t, err)
				out, err := r.Call(t.Context(), c, func(*registry.Tool[*world]) error { return tt.permit })
				if tt.code == "" {
					require.NoError(t, err)
					require.Equal(t, tt.want, out.Text)
				} else {
					var e *registry.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, tt.code, e.Code)
					require.Contains(t, e.Message, tt.says)
				}
				require.Equal(t, tt.handled, w.handled.Load(), "handler")
				require.Equal(t, tt.probed, w.probed.Load(), "probe")
				time.Sleep(2 * time.Minute) // virtual: a deaf handler comes home
			})
		})
	}
}

func call(t *testing.T, r *registry.Registry[*world], w *world) error {
	t.Helper()
	_, err := r.Call(t.Context(), registry.Call[*world]{Env: w, Name: "send", Args: json.RawMessage(`{"text":"x"}`)}, nil)
	return err
}

// TestBreaker: after three failures of the tool itself in a row it is left
// alone; its check, which has no side effects, must pass before the handler is
// called again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{broken: errors.New("connection refused")}
		tool := newTool(true)
		tool.Check = func(_ context.Context, w *world) error {
			w.checked.Add(1)
			return w.hurt
		}
		r, err := registry.New(tool)
		require.NoError(t, err)
		var e *registry.Error
		for range 3 {
			require.ErrorAs(t, call(t, r, w), &e)
			require.Equal(t, registry.Execution, e.Code)
		}
		require.ErrorAs(t, call(t, r, w), &e)
		require.Equal(t, registry.Unavailable, e.Code)
		require.EqualValues(t, 3, w.handled.Load(), "open: the handler is not called")
		require.Zero(t, w.checked.Load())

		time.Sleep(time.Minute) // virtual
		w.hurt = errors.New("still down")
		require.ErrorAs(t, call(t, r, w), &e)
		require.Equal(t, registry.Unavailable, e.Code)
		require.Contains(t, e.Message, "still down")
		require.EqualValues(t, 3, w.handled.Load(), "the check failed: the handler is not called")
		require.EqualValues(t, 1, w.checked.Load())

		time.Sleep(time.Minute)
		w.hurt, w.broken = nil, nil
		require.NoError(t, call(t, r, w))
		require.NoError(t, call(t, r, w))
		require.EqualValues(t, 2, w.checked.Load(), "closed again: no check")
	})
}

// TestBreakerOutlivesItsRegistry: a registry that is made anew with the same tool
// goes on counting; the old one is not changed.
func TestBreakerOutlivesItsRegistry(t *testing.T) {
	w := &world{broken: errors.New("connection refused")}
	base, err := registry.New[*world]()
	require.NoError(t, err)
	var r, before *registry.Registry[*world]
	for range 3 {
		r = base.Clone()
		require.NoError(t, r.AddAs(newTool(true), before))
		require.Error(t, r.AddAs(newTool(true), before), "the name is taken")
		var e *registry.Error
		require.ErrorAs(t, call(t, r, w), &e)
		require.Equal(t, registry.Execution, e.Code)
		before = r
	}
	r = base.Clone()
	require.NoError(t, r.AddAs(newTool(true), before))
	var e *registry.Error
	require.ErrorAs(t, call(t, r, w), &e)
	require.Equal(t, registry.Unavailable, e.Code)
	require.EqualValues(t, 3, w.handled.Load())
	require.Nil(t, base.Find("send"))
}

// TestExpectedFailuresDoNotOpenTheBreaker: a file that is not there says nothing
// about the tool, and neither does a cancelled run.
func TestExpectedFailuresDoNotOpenTheBreaker(t *testing.T) {
	r, err := registry.New(newTool(false))
	require.NoError(t, err)
	w := &world{broken: registry.Errorf(registry.Execution, "no such file")}
	for range 10 {
		require.Error(t, call(t, r, w))
	}
	require.EqualValues(t, 10, w.handled.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		_, err := r.Call(ctx, registry.Call[*world]{Env: &world{late: 1}, Name: "send", Args: json.RawMessage(`{"text":"x"}`)}, nil)
		require.ErrorIs(t, err, context.Canceled)
	}
	w.broken = nil
	require.NoError(t, call(t, r, w))
}

// TestTripsOneByOne: the breaker of one tool does not touch another.
func TestTripsOneByOne(t *testing.T) {
	other := newTool(false)
	other.Name = "other"
	r, err := registry.New(newTool(false), other)
	require.NoError(t, err)
	w := &world{broken: errors.New("broken")}
	for range 4 {
		require.Error(t, call(t, r, w))
	}
	w.broken = nil
	_, err = r.Call(t.Context(), registry.Call[*world]{Env: w, Name: "other", Args: json.RawMessage(`{"text":"x"}`)}, nil)
	require.NoError(t, err)
}

func TestPanicFailsOneCall(t *testing.T) {
	r, err := registry.New(registry.Define(registry.Tool[*world]{Name: "send"}, func(context.Context, registry.Call[*world], args) (registry.Output, error) {
		panic("index out of range")
	}))
	require.NoError(t, err)
	var e *registry.Error
	require.ErrorAs(t, call(t, r, &world{}), &e)
	require.Equal(t, registry.Execution, e.Code)
	require.Contains(t, e.Message, "index out of range")
}

func TestToolsOfOthers(t *testing.T) {
	r, err := registry.New[*world]()
	require.NoError(t, err)
	handle := func(_ context.Context, c registry.Call[*world]) (registry.Output, error) {
		return registry.Text(string(c.Args)), nil
	}
	require.NoError(t, r.Add(registry.Tool[*world]{Name: "send", Parameters: json.RawMessage(`{"type":"object","required":["text"]}`), Handle: handle}))
	require.ErrorContains(t, r.Add(registry.Tool[*world]{Name: "send"}), "already")
	require.Error(t, r.Add(registry.Tool[*world]{Name: "bad", Parameters: json.RawMessage(`{"type":7}`)}))
	require.NoError(t, call(t, r, nil))
	require.True(t, r.Remove("send"))
	require.False(t, r.Remove("send"))
	require.Error(t, call(t, r, nil))
}
