package term

import (
	"strings"
	"time"

	"thinkflow/agent"
)

// inline is what a renderer keeps that writes above something that another
// program draws: an input line, with what is not finished shown above it.
type inline struct {
	prose prose
	about string // model and folder as they were shown last

	open   bool   // reasoning is written as it comes
	folded bool   // the reasoning that comes now is not written
	think  string // of the last block of reasoning, raw
	since  time.Time
	later  bool // the reasoning is to be shown after the text
}

// maxThink bounds how much of the model's reasoning is kept, in bytes.
const maxThink = 1 << 20

// collapse keeps reasoning back and reports whether it did.
func (r *Renderer) collapse(text string) bool {
	in := &r.inline
	if r.block != blockThink {
		if strings.TrimSpace(text) == "" {
			return true
		}
		in.think, in.since, in.folded = "", r.o.Now(), false
		if !in.open {
			r.enter(blockThink)
			r.flow = flow{s: r.s}
			in.folded = true
		}
	}
	if len(in.think)+len(text) <= maxThink {
		in.think += text
	}
	return in.folded
}

// endInline ends text or reasoning.
func (r *Renderer) endInline() {
	in := &r.inline
	switch {
	case r.block == blockText:
		in.prose.end(&r.flow)
	case in.folded:
		in.folded = false
		n := strings.Count(strings.TrimSpace(in.think), "\n") + 1
		r.line(seg{"∴ ", r.pal.dim}, seg{"reasoned for " + took(r.o.Now().Sub(in.since)) + ", " + plural(n, "line") + " · ctrl-o shows", r.pal.think})
	}
	if in.later {
		in.later = false
		r.flow.end()
		r.s.gap()
		r.showThink()
	}
}

// showThink writes the reasoning that was kept back.
func (r *Renderer) showThink() {
	f := flow{s: r.s, margin: r.margin(), base: r.pal.think, limit: min(max(r.width(), 20), maxText)}
	f.write(strings.TrimSpace(r.inline.think))
	f.end()
}

// ToggleReasoning shows reasoning from here on as it comes, or folds it again.
// It reports which. When it begins to show, the last reasoning is shown whole.
func (r *Renderer) ToggleReasoning() (shown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := &r.inline
	in.open = !in.open
	switch {
	case !in.open || in.think == "":
	case r.block == blockText:
		in.later = true
	case in.folded: // it comes right now
		in.folded = false
		r.flow = flow{s: r.s, margin: r.margin(), base: r.pal.think, limit: min(max(r.width(), 20), maxText)}
		r.flow.write(strings.TrimLeft(in.think, " \n"))
	default:
		r.endBlock()
		r.s.gap()
		r.showThink()
		r.block = blockDetail
	}
	r.s.flush()
	return in.open
}

// Pending is what has come of the model's answer and is not yet a finished
// line: the end of the current line, or the last lines of folded reasoning. At
// most rows lines, treated, coloured and cut to the width.
func (r *Renderer) Pending(rows int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.width()
	if r.asking || rows < 1 {
		return nil
	}
	switch {
	case r.block == blockThink && r.inline.folded:
		text := r.inline.think
		if len(text) > 4096 {
			text = text[len(text)-4096:]
		}
		lines := wrapText(Visible(strings.TrimSpace(strings.ToValidUTF8(text, ""))), max(10, min(w, maxText)-2))
		if len(lines) > rows {
			lines = lines[len(lines)-rows:]
		}
		for i, l := range lines {
			lines[i] = "  " + paint(r.pal.think, l)
		}
		return lines
	case r.block == blockText && (r.inline.prose.fence != "" || len(r.inline.prose.table) > 0):
		if held := r.inline.prose.held(); held != "" {
			return []string{"    " + paint(r.pal.code, cut(expandTabs(held, 0), max(4, w-4)))}
		}
	}
	return nil
}

// StatusLine is the status as one line, "" between runs. See [Renderer.Tick].
func (r *Renderer) StatusLine() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.statusLine()
}

// Ask shows what needs consent, and holds events back until Answered.
func (r *Renderer) Ask(ev agent.ApprovalEvent) { r.question(ev) }

// Answered shows the answer and goes on with what came in the meantime.
func (r *Renderer) Answered(mark, text string) {
	r.mu.Lock()
	st := r.pal.good
	if mark != "✓" {
		st = r.pal.warn
	}
	r.line(seg{"  " + mark + " ", st}, seg{VisibleName(text), r.pal.dim})
	r.mu.Unlock()
	r.answered(false)
}

// Greet says where one is; the next run does not say it again.
func (r *Renderer) Greet(title, model, dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockHead)
	r.inline.about = r.about(model, dir, max(10, min(r.width(), maxText)-2))
	r.line(seg{"▌ ", r.pal.barTask}, seg{title, r.pal.bold})
	r.line(seg{"▌ ", r.pal.barTask}, seg{r.inline.about, r.pal.dim})
	r.block = blockDetail
	r.s.flush()
}

// Said shows a message of the person that belongs to a run that goes on.
func (r *Renderer) Said(text, remark string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockHead)
	for _, l := range wrapText(Visible(text), max(10, min(r.width(), maxText)-2)) {
		r.line(seg{"▌ ", r.pal.barTask}, seg{l, r.pal.bold})
	}
	if remark != "" {
		r.line(seg{"▌ ", r.pal.barTask}, seg{remark, r.pal.dim})
	}
	r.s.flush()
}

// Echo shows a command that the person gave.
func (r *Renderer) Echo(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockDetail)
	r.line(seg{"› ", r.pal.barTask}, seg{VisibleName(text), r.pal.dim})
	r.block = blockNone // what it has to say stands directly below
	r.s.flush()
}

// Diff shows a file's unified diff under its name and the counts of lines.
func (r *Renderer) Diff(path string, added, removed int, diff string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockDetail)
	line := []seg{{cutMiddle(VisibleName(path), max(12, r.width()-16)) + " ", r.pal.path}}
	for _, c := range r.counts(added, removed) {
		line = append(line, seg{" ", nil}, c)
	}
	r.line(line...)
	r.diff(parseDiff(diff), false)
	r.s.flush()
}

// Lines writes lines that a renderer has made, as a block of their own.
func (r *Renderer) Lines(lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockDetail)
	for _, l := range lines {
		r.s.put(l, 1)
		r.s.newline()
	}
	r.s.flush()
}

// Settle ends what a run left open, without closing the renderer.
func (r *Renderer) Settle() { r.Close() }

// Tokens words a number of tokens.
func Tokens(n int) string { return tokens(n) }

// Styles are the functions that colour what another program draws beside the
// renderer's output. Without colour they return the text as it is.
type Styles struct{ Dim, Bold, Prompt, Info, Warn, Bar func(string) string }

// Styles returns the renderer's own.
func (r *Renderer) Styles() Styles {
	mk := func(st style) func(string) string { return func(s string) string { return paint(st, s) } }
	return Styles{mk(r.pal.dim), mk(r.pal.bold), mk(r.pal.prompt), mk(r.pal.info), mk(r.pal.warn), mk(r.pal.barTask)}
}

// Width is the number of cells of a string that Visible has treated.
func Width(s string) int { return cells(s) }

// Cut shortens treated text to at most width cells, with an ellipsis.
func Cut(s string, width int) string { return cut(s, width) }
