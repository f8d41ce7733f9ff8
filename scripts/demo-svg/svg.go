package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// Sizes in pixels.
const (
	cellW  = 8.4
	cellH  = 19.0
	fontPx = 14
	margin = 16.0
	bar    = 34.0
	// hold is how long the last frame stays before the animation starts anew.
	hold = 6 * time.Second
)

// colours of the sixteen, on a dark ground that also reads well beside a light
// page.
var colours = map[int]string{
	30: "#484f58", 31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 37: "#c9d1d9",
	90: "#6e7681", 91: "#ffa198", 92: "#7ee787", 93: "#f2cc60", 94: "#a5d6ff", 95: "#e2c5ff", 96: "#b3f0ff", 97: "#ffffff",
}

const (
	ground = "#0d1117"
	ink    = "#c9d1d9"
	faint  = "#7d8590"
)

// draw writes all frames one above the other and moves that strip in steps
// behind a window. Equal lines are written once and used again. Without
// animation the last frame shows.
func draw(frames []frame, cols, rows int, title string) string {
	w := float64(cols)*cellW + 2*margin
	h := float64(rows)*cellH + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="%d">`+"\n", w, h+bar, w, fontPx)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	total := frames[len(frames)-1].at + hold
	fmt.Fprintf(&b, "<style>text{fill:%s;white-space:pre}.b{font-weight:700}.i{font-style:italic}.u{text-decoration:underline}.d{fill:%s}", ink, faint)
	for code := 30; code <= 97; code++ {
		if c, ok := colours[code]; ok {
			fmt.Fprintf(&b, ".c%d{fill:%s}", code, c)
		}
	}
	fmt.Fprintf(&b, "#s{transform:translateY(%.1fpx);animation:p %.2fs steps(1,end) infinite}@keyframes p{", -float64(len(frames)-1)*h, total.Seconds())
	for i, f := range frames {
		fmt.Fprintf(&b, "%.2f%%{transform:translateY(%.1fpx)}", 100*f.at.Seconds()/total.Seconds(), -float64(i)*h)
	}
	b.WriteString("}@media(prefers-reduced-motion:reduce){#s{animation:none}}</style>\n")

	ids := map[string]int{}
	b.WriteString("<defs>\n")
	for _, f := range frames {
		for _, l := range f.lines {
			if _, ok := ids[l]; ok || strings.TrimSpace(plain(l)) == "" {
				continue
			}
			ids[l] = len(ids)
			fmt.Fprintf(&b, `<g id="l%d">%s</g>`+"\n", ids[l], line(l))
		}
	}
	fmt.Fprintf(&b, `<clipPath id="w"><rect width="%.0f" height="%.0f"/></clipPath>`+"\n</defs>\n", w, h)

	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="8" fill="%s"/>`+"\n", w, h+bar, ground)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`, 20+i*19, c)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="22" text-anchor="middle" class="d">%s</text>`+"\n", w/2, escape(title))
	fmt.Fprintf(&b, `<g transform="translate(0 %.0f)" clip-path="url(#w)"><g id="s">`+"\n", bar)
	for i, f := range frames {
		fmt.Fprintf(&b, `<g transform="translate(%.0f %.1f)">`, margin, float64(i)*h+margin)
		for row, l := range f.lines {
			if id, ok := ids[l]; ok {
				fmt.Fprintf(&b, `<use href="#l%d" y="%.0f"/>`, id, float64(row)*cellH)
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</g></g>\n</svg>\n")
	return b.String()
}

// look is what the colour sequences have set.
type look struct {
	fg                           int
	bold, dim, italic, underline bool
}

// sequence sets the look from nothing; "" for the plain one.
func (l look) sequence() string {
	var c []string
	for _, a := range []struct {
		on bool
		n  int
	}{{l.fg != 0, l.fg}, {l.bold, 1}, {l.dim, 2}, {l.italic, 3}, {l.underline, 4}} {
		if a.on {
			c = append(c, strconv.Itoa(a.n))
		}
	}
	if c == nil {
		return ""
	}
	return "\x1b[" + strings.Join(c, ";") + "m"
}

func (l look) class() string {
	var c []string
	switch {
	case l.fg != 0:
		c = append(c, "c"+strconv.Itoa(l.fg))
	case l.dim:
		c = append(c, "d")
	}
	if l.bold {
		c = append(c, "b")
	}
	if l.italic {
		c = append(c, "i")
	}
	if l.underline {
		c = append(c, "u")
	}
	return strings.Join(c, " ")
}

// line turns one line into text elements, one for each run of one look, placed
// by cell so that no font can shift them.
func line(s string) string {
	var b strings.Builder
	var l look
	col, start := 0, 0
	run := ""
	flush := func() {
		if strings.TrimSpace(run) != "" {
			lead := len(run) - len(strings.TrimLeft(run, " "))
			text := strings.TrimRight(run[lead:], " ")
			class := ""
			if c := l.class(); c != "" {
				class = ` class="` + c + `"`
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="14"%s textLength="%.1f">%s</text>`, float64(start+lead)*cellW, class, float64(uniseg.StringWidth(text))*cellW, escape(text))
		}
		run, start = "", col
	}
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			end := strings.IndexByte(s, 'm')
			if end < 0 {
				break
			}
			flush()
			l.set(s[2:end])
			s = s[end+1:]
			continue
		}
		c, rest, w, _ := uniseg.FirstGraphemeClusterInString(s, -1)
		run += c
		col += w
		s = rest
	}
	flush()
	return b.String()
}

func (l *look) set(args string) {
	for a := range strings.SplitSeq(args, ";") {
		n, _ := strconv.Atoi(a)
		switch {
		case n == 0:
			*l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 3:
			l.italic = true
		case n == 4:
			l.underline = true
		case n == 22:
			l.bold, l.dim = false, false
		case n == 23:
			l.italic = false
		case n == 24:
			l.underline = false
		case n == 39:
			l.fg = 0
		case colours[n] != "":
			l.fg = n
		}
	}
}

// plain is a line without its colours.
func plain(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return s[:i]
		}
		s = s[:i] + s[i+j+1:]
	}
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
