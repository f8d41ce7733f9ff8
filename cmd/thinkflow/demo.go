package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/internal/scripted"
)

// demoFiles is the scripted model and the small project that it works on.
//
//go:embed testdata/demo
var demoFiles embed.FS

type demoCmd struct {
	Fast bool `help:"Without the pauses."`
	JSON bool `name:"json" help:"Write events to stdout, one JSON object a line, and nothing else."`
}

const demoTask = "I want to tick a task off the list: add a `done` command, with a test, and document it."

// Run plays the script against a copy of the project. It is the ordinary
// engine, client and ledger; only the model is not real.
func (c *demoCmd) Run(a *app) error {
	data, err := demoFiles.ReadFile("testdata/demo/script.txt")
	if err != nil {
		return err
	}
	script, err := scripted.Parse("demo", data)
	if err != nil {
		return err
	}
	speed := 1.0
	if c.Fast {
		speed = 1e6
	}
	server := scripted.New(script, scripted.Options{Speed: speed})
	url, stop, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("the demo needs a port on the loopback interface: %w", err)
	}
	defer stop()
	top, err := os.MkdirTemp("", "tf-demo-")
	if err != nil {
		return err
	}
	dir := filepath.Join(top, "todo")
	if err := copyTree(demoFiles, "testdata/demo/project", dir); err != nil {
		return err
	}
	cfg := config.Defaults()
	cfg.Model, cfg.BaseURL, cfg.StateDir = script.Model, url, filepath.Join(top, "state")
	err = a.work(job{
		cfg: cfg, dir: dir, task: demoTask, json: c.JSON,
		ended: func(r agent.RunResult) []string { return demoHints(r, dir) },
	})
	for _, f := range server.Failures() {
		err = fmt.Errorf("the demo went another way than its script: %s", f)
	}
	return err
}

// demoHints is what to look at after the demo.
func demoHints(r agent.RunResult, dir string) []string {
	if r.State != agent.StateDone {
		return nil
	}
	done := r.Applied + r.Failed + r.Skipped
	return []string{
		fmt.Sprintf("%d commands and 2 reads took %d API calls; one tool call at a time would have taken %d.", done, r.Usage.Requests, done+2+1),
		"",
		"What came out of it, and what was done, command by command:",
		" cd " + dir,
		" " + program() + " ledger list --set state_dir=../state",
		"With a model of your own (the README has lines for OpenAI, DeepSeek, Ollama, llama.cpp, vLLM):",
		" OPENAI_API_KEY=… THINKFLOW_MODEL=… " + program() + ` run "what is to be done"`,
	}
}

// program is how a person calls this program: by its name if that is found in
// PATH, else by its place.
func program() string {
	exe, err := os.Executable()
	if err != nil || strings.Contains(exe, "go-build") { // go run: gone when it ends
		return "thinkflow"
	}
	if found, err := exec.LookPath("thinkflow"); err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil && real == exe {
			return "thinkflow"
		}
	}
	return exe
}

// copyTree writes the files below root into dir.
func copyTree(files fs.FS, root, dir string) error {
	return fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(root), filepath.FromSlash(path))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}
