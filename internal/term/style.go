package term

import "github.com/fatih/color"

// style colours one piece of text; nil leaves it as it is.
type style = *color.Color

// palette holds the styles of one renderer. Without colour all are nil.
type palette struct {
	dim, bold, think            style
	good, bad, warn, info       style
	code, path                  style
	add, del, addHi, delHi      style
	barTask, prompt, heading    style
	title, italic, strike, link style
}

func newPalette(on bool) palette {
	if !on {
		return palette{}
	}
	mk := func(a ...color.Attribute) style {
		c := color.New(a...)
		c.EnableColor() // whether to colour is decided by Options, not by globals
		return c
	}
	return palette{
		dim:     mk(color.Faint),
		bold:    mk(color.Bold),
		think:   mk(color.Faint, color.Italic),
		good:    mk(color.FgGreen),
		bad:     mk(color.FgRed),
		warn:    mk(color.FgYellow),
		info:    mk(color.FgBlue),
		code:    mk(color.FgCyan),
		path:    mk(color.Bold),
		add:     mk(color.FgGreen),
		del:     mk(color.FgRed),
		addHi:   mk(color.FgGreen, color.Bold, color.Underline),
		delHi:   mk(color.FgRed, color.Bold, color.Underline),
		barTask: mk(color.FgMagenta, color.Bold),
		prompt:  mk(color.FgYellow, color.Bold),
		heading: mk(color.Bold),
		title:   mk(color.Bold, color.Underline),
		italic:  mk(color.Italic),
		strike:  mk(color.CrossedOut),
		link:    mk(color.FgBlue, color.Underline),
	}
}

func paint(st style, s string) string {
	if st == nil || s == "" {
		return s
	}
	return st.Sprint(s)
}
