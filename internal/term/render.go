package term

import (
	"io"
	"strings"
	"sync"
	"time"

	"thinkflow/agent"
)

// Options configures a Renderer. The zero value, with Out, writes plain lines.
type Options struct {
	Out io.Writer
	// Live: Out is a terminal that understands cursor movement.
	Live bool
	// Color: Out understands colours.
	Color bool
	// Size is the terminal's size in cells; nil means 80 by 24. Asked anew for
	// every line, so that it may change.
	Size func() (cols, rows int)
	// Now replaces time.Now in tests.
	Now func() time.Time
	// Inline: Out takes finished lines for a terminal whose bottom another
	// program draws (see inline.go). They are wrapped and coloured as on a live
	// terminal, but there is no status line and no cursor movement.
	Inline bool
	// Asks: an Approver of this renderer shows approvals; their events are not
	// shown a second time.
	Asks bool
}

// maxText is the widest that prose gets, in cells: longer lines read badly.
const maxText = 100

// Renderer shows the events of one run after another. Its methods may be called
// from several goroutines.
type Renderer struct {
	o   Options
	pal palette

	mu     sync.Mutex // guards all below
	s      *screen
	flow   flow
	block  block
	tally  tally
	state  status
	asking bool
	queued []agent.Event // came while a person was being asked
	output outputBlock
	ran    bool // output of the command that runs was shown
	order  order
	lead   string // blank text that no block has begun with yet
	inline inline
}

// block is the kind of thing that was written last; kinds are set apart by an
// empty line.
type block int

const (
	blockNone block = iota
	blockHead
	blockText
	blockThink
	blockCommand
	blockDetail // a command with lines below it
	blockOutput
	blockEnd
)

// New makes a renderer.
func New(o Options) *Renderer {
	if o.Size == nil {
		o.Size = func() (int, int) { return 80, 24 }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Renderer{o: o, pal: newPalette(o.Color), s: newScreen(o.Out, o.Live, o.Size)}
}

// width is the number of cells that a line may use; 0 = no bound.
func (r *Renderer) width() int {
	if !r.o.Live && !r.o.Inline {
		return 0
	}
	cols, _ := r.o.Size()
	return max(20, cols-1)
}

func (r *Renderer) margin() int {
	if r.o.Live || r.o.Inline {
		return 2
	}
	return 0
}

// Event shows one event.
func (r *Renderer) Event(e agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking {
		r.queued = append(r.queued, e)
		return
	}
	r.arrive(e)
	r.refresh()
}

// Progress tells that an open command's body has grown to so many bytes.
func (r *Renderer) Progress(path string, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.growing(path, bytes)
}

// Tick moves the status line on; call it about ten times a second.
func (r *Renderer) Tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asking && (r.o.Live || r.o.Inline) {
		r.state.frame++
		if len(r.order.late) > 0 && r.o.Now().Sub(r.order.since) > holdFor {
			r.catchUp()
		}
		r.refresh()
	}
}

// Close takes the status line away and gives the cursor back. Nothing of the
// text is held back afterwards.
func (r *Renderer) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp()
	r.endBlock()
	r.state.active = false
	r.refresh()
}

// refresh draws the status line and writes everything to the terminal.
func (r *Renderer) refresh() {
	if r.o.Live {
		r.s.setStatus(r.statusLine())
	}
	r.s.flush()
}

// enter begins a block: it ends the one before and sets the two apart.
func (r *Renderer) enter(b block) {
	if r.block == b && (b == blockText || b == blockThink || b == blockOutput) {
		return
	}
	prev := r.block
	r.endBlock()
	r.lead = ""
	if prev != blockNone && (prev != b || b == blockDetail) {
		r.s.gap()
	}
	r.block = b
}

func (r *Renderer) endBlock() {
	switch r.block {
	case blockText, blockThink:
		if r.o.Inline {
			r.endInline()
		}
		r.flow.end()
	case blockOutput:
		r.endOutput()
	}
	r.s.fresh()
}

func (r *Renderer) text(b block, base, code style, text string) {
	if r.block != b {
		if r.lead += text; strings.TrimSpace(r.lead) == "" {
			return // blanks between two commands begin no text
		}
		text = r.lead
		r.enter(b)
		r.flow = flow{s: r.s, margin: r.margin(), base: base, code: code}
		if b == blockText {
			r.flow.head = r.pal.heading
			r.inline.prose = prose{pal: &r.pal}
		}
	}
	r.flow.limit = 0
	if w := r.width(); w > 0 {
		r.flow.limit = min(w, maxText)
	}
	if r.o.Inline && b == blockText {
		r.inline.prose.width = r.width()
		r.inline.prose.write(&r.flow, text)
		return
	}
	r.flow.write(text)
}

// line writes one line of pieces, cut to the width.
func (r *Renderer) line(segs ...seg) {
	r.s.fresh()
	for n := len(segs); n > 0; n-- { // no blanks at the end of the line
		segs[n-1].text = strings.TrimRight(segs[n-1].text, " ")
		if segs[n-1].text != "" {
			break
		}
	}
	for _, s := range cutSegs(segs, r.width()) {
		r.s.put(paint(s.st, s.text), cells(s.text))
	}
	r.s.newline()
}

// para writes text wrapped to the width, every line indented.
func (r *Renderer) para(indent int, st style, text string, maxLines int) {
	w := r.width()
	if w > 0 {
		w = max(10, min(w, maxText)-indent)
	}
	lines := wrapText(Visible(text), w)
	for i, l := range lines {
		if maxLines > 0 && i == maxLines-1 && len(lines) > maxLines {
			r.line(seg{spaces(indent), nil}, seg{"… " + plural(len(lines)-i, "more line"), r.pal.dim})
			return
		}
		r.line(seg{spaces(indent), nil}, seg{l, st})
	}
}

func (r *Renderer) event(e agent.Event) {
	r.state.see(e, r.o.Now())
	switch e.Type {
	case agent.RunStarted:
		r.tally = tally{}
		r.runStarted(e)
	case agent.TurnStarted:
		if e.Turn > 1 {
			r.enter(blockHead)
			r.line(seg{spaces(r.margin()), nil}, seg{"turn " + itoa(e.Turn), r.pal.dim})
		}
	case agent.TurnRestarted:
		r.enter(blockCommand)
		r.note("↻", r.pal.warn, "trying again: "+e.Reason)
	case agent.TextDelta:
		r.text(blockText, nil, r.pal.code, e.Text)
	case agent.ReasoningDelta:
		if r.o.Inline && r.collapse(e.Text) {
			break
		}
		r.text(blockThink, r.pal.think, nil, e.Text)
	case agent.Thought:
		r.enter(blockDetail)
		r.note("·", r.pal.dim, e.Text)
	case agent.CommandCompleted, agent.CommandSkipped:
		if e.Command != nil {
			r.command(e)
		}
	case agent.ToolOutput:
		r.toolOutput(e)
	case agent.ToolCompleted:
		if e.Tool != nil {
			r.tool(e.Tool)
		}
	case agent.PlanUpdated:
		r.plan(e.Plan)
	case agent.ApprovalRequested:
		if e.Approval != nil && !r.o.Asks {
			r.enter(blockCommand)
			r.line(seg{"? ", r.pal.warn}, seg{"needs your consent: " + VisibleName(e.Approval.Action) + " ", nil}, seg{VisibleName(e.Approval.Target), r.pal.path})
		}
	case agent.Compaction:
		r.enter(blockCommand)
		r.note("·", r.pal.dim, "the conversation was shortened: "+e.Reason)
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled, agent.RunSuspended:
		r.runEnded(e)
	}
}

// note writes a remark with its mark in the margin, wrapped.
func (r *Renderer) note(mark string, st style, text string) {
	w := r.width()
	if w > 0 {
		w = min(w, maxText) - 2
	}
	for i, l := range wrapText(Visible(text), w) {
		if i > 0 {
			mark = " "
		}
		r.line(seg{mark + " ", st}, seg{l, nil})
	}
}

func (r *Renderer) runStarted(e agent.Event) {
	r.enter(blockHead)
	w := r.width()
	if w > 0 {
		w = min(w, maxText) - 2
	}
	lines := wrapText(Visible(e.Task), w)
	const most = 6
	for i, l := range lines {
		if i == most-1 && len(lines) > most {
			r.line(seg{"▌ ", r.pal.barTask}, seg{"… " + plural(len(lines)-i, "more line"), r.pal.dim})
			break
		}
		r.line(seg{"▌ ", r.pal.barTask}, seg{l, r.pal.bold})
	}
	about := r.about(e.Model, e.Dir, w)
	if r.o.Inline && about == r.inline.about {
		return // said with the task before
	}
	r.inline.about = about
	if about != "" {
		r.line(seg{"▌ ", r.pal.barTask}, seg{about, r.pal.dim})
	}
}

// about says where one is, in w cells (0 = no bound).
func (r *Renderer) about(model, dir string, w int) string {
	about := VisibleName(model)
	if dir == "" {
		return about
	}
	if about != "" {
		about += " in "
	}
	if w > 0 {
		return about + cutMiddle(VisibleName(dir), max(8, w-cells(about)))
	}
	return about + VisibleName(dir)
}

func (r *Renderer) plan(items []agent.PlanItem) {
	r.enter(blockDetail)
	for _, it := range items {
		mark, st, text := "○", r.pal.dim, style(nil)
		switch it.Status {
		case "done":
			mark, st, text = "●", r.pal.good, r.pal.dim
		case "in_progress":
			mark, st, text = "◐", r.pal.warn, r.pal.bold
		}
		r.line(seg{mark + " ", st}, seg{VisibleName(it.Title), text})
	}
}
