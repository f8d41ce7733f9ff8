package fakeeditor

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Options configures an editor.
type Options struct {
	Profile Profile
	Clock   *Clock
	// Root is the workspace folder on disk.
	Root string
	// Capabilities is the folder with the recorded capabilities.
	Capabilities string
	// Init is sent as initializationOptions; nil = none.
	Init any
	// Encodings replaces the recorded positionEncodings; nil = as recorded.
	Encodings []string
	// Answer chooses a button of a message request; nil = dismissed (null).
	Answer func(message string, buttons []string) string
	// Lie replaces the reply to workspace/applyEdit: result or error. It is
	// called after the edit was carried out; nil or ok false = the truth.
	Lie func() (result any, rpcErr *Error, ok bool)
	// Serve answers requests of our own methods, by name.
	Serve map[string]func(params json.RawMessage) any
	// Ignore makes the editor not carry out an edit that it accepts.
	Ignore bool
	// OnEdit is called when an applyEdit has arrived, before it is looked at:
	// what a person does there, the server cannot know of yet.
	OnEdit func()
	// OnReplied is called when the answer to an applyEdit has been sent, before
	// anything else is done: the profile may not have reported the change yet.
	OnReplied func()
}

// Editor is a client with open buffers. Its methods fail the test on errors.
type Editor struct {
	t    testing.TB
	opts Options
	conn *Conn

	// Result is what the server answered to initialize.
	Result struct {
		Capabilities struct {
			PositionEncoding string          `json:"positionEncoding"`
			Experimental     json.RawMessage `json:"experimental"`
		} `json:"capabilities"`
	}

	mu       sync.Mutex // guards what follows
	enc      string
	buffers  map[string]*Buffer // by URI
	requests []*Message         // what the server sent, in order
	edits    []json.RawMessage  // params of each applyEdit
	seen     chan struct{}      // closed and replaced when something was handled
	replies  int                // replies to applyEdit that have been sent
}

// Start connects to a server that reads from and writes to the pipe, and
// initializes it.
func Start(t testing.TB, o Options, serve func(r io.Reader, w io.WriteCloser)) *Editor {
	t.Helper()
	e := Connect(t, o, serve)
	e.Initialize()
	return e
}

// Connect starts a server without initializing it.
func Connect(t testing.TB, o Options, serve func(r io.Reader, w io.WriteCloser)) *Editor {
	t.Helper()
	if o.Clock == nil {
		o.Clock = new(Clock)
	}
	e := &Editor{t: t, opts: o, enc: "utf-16", buffers: map[string]*Buffer{}, seen: make(chan struct{})}
	toServer, fromEditor := io.Pipe()
	fromServer, toEditor := io.Pipe()
	e.conn = NewConn(fromServer, fromEditor, e.handle)
	go serve(toServer, toEditor)
	t.Cleanup(e.HangUp)
	return e
}

// Initialize does the handshake.
func (e *Editor) Initialize() {
	e.t.Helper()
	params, err := e.opts.Profile.InitializeParams(e.opts.Capabilities, FileURI(e.opts.Root))
	e.must(err)
	if e.opts.Init != nil {
		params["initializationOptions"] = e.opts.Init
	}
	if e.opts.Encodings != nil {
		params["capabilities"].(map[string]any)["general"] = map[string]any{"positionEncodings": e.opts.Encodings}
	}
	e.Request("initialize", params, &e.Result)
	if enc := e.Result.Capabilities.PositionEncoding; enc != "" {
		e.enc = enc
	}
	e.Notify("initialized", map[string]any{})
}

// Conn is the raw connection.
func (e *Editor) Conn() *Conn { return e.conn }

// HangUp ends the connection as a crash of the editor does.
func (e *Editor) HangUp() { _ = e.conn.Close() }

func (e *Editor) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf("fake editor %s: %v", e.opts.Profile.Name, err)
	}
}

// Request makes a request and waits for its result.
func (e *Editor) Request(method string, params, result any) {
	e.t.Helper()
	e.must(e.Try(method, params, result))
}

// Try is Request with the error.
func (e *Editor) Try(method string, params, result any) error {
	call, err := e.conn.Go("", method, params)
	if err != nil {
		return err
	}
	return call.Wait(result)
}

// Notify sends a notification.
func (e *Editor) Notify(method string, params any) {
	e.t.Helper()
	e.must(e.conn.Notify(method, params))
}

// Sync waits until the server has handled all that was sent so far. Servers
// handle in order, so the answer to any request says so.
func (e *Editor) Sync() {
	call, err := e.conn.Go("", "fake/sync", nil)
	if err == nil {
		_ = call.Wait(nil) // unknown method: good enough
	}
}

// FileURI encodes a path as VS Code does.
func FileURI(path string) string {
	u := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	return "file://" + strings.NewReplacer("(", "%28", ")", "%29", "!", "%21").Replace(u)
}

func (e *Editor) uri(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return FileURI(filepath.Join(e.opts.Root, name))
}

// Open opens a file of the root.
func (e *Editor) Open(name string) {
	e.t.Helper()
	data, err := os.ReadFile(filepath.Join(e.opts.Root, name))
	e.must(err)
	e.OpenText(e.uri(name), string(data))
}

// OpenText opens a buffer with a given text; uri may be of any scheme.
func (e *Editor) OpenText(uri, text string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open(uri, text)
}

// OpenVersion opens a buffer with a given text and version.
func (e *Editor) OpenVersion(uri, text string, version int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.openVersion(uri, text, version)
}

func (e *Editor) open(uri, text string) *Buffer {
	return e.openVersion(uri, text, e.opts.Profile.FirstVersion)
}

func (e *Editor) openVersion(uri, text string, version int32) *Buffer {
	b := &Buffer{URI: uri, Path: uriPath(uri), Text: text, Version: version, reported: text}
	e.buffers[uri] = b
	_ = e.conn.Notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri, "languageId": "plaintext", "version": b.Version, "text": text,
	}})
	return b
}

func uriPath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	return u.Path
}

func (e *Editor) buffer(name string) *Buffer {
	b, ok := e.buffers[e.uri(name)]
	if !ok {
		e.t.Fatalf("fake editor: %s is not open", name)
	}
	return b
}

// Text is the text of a buffer.
func (e *Editor) Text(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buffer(name).Text
}

// TextIfOpen is the text of a buffer; ok is false when there is none.
func (e *Editor) TextIfOpen(name string) (text string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.buffers[e.uri(name)]
	if !ok {
		return "", false
	}
	return b.Text, true
}

// SetReadOnly makes a buffer refuse edits.
func (e *Editor) SetReadOnly(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.buffer(name).ReadOnly = true
}

// Replace is a person who replaces the first old by text; old "" means the
// start of the buffer.
func (e *Editor) Replace(name, old, text string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.buffer(name)
	i := strings.Index(b.Text, old)
	if i < 0 {
		e.t.Fatalf("fake editor: %q is not in %s: %q", old, name, b.Text)
	}
	b.change(e.opts.Profile, e.enc, i, i+len(old), text)
	e.report(b, false)
}

// Type is a person who types text in front of the first before.
func (e *Editor) Type(name, before, text string) {
	e.t.Helper()
	e.Replace(name, before, text+before)
}

// Flush reports all changes now.
func (e *Editor) Flush(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flush(e.buffer(name))
}

// Save writes the buffer to disk.
func (e *Editor) Save(name string) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.buffer(name)
	e.flush(b)
	e.must(os.WriteFile(b.Path, []byte(b.Text), 0o644))
	b.Dirty = false
	e.must(e.conn.Notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": b.URI}}))
}

// Close closes a buffer.
func (e *Editor) Close(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closeBuffer(e.buffer(name))
}

func (e *Editor) closeBuffer(b *Buffer) {
	e.flush(b)
	delete(e.buffers, b.URI)
	_ = e.conn.Notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": b.URI}})
}

// report tells the server of changes when the profile does: now, or later. It
// is called with mu held; ours: the change was made by an edit of the server.
func (e *Editor) report(b *Buffer, ours bool) {
	p := e.opts.Profile
	if p.Report == 0 && !(ours && p.ReplyFirst) {
		e.flush(b)
		return
	}
	if b.timer != nil {
		if !p.Idle {
			return
		}
		b.timer()
	}
	b.timer = e.opts.Clock.AfterFunc(p.Report, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.flush(b)
	})
}

func (e *Editor) flush(b *Buffer) {
	if b.timer != nil {
		b.timer()
		b.timer = nil
	}
	if len(b.pending) == 0 {
		return
	}
	_ = e.conn.Notify("textDocument/didChange", map[string]any{
		"textDocument":   map[string]any{"uri": b.URI, "version": b.Version},
		"contentChanges": b.take(e.opts.Profile, e.enc),
	})
}

// Edits are the params of every applyEdit so far.
func (e *Editor) Edits() []json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]json.RawMessage(nil), e.edits...)
}

// Replies counts the answers to applyEdit that have been sent.
func (e *Editor) Replies() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replies
}

// Received are the server's requests and notifications of a method.
func (e *Editor) Received(method string) []*Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*Message
	for _, m := range e.requests {
		if m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// Await waits until cond holds; it is asked again whenever the editor has
// handled a message. It fails the test when the connection ends before.
func (e *Editor) Await(what string, cond func() bool) {
	e.t.Helper()
	for {
		e.mu.Lock()
		seen := e.seen
		e.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-seen:
		case <-e.conn.Done():
			if cond() {
				return
			}
			e.t.Fatalf("fake editor: the connection ended before %s", what)
		case <-e.t.Context().Done():
			e.t.Fatalf("fake editor: never came: %s", what)
		}
	}
}

// Seen is closed when the next message has been handled.
func (e *Editor) Seen() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen
}

// handle serves one message of the server.
func (e *Editor) handle(m *Message) {
	switch {
	case m.Method == "workspace/applyEdit":
		if e.opts.OnEdit != nil {
			e.opts.OnEdit()
		}
		e.applyEdit(m)
		if e.opts.OnReplied != nil {
			e.opts.OnReplied()
		}
	case m.ID == nil: // notification
	case m.Method == "window/workDoneProgress/create", m.Method == "client/registerCapability":
		_ = e.conn.Reply(m, nil, nil)
	case m.Method == "window/showMessageRequest":
		go e.ask(m) // the person takes their time; the editor goes on
	case e.opts.Serve[m.Method] != nil:
		_ = e.conn.Reply(m, e.opts.Serve[m.Method](m.Params), nil)
	case e.opts.Profile.Unknown == "null":
		_ = e.conn.Reply(m, nil, nil)
	default:
		_ = e.conn.Reply(m, nil, &Error{-32601, "unknown method " + m.Method})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, m)
	close(e.seen)
	e.seen = make(chan struct{})
}

func (e *Editor) ask(m *Message) {
	var p struct {
		Message string `json:"message"`
		Actions []struct {
			Title string `json:"title"`
		} `json:"actions"`
	}
	_ = json.Unmarshal(m.Params, &p)
	var buttons []string
	for _, a := range p.Actions {
		buttons = append(buttons, a.Title)
	}
	var result any
	if e.opts.Answer != nil {
		if title := e.opts.Answer(p.Message, buttons); title != "" {
			result = map[string]any{"title": title}
		}
	}
	_ = e.conn.Reply(m, result, nil)
}
