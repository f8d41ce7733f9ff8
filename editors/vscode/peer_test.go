package vscode_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// peer is the other end of a channel of JSON objects, one a line: the extension's
// test socket, or the browser's driver. Requests are answered in any order.
type peer struct {
	name string
	w    io.Writer

	mu      sync.Mutex // guards what follows, and writes
	next    int
	waiting map[int]chan answer
	gone    error // set when the channel has ended
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

func newPeer(name string, r io.Reader, w io.Writer) *peer {
	p := &peer{name: name, w: w, waiting: make(map[int]chan answer)}
	// The driver says ready with id 0.
	p.waiting[0] = make(chan answer, 1)
	go p.read(r)
	return p
}

func (p *peer) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var a answer
		if err == nil && json.Unmarshal(line, &a) != nil {
			continue
		}
		p.mu.Lock()
		if err != nil {
			p.gone = fmt.Errorf("%s is gone: %w", p.name, err)
			for id, c := range p.waiting {
				c <- answer{Error: p.gone.Error()}
				delete(p.waiting, id)
			}
			p.mu.Unlock()
			return
		}
		if c := p.waiting[a.ID]; c != nil {
			c <- a
			delete(p.waiting, a.ID)
		}
		p.mu.Unlock()
	}
}

type object map[string]any

// send asks and returns where the answer will come.
func (p *peer) send(op string, params object) <-chan answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan answer, 1)
	if p.gone != nil {
		c <- answer{Error: p.gone.Error()}
		return c
	}
	p.next++
	request := object{"id": p.next, "op": op}
	for k, v := range params {
		request[k] = v
	}
	b, err := json.Marshal(request)
	if err == nil {
		p.waiting[p.next] = c
		_, err = p.w.Write(append(b, '\n'))
	}
	if err != nil {
		delete(p.waiting, p.next)
		c <- answer{Error: err.Error()}
	}
	return c
}

// await decodes an answer into result, which may be nil.
func await(what string, c <-chan answer, limit time.Duration, result any) error {
	select {
	case a := <-c:
		if a.Error != "" {
			return fmt.Errorf("%s: %s", what, a.Error)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-time.After(limit):
		return fmt.Errorf("%s: no answer within %s", what, limit)
	}
}

// ask sends, waits, and fails the test when it does not go well.
func (p *peer) ask(t testing.TB, op string, params object, result any) {
	t.Helper()
	if err := await(p.name+" "+op, p.send(op, params), time.Minute, result); err != nil {
		t.Fatal(err)
	}
}
