package rig

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Process is a child in a process group of its own. It and all its children end
// with the test, or when its time is over.
type Process struct {
	cmd    *exec.Cmd
	done   chan struct{}
	err    error // valid once done is closed
	output *tail
	cancel context.CancelFunc
}

// Start runs cmd for at most limit, with nothing on its standard input. Both
// outputs go to the output's tail and, line by line without the line break, to
// onLine, when it is not nil.
func Start(t testing.TB, cmd *exec.Cmd, limit time.Duration, onLine func(line string)) *Process {
	t.Helper()
	p := &Process{cmd: cmd, output: &tail{onLine: onLine}}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	p.start(t, limit)
	return p
}

// StartPiped is Start with the standard input and output in the caller's hands.
func StartPiped(t testing.TB, cmd *exec.Cmd, limit time.Duration) (*Process, io.WriteCloser, io.Reader) {
	t.Helper()
	p := &Process{cmd: cmd, output: &tail{}}
	cmd.Stderr = p.output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	// A pipe of our own: exec's would be closed by Wait before all is read.
	r, w := io.Pipe()
	cmd.Stdout = w
	p.start(t, limit)
	go func() {
		<-p.done
		w.Close()
	}()
	return p, stdin, r
}

func (p *Process) start(t testing.TB, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	p.done, p.cancel = make(chan struct{}), cancel
	cmd := p.cmd
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second // grandchildren may hold the pipes
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(p.done)
		err := cmd.Wait()
		close(ended)
		if ctx.Err() == context.DeadlineExceeded {
			err = errors.Join(errors.New("still running after "+limit.String()+", killed"), err)
		}
		p.err = err
	}()
	go func() {
		select {
		case <-ctx.Done():
		case <-ended:
		}
		killGroup(cmd.Process)
	}()
	t.Cleanup(p.Stop)
}

// Wait waits for the end of the process.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Stop kills the process with its children, and waits until they are gone.
func (p *Process) Stop() {
	p.cancel()
	<-p.done
}

// Output is the end of what the process wrote.
func (p *Process) Output() string { return p.output.String() }

// maxTail bounds what is kept of a process's output, in bytes.
const maxTail = 64 << 10

// tail keeps the end of what is written to it, and hands on whole lines.
type tail struct {
	onLine func(string)

	mu   sync.Mutex // guards what follows
	text []byte
	line []byte
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	if len(w.text) > maxTail {
		w.text = append([]byte("…"), w.text[len(w.text)-maxTail/2:]...)
	}
	if w.onLine == nil {
		return len(b), nil
	}
	for _, c := range b {
		if c != '\n' {
			w.line = append(w.line, c)
			continue
		}
		w.onLine(string(w.line))
		w.line = w.line[:0]
	}
	return len(b), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// CleanEnv is an environment with its own home folder, so that nothing of the
// person who runs the tests is read or changed: PATH and locale, and what is given.
func CleanEnv(home string, extra ...string) []string {
	env := []string{
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + home + "/.config",
		"XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_STATE_HOME=" + home + "/.local/state",
		"XDG_CACHE_HOME=" + home + "/.cache",
		"XDG_RUNTIME_DIR=" + home,
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm-256color",
		"PATH=" + os.Getenv("PATH"),
	}
	return append(env, extra...)
}
