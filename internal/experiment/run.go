package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Result is one agent's work on one task.
type Result struct {
	Agent   string `json:"agent"`
	Version string `json:"version"`
	Ours    bool   `json:"ours,omitempty"`
	Task    string `json:"task"`
	Style   Style  `json:"style,omitempty"` // of the simulated model
	Model   string `json:"model"`
	Repeat  int    `json:"repeat"` // from 1

	OK      bool   `json:"ok"`
	Prompts int    `json:"prompts"`           // of the outer loop
	Failure string `json:"failure,omitempty"` // its kind: see the constants
	Detail  string `json:"detail,omitempty"`
	// Mended is what failed validations said before the work was right.
	Mended []string `json:"mended,omitempty"`

	Calls int `json:"calls"`          // all requests
	Side  int `json:"side,omitempty"` // of them, those outside of the loop
	Cut   int `json:"cut,omitempty"`  // answers that the agent ended
	// Tokens; -1 is not reported.
	Input  int `json:"input"`
	Output int `json:"output"`
	Cached int `json:"cached"`
	// First is the size of the first request, Reuse the part of the later ones
	// that an earlier one had as its prefix (-1 with one request).
	First int     `json:"first_bytes"`
	Reuse float64 `json:"prefix_reuse"`
	// Silent: the last answer still did something; no call was made only to hear
	// that all is done. Simulated runs only.
	Silent bool `json:"silent_end"`

	Wall      Seconds `json:"wall"`       // of the processes
	Start     Seconds `json:"start"`      // to the first request
	FirstFile Seconds `json:"first_file"` // to the first change of a file; -1 = none
	// Memory is the most that the agent's processes held together, in bytes; -1 =
	// not known. Pages that they share count for each.
	Memory int64 `json:"memory"`
	// Least is what these calls and tokens take at the simulated pace.
	Least Seconds `json:"least,omitempty"`
	// Late is the most by which the simulated model was behind because the machine
	// stood still; a run with more than lateness is made again.
	Late  Seconds `json:"late,omitempty"`
	Again int     `json:"again,omitempty"`

	Artefacts string `json:"artefacts,omitempty"` // folder, relative to the report
	Earlier   string `json:"earlier,omitempty"`   // the day and how, when it was not measured with the rest
}

// Seconds is a time in the model's clock.
type Seconds float64

// The kinds of failure.
const (
	FailValidation = "validation" // the work is wrong after the last prompt
	FailAgent      = "agent"      // it ended with an error
	FailTimeout    = "timeout"
	FailSetup      = "setup"
	FailEndpoint   = "endpoint" // the endpoint refused or broke
)

// job is one run to be made.
type job struct {
	agent  Agent
	prog   program
	task   Task
	style  Style
	model  string
	repeat int
	live   *Live // nil = simulated
	pace   Pace
	limit  int // prompts
	out    string
	timed  bool // a bar looks at its time: it runs alone
}

// name is the run's folder.
func (j *job) name() string {
	s := fmt.Sprintf("%s.%s.%s", j.task.Name, j.agent.Name, j.style)
	if j.repeat > 1 {
		s += fmt.Sprintf(".%d", j.repeat)
	}
	if j.live != nil {
		s = fmt.Sprintf("%s.%s.%s.%d", j.task.Name, j.agent.Name, j.model, j.repeat)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
}

// lateness is how long the machine may stand still in a run that counts.
const lateness = 300 * time.Millisecond

// do makes the run, again if the machine stood still in it.
func (j *job) do(ctx context.Context) Result {
	for n := 0; ; n++ {
		r := j.once(ctx)
		r.Again = n
		if r.Late <= Seconds(lateness.Seconds()) || n == 2 || ctx.Err() != nil {
			return r
		}
	}
}

func (j *job) once(ctx context.Context) Result {
	r := Result{Agent: j.agent.Name, Version: j.prog.version, Ours: j.agent.Ours, Task: j.task.Name, Style: j.style, Model: j.model, Repeat: j.repeat,
		Input: -1, Output: -1, Cached: -1, Reuse: -1, FirstFile: -1, Memory: -1, Artefacts: "runs/" + j.name()}
	fail := func(kind string, err error) Result {
		r.Failure, r.Detail = kind, err.Error()
		return r
	}
	base, err := filepath.Abs(filepath.Join(j.out, "runs", j.name()))
	if err != nil {
		return fail(FailSetup, err)
	}
	if err := os.RemoveAll(base); err != nil {
		return fail(FailSetup, err)
	}
	// The folder to work in is outside of any project: agents look upwards.
	work, err := os.MkdirTemp("", "experiment-work-")
	if err != nil {
		return fail(FailSetup, err)
	}
	defer os.RemoveAll(work)
	if work, err = filepath.EvalSymlinks(work); err != nil {
		return fail(FailSetup, err)
	}
	home, err := os.MkdirTemp("", "experiment-home-")
	if err != nil {
		return fail(FailSetup, err)
	}
	defer os.RemoveAll(home)
	if err := errors.Join(os.MkdirAll(base, 0o755), j.task.Lay(work)); err != nil {
		return fail(FailSetup, err)
	}
	p := newPlayer(&j.task, j.style, work)
	var end Endpoint
	if j.live != nil {
		end, err = j.live.proxy()
	} else {
		end, err = simulate(p, j.pace)
	}
	if err != nil {
		return fail(FailSetup, err)
	}
	defer end.Close()

	stopWatch, firstChange := watch(work)
	began := time.Now()
	prompt := j.task.Prompt
	var running time.Duration
	for r.Prompts < j.limit {
		r.Prompts++
		l := Launch{Dir: work, Home: home, URL: end.URL(), Model: j.model, Key: "none", Prompt: prompt, Bash: j.task.shell()}
		if j.live != nil {
			l.Key = "through-the-proxy"
		}
		at := time.Now()
		output, memory, kind, err := j.process(ctx, l, filepath.Join(base, fmt.Sprintf("prompt-%d", r.Prompts)))
		running += time.Since(at)
		r.Memory = max(r.Memory, memory)
		if err != nil {
			r.Failure, r.Detail = kind, err.Error()
			break
		}
		verr := j.task.Validate(Work{Dir: work, Output: output})
		if verr == nil {
			r.OK, r.Failure, r.Detail = true, "", ""
			break
		}
		r.Failure, r.Detail = FailValidation, verr.Error()
		r.Mended = append(r.Mended, verr.Error())
		prompt = j.task.Prompt + "\n\n" + again + "\n" + verr.Error()
		p.redo(verr.Error())
	}
	stopWatch()
	speed := j.speed()
	r.Wall = seconds(running, speed)
	if at := firstChange(); !at.IsZero() {
		r.FirstFile = seconds(at.Sub(began), speed)
	}
	j.count(&r, end.Calls(), began)
	if err := keep(base, work, end.Calls()); err != nil && r.Detail == "" {
		r.Detail = "artefacts: " + err.Error()
	}
	return r
}

func (j *job) speed() float64 {
	if j.live != nil {
		return 1
	}
	return j.pace.Speed
}

func seconds(d time.Duration, speed float64) Seconds { return Seconds(d.Seconds() * speed) }

// shell tells whether shell commands belong to the task.
func (t *Task) shell() bool {
	for _, s := range t.Stages {
		for _, a := range s.Actions {
			if a.Kind == Bash {
				return true
			}
		}
	}
	return false
}

// count sums up what the endpoint saw.
func (j *job) count(r *Result, calls []Call, began time.Time) {
	r.Calls = len(calls)
	if len(calls) == 0 {
		return
	}
	r.Start = seconds(calls[0].At.Sub(began), j.speed())
	prefix, whole, seen := 0, 0, 0
	sum := func(total *int, n int) {
		if n < 0 || *total == -2 {
			*total = -2 // one that is not known makes the sum unknown
			return
		}
		*total = max(*total, 0) + n
	}
	for _, c := range calls {
		if c.Side {
			r.Side++
		} else {
			if r.First == 0 {
				r.First = c.Bytes
			}
			if seen > 0 {
				prefix, whole = prefix+c.Prefix, whole+c.Canon
			}
			seen++
			r.Silent = c.acts
		}
		if c.Cut {
			r.Cut++
		}
		if c.Status != http.StatusOK && r.Failure == FailAgent {
			r.Failure = FailEndpoint
		}
		r.Late = max(r.Late, Seconds(c.Late.Seconds()))
		sum(&r.Input, c.Input)
		sum(&r.Output, c.Output)
		sum(&r.Cached, c.Cached)
	}
	for _, n := range []*int{&r.Input, &r.Output, &r.Cached} {
		*n = max(*n, -1)
	}
	if whole > 0 {
		r.Reuse = float64(prefix) / float64(whole)
	}
	if j.live == nil {
		r.Least = Seconds(j.pace.least(r.Calls, r.Output).Seconds())
	}
}

// process runs the agent once and keeps what it printed. memory is in bytes, -1 =
// not known.
func (j *job) process(ctx context.Context, l Launch, base string) (output string, memory int64, kind string, err error) {
	args, env, err := j.agent.Start(l)
	if err != nil {
		return "", -1, FailSetup, err
	}
	ctx, cancel := context.WithTimeout(ctx, j.patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, j.prog.path, args...)
	cmd.Dir = l.Dir
	cmd.Env = append(j.prog.env(l.Home), env...)
	ownGroup(cmd)
	stdout, err := os.Create(base + ".stdout")
	if err != nil {
		return "", -1, FailSetup, err
	}
	defer stdout.Close()
	stderr, err := os.Create(base + ".stderr")
	if err != nil {
		return "", -1, FailSetup, err
	}
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 5 * time.Second
	if err = cmd.Start(); err == nil {
		held := watchMemory(cmd.Process.Pid)
		err = cmd.Wait()
		memory = held()
	}
	data, _ := os.ReadFile(base + ".stdout")
	switch {
	case ctx.Err() != nil:
		return "", -1, FailTimeout, fmt.Errorf("it did not end within %s", j.patience().Round(time.Second))
	case err != nil:
		said, _ := os.ReadFile(base + ".stderr")
		return "", -1, FailAgent, fmt.Errorf("%w: %s", err, tail(strings.TrimSpace(string(said)), 300))
	}
	return string(data), memory, "", nil
}

// patience is how long a run may take.
func (j *job) patience() time.Duration {
	if j.live != nil {
		return 15 * time.Minute
	}
	f := FloorOf(&j.task, j.pace)
	return time.Duration(float64(f.Wall)*3/j.pace.Speed) + 2*time.Minute
}

// watch looks for the first change in the folder, every 10 ms.
func watch(dir string) (stop func(), first func() time.Time) {
	before := fingerprint(dir)
	done, ended := make(chan struct{}), make(chan time.Time, 1)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				ended <- time.Time{}
				return
			case at := <-tick.C:
				if fingerprint(dir) != before {
					ended <- at
					return
				}
			}
		}
	}()
	return func() { close(done) }, func() time.Time { return <-ended }
}

// fingerprint changes with any file but hidden ones.
func fingerprint(dir string) string {
	var b strings.Builder
	for _, f := range (Work{Dir: dir}).files() {
		if info, err := os.Stat(filepath.Join(dir, f)); err == nil && !strings.HasPrefix(filepath.Base(f), ".") {
			fmt.Fprintf(&b, "%s %d %d\n", f, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// keep copies the folder as it was left, without what can be made again, and the
// requests and answers.
func keep(base, work string, calls []Call) error {
	w := Work{Dir: work}
	for _, f := range w.files() {
		if strings.HasPrefix(f, "dist/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(work, f))
		if err != nil {
			continue
		}
		to := filepath.Join(base, "work", f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			return err
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, c := range calls {
		row := struct {
			Call
			Request json.RawMessage `json:"request"`
			Said    string          `json:"said"`
		}{c, c.body, c.said}
		if !json.Valid(c.body) {
			row.Request = json.RawMessage(`null`)
		}
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(base, "calls.jsonl"), []byte(b.String()), 0o600)
}
