package experiment

import (
	"cmp"
	"fmt"
	"slices"
)

// row is what one agent did on one task in one style or with one model, over
// all repeats.
type row struct {
	agent, version, task, with string
	ours                       bool
	results                    []Result // all
	good                       []Result // those that count for efficiency
}

// rows groups the results, by style and then in the order of [Ours] and [Peers],
// and leaves out of efficiency what failed. In pairs, where agents are compared, a
// repeat counts only if both sides have it.
func (r *Report) rows(task string) []row {
	var out []row
	for _, res := range r.Results {
		if res.Task != task {
			continue
		}
		with := string(res.Style)
		if !r.Simulated {
			with = res.Model
		}
		i := slices.IndexFunc(out, func(x row) bool { return x.agent == res.Agent && x.with == with })
		if i < 0 {
			i = len(out)
			out = append(out, row{agent: res.Agent, version: res.Version, task: task, with: with, ours: res.Ours})
		}
		out[i].results = append(out[i].results, res)
		if res.OK {
			out[i].good = append(out[i].good, res)
		}
	}
	place := map[string]int{}
	for i, a := range append(Ours(), Peers()...) {
		place[a.Name] = i
	}
	styles := []string{string(Serial), string(Parallel)}
	slices.SortStableFunc(out, func(a, b row) int {
		if a.with != b.with && r.Simulated {
			return cmp.Compare(slices.Index(styles, a.with), slices.Index(styles, b.with))
		}
		return cmp.Compare(place[a.agent], place[b.agent])
	})
	return out
}

// spread is a middle with its ends; known is false if any value was not reported.
type spread struct {
	min, median, max float64
	n                int
	known            bool
}

func spreadOf(rs []Result, f func(Result) float64) spread {
	var v []float64
	for _, r := range rs {
		x := f(r)
		if x < 0 {
			return spread{}
		}
		v = append(v, x)
	}
	if len(v) == 0 {
		return spread{}
	}
	slices.Sort(v)
	s := spread{min: v[0], max: v[len(v)-1], n: len(v), known: true}
	s.median = v[len(v)/2]
	if len(v)%2 == 0 {
		s.median = (v[len(v)/2-1] + v[len(v)/2]) / 2
	}
	return s
}

// text writes a spread; format is for one number.
func (s spread) text(format string) string {
	switch {
	case !s.known:
		return "not reported"
	case s.n == 1 || s.min == s.max:
		return fmt.Sprintf(format, s.median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.min, s.max)
}

// cachedPrice is what cached input costs beside other input, for a weight of
// both together: a tenth is common.
const cachedPrice = 0.1

// weighed is the input with the cached part at its price; -1 = not reported.
func (r *Result) weighed() float64 {
	if r.Input < 0 || r.Cached < 0 {
		return -1
	}
	return float64(r.Input-r.Cached) + cachedPrice*float64(r.Cached)
}

// Pair compares two agents with the same task and model, over the repeats that
// both of them did well.
type Pair struct {
	Task, With, A, B string
	Both, Left       int     // repeats that count, and that were left out
	Calls            float64 // B ÷ A, medians of the ratios; 0 = unknown
	Input, Weighed   float64
	Wall             float64
}

// pairs compares base with every other agent.
func (r *Report) pairs(base string) []Pair {
	var out []Pair
	for _, t := range r.Tasks {
		rows := r.rows(t.Name)
		for _, a := range rows {
			if a.agent != base {
				continue
			}
			for _, b := range rows {
				if b.agent == base || b.with != a.with {
					continue
				}
				out = append(out, pairOf(a, b))
			}
		}
	}
	return out
}

func pairOf(a, b row) Pair {
	p := Pair{Task: a.task, With: a.with, A: a.agent, B: b.agent}
	var ratios [4][]Result // carried as Input
	for _, x := range a.results {
		for _, y := range b.results {
			if x.Repeat != y.Repeat {
				continue
			}
			if !x.OK || !y.OK {
				p.Left++
				continue
			}
			p.Both++
			for i, q := range [4][2]float64{{float64(x.Calls), float64(y.Calls)}, {float64(x.Input), float64(y.Input)}, {x.weighed(), y.weighed()}, {float64(x.Wall), float64(y.Wall)}} {
				if q[0] > 0 && q[1] > 0 {
					ratios[i] = append(ratios[i], Result{Reuse: q[1] / q[0]})
				}
			}
		}
	}
	for i, to := range []*float64{&p.Calls, &p.Input, &p.Weighed, &p.Wall} {
		*to = spreadOf(ratios[i], func(r Result) float64 { return r.Reuse }).median
	}
	return p
}
