package openai

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"
)

// timeout is the cause with which an exchange is ended that took too long.
type timeout struct {
	what string // "no answer", "no data"
	d    time.Duration
}

func (t *timeout) Error() string { return t.what + " for " + seconds(t.d) }

// seconds words a duration: "5 s", "1.5 s", "120 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// exchange is one HTTP request with the clock that watches it.
type exchange struct {
	parent     context.Context
	ctx        context.Context
	cancel     context.CancelCauseFunc
	stopParent func() bool
	body       []byte // of the request; nil for GET

	filter *filter       // set by the doer
	answer io.ReadCloser // the body as it comes from the network
	text   io.Reader     // the same without compression

	start   time.Time
	headers time.Time // arrival of the response's headers

	mu       sync.Mutex // guards below
	timer    *time.Timer
	deadline time.Time // zero: not armed
	cause    *timeout
}

type exchangeKey struct{}

func newExchange(parent context.Context, body []byte) *exchange {
	x := &exchange{parent: parent, body: body, start: time.Now()}
	// The parent's end is passed on by hand, so that a complete answer can be
	// read to its very end, and the connection kept, although the caller's
	// context is over by then.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	x.ctx, x.cancel = context.WithValue(ctx, exchangeKey{}, x), cancel
	x.stopParent = context.AfterFunc(parent, func() { cancel(context.Cause(parent)) })
	return x
}

// arm lets the exchange end with the cause after d, unless armed anew or
// disarmed before; d < 0 disarms.
func (x *exchange) arm(d time.Duration, cause *timeout) {
	if d < 0 {
		x.disarm()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deadline, x.cause = time.Now().Add(d), cause
	if x.timer == nil {
		x.timer = time.AfterFunc(d, x.fire)
		return
	}
	x.timer.Reset(d)
}

func (x *exchange) disarm() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deadline = time.Time{}
	if x.timer != nil {
		x.timer.Stop()
	}
}

func (x *exchange) fire() {
	x.mu.Lock()
	late := !x.deadline.IsZero() && !time.Now().Before(x.deadline) // else armed anew meanwhile
	cause := x.cause
	x.mu.Unlock()
	if late {
		x.cancel(cause)
	}
}

// timedOut returns the time-out that ended the exchange, if one did.
func (x *exchange) timedOut() *timeout {
	t, _ := context.Cause(x.ctx).(*timeout)
	return t
}

// close ends the exchange at once; the server sees the disconnect.
func (x *exchange) close() {
	x.stopParent()
	x.disarm()
	x.cancel(context.Canceled)
	if x.answer != nil {
		_ = x.answer.Close()
	}
}

// Bounds of what is read behind a complete answer to keep its connection.
const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// release ends the exchange after a complete answer. It returns at once; the
// rest of the body is read in the background so that the connection, and the
// TLS handshake it cost, can be used again.
func (x *exchange) release() {
	x.stopParent()
	x.arm(drainTime, &timeout{"no end of the answer", drainTime})
	go func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(x.answer, drainBytes))
		x.close()
	}()
}
