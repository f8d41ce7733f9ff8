package main

import (
	"fmt"
	"net"

	"thinkflow/internal/scripted"
	"thinkflow/internal/term"
)

type replayCmd struct {
	Script string  `arg:"" help:"Script of the model; its form is described in docs/script-format.md."`
	Listen string  `default:"127.0.0.1:0" placeholder:"ADDR" help:"Loopback address to listen on; port 0 takes a free one."`
	Speed  float64 `default:"1" help:"Divides every pause of the script."`
	Loop   bool    `help:"Start anew when the turns are used up."`
}

func (c *replayCmd) Run(a *app) error {
	script, err := scripted.Load(c.Script)
	if err != nil {
		return usageError{err}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usagef("--listen %s: %w", c.Listen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--listen %s: only loopback addresses, such as 127.0.0.1:8080", c.Listen)
	}
	if c.Speed <= 0 {
		return usagef("--speed must be more than 0")
	}
	server := scripted.New(script, scripted.Options{
		Speed: c.Speed, Loop: c.Loop,
		Log: func(format string, args ...any) {
			fmt.Fprintln(a.stderr, term.Visible(fmt.Sprintf(format, args...)))
		},
	})
	url, stop, err := server.Listen(c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	defer stop()
	fmt.Fprintf(a.stdout, "%s plays %s, model %s. In another terminal:\n\n", url, term.VisibleName(c.Script), term.VisibleName(script.Model))
	fmt.Fprintf(a.stdout, "  thinkflow run --base-url %s --model %s \"task\"\n\nCtrl-C ends it.\n", url, term.VisibleName(script.Model))
	<-a.ctx.Done()
	if failures := server.Failures(); len(failures) > 0 {
		for _, f := range failures {
			fmt.Fprintln(a.stderr, "thinkflow: "+term.Visible(f))
		}
		return exitError(exitFailed)
	}
	return nil
}
