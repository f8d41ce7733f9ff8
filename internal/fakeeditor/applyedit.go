package fakeeditor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// docChange is one entry of documentChanges, of any kind.
type docChange struct {
	Kind         string `json:"kind"`
	URI          string `json:"uri"`
	OldURI       string `json:"oldUri"`
	NewURI       string `json:"newUri"`
	TextDocument struct {
		URI     string `json:"uri"`
		Version *int32 `json:"version"`
	} `json:"textDocument"`
	Edits   []textEdit `json:"edits"`
	Options struct {
		Overwrite      bool `json:"overwrite"`
		IgnoreIfExists bool `json:"ignoreIfExists"`
	} `json:"options"`
}

type textEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

type editParams struct {
	Edit struct {
		Changes         map[string][]textEdit `json:"changes"`
		DocumentChanges []docChange           `json:"documentChanges"`
	} `json:"edit"`
}

// applyEdit serves workspace/applyEdit as the profile does.
func (e *Editor) applyEdit(m *Message) {
	var p editParams
	err := json.Unmarshal(m.Params, &p)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.edits = append(e.edits, m.Params)
	for uri, edits := range p.Edit.Changes {
		c := docChange{Edits: edits}
		c.TextDocument.URI = uri
		p.Edit.DocumentChanges = append(p.Edit.DocumentChanges, c)
	}
	var result any
	var rpcErr *Error
	if err == nil && !e.opts.Ignore {
		result, rpcErr = e.carryOut(p.Edit.DocumentChanges)
	} else {
		result = map[string]any{"applied": err == nil}
	}
	if e.opts.Lie != nil {
		if r, x, ok := e.opts.Lie(); ok {
			result, rpcErr = r, x
		}
	}
	_ = e.conn.Reply(m, result, rpcErr)
	e.replies++
}

// carryOut does what can be done and says what the profile says.
func (e *Editor) carryOut(changes []docChange) (any, *Error) {
	p := e.opts.Profile
	if !p.Sequential { // all or nothing, as far as versions go
		for i, c := range changes {
			if e.stale(c, i) {
				return e.staleAnswer(c, i)
			}
		}
	}
	for i, c := range changes {
		if e.stale(c, i) {
			return e.staleAnswer(c, i)
		}
		if err := e.one(c); err != nil {
			if p.ReadOnlyError || p.Stale == StaleError {
				return nil, &Error{-32603, err.Error()}
			}
			out := map[string]any{"applied": false}
			if p.Name != "vscode" { // which never says why
				out["failureReason"] = err.Error()
			}
			return out, nil
		}
	}
	return map[string]any{"applied": true}, nil
}

// stale reports whether the version does not fit, by the profile's rules.
func (e *Editor) stale(c docChange, i int) bool {
	b, open := e.buffers[c.TextDocument.URI]
	if c.Kind != "" || !open || c.TextDocument.Version == nil {
		return false
	}
	v := *c.TextDocument.Version
	if e.opts.Profile.ChecksFirst {
		return i == 0 && v > 0 && b.Version > v
	}
	return b.Version != v
}

func (e *Editor) staleAnswer(c docChange, i int) (any, *Error) {
	switch e.opts.Profile.Stale {
	case StaleTrue:
		return map[string]any{"applied": true}, nil
	case StaleReason:
		return map[string]any{"applied": false, "failureReason": "document has changed", "failedChange": i}, nil
	case StaleError:
		return nil, &Error{-32603, fmt.Sprintf("Edits on `%s' require version %d, you have another", filepath.Base(c.TextDocument.URI), *c.TextDocument.Version)}
	}
	return map[string]any{"applied": false}, nil
}

// one carries out one documentChange.
func (e *Editor) one(c docChange) error {
	p := e.opts.Profile
	switch c.Kind {
	case "create":
		return e.create(c)
	case "rename":
		return e.rename(c)
	case "delete":
		if p.NoCreate {
			return errors.New("cannot handle resource operations")
		}
		if b, ok := e.buffers[c.URI]; ok {
			e.closeBuffer(b)
		}
		return os.RemoveAll(uriPath(c.URI))
	}
	b, err := e.target(c.TextDocument.URI)
	if err != nil {
		return err
	}
	if b.ReadOnly {
		if p.ReadOnly == "" {
			return errors.New("read-only")
		}
		return errors.New(p.ReadOnly)
	}
	type piece struct {
		start, end int
		text       string
	}
	var pieces []piece
	for _, t := range c.Edits {
		start, err := offset(b.Text, t.Range.Start, e.enc)
		if err != nil {
			return err
		}
		end, err := offset(b.Text, t.Range.End, e.enc)
		if err != nil {
			return err
		}
		text := e.endings(b, t.NewText)
		if p.StrayLine && start == len(b.Text) && strings.HasSuffix(b.Text, "\n") && strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		pieces = append(pieces, piece{start, end, text})
	}
	sort.SliceStable(pieces, func(i, j int) bool { return pieces[i].start > pieces[j].start })
	for _, t := range pieces {
		b.change(p, e.enc, t.start, t.end, t.text)
	}
	e.report(b, true)
	return nil
}

// endings does to new text what the editor does.
func (e *Editor) endings(b *Buffer, s string) string {
	p := e.opts.Profile
	if !p.FileEOL {
		return s
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if strings.Contains(b.Text, "\r\n") {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// target finds or makes the buffer that an edit is for.
func (e *Editor) target(uri string) (*Buffer, error) {
	if b, ok := e.buffers[uri]; ok {
		return b, nil
	}
	data, err := os.ReadFile(uriPath(uri))
	if err != nil && e.opts.Profile.NeedsCreate {
		return nil, errors.New("no such file")
	}
	if e.opts.Profile.OpensClosed {
		return e.open(uri, string(data)), nil
	}
	b := &Buffer{URI: uri, Path: uriPath(uri), Text: string(data)}
	b.timer = func() {} // hidden: the server is not attached, nothing is reported
	e.buffers[uri] = b
	return b, nil
}

func (e *Editor) create(c docChange) error {
	if e.opts.Profile.NoCreate {
		return errors.New("cannot handle resource operations")
	}
	path := uriPath(c.URI)
	_, err := os.Lstat(path)
	switch {
	case err != nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, nil, 0o644)
	case c.Options.IgnoreIfExists:
		return nil
	case e.opts.Profile.Truncates:
		return os.Truncate(path, 0)
	}
	return errors.New("the file exists")
}

func (e *Editor) rename(c docChange) error {
	if e.opts.Profile.NoCreate {
		return errors.New("cannot handle resource operations")
	}
	if err := os.MkdirAll(filepath.Dir(uriPath(c.NewURI)), 0o755); err != nil {
		return err
	}
	if err := os.Rename(uriPath(c.OldURI), uriPath(c.NewURI)); err != nil {
		return err
	}
	if b, ok := e.buffers[c.OldURI]; ok {
		text := b.Text
		e.closeBuffer(b)
		e.open(c.NewURI, text)
	}
	return nil
}
