package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"thinkflow/internal/secretstore"
	"thinkflow/internal/term"
)

// version is set by the linker (make build).
var version = ""

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup: the run outlives its terminal
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel() // the run ends by itself, and says so
		<-signals
		term.ShowCursor(os.Stdout)
		os.Exit(exitCancelled)
	}()
	os.Exit(runWith(&app{
		ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), keys: secretstore.OS(),
	}, os.Args[1:]))
}
