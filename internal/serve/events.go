package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// retryMillis is how long a browser waits before it connects again.
const retryMillis = 1000

// batch bounds the events written at once.
const batch = 256

// getEvents sends the events of a run as they come, from Last-Event-ID on.
func (s *Server) getEvents() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		after, resuming, err := lastID(r)
		if err != nil {
			s.fail(w, http.StatusBadRequest, "last-event-id", err.Error())
			return
		}
		led, err := s.o.Engine.Ledger()
		if err != nil {
			s.fail(w, http.StatusInternalServerError, "ledger", err.Error())
			return
		}
		id := r.PathValue("id")
		f := s.feed(id)
		run, err := led.FindRun(r.Context(), id)
		switch {
		case err != nil && f == nil && resuming:
			s.fail(w, http.StatusGone, "expired", "the events of this run are no longer kept; there is nothing to go on from")
			return
		case err != nil && f == nil:
			s.fail(w, http.StatusNotFound, "run", err.Error())
			return
		case err == nil:
			id = run.ID
		}
		c := &client{s: s, w: w, r: r, led: led, run: id, after: after}
		if gone, err := c.expired(); err != nil || gone {
			s.fail(w, http.StatusGone, "expired", "the events behind Last-Event-ID are no longer kept; begin without it")
			return
		}
		if c.ended() {
			w.WriteHeader(http.StatusNoContent) // a browser stops connecting
			return
		}
		c.stream()
	}
}

// lastID is where the client wants to go on.
func lastID(r *http.Request) (after int64, given bool, err error) {
	v := r.Header.Get("Last-Event-ID")
	if v == "" {
		v = r.URL.Query().Get("after")
	}
	if v == "" {
		return 0, false, nil
	}
	after, err = strconv.ParseInt(v, 10, 64)
	if err != nil || after < 0 {
		return 0, true, fmt.Errorf("%q is not the number of an event", v)
	}
	return after, true, nil
}

// client is one open stream.
type client struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	led   *ledger.Ledger
	run   string
	after int64 // number of the last event sent
}

// newest is the number of the run's newest event.
func (c *client) newest(ctx context.Context) (int64, error) {
	if f := c.s.feed(c.run); f != nil && f.newest() > 0 {
		return f.newest(), nil
	}
	return c.led.LastSeq(ctx, c.run)
}

// expired: the client has seen an event that is not there, or its place was
// pruned.
func (c *client) expired() (bool, error) {
	if c.after == 0 {
		return false, nil
	}
	newest, err := c.newest(c.r.Context())
	return c.after > newest, err
}

// ended: the run is over and the client has had all of it.
func (c *client) ended() bool {
	newest, err := c.newest(c.r.Context())
	if err != nil || c.after == 0 || c.after < newest {
		return false
	}
	items, err := c.lastOf(c.after)
	return err == nil && len(items) == 1 && items[0].last()
}

// lastOf is the event with this number.
func (c *client) lastOf(seq int64) ([]item, error) {
	if f := c.s.feed(c.run); f != nil {
		if items, ok, _ := f.after(seq-1, 1); ok {
			return items, nil
		}
	}
	return c.stored(seq-1, 1)
}

// stored reads events from the ledger.
func (c *client) stored(after int64, n int) ([]item, error) {
	events, err := c.led.Events(c.r.Context(), ledger.EventFilter{Run: c.run, Seq: true, After: after, Limit: n})
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(events))
	for _, e := range events {
		items = append(items, item{e.Seq, agent.EventType(e.Type), e.Body})
	}
	return items, nil
}

// stream writes until the run ends or the client goes.
func (c *client) stream() {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	if !c.write(fmt.Appendf(nil, "retry: %d\n\n", retryMillis)) {
		return
	}
	beat := time.NewTicker(c.s.o.Heartbeat)
	defer beat.Stop()
	for {
		items, wake, err := c.next()
		if err != nil {
			c.s.log.Warn("events cannot be read", "run", c.run, "err", err)
			return
		}
		if len(items) > 0 {
			if done := c.send(items); done {
				return
			}
			continue
		}
		if !c.wait(wake, beat.C) {
			return
		}
	}
}

// next are the events after the last one sent: from memory, else from the
// ledger. wake is closed when there may be more; nil = look again after a while.
func (c *client) next() (items []item, wake <-chan struct{}, err error) {
	if f := c.s.feed(c.run); f != nil {
		items, ok, grown := f.after(c.after, batch)
		if ok && (len(items) > 0 || !f.paused()) {
			return items, grown, nil
		}
		items, err = c.stored(c.after, batch)
		return items, nil, err
	}
	items, err = c.stored(c.after, batch)
	return items, nil, err
}

// send writes events and reports whether the stream is over.
func (c *client) send(items []item) (over bool) {
	var b bytes.Buffer
	for i := range items {
		it := &items[i]
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", it.seq, it.typ, bytes.ReplaceAll(it.data, []byte("\n"), nil))
		c.after = it.seq
		if it.last() {
			over = true
			break
		}
	}
	return !c.write(b.Bytes()) || over
}

// wait waits for more; false when the client or the server goes.
func (c *client) wait(wake <-chan struct{}, beat <-chan time.Time) bool {
	var poll <-chan time.Time
	if wake == nil {
		t := time.NewTimer(c.s.o.Poll)
		defer t.Stop()
		poll = t.C
	}
	select {
	case <-wake:
	case <-poll:
	case <-beat:
		return c.write([]byte(": still here\n\n"))
	case <-c.r.Context().Done():
		return false
	case <-c.s.ctx.Done():
		return false
	}
	return true
}

// write writes and flushes. A client that takes nothing for too long is let go;
// it can come back with the number of the last event that it had.
func (c *client) write(p []byte) bool {
	rc := http.NewResponseController(c.w)
	_ = rc.SetWriteDeadline(c.s.o.Now().Add(c.s.o.Stalled))
	_, err := c.w.Write(p)
	if err == nil {
		err = rc.Flush()
	}
	if err != nil {
		if c.r.Context().Err() == nil {
			c.s.log.Info("a client took nothing for too long and was let go", "run", c.run, "after", c.after, "stalled", c.s.o.Stalled)
		}
		return false
	}
	_ = rc.SetWriteDeadline(time.Time{})
	return true
}
