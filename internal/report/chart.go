package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// Measures of the chart, in its own units.
const (
	chartWidth  = 1040.0
	chartLeft   = 92.0
	chartRight  = 12.0
	laneHeight  = 34.0
	barHeight   = 18.0
	chartTop    = 26.0
	breakWidth  = 26.0 // a pause that is cut out
	leastPause  = 30 * time.Second
	leastBar    = 2.5
	chartBottom = 24.0
)

var laneNames = [lanes]string{"stream", "commands", "tools", "person"}

// axis maps times to places. Long pauses in which nothing happened are cut out.
type axis struct {
	pieces []piece
	scale  float64 // units a second
}

type piece struct {
	start, end time.Time
	x          float64 // of start
	cut        time.Duration
}

// newAxis looks for pauses between the spans.
func newAxis(r *Run) *axis {
	marks := []time.Time{r.Info.Started, r.Ended}
	for _, s := range r.Spans {
		marks = append(marks, s.Start, s.End)
	}
	slices.SortFunc(marks, time.Time.Compare)
	first, last := marks[0], marks[len(marks)-1]
	total := last.Sub(first)
	a := &axis{}
	at := piece{start: first}
	busy := time.Duration(0)
	for i := 1; i < len(marks); i++ {
		gap := marks[i].Sub(marks[i-1])
		if gap > leastPause && gap > total/4 {
			at.end = marks[i-1]
			busy += at.end.Sub(at.start)
			a.pieces = append(a.pieces, at)
			at = piece{start: marks[i], cut: gap}
		}
	}
	at.end = last
	busy += at.end.Sub(at.start)
	a.pieces = append(a.pieces, at)
	width := chartWidth - chartLeft - chartRight - breakWidth*float64(len(a.pieces)-1)
	a.scale = width / math.Max(busy.Seconds(), 0.001)
	x := chartLeft
	for i := range a.pieces {
		p := &a.pieces[i]
		if i > 0 {
			x += breakWidth
		}
		p.x = x
		x += p.end.Sub(p.start).Seconds() * a.scale
	}
	return a
}

func (a *axis) x(t time.Time) float64 {
	for i, p := range a.pieces {
		if !t.After(p.end) || i == len(a.pieces)-1 {
			d := max(t.Sub(p.start), 0)
			d = min(d, p.end.Sub(p.start))
			return p.x + d.Seconds()*a.scale
		}
	}
	return chartLeft
}

// chart draws the run as SVG: lanes over time, turns as bands.
func chart(r *Run) template.HTML {
	a := newAxis(r)
	used := usedLanes(r)
	place := map[Lane]float64{}
	y := chartTop
	for _, l := range used {
		place[l] = y
		y += laneHeight
	}
	bottom := y
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="Timeline of the run">`, chartWidth, bottom+chartBottom)
	for i, t := range r.Turns {
		x, w := a.x(t.Start), a.x(t.End)-a.x(t.Start)
		fmt.Fprintf(&b, `<rect class="turn%d" x="%.1f" y="%g" width="%.1f" height="%g"/>`, i%2, x, chartTop-4, math.Max(w, 1), bottom-chartTop+4)
		label := fmt.Sprint(t.N)
		if i == 0 {
			label = "turn " + label
		}
		if w > float64(len(label))*7+4 {
			fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g">%s</text>`, x+3, chartTop-9, label)
		}
	}
	for _, l := range used {
		fmt.Fprintf(&b, `<text class="lane" x="%g" y="%g">%s</text>`, chartLeft-10, place[l]+laneHeight/2+4, laneNames[l])
		fmt.Fprintf(&b, `<line class="rule" x1="%g" y1="%g" x2="%g" y2="%g"/>`, chartLeft, place[l]+laneHeight, chartWidth-chartRight, place[l]+laneHeight)
	}
	drawTicks(&b, a, r, bottom)
	for _, m := range marks(a, r.Spans) {
		title := fmt.Sprintf("%s (%s, after %s)", m.s.Title, human(m.s.End.Sub(m.s.Start)), human(m.s.Start.Sub(r.Info.Started)))
		if m.more > 0 {
			title += fmt.Sprintf(" and %d more", m.more)
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g" rx="2"><title>%s</title></rect>`,
			m.s.Kind, m.x, place[m.s.Lane]+(laneHeight-barHeight)/2, m.w, barHeight, template.HTMLEscapeString(title))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // every text was escaped
}

// mark is what is drawn of a span, or of several that would cover each other.
type mark struct {
	s    Span
	x, w float64
	more int
}

// maxMarks is how many spans are drawn one by one.
const maxMarks = 600

// marks places the spans. Of very many, those of a kind that lie on each other
// become one.
func marks(a *axis, spans []Span) []mark {
	var out []mark
	last := map[string]int{} // by lane and kind: place in out
	for _, s := range spans {
		x := a.x(s.Start)
		w := math.Max(a.x(s.End)-x, leastBar)
		x = math.Min(x, chartWidth-chartRight-w)
		key := fmt.Sprint(s.Lane, s.Kind)
		if i, ok := last[key]; ok && len(spans) > maxMarks && x < out[i].x+out[i].w {
			out[i].w = math.Max(out[i].w, x+w-out[i].x)
			out[i].more++
			continue
		}
		last[key] = len(out)
		out = append(out, mark{s: s, x: x, w: w})
	}
	return out
}

// usedLanes are those with something in them.
func usedLanes(r *Run) []Lane {
	has := map[Lane]bool{LaneStream: true, LaneCommands: true}
	for _, s := range r.Spans {
		has[s.Lane] = true
	}
	var out []Lane
	for l := LaneStream; l < lanes; l++ {
		if has[l] {
			out = append(out, l)
		}
	}
	return out
}

// drawTicks draws times at round places, and where pauses were cut out.
func drawTicks(b *strings.Builder, a *axis, r *Run, bottom float64) {
	step := roundStep(90 / a.scale)
	lastX := -1000.0
	for i, p := range a.pieces {
		if i > 0 {
			fmt.Fprintf(b, `<rect class="break" x="%.1f" y="%g" width="%g" height="%g"><title>nothing happened for %s</title></rect>`, p.x-breakWidth+4, chartTop-4, breakWidth-8, bottom-chartTop+4, human(p.cut))
			fmt.Fprintf(b, `<text class="tick mid" x="%.1f" y="%g">⋯</text>`, p.x-breakWidth/2, bottom+15)
		}
		from := p.start.Sub(r.Info.Started).Seconds()
		to := p.end.Sub(r.Info.Started).Seconds()
		for s := math.Ceil(from/step) * step; s <= to+1e-9; s += step {
			x := p.x + (s-from)*a.scale
			if x-lastX < 60 || x > chartWidth-chartRight-24 && s > 0 {
				continue
			}
			lastX = x
			fmt.Fprintf(b, `<line class="rule" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/>`, x, bottom, x, bottom+4)
			fmt.Fprintf(b, `<text class="tick mid" x="%.1f" y="%g">%s</text>`, x, bottom+16, human(time.Duration(s*float64(time.Second))))
		}
	}
}

// roundStep is the next round number of seconds.
func roundStep(least float64) float64 {
	for _, s := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400} {
		if s >= least {
			return s
		}
	}
	return 7 * 86400
}

// human is a duration in a few characters.
func human(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
