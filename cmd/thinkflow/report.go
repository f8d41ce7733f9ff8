package main

import (
	"fmt"
	"os"

	"thinkflow/internal/config"
	"thinkflow/internal/redact"
	"thinkflow/internal/report"
	"thinkflow/internal/term"
)

type reportCmd struct {
	settings
	Which string `arg:"" optional:"" name:"run" default:"last" help:"Id of the run, the beginning of one, or last."`
	Dir   string `short:"C" placeholder:"DIR" help:"Folder of the run (the current one)."`
	Out   string `short:"o" placeholder:"FILE" help:"File to write; - writes to stdout. Default: thinkflow-RUN.html."`
}

func (c *reportCmd) Run(a *app) error {
	loaded, err := a.load(&c.settings, nil, nil)
	if err != nil {
		return err
	}
	f := ledgerFlags{settings: c.settings, Dir: c.Dir}
	led, err := f.need(a)
	if err != nil {
		return err
	}
	defer led.Close() //nolint:errcheck // read only
	run, err := report.Load(a.ctx, led, c.Which)
	if err != nil {
		return err
	}
	secrets := redactor(a, loaded)
	if c.Out == "-" {
		return report.Write(a.stdout, run, secrets.String)
	}
	if c.Out == "" {
		c.Out = "thinkflow-" + run.Info.ID + ".html"
	}
	file, err := os.OpenFile(c.Out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = report.Write(file, run, secrets.String)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Out, err)
	}
	fmt.Fprintf(a.stdout, "%s\n", term.VisibleName(c.Out))
	return nil
}

// redactor knows the secrets of this process: the key and what stands in
// headers.
func redactor(a *app, loaded *config.Loaded) *redact.Redactor {
	values := []string{loaded.Config.APIKey.Reveal()}
	for _, v := range loaded.Config.Headers {
		values = append(values, v)
	}
	r, err := redact.New(values...)
	if err != nil {
		fmt.Fprintln(a.stderr, "thinkflow:", err)
	}
	return r
}
