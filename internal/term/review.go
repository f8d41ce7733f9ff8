package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"

	"thinkflow/agent"
)

// contextLines is how many lines around a change are shown with it.
const contextLines = 3

// ReviewItem is one change to be shown, with its place among all.
type ReviewItem struct {
	Path   string
	Staged bool
	Hunk   agent.Hunk
	// Before and After are lines around the change, without line breaks.
	Before, After []string
	N, Of         int // from 1; Of 0 = not told
}

// Review shows one change.
func (r *Renderer) Review(it ReviewItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(blockHead)
	h := it.Hunk
	what := map[string]string{"create": "new file", "delete": "deleted file", "move": "moved from " + VisibleName(h.From)}[string(h.Kind)]
	if what == "" {
		what = fmt.Sprintf("line %d", h.StartLine+1)
	}
	segs := []seg{{VisibleName(it.Path), r.pal.path}, {"  " + what + "  " + h.ID, r.pal.dim}}
	if it.Of > 0 {
		segs = append([]seg{{fmt.Sprintf("[%d/%d] ", it.N, it.Of), r.pal.heading}}, segs...)
	}
	if it.Staged {
		segs = append(segs, seg{"  proposed", r.pal.warn})
	}
	if h.Edited {
		segs = append(segs, seg{"  edited by you", r.pal.info})
	}
	r.line(segs...)
	r.diff(parseDiff(reviewDiff(&it)), h.Kind == "create")
}

// reviewDiff is the change as a unified diff, with the lines around it.
func reviewDiff(it *ReviewItem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%d +%d @@\n", it.Hunk.BaseStartLine+1-len(it.Before), it.Hunk.StartLine+1-len(it.Before))
	put := func(sign string, lines []string) {
		for _, l := range lines {
			b.WriteString(sign + l + "\n")
		}
	}
	put(" ", it.Before)
	put("-", textLines(it.Hunk.Old))
	put("+", textLines(it.Hunk.New))
	put(" ", it.After)
	return b.String()
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Around cuts the lines next to a change out of the text that holds it.
func Around(text string, h *agent.Hunk) (before, after []string) {
	if h.Kind != "edit" {
		return nil, nil
	}
	lines := textLines(text)
	start, end := min(h.StartLine, len(lines)), min(h.EndLine, len(lines))
	return lines[max(0, start-contextLines):start], lines[end:min(len(lines), end+contextLines)]
}

// Say writes one line of prose.
func (r *Renderer) Say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line(seg{Visible(text), r.pal.dim})
}

// AskKeys shows what the keys do and leaves the cursor behind it.
func (r *Renderer) AskKeys(keys string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.put(paint(r.pal.dim, "  "+keys+" ")+paint(r.pal.prompt, "› "), cells(keys)+5)
}

// AnsweredKey ends a question's line with the key that was pressed.
func (r *Renderer) AnsweredKey(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.put(paint(r.pal.bold, key), cells(key))
	r.s.fresh()
}

// Keys reads single keys. From a terminal they come as they are pressed, from
// anything else as the characters of its lines.
type Keys struct {
	in  io.Reader
	raw *xterm.State
	fd  int
	ch  chan byte
}

// NewKeys begins to read keys; Close gives the terminal its mode back.
func NewKeys(in io.Reader) (*Keys, error) {
	k := &Keys{in: in, ch: make(chan byte)}
	if f, ok := in.(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
		var err error
		k.fd = int(f.Fd())
		if k.raw, err = xterm.MakeRaw(k.fd); err != nil {
			return nil, err
		}
	}
	go func() { // a read from a terminal cannot be interrupted
		defer close(k.ch)
		var b [1]byte
		for {
			if n, err := in.Read(b[:]); n == 1 {
				k.ch <- b[0]
			} else if err != nil {
				return
			}
		}
	}()
	return k, nil
}

// Read returns the next key: a character, or up, down, esc, enter. "" is the end
// of the input; so are ctrl-c and ctrl-d.
func (k *Keys) Read(ctx context.Context) string {
	next := func() (byte, bool) {
		select {
		case b, ok := <-k.ch:
			return b, ok
		case <-ctx.Done():
			return 0, false
		}
	}
	for {
		b, ok := next()
		switch {
		case !ok, b == 3, b == 4:
			return ""
		case b == '\r':
			return "enter"
		case b == '\n':
			if k.raw == nil {
				continue
			}
			return "enter"
		case b == 0x1b:
			if c, ok := next(); !ok || c != '[' && c != 'O' {
				return "esc"
			}
			c, _ := next()
			switch c {
			case 'A', 'D':
				return "up"
			case 'B', 'C':
				return "down"
			}
			continue
		}
		return string(rune(b))
	}
}

// Pause gives the terminal its mode back until the function that it returns is
// called: output in between needs no carriage returns.
func (k *Keys) Pause() (resume func()) {
	if k.raw == nil {
		return func() {}
	}
	_ = xterm.Restore(k.fd, k.raw)
	return func() {
		if raw, err := xterm.MakeRaw(k.fd); err == nil {
			k.raw = raw
		}
	}
}

// Close gives the terminal its mode back.
func (k *Keys) Close() {
	if k.raw != nil {
		_ = xterm.Restore(k.fd, k.raw)
	}
}
