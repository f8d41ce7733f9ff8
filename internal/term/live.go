package term

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"
)

// Animate moves the status line on until ctx ends or stop is called; stop waits
// until nothing more is drawn. Without a live terminal it does nothing.
func (r *Renderer) Animate(ctx context.Context) (stop func()) {
	if !r.o.Live {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				r.Tick()
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// Busy shows in the status line what is waited for, until done is called.
func (r *Renderer) Busy(ctx context.Context, what string) (done func()) {
	r.mu.Lock()
	r.state = status{active: true, start: r.o.Now(), busy: VisibleName(what), frame: r.state.frame}
	r.refresh()
	r.mu.Unlock()
	stop := r.Animate(ctx)
	return func() {
		stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state.active = false
		r.refresh()
	}
}

// Notice shows a remark that belongs to no run.
func (r *Renderer) Notice(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockCommand)
	r.note("!", r.pal.warn, strings.TrimSpace(text))
	r.refresh()
}

// LogWriter shows each line written to it as a remark, so that a log on the
// same terminal cannot run into the text.
func (r *Renderer) LogWriter() io.Writer { return logWriter{r} }

type logWriter struct{ r *Renderer }

func (w logWriter) Write(p []byte) (int, error) {
	w.r.Notice(string(p))
	return len(p), nil
}

// Hints shows what to do next: lines that begin with a blank are commands to
// copy and stand in full, whatever the width.
func (r *Renderer) Hints(lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(lines) == 0 {
		return
	}
	r.endBlock()
	r.s.gap()
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, " "); ok {
			rest = VisibleName(strings.TrimLeft(rest, " "))
			r.s.put("    "+paint(r.pal.code, rest), 4+cells(rest))
			r.s.newline()
			continue
		}
		r.para(2, nil, l, 0)
	}
	r.block = blockNone
	if r.o.Inline {
		r.block = blockDetail
	}
	r.refresh()
}

// Dim writes one line that matters less.
func (r *Renderer) Dim(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(seg{VisibleName(line), r.pal.dim})
	r.s.flush()
}

// Check writes one result of a check: ok, a remark ("warn") or a failure, with
// what to do about it.
func (r *Renderer) Check(level, name, text, hint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	mark, st := "✓", r.pal.good
	switch level {
	case "warn":
		mark, st = "!", r.pal.warn
	case "fail":
		mark, st = "✗", r.pal.bad
	}
	const indent = 15
	w := r.width()
	if w > 0 {
		w = max(20, min(w, maxText)-indent)
	}
	for i, l := range wrapText(Visible(text), w) {
		if i == 0 {
			r.line(seg{mark + " ", st}, seg{pad(name, indent-2), r.pal.bold}, seg{l, nil})
		} else {
			r.line(seg{spaces(indent), nil}, seg{l, nil})
		}
	}
	if hint != "" {
		for _, l := range wrapText(Visible(hint), w) {
			r.line(seg{spaces(indent), nil}, seg{l, r.pal.dim})
		}
	}
	r.s.flush()
}

// Table writes rows in columns; head may be nil. The last column is cut on
// narrow terminals, the others keep their width.
func (r *Renderer) Table(head []string, rows [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wide []int
	measure := func(row []string) {
		for i, c := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], cells(VisibleName(c)))
		}
	}
	measure(head)
	for _, row := range rows {
		measure(row)
	}
	write := func(row []string, st style) {
		var line []seg
		for i, c := range row {
			t := VisibleName(c)
			if i < len(row)-1 {
				t = pad(t, wide[i]+2)
			}
			line = append(line, seg{t, r.cellStyle(c, st)})
		}
		if last := len(line) - 1; r.o.Inline && last > 0 { // told whole, below itself
			in := segsCells(line[:last])
			for i, l := range wrapText(line[last].text, max(12, r.width()-in)) {
				if i > 0 {
					line = []seg{{spaces(in), nil}, {"", line[last].st}}
					last = 1
				}
				line[last].text = l
				r.line(line...)
			}
			return
		}
		r.line(line...)
	}
	if head != nil {
		write(head, r.pal.dim)
	}
	for _, row := range rows {
		write(row, nil)
	}
	r.s.flush()
}

// cellStyle colours cells that say a status or are remarks.
func (r *Renderer) cellStyle(text string, st style) style {
	switch {
	case st != nil:
		return st
	case strings.HasPrefix(text, "# "):
		return r.pal.dim
	case text == "applied", text == "done":
		return r.pal.good
	case text == "failed", text == "rejected", text == "not_applied", text == "refused":
		return r.pal.bad
	case text == "uncertain", text == "rolled_back", text == "cancelled", text == "interrupted", text == "stopped", text == "undone":
		return r.pal.warn
	case text == "skipped":
		return r.pal.dim
	}
	return nil
}

// Fields writes names and values in two columns; a value that is too long goes
// on below itself. A field without a name belongs to the one before.
func (r *Renderer) Fields(rows [][2]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := 0
	for _, row := range rows {
		in = max(in, cells(VisibleName(row[0]))+2)
	}
	w := r.width()
	if w > 0 {
		w = max(20, w-in)
	}
	for _, row := range rows {
		name := row[0]
		for l := range strings.Lines(row[1] + "\n") {
			for _, part := range wrapText(VisibleName(strings.TrimSuffix(l, "\n")), w) {
				r.line(seg{pad(VisibleName(name), in), r.pal.dim}, seg{part, nil})
				name = ""
			}
		}
	}
	r.s.flush()
}

// Block writes text as it is, indented, in full.
func (r *Renderer) Block(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.para(4, nil, text, 0)
	r.s.flush()
}

// Elapsed words a duration as the renderer does.
func Elapsed(d time.Duration) string { return took(d) }
