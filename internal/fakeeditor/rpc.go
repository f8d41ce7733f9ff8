package fakeeditor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Message is one JSON-RPC message as it went over the wire.
type Message struct {
	JSONRPC string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id,omitempty"`
	Method  string           `json:"method,omitempty"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Result  json.RawMessage  `json:"result,omitempty"`
	Error   *Error           `json:"error,omitempty"`
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// ErrHungUp is the error of requests that were open when the connection ended.
var ErrHungUp = errors.New("the connection has ended")

// Conn is a JSON-RPC connection with LSP framing. Incoming messages are read at
// once and handled one after the other, as by an editor's main thread, so that
// neither side ever blocks the other.
type Conn struct {
	w       io.WriteCloser
	handle  func(*Message)
	writeMu sync.Mutex // one frame at a time

	mu      sync.Mutex // guards what follows
	next    int
	waiting map[string]chan *Message
	queue   []*Message
	wake    chan struct{} // capacity 1
	ended   bool
	done    chan struct{} // closed when nothing more comes
}

// NewConn begins to read from r. handle gets requests and notifications.
func NewConn(r io.Reader, w io.WriteCloser, handle func(*Message)) *Conn {
	c := &Conn{w: w, handle: handle, waiting: map[string]chan *Message{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go c.read(bufio.NewReader(r))
	go c.work()
	return c
}

// ReadMessage reads one frame.
func ReadMessage(r *bufio.Reader) (*Message, error) {
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if v, ok := strings.CutPrefix(line, "Content-Length:"); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				return nil, err
			}
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	m := new(Message)
	return m, json.Unmarshal(body, m)
}

func (c *Conn) read(r *bufio.Reader) {
	for {
		m, err := ReadMessage(r)
		if err != nil {
			break
		}
		if m.Method == "" && m.ID != nil {
			c.mu.Lock()
			ch := c.waiting[string(*m.ID)]
			delete(c.waiting, string(*m.ID))
			c.mu.Unlock()
			if ch != nil {
				ch <- m
				continue
			}
		}
		c.mu.Lock()
		c.queue = append(c.queue, m)
		c.mu.Unlock()
		c.signal()
	}
	c.mu.Lock()
	c.ended = true
	for id, ch := range c.waiting {
		close(ch)
		delete(c.waiting, id)
	}
	c.mu.Unlock()
	c.signal()
}

func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Conn) work() {
	defer close(c.done)
	for {
		c.mu.Lock()
		var m *Message
		if len(c.queue) > 0 {
			m, c.queue = c.queue[0], c.queue[1:]
		}
		ended := c.ended
		c.mu.Unlock()
		switch {
		case m != nil:
			c.handle(m)
		case ended:
			return
		default:
			<-c.wake
		}
	}
}

// Done is closed when the server has closed its end and all was handled.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close hangs up.
func (c *Conn) Close() error { return c.w.Close() }

// Raw writes bytes as they are.
func (c *Conn) Raw(data string) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err := io.WriteString(c.w, data)
	return err
}

// Frame puts a header in front of a body.
func Frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func (c *Conn) send(m *Message) error {
	m.JSONRPC = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return c.Raw(Frame(string(body)))
}

// Notify sends a notification. params nil sends none.
func (c *Conn) Notify(method string, params any) error {
	raw, err := encode(params)
	if err != nil {
		return err
	}
	return c.send(&Message{Method: method, Params: raw})
}

// Call is a request that is under way.
type Call struct {
	ID    string // as JSON
	reply chan *Message
}

// Go sends a request. id "" numbers it; otherwise it is the id's JSON.
func (c *Conn) Go(id, method string, params any) (*Call, error) {
	raw, err := encode(params)
	if err != nil {
		return nil, err
	}
	call := &Call{ID: id, reply: make(chan *Message, 1)}
	c.mu.Lock()
	if call.ID == "" {
		c.next++
		call.ID = strconv.Itoa(c.next)
	}
	ended := c.ended
	if !ended {
		c.waiting[call.ID] = call.reply
	}
	c.mu.Unlock()
	if ended {
		return nil, ErrHungUp
	}
	rawID := json.RawMessage(call.ID)
	return call, c.send(&Message{ID: &rawID, Method: method, Params: raw})
}

// Wait waits for the reply and decodes its result; error replies are *Error.
func (call *Call) Wait(result any) error {
	m, ok := <-call.reply
	if !ok {
		return ErrHungUp
	}
	if m.Error != nil {
		return m.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// Reply answers a request of the server.
func (c *Conn) Reply(to *Message, result any, rpcErr *Error) error {
	m := &Message{ID: to.ID, Error: rpcErr}
	if rpcErr == nil {
		raw, err := json.Marshal(result)
		if err != nil {
			return err
		}
		m.Result = raw
	}
	return c.send(m)
}

func encode(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	return json.Marshal(params)
}
