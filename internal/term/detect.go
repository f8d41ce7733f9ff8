package term

import (
	"io"
	"os"

	"github.com/mattn/go-colorable"
	xterm "golang.org/x/term"
)

// Detect finds out what w can do. NO_COLOR (any value but "") turns colours
// off, TERM=dumb everything but plain lines, FORCE_COLOR (but "0") colours on
// where w is no terminal. restore gives the console of Windows its mode back.
func Detect(w io.Writer, env func(string) (string, bool)) (o Options, restore func()) {
	o.Out, restore = w, func() {}
	get := func(name string) string { v, _ := env(name); return v }
	force := get("FORCE_COLOR")
	f, ok := w.(*os.File)
	if ok && xterm.IsTerminal(int(f.Fd())) && get("TERM") != "dumb" {
		vt := true
		restore = colorable.EnableColorsStdout(&vt)
		if cols, _, err := xterm.GetSize(int(f.Fd())); vt && err == nil && cols > 0 {
			o.Live, o.Color = true, true
			o.Size = func() (int, int) {
				cols, rows, err := xterm.GetSize(int(f.Fd()))
				if err != nil || cols <= 0 {
					return 80, 24
				}
				return cols, rows
			}
		}
	} else if force != "" && force != "0" {
		o.Color = true
	}
	if get("NO_COLOR") != "" {
		o.Color = false
	}
	return o, restore
}

// IsTerminal reports whether v is a file that is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// ShowCursor gives a terminal its cursor back, for the end that is not orderly.
func ShowCursor(f *os.File) {
	if IsTerminal(f) {
		_, _ = f.WriteString(showCursor + "\n")
	}
}
