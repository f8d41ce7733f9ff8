package agent

import (
	"sync"
	"time"

	"thinkflow/internal/redact"
	"thinkflow/parser"
	"thinkflow/workspace"
)

// Preview is a piece of a command's body that arrived before the command was
// complete. It is for showing only; nothing has been done yet. Joined, the
// deltas of one part are the part's text so far.
type Preview struct {
	Run     string `json:"run"`
	Turn    int    `json:"turn"`
	ID      int    `json:"id"`
	Channel string `json:"channel"`
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Part    string `json:"part"` // body, old, new
	Pair    int    `json:"pair"` // index of the <old>/<new> pair, from 0
	Delta   string `json:"delta"`
	Bytes   int    `json:"bytes"` // of this part so far
	Closed  bool   `json:"closed,omitempty"`
	// Place is where the new text will stand: with the preview that closes an
	// <old> whose text was found, in one place.
	Place *PreviewPlace `json:"place,omitempty"`
}

// PreviewPlace is what an <old> matched: lines from 0, the end exclusive, and
// the text itself. The file may still change before the command runs.
type PreviewPlace struct {
	Line    int    `json:"line"`
	EndLine int    `json:"endLine"`
	Path    string `json:"path"` // real
	Old     string `json:"old"`  // as the file has it
	// Version of the open document that was looked at.
	Version *int32 `json:"version,omitempty"`
}

// previewer coalesces previews to at most 20 a second and part.
type previewer struct {
	run  string
	sink func(Preview)
	now  func() time.Time
	safe *redact.Redactor

	mu    sync.Mutex // guards all below
	held  *Preview
	delta []byte
	old   []byte // text of the <old> that comes in; at most maxPreviewOld of it
	last  time.Time
	timer *time.Timer
}

func newPreviewer(run string, sink func(Preview), now func() time.Time) *previewer {
	return &previewer{run: run, sink: sink, now: now, safe: &redact.Redactor{}}
}

var partNames = map[parser.Part]string{parser.PartBody: "body", parser.PartOld: "old", parser.PartNew: "new"}

func (r *run) preview(turn int, o *parser.Opening, p parser.Progress) {
	pv := r.previews
	if pv.sink == nil {
		return
	}
	pv.mu.Lock()
	defer pv.mu.Unlock()
	if h := pv.held; h == nil || h.Turn != turn || h.ID != o.ID || h.Channel != string(o.Channel) || h.Part != partNames[p.Part] || h.Pair != p.Pair {
		pv.flushLocked(true)
		pv.held = &Preview{Run: pv.run, Turn: turn, ID: o.ID, Channel: string(o.Channel), Name: string(o.Name), Path: o.Path, Part: partNames[p.Part], Pair: p.Pair}
	}
	pv.delta = append(pv.delta, p.Delta...)
	if p.Part == parser.PartOld {
		if p.Total == len(p.Delta) {
			pv.old = pv.old[:0]
		}
		if len(pv.old) <= maxPreviewOld {
			pv.old = append(pv.old, p.Delta...)
		}
		if p.Closed && len(pv.old) <= maxPreviewOld {
			pv.held.Place = r.place(o.Path, string(pv.old))
		}
	}
	pv.held.Bytes, pv.held.Closed = p.Total, p.Closed
	wait := textInterval - pv.now().Sub(pv.last)
	switch {
	case p.Closed || wait <= 0:
		pv.flushLocked(p.Closed)
	case pv.timer == nil:
		pv.timer = time.AfterFunc(wait, pv.flush)
	default:
		pv.timer.Reset(wait)
	}
}

// maxPreviewOld bounds the <old> that is looked for ahead of its command, in
// bytes.
const maxPreviewOld = 64 << 10

// place finds where an <old> stands, as the command will, but asking nobody and
// changing nothing; nil when it is not found in one place.
func (r *run) place(path, old string) *PreviewPlace {
	ch, err := r.e.ws.PlanPlaces(workspace.Op{Kind: workspace.OpEdit, Path: path, Pairs: []workspace.Pair{{Old: old}}})
	if err != nil || len(ch.Edits) != 1 || ch.Target.Protected {
		return nil
	}
	text, e := ch.Before.Text, ch.Edits[0]
	lines := lineCounter{s: text}
	p := &PreviewPlace{Line: lines.line(e.Start), Path: ch.Target.Abs, Old: text[e.Start:e.End]}
	p.EndLine = lines.line(e.End)
	if e.End > 0 && text[e.End-1] != '\n' && e.End < len(text) {
		p.EndLine++ // it ends inside of that line
	}
	if ch.Before.Open {
		p.Version = &ch.Before.Version
	}
	return p
}

func (pv *previewer) flush() {
	pv.mu.Lock()
	defer pv.mu.Unlock()
	pv.flushLocked(false)
}

// flushLocked sends what is held. What may be the beginning of a key waits for
// more, unless all is to go.
func (pv *previewer) flushLocked(all bool) {
	if pv.held == nil || pv.sink == nil || (len(pv.delta) == 0 && !pv.held.Closed) {
		return
	}
	out := *pv.held
	ready := string(pv.delta)
	if !all {
		ready = ready[:len(ready)-pv.safe.Tail(ready)]
		if ready == "" {
			return
		}
	}
	out.Delta = redact.Visible(pv.safe.Values(ready))
	pv.delta = append(pv.delta[:0], pv.delta[len(ready):]...)
	pv.last = pv.now()
	if out.Closed {
		pv.held = nil
	}
	pv.sink(out)
}

func (pv *previewer) stop() {
	pv.mu.Lock()
	defer pv.mu.Unlock()
	if pv.timer != nil {
		pv.timer.Stop()
	}
	pv.sink = nil
}
