package experiment

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:embed fixtures/*.txtar
var fixtures embed.FS

// Kind is what an action does.
type Kind string

// The kinds. What Read and Bash give must be seen before the work goes on.
const (
	Read  Kind = "read"
	Write Kind = "write"
	Edit  Kind = "edit"
	Bash  Kind = "bash"
)

// Action is one thing that the simulated model does. Paths are relative, with /.
type Action struct {
	Kind     Kind
	Path     string
	Body     string  // write
	Old, New string  // edit
	Cmd      string  // bash
	Fix      *Action // what the model sends once it is told that this failed
}

// Stage is actions that do not need each other's results.
type Stage struct {
	Say     string // what the model says before them
	Actions []Action
}

// Task is one piece of work with its proof.
type Task struct {
	Name   string
	Title  string
	Prompt string
	Files  map[string]string // the folder at the beginning
	// Stages are what the simulated model does, Closing what it says at the end.
	Stages  []Stage
	Closing string
	// Validate looks at the folder and at what was printed; its error is the next
	// prompt.
	Validate func(Work) error
	// Reads are the files that must be seen at least once, for the floor.
	Reads []string
	// Attached: the task names the files, so an agent may send them along.
	Attached bool
	// Needs are programs without which the task cannot run.
	Needs []string
}

// Work is what a validator sees.
type Work struct {
	Dir    string
	Output string // stdout of the agent, last prompt
}

// Read returns a file of the work folder, "" if there is none.
func (w Work) read(path string) string {
	data, err := os.ReadFile(filepath.Join(w.Dir, filepath.FromSlash(path)))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

// files lists the files of the work folder, relative, with /.
func (w Work) files() []string {
	var out []string
	_ = filepath.WalkDir(w.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		name := d.Name()
		if d.IsDir() {
			if p != w.Dir && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(w.Dir, p)
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	return out
}

// Tasks are all tasks, in the order of the tables.
func Tasks() []Task {
	return []Task{novel(false), novel(true), edits(false), edits(true), repair(false), repair(true), long(), mixed(), rework(), errands(), survey(), frontEnd()}
}

// Lay writes the folder as it is at the beginning.
func (t *Task) Lay(dir string) error {
	for path, text := range t.Files {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archive returns the files of a fixture.
func archive(name string) map[string]string {
	data, err := fixtures.ReadFile("fixtures/" + name + ".txtar")
	if err != nil {
		panic(err) // a fault of the build
	}
	out := map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// problems collects what a validator finds.
type problems []string

func (p *problems) add(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	const most = 6
	if len(p) > most {
		p = append(p[:most:most], fmt.Sprintf("and %d more", len(p)-most))
	}
	return fmt.Errorf("%s", strings.Join(p, "\n"))
}
