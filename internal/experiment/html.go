package experiment

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
)

//go:embed report.html
var page string

// HTML is the report as one page with charts; nothing is loaded from elsewhere.
// Its links to artefacts are relative to the folder that it is saved in.
func (r *Report) HTML() ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"lines": func(s string) []string { return strings.Split(s, "\n") },
		"sec":   func(s Seconds) string { return fmt.Sprintf("%.2f s", float64(s)) },
		"num": func(n int) string {
			if n < 0 {
				return "not reported"
			}
			return thousands(float64(n))
		},
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	type section struct {
		TaskInfo
		Floor  Floor
		Charts []template.HTML
		Runs   []Result
	}
	data := struct {
		*Report
		Intro    []template.HTML
		Bars     []Bar
		BarAgent string
		Sections []section
		Kinds    []kindCount
		Failed   []Result
		Overview []template.HTML
		Over     string
	}{Report: r, Bars: r.Bars(), BarAgent: barAgent, Kinds: r.failureKinds()}
	for par := range strings.SplitSeq(r.intro(), "\n\n") {
		data.Intro = append(data.Intro, inline(par))
	}
	over, overview := r.overview()
	data.Over, data.Overview = strings.Join(over, ", "), overview
	for _, t := range r.Tasks {
		s := section{TaskInfo: t, Floor: r.Floors[t.Name], Charts: r.charts(t.Name)}
		for _, x := range r.Results {
			if x.Task == t.Name {
				s.Runs = append(s.Runs, x)
			}
		}
		data.Sections = append(data.Sections, s)
	}
	for _, x := range r.Results {
		if x.OK && x.Prompts > 1 {
			x.Failure, x.Detail = "mended after validation", x.Mended[0]
		}
		if x.Failure != "" {
			data.Failed = append(data.Failed, x)
		}
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// inline makes HTML of the little Markdown that the introduction has.
func inline(s string) template.HTML {
	s = template.HTMLEscapeString(s)
	for _, mark := range [...]struct{ md, tag string }{{"**", "strong"}, {"*", "em"}, {"`", "code"}} {
		for i := 0; strings.Contains(s, mark.md); i++ {
			s = strings.Replace(s, mark.md, "<"+[]string{"", "/"}[i%2]+mark.tag+">", 1)
		}
	}
	return template.HTML(s)
}

type kindCount struct {
	Agent string
	Kind  string
	Count int
}

// failureKinds counts failures by agent and kind.
func (r *Report) failureKinds() []kindCount {
	var out []kindCount
next:
	for _, x := range r.Results {
		kind := x.Failure
		if x.OK && x.Prompts > 1 {
			kind = "mended after validation"
		}
		if kind == "" {
			continue
		}
		for i := range out {
			if out[i].Agent == x.Agent && out[i].Kind == kind {
				out[i].Count++
				continue next
			}
		}
		out = append(out, kindCount{x.Agent, kind, 1})
	}
	return out
}

// overview has calls and input tokens of every agent, summed over the tasks that
// all of them did.
func (r *Report) overview() (tasks []string, charts []template.HTML) {
	type key struct{ agent, with string }
	var keys []key
	byTask := map[string]map[key]Result{}
	for _, t := range r.Tasks {
		byTask[t.Name] = map[key]Result{}
		for _, x := range r.rows(t.Name) {
			k := key{x.agent, x.with}
			if len(x.good) == len(x.results) && len(x.good) > 0 {
				byTask[t.Name][k] = x.good[len(x.good)/2]
			}
			seen := false
			for _, o := range keys {
				seen = seen || o == k
			}
			if !seen {
				keys = append(keys, k)
			}
		}
	}
	for _, t := range r.Tasks {
		if len(byTask[t.Name]) == len(keys) {
			tasks = append(tasks, t.Name)
		}
	}
	if len(tasks) == 0 {
		return nil, nil
	}
	var calls, input, weighed []bar
	for _, k := range keys {
		c, i, cached, w := 0.0, 0.0, 0.0, 0.0
		for _, t := range tasks {
			x := byTask[t][k]
			c += float64(x.Calls)
			i += math.Max(float64(x.Input), 0)
			cached += math.Max(float64(x.Cached), 0)
			w += math.Max(x.weighed(), 0)
		}
		label, ours := k.agent+" · "+k.with, strings.HasPrefix(k.agent, "thinkflow")
		calls = append(calls, bar{label: label, value: c, ours: ours})
		input = append(input, bar{label: label, value: i, part: cached, ours: ours})
		weighed = append(weighed, bar{label: label, value: w, ours: ours})
	}
	return tasks, []template.HTML{chart("Calls", "%.0f", calls), chart("Input tokens (dark: cached)", "%.0f", input), chart("Input tokens, cached ones at a tenth", "%.0f", weighed)}
}

// charts are the charts of a task.
func (r *Report) charts(task string) []template.HTML {
	floor := r.Floors[task]
	draw := func(title, format string, mark float64, f func(Result) float64, part func(Result) float64) template.HTML {
		var bars []bar
		for _, x := range r.rows(task) {
			b := bar{label: x.agent + " · " + x.with, ours: x.ours, missing: "failed"}
			if len(x.good) > 0 {
				s := spreadOf(x.good, f)
				b.missing = "not reported"
				if s.known {
					b.missing, b.value, b.low, b.high = "", s.median, s.min, s.max
				}
				if part != nil {
					b.part = spreadOf(x.good, part).median
				}
			}
			b.mark = mark
			bars = append(bars, b)
		}
		return chart(title, format, bars)
	}
	none := 0.0
	return []template.HTML{
		draw("Calls", "%.0f", float64(floor.Calls), func(r Result) float64 { return float64(r.Calls) }, nil),
		draw("Input tokens (dark: cached)", "%.0f", float64(floor.Input), func(r Result) float64 { return float64(r.Input) }, func(r Result) float64 { return float64(r.Cached) }),
		draw("Output tokens", "%.0f", float64(floor.Output), func(r Result) float64 { return float64(r.Output) }, nil),
		draw("Wall, s", "%.1f", floor.Wall.Seconds(), func(r Result) float64 { return float64(r.Wall) }, nil),
		draw("To the first file, s", "%.2f", none, func(r Result) float64 {
			if r.FirstFile < 0 {
				return 0
			}
			return float64(r.FirstFile)
		}, nil),
		draw("Memory, MB", "%.0f", none, func(r Result) float64 { return megabytes(r.Memory) }, nil),
		draw("Prefix reused, %", "%.0f", none, func(r Result) float64 { return math.Max(r.Reuse, 0) * 100 }, nil),
	}
}

// megabytes keeps -1 for what is not known.
func megabytes(n int64) float64 {
	if n <= 0 {
		return -1
	}
	return float64(n) / 1e6
}

// bar is one row of a chart.
type bar struct {
	label     string
	value     float64
	part      float64 // shaded, from the left
	low, high float64 // of the spread
	mark      float64 // the floor; 0 = none
	missing   string  // in place of a value
	ours      bool
}

// chart draws horizontal bars as SVG.
func chart(title, format string, bars []bar) template.HTML {
	const width, labelWidth, rowHeight, right = 560, 190, 18, 70
	top := 0.0
	for _, b := range bars {
		top = max(top, b.value, b.high, b.mark)
	}
	if top == 0 {
		top = 1
	}
	x := func(v float64) float64 { return labelWidth + v/top*(width-labelWidth-right) }
	height := 26 + rowHeight*len(bars) + 4
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(title))
	fmt.Fprintf(&b, `<text class="title" x="0" y="14">%s</text>`, template.HTMLEscapeString(title))
	for i, r := range bars {
		y := 24 + i*rowHeight
		class := "peer"
		if r.ours {
			class = "ours"
		}
		fmt.Fprintf(&b, `<text class="label" x="%d" y="%d">%s</text>`, labelWidth-6, y+12, template.HTMLEscapeString(r.label))
		if r.missing != "" {
			fmt.Fprintf(&b, `<text class="missing" x="%d" y="%d">%s</text>`, labelWidth+2, y+12, r.missing)
			continue
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, labelWidth, y+2, math.Max(x(r.value)-labelWidth, 1), rowHeight-5)
		if r.part > 0 {
			fmt.Fprintf(&b, `<rect class="part" x="%d" y="%d" width="%.1f" height="%d"/>`, labelWidth, y+2, x(min(r.part, r.value))-labelWidth, rowHeight-5)
		}
		if r.high > r.low {
			fmt.Fprintf(&b, `<line class="spread" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x(r.low), x(r.high), y+8, y+8)
		}
		if r.mark > 0 {
			fmt.Fprintf(&b, `<line class="floor" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x(r.mark), x(r.mark), y, y+rowHeight-1)
		}
		fmt.Fprintf(&b, `<text class="value" x="%.1f" y="%d">%s</text>`, x(max(r.value, r.high))+4, y+12, number(format, r.value))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func number(format string, v float64) string {
	if v >= 10000 {
		return thousands(v)
	}
	return fmt.Sprintf(format, v)
}

// thousands writes a whole number with commas.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
