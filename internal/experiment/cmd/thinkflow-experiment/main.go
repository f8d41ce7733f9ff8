// Command thinkflow-experiment measures ThinkFlow and other agents on the same
// tasks: against a simulated model, or against real endpoints with --live.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"thinkflow/internal/experiment"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "thinkflow-experiment:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	var o experiment.Options
	fs := flag.NewFlagSet("thinkflow-experiment", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.Out, "out", "bin/experiment", "folder for results and artefacts")
	fs.StringVar(&o.Binary, "thinkflow", "bin/thinkflow", "the program to measure")
	doc := fs.String("doc", "", "also write the Markdown report to this file")
	tasks := fs.String("tasks", "", "names of tasks, with commas; all that need no network unless given")
	only := fs.String("agents", "", "names of agents, with commas; all unless given")
	styles := fs.String("styles", "serial,parallel", "how the simulated model calls")
	first := fs.Duration("ttft", 400*time.Millisecond, "time to the first token of the simulated model")
	fs.Float64Var(&o.Pace.Rate, "rate", 80, "tokens a second of the simulated model")
	fs.Float64Var(&o.Pace.Speed, "speed", 1, "lets the simulated model run this many times as fast; times are multiplied by it again")
	fs.IntVar(&o.Jobs, "jobs", 12, "runs at the same time; the simulated model mostly waits")
	fs.IntVar(&o.Prompts, "prompts", 3, "prompts for a task, at most: a failed check's message is the next one")
	fs.BoolVar(&o.Peers, "peers", false, "install other agents with npm")
	fs.BoolVar(&o.FrontEnd, "front-end", false, "also the task frontend: needs npm, the network and chromium")
	fs.StringVar(&o.With, "with", "", "results.json of an earlier run: agents that are not run now are taken from there, with their date")
	live := fs.Bool("live", false, "ask a real endpoint: OPENAI_BASE_URL and OPENAI_API_KEY. This costs money")
	models := fs.String("models", "", "with --live: names of models, with commas")
	fs.IntVar(&o.Repeats, "repeats", 3, "with --live: runs of each task")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%q is no flag", fs.Arg(0))
	}
	if o.Pace.Rate <= 0 || o.Pace.Speed <= 0 {
		return fmt.Errorf("--rate and --speed must be more than 0")
	}
	o.Pace.First = *first
	o.Tasks, o.Only, o.Models = list(*tasks), list(*only), list(*models)
	for _, s := range list(*styles) {
		o.Styles = append(o.Styles, experiment.Style(s))
	}
	if *live {
		o.Live = &experiment.Live{BaseURL: getenv("OPENAI_BASE_URL"), Key: getenv("OPENAI_API_KEY")}
		if o.Live.BaseURL == "" || o.Live.Key == "" || len(o.Models) == 0 {
			return fmt.Errorf("--live needs OPENAI_BASE_URL, OPENAI_API_KEY and --models")
		}
	} else {
		o.Repeats = 1
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return err
	}
	o.Log = func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	rep, err := experiment.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := rep.Save(o.Out); err != nil {
		return err
	}
	if *doc != "" {
		if err := os.WriteFile(*doc, []byte(rep.Markdown()), 0o644); err != nil {
			return err
		}
	}
	for _, b := range rep.Bars() {
		mark := "met   "
		if !b.OK {
			mark = "MISSED"
		}
		fmt.Fprintf(stderr, "%s %s: %s, wanted %s\n", mark, b.What, b.Got, b.Wanted)
	}
	fmt.Fprintf(stderr, "\n%s\n", filepath.Join(o.Out, "report.html"))
	return nil
}

func list(s string) []string {
	var out []string
	for x := range strings.SplitSeq(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}
