package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// frame is the screen from a moment on.
type frame struct {
	at    time.Duration
	lines []string // with colours, as tmux gives them
}

func main() {
	out := flag.String("o", "docs/demo.svg", "file to write")
	cols := flag.Int("cols", 96, "columns of the terminal")
	rows := flag.Int("rows", 30, "rows of the terminal")
	title := flag.String("title", "make demo", "title of the window")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: demo-svg [-o FILE] -- COMMAND…")
		os.Exit(2)
	}
	frames, err := record(flag.Args(), *cols, *rows)
	if err == nil {
		err = os.WriteFile(*out, []byte(draw(frames, *cols, *rows, *title)), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-svg:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d frames\n", *out, len(frames))
}

// record runs the command in a tmux of its own and captures the screen whenever
// it has changed.
func record(command []string, cols, rows int) ([]frame, error) {
	socket := "demo-svg-" + strconv.Itoa(os.Getpid())
	tmux := func(args ...string) (string, error) {
		out, err := exec.Command("tmux", append([]string{"-L", socket}, args...)...).Output()
		return string(out), err
	}
	quoted := make([]string, len(command))
	for i, c := range command {
		quoted[i] = "'" + strings.ReplaceAll(c, "'", `'\''`) + "'"
	}
	// The shell waits at the end, so that the last screen can be captured.
	line := strings.Join(quoted, " ") + "; tmux -L " + socket + " set -g @ended 1; sleep 60"
	if _, err := tmux("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), line); err != nil {
		return nil, fmt.Errorf("tmux: %w (is it installed?)", err)
	}
	defer tmux("kill-server") //nolint:errcheck // it may be gone
	var frames []frame
	start := time.Now()
	last := ""
	for time.Since(start) < 2*time.Minute {
		ended, _ := tmux("show", "-gqv", "@ended")
		screen, err := tmux("capture-pane", "-e", "-p")
		if err != nil {
			return nil, fmt.Errorf("the command ended before it could be captured: %w", err)
		}
		if screen != last {
			frames = append(frames, frame{time.Since(start), standalone(strings.Split(strings.TrimSuffix(screen, "\n"), "\n"))})
			last = screen
		}
		if strings.TrimSpace(ended) == "1" {
			return trim(frames), nil
		}
		time.Sleep(80 * time.Millisecond)
	}
	return nil, fmt.Errorf("the command did not end within two minutes")
}

// trim drops the empty frames of the start-up: time begins with the first text.
func trim(frames []frame) []frame {
	for len(frames) > 1 && strings.TrimSpace(strings.Join(frames[0].lines, "")) == "" {
		frames = frames[1:]
	}
	first := frames[0].at
	for i := range frames {
		frames[i].at -= first
	}
	return frames
}

// standalone lets every line begin with the colours that the lines before it
// left on: tmux writes only what changes.
func standalone(lines []string) []string {
	var l look
	out := make([]string, len(lines))
	for i, s := range lines {
		out[i] = l.sequence() + s
		for rest := s; ; {
			_, after, ok := strings.Cut(rest, "\x1b[")
			if !ok {
				break
			}
			args, tail, ok := strings.Cut(after, "m")
			if !ok {
				break
			}
			l.set(args)
			rest = tail
		}
	}
	return out
}
