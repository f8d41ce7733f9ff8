package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of an experiment.
type Options struct {
	Out      string   // folder for the results
	Binary   string   // thinkflow
	Tasks    []string // by name; empty = all that need no network
	Styles   []Style
	Pace     Pace
	Jobs     int      // runs at the same time
	Prompts  int      // of the outer loop, at most
	Peers    bool     // install other agents with npm
	Only     []string // agents by name; empty = all
	FrontEnd bool
	Live     *Live
	Models   []string // with Live
	Repeats  int      // with Live
	// With is results.json of an earlier simulated run: agents that are not run
	// now are taken from there, with their date.
	With string
	Log  func(format string, args ...any)
}

// Report is all that was measured.
type Report struct {
	Made      time.Time        `json:"made"`
	Machine   string           `json:"machine"`
	Simulated bool             `json:"simulated"`
	Pace      Pace             `json:"pace"`
	Jobs      int              `json:"jobs"`
	Repeats   int              `json:"repeats"`
	Floors    map[string]Floor `json:"floors"`
	Results   []Result         `json:"results"`
	NotRun    []NotRun         `json:"not_run"`
	Tasks     []TaskInfo       `json:"tasks"`
	// Note is what has to be known of how it was measured.
	Note string `json:"note,omitempty"`
}

// NotRun is what could not be measured, and why.
type NotRun struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// TaskInfo describes a task in the report.
type TaskInfo struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Prompt string `json:"prompt"`
}

// Run makes the experiment.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Pace.Speed <= 0 {
		o.Pace.Speed = 1
	}
	out, err := filepath.Abs(o.Out)
	if err != nil {
		return nil, err
	}
	o.Out = out
	o.Repeats = max(o.Repeats, 1)
	o.Jobs = max(o.Jobs, 1)
	rep := &Report{Made: time.Now().UTC(), Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Simulated: o.Live == nil, Pace: o.Pace, Jobs: o.Jobs, Repeats: o.Repeats, Floors: map[string]Floor{}}
	var old *Report
	if o.With != "" && o.Live == nil {
		if old, err = earlier(o.With, o.Pace); err != nil {
			return nil, err
		}
	}
	jobs, err := o.plan(ctx, rep)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(jobs))
	quiet, alone := len(jobs), len(jobs) // from there on two at a time, and one
	if o.Live == nil {
		from := func(is func(job) bool) int {
			if i := slices.IndexFunc(jobs, is); i >= 0 {
				return i
			}
			return len(jobs)
		}
		alone = from(func(j job) bool { return j.timed })
		quiet = min(alone, from(func(j job) bool { return rep.Floors[j.task.Name].Wall < short }))
	}
	o.work(ctx, o.Jobs, jobs[:quiet], results[:quiet])
	o.work(ctx, min(o.Jobs, 2), jobs[quiet:alone], results[quiet:alone])
	o.work(ctx, 1, jobs[alone:], results[alone:])
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	rep.Results = results
	if old != nil {
		rep.takeOver(old)
	}
	return rep, nil
}

// earlier reads the results of an earlier simulated run. It is an error when that
// was made at another pace: such times stand in no table together.
func earlier(file string, pace Pace) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var old Report
	if err := json.Unmarshal(data, &old); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !old.Simulated || old.Pace != pace {
		return nil, fmt.Errorf("%s was not measured with this model at this pace (%v to the first token, %g tokens a second, %g times as fast)", file, pace.First, pace.Rate, pace.Speed)
	}
	return &old, nil
}

// takeOver adds what other agents did in an earlier run with the same prompts.
func (r *Report) takeOver(old *Report) {
	now := map[string]bool{}
	for _, x := range r.Results {
		now[x.Agent] = true
	}
	taken := map[string]bool{}
	for _, x := range old.Results {
		same := func(t TaskInfo) bool { return t.Name == x.Task && slices.Contains(old.Tasks, t) }
		if x.Ours || now[x.Agent] || !slices.ContainsFunc(r.Tasks, same) {
			continue
		}
		if x.Earlier == "" {
			x.Earlier = old.Made.Format("2 January 2006")
			if old.Note != "" {
				x.Earlier += ", " + old.Note
			}
		}
		x.Artefacts = ""
		r.Results = append(r.Results, x)
		taken[x.Agent] = true
	}
	r.NotRun = slices.DeleteFunc(r.NotRun, func(n NotRun) bool { return taken[n.What] })
}

// short tasks come late and two at a time, those that a bar on time is for last,
// alone and three times: what the machine does besides is a larger part of them.
const short = 10 * time.Second

// work makes the runs, some at the same time.
func (o *Options) work(ctx context.Context, at int, jobs []job, results []Result) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for i := range next {
				results[i] = jobs[i].do(ctx)
				r := &results[i]
				state := "ok"
				if !r.OK {
					state = r.Failure + ": " + firstLines(r.Detail+"\n", 1)
				}
				o.Log("%-14s %-24s %-9s calls %2d  input %6d  output %6d  wall %6.1f s  %s", r.Task, r.Agent, r.Style, r.Calls, r.Input, r.Output, float64(r.Wall), state)
			}
		})
	}
	for i := range jobs {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
}

// plan lists the runs, the longest first.
func (o *Options) plan(ctx context.Context, rep *Report) ([]job, error) {
	type found struct {
		Agent
		program
	}
	var agents []found
	wanted := func(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }
	binary, err := filepath.Abs(o.Binary)
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", o.Binary, err)
	}
	for _, a := range Ours() {
		if wanted(a.Name) {
			agents = append(agents, found{a, program{path: binary, version: strings.TrimSpace(firstLines(string(version)+"\n", 1))}})
		}
	}
	for _, a := range Peers() {
		if !wanted(a.Name) {
			continue
		}
		p, err := a.find(ctx, filepath.Join(o.Out, "peers"), o.Peers)
		if err != nil {
			rep.NotRun = append(rep.NotRun, NotRun{a.Name, err.Error()})
			continue
		}
		agents = append(agents, found{a, p})
	}
	var jobs []job
	for _, t := range Tasks() {
		switch {
		case len(o.Tasks) > 0 && !slices.Contains(o.Tasks, t.Name):
			continue
		case len(o.Tasks) == 0 && t.Name == "frontend" && !o.FrontEnd:
			rep.NotRun = append(rep.NotRun, NotRun{"task frontend", "it needs npm and the network; --front-end runs it"})
			continue
		}
		if missing := t.missing(); missing != "" {
			rep.NotRun = append(rep.NotRun, NotRun{"task " + t.Name, missing + " is not on this machine"})
			continue
		}
		rep.Tasks = append(rep.Tasks, TaskInfo{t.Name, t.Title, t.Prompt})
		rep.Floors[t.Name] = FloorOf(&t, o.Pace)
		for _, a := range agents {
			j := job{agent: a.Agent, prog: a.program, task: t, model: ModelName, pace: o.Pace, limit: max(o.Prompts, 1), out: o.Out, repeat: 1}
			if o.Live == nil {
				for _, s := range o.Styles {
					j.style = s
					times := 1
					if a.Name == barAgent && s == Parallel && slices.Contains(timed, t.Name) && rep.Floors[t.Name].Wall < short {
						times, j.timed = 3, true
					}
					for n := range times {
						j.repeat = n + 1
						jobs = append(jobs, j)
					}
					j.timed = false
				}
				continue
			}
			j.live = o.Live
			for _, model := range o.Models {
				for n := range o.Repeats {
					j.model, j.repeat = model, n+1
					jobs = append(jobs, j)
				}
			}
		}
	}
	if o.Live == nil {
		slices.SortStableFunc(jobs, func(a, b job) int {
			if a.timed != b.timed {
				if a.timed {
					return 1
				}
				return -1
			}
			return int(rep.Floors[b.task.Name].Wall - rep.Floors[a.task.Name].Wall)
		})
	}
	if len(jobs) == 0 {
		return nil, errors.New("nothing to run: no task or agent has that name")
	}
	return jobs, nil
}

// missing is a program that the task needs and that is not there.
func (t *Task) missing() string {
	for _, n := range t.Needs {
		if _, err := exec.LookPath(n); err != nil {
			return n
		}
	}
	return ""
}

// Save writes results.json, report.md and report.html into the folder.
func (r *Report) Save(out string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	html, err := r.HTML()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "results.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(out, "report.md"), []byte(r.Markdown()), 0o644),
		os.WriteFile(filepath.Join(out, "report.html"), html, 0o644),
	)
}
