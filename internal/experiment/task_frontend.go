package experiment

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// frontEnd: a React project from one page of requirements. Its validator builds
// it with Vite and takes a picture of the page, so it needs npm, the network and
// a Chromium.
func frontEnd() Task {
	t := Task{
		Name: "frontend", Title: "React/Vite project from one page of requirements", Files: archive("frontend"),
		Reads: []string{"requirements.md"}, Needs: []string{"npm", "chromium"},
		Prompt:  "Build the front end that the requirements in this folder describe, as a React project with Vite. Do not install or run anything: that is done by who checks it.",
		Closing: "The project is there: npm install, then npm run build.",
	}
	answer := archive("frontend-answer")
	s := Stage{Say: "Now the project."}
	for _, path := range []string{"package.json", "vite.config.js", "index.html", "src/main.jsx", "src/App.jsx", "src/data.js", "src/styles.css",
		"src/components/Header.jsx", "src/components/Filter.jsx", "src/components/TaskList.jsx", "src/components/TaskCard.jsx", "src/components/NewTask.jsx", "src/components/Summary.jsx"} {
		s.Actions = append(s.Actions, Action{Kind: Write, Path: path, Body: answer[path]})
	}
	t.Stages = []Stage{reads("First the requirements.", "requirements.md"), s}
	t.Validate = frontEndWorks
	return t
}

// Picture is the screenshot's name in the work folder.
const Picture = "screenshot.png"

func frontEndWorks(w Work) error {
	var p problems
	components := 0
	for _, f := range w.files() {
		if strings.HasPrefix(f, "src/") && (strings.HasSuffix(f, ".jsx") || strings.HasSuffix(f, ".tsx")) {
			components++
		}
	}
	p.add(w.read("package.json") != "", "package.json is missing")
	p.add(w.read("index.html") != "", "index.html is missing")
	p.add(components >= 7, "there are %d .jsx or .tsx files under src, the requirements ask for an entry, an App and at least five components", components)
	if err := p.err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	home, err := os.MkdirTemp("", "experiment-npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = w.Dir
		cmd.Env = append(plainEnv(home), "npm_config_update_notifier=false", "npm_config_fund=false", "npm_config_audit=false")
		cmd.WaitDelay = 5 * time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(string(out), 1500))
		}
		return nil
	}
	if err := run("npm", "install", "--no-package-lock", "--prefer-offline"); err != nil {
		return err
	}
	if err := run("npm", "run", "build"); err != nil {
		return err
	}
	dist, err := os.ReadFile(filepath.Join(w.Dir, "dist", "index.html"))
	if err != nil {
		return fmt.Errorf("npm run build made no dist/index.html")
	}
	srv, url, err := serve(staticFiles(filepath.Join(w.Dir, "dist")))
	if err != nil {
		return err
	}
	defer srv.Close()
	p.add(len(dist) > 0, "dist/index.html is empty")
	picture := filepath.Join(w.Dir, Picture)
	args := []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,800", "--virtual-time-budget=3000", "--user-data-dir=" + filepath.Join(home, "chromium")}
	if err := run("chromium", append(args, "--screenshot="+picture, url)...); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "chromium", append(args, "--dump-dom", url)...)
	cmd.Env = plainEnv(home)
	cmd.WaitDelay = 5 * time.Second
	dom, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the page could not be shown: %w", err)
	}
	for _, want := range []string{"Harbour Board", "Crane inspection", "Open: ", "Add task"} {
		p.add(strings.Contains(string(dom), want), "the page does not show %q", want)
	}
	info, err := os.Stat(picture)
	p.add(err == nil && info.Size() > 2000, "there is no picture of the page")
	return p.err()
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
