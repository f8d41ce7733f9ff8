package experiment

import (
	"cmp"
	"fmt"
	"slices"
)

// Bar is something that is demanded of the simulated runs, and what became of it.
type Bar struct {
	What   string
	Wanted string
	Got    string
	OK     bool
}

// barAgent is the way that the bars are for: what users get unless they set
// something else.
const barAgent = "thinkflow tags strip"

// timed are the tasks that have a bar on wall time.
var timed = []string{"novel", "edits", "repair", "long"}

// Bars compares the simulated runs with what is demanded.
func (r *Report) Bars() []Bar {
	if !r.Simulated {
		return nil
	}
	var out []Bar
	add := func(task string, style Style, what, wanted string, f func(Result, Floor) (string, bool)) {
		for _, x := range r.rows(task) {
			if x.agent != barAgent || x.with != string(style) {
				continue
			}
			// The one in the middle by its time stands for all.
			all := slices.SortedFunc(slices.Values(x.results), func(a, b Result) int { return cmp.Compare(a.Wall, b.Wall) })
			res := all[len(all)/2]
			b := Bar{What: fmt.Sprintf("%s, %s: %s", task, style, what), Wanted: wanted}
			if b.Got, b.OK = f(res, r.Floors[task]); len(x.good) < len(all) {
				b.Got, b.OK = b.Got+" (a run failed)", false
			}
			out = append(out, b)
		}
	}
	calls := func(task string, style Style, most int) {
		add(task, style, "calls", fmt.Sprintf("≤ %d", most), func(r Result, _ Floor) (string, bool) {
			return fmt.Sprint(r.Calls), r.Calls <= most
		})
	}
	calls("novel", Serial, 2)
	calls("novel", Parallel, 2)
	calls("novel-named", Parallel, 1)
	calls("edits", Parallel, 2)
	calls("edits-named", Parallel, 1)
	calls("repair", Parallel, 3)
	calls("repair-named", Parallel, 2)
	for _, task := range []string{"novel", "edits", "repair", "long"} {
		add(task, Parallel, "no call after the last command", "none", func(r Result, _ Floor) (string, bool) {
			if r.Silent {
				return "none", true
			}
			return "one", false
		})
	}
	for _, task := range []string{"novel", "novel-named", "edits", "edits-named", "repair"} {
		add(task, Parallel, "input tokens ÷ floor", "≤ 1.30", func(r Result, f Floor) (string, bool) {
			q := float64(r.Input) / float64(f.Input)
			return fmt.Sprintf("%.2f (%d ÷ %d)", q, r.Input, f.Input), q <= 1.3
		})
	}
	for _, task := range timed {
		add(task, Parallel, "wall ÷ floor", "≤ 1.03", func(r Result, f Floor) (string, bool) {
			q := float64(r.Wall) / f.Wall.Seconds()
			return fmt.Sprintf("%.3f (%.2f ÷ %.2f s)", q, float64(r.Wall), f.Wall.Seconds()), q <= 1.03
		})
	}
	return out
}
