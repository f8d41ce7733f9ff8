package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The crash tests run the test binary again as a child, let it come to a named
// point, where it says so and waits, and kill it there (SIGKILL; on Windows
// TerminateProcess). Nothing sleeps.

const childEnv = "LEDGER_TEST_CHILD"

// script is what a child does.
type script struct {
	Do    string // "steps", "stream" or "hold"
	Dir   string // of the ledger
	Root  string // of the workspace
	Point string // steps: where to stop
	Step  step
	Run   string
	N     int // stream: commands
}

// step is one command with its effect, as the workspace would do it.
type step struct {
	Tool, Path, Dest string
	Before, After    string // texts; "" = absent, "dir" = folder
}

func TestMain(m *testing.M) {
	if s := os.Getenv(childEnv); s != "" {
		if err := child(s); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// at says where the child is and waits there for ever if that is the point.
func (s *script) at(point string) {
	if s.Point == point {
		fmt.Println("AT", point)
		select {}
	}
}

func child(encoded string) error {
	var s script
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		return err
	}
	if s.Do == "readonly" {
		if err := becomeNobody(); err != nil {
			return err
		}
	}
	l, err := Open(ctx, Options{Dir: s.Dir, Workspace: s.Root, Probe: probeFile, RemoveTemp: removeTemp})
	if s.Do == "readonly" {
		fmt.Println("REFUSED", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.StartRun(Run{ID: s.Run}); err != nil {
		return err
	}
	switch s.Do {
	case "steps":
		return s.steps(l)
	case "stream":
		return s.stream(l)
	case "hold": // an open intent, held until stdin ends
		if err := l.Intent(ctx, Intent{Key: key(s.Run, 1, 1), Tool: "tf-bash", Cmd: "sleep"}); err != nil {
			return err
		}
		fmt.Println("AT hold")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return l.Close()
	}
	return errors.New("unknown script " + s.Do)
}

func hashOf(text string) string {
	if text == "" || text == Dir {
		return text
	}
	return sum(text)
}

func (s *script) intent(k Key, st step) Intent {
	in := Intent{Key: k, Tool: st.Tool, Path: st.Path, Dest: st.Dest, BeforeHash: hashOf(st.Before), AfterHash: hashOf(st.After),
		Temp: filepath.Join(s.Root, ".tf-tmp-"+st.Path)}
	if st.Path != "" {
		in.Abs = filepath.Join(s.Root, st.Path)
	}
	if st.Dest != "" {
		in.AbsDest = filepath.Join(s.Root, st.Dest)
		in.AfterHash = in.BeforeHash
	}
	if st.Before != "" && st.Before != Dir {
		in.Undo = []byte(st.Before)
	}
	return in
}

// steps does one command, stopping at s.Point.
func (s *script) steps(l *Ledger) error {
	k := key(s.Run, 1, 1)
	s.at("before intent")
	if s.Point == "inside the intent's transaction" {
		o, err := l.intentOp(s.intent(k, s.Step))
		if err != nil {
			return err
		}
		apply := o.apply
		o.apply = func(t *txn) error {
			err := apply(t)
			s.at(s.Point)
			return err
		}
		return l.w.do(ctx, o)
	}
	if err := l.Intent(ctx, s.intent(k, s.Step)); err != nil {
		return err
	}
	s.at("after intent")
	if err := s.effect(l, s.Step); err != nil {
		return err
	}
	s.at("after effect")
	if err := l.Outcome(Outcome{Key: k, Status: StatusApplied}); err != nil {
		return err
	}
	s.at("outcome not yet committed")
	if s.Point == "inside the outcome's transaction" {
		return l.w.do(ctx, &op{apply: func(*txn) error { s.at(s.Point); return nil }})
	}
	if err := l.Flush(ctx); err != nil {
		return err
	}
	s.at("after outcome")
	return errors.New("no such point: " + s.Point)
}

func (s *script) effect(l *Ledger, st step) error {
	path, dest := filepath.Join(s.Root, st.Path), filepath.Join(s.Root, st.Dest)
	tmp := filepath.Join(s.Root, ".tf-tmp-"+st.Path)
	switch st.Tool {
	case "tf-mkdir":
		return os.Mkdir(path, 0o755)
	case "tf-delete":
		return os.Remove(path)
	case "tf-move":
		return os.Rename(path, dest)
	case "tf-bash":
		return nil
	case "tf-copy":
		path = dest
	}
	if err := os.WriteFile(tmp, []byte(st.After), 0o644); err != nil {
		return err
	}
	s.at("after temp file")
	return os.Rename(tmp, path)
}

// stream does many appends to one file, telling of each.
func (s *script) stream(l *Ledger) error {
	text := ""
	for i := 1; i <= s.N; i++ {
		st := step{Tool: "tf-append", Path: "log.txt", Before: text, After: text + fmt.Sprintf("line %d\n", i)}
		k := key(s.Run, 1, i)
		if err := l.Intent(ctx, s.intent(k, st)); err != nil {
			return err
		}
		fmt.Println("INTENT", i)
		if err := s.effect(l, st); err != nil {
			return err
		}
		fmt.Println("DONE", i)
		if err := l.Outcome(Outcome{Key: k, Status: StatusApplied}); err != nil {
			return err
		}
		text = st.After
	}
	return l.Close()
}

// running is a child process with its standard output.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	done bool
}

func start(t *testing.T, s script) *running {
	t.Helper()
	b, err := json.Marshal(s)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	r := &running{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(r.kill)
	return r
}

// until reads the child's lines up to one that begins with want.
func (r *running) until(want string) {
	r.t.Helper()
	for r.out.Scan() {
		line := r.out.Text()
		if strings.HasPrefix(line, want) {
			return
		}
		if strings.HasPrefix(line, "ERROR") {
			r.t.Fatalf("the child says %q", line)
		}
	}
	r.t.Fatalf("the child ended before %q", want)
}

func (r *running) kill() {
	if !r.done {
		r.done = true
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}

// The kill matrix: every command at every point. What the ledger says after the
// restart is what the files say, the files are whole, nothing is lost or done
// again (case LR-16).
func TestKillMatrix(t *testing.T) {
	steps := []step{
		{Tool: "tf-write", Path: "new.txt", After: "text\n"},
		{Tool: "tf-write", Path: "old.txt", Before: "old\n", After: "new\n"},
		{Tool: "tf-append", Path: "l.txt", Before: "a\n", After: "a\nb\n"},
		{Tool: "tf-edit", Path: "e.txt", Before: "a\n", After: "b\n"},
		{Tool: "tf-touch", Path: "t.txt", After: "touched"},
		{Tool: "tf-mkdir", Path: "d", After: Dir},
		{Tool: "tf-copy", Path: "src", Dest: "dst", Before: "a\n", After: "a\n"},
		{Tool: "tf-move", Path: "src", Dest: "dst", Before: "a\n", After: "a\n"},
		{Tool: "tf-delete", Path: "gone", Before: "a\n"},
		{Tool: "tf-bash"},
	}
	points := []struct {
		name string
		want Status // "" = unknown to the ledger
	}{
		{"before intent", ""},
		{"inside the intent's transaction", ""},
		{"after intent", StatusNotApplied},
		{"after temp file", StatusNotApplied},
		{"after effect", StatusApplied},
		{"outcome not yet committed", StatusApplied},
		{"inside the outcome's transaction", StatusApplied},
		{"after outcome", StatusApplied},
	}
	survived := 0
	for _, st := range steps {
		for _, p := range points {
			if p.name == "after temp file" && (st.Tool == "tf-mkdir" || st.Tool == "tf-move" || st.Tool == "tf-delete" || st.Tool == "tf-bash") {
				continue // they have none
			}
			t.Run(st.Tool+" "+st.Path+" "+p.name, func(t *testing.T) {
				s := script{Do: "steps", Dir: t.TempDir(), Root: t.TempDir(), Point: p.name, Step: st, Run: "r"}
				if st.Before != "" {
					write(t, s.Root, map[string]string{st.Path: st.Before})
				}
				c := start(t, s)
				c.until("AT " + p.name)
				c.kill()
				want := p.want
				if st.Tool == "tf-bash" && want != "" && p.name != "after outcome" {
					want = StatusUncertain
				}
				checkKilled(t, s, st, want, p.name == "after outcome")
				survived++
			})
		}
	}
	t.Logf("%d of the matrix survived", survived)
}

func checkKilled(t *testing.T, s script, st step, want Status, known bool) {
	t.Helper()
	l := openAt(t, s.Dir)
	verify(t, l)
	cmds, err := l.List(ctx, Filter{})
	must(t, err)
	if want == "" {
		if len(cmds) != 0 {
			t.Fatalf("the ledger knows of %+v", cmds)
		}
	} else {
		if len(cmds) != 1 || cmds[0].Status != want || cmds[0].Recovered == known {
			t.Fatalf("got %+v, want %s", cmds, want)
		}
		if st.Before != "" && st.Before != Dir {
			b, err := l.Blob(ctx, cmds[0].UndoBlob)
			if err != nil || string(b) != st.Before {
				t.Errorf("undo %q %v", b, err)
			}
		}
	}
	if st.Path == "" {
		return
	}
	// The file is one of the two whole texts, and no temp file is left.
	names := map[string]bool{}
	entries, err := os.ReadDir(s.Root)
	must(t, err)
	for _, e := range entries {
		names[e.Name()] = true
		if strings.HasPrefix(e.Name(), ".tf-tmp") {
			t.Errorf("temp file %s is left", e.Name())
		}
	}
	text := func(name string) string {
		hash, exists, err := probeFile(filepath.Join(s.Root, name))
		must(t, err)
		if exists && hash == "" {
			return Dir
		}
		return hash
	}
	applied := want == StatusApplied
	var ok bool
	switch st.Tool {
	case "tf-move":
		ok = names["dst"] == applied && names["src"] != applied
	case "tf-copy":
		ok = names["dst"] == applied && names["src"]
	default:
		ok = text(st.Path) == hashOf(st.After) && applied || text(st.Path) == hashOf(st.Before) && !applied
	}
	if !ok {
		t.Errorf("the ledger says %q, the files are %v", want, names)
	}
}

// A child is killed in the middle of a stream of commands, at a moment that
// only the speed of pipe and disk decides: no acknowledged intent is lost, and
// the ledger and the file agree.
func TestKillInAStream(t *testing.T) {
	for _, after := range []int{1, 2, 3, 5, 8, 13, 21, 34, 55, 89} {
		for _, line := range []string{"INTENT", "DONE"} {
			t.Run(fmt.Sprint(line, " ", after), func(t *testing.T) {
				s := script{Do: "stream", Dir: t.TempDir(), Root: t.TempDir(), Run: "r", N: 1000}
				c := start(t, s)
				c.until(fmt.Sprint(line, " ", after))
				c.kill()
				l := openAt(t, s.Dir)
				verify(t, l)
				cmds, err := l.List(ctx, Filter{})
				must(t, err)
				if len(cmds) < after {
					t.Fatalf("%d intents were acknowledged, %d are there", after, len(cmds))
				}
				text := ""
				for i, cmd := range cmds {
					if cmd.ID != i+1 {
						t.Fatalf("command %d is number %d", cmd.ID, i+1)
					}
					switch cmd.Status {
					case StatusApplied:
						text += fmt.Sprintf("line %d\n", cmd.ID)
					case StatusNotApplied:
						if i != len(cmds)-1 {
							t.Errorf("command %d of %d is not applied", cmd.ID, len(cmds))
						}
					default:
						t.Errorf("command %d is %s", cmd.ID, cmd.Status)
					}
				}
				b, err := os.ReadFile(filepath.Join(s.Root, "log.txt"))
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if string(b) != text {
					t.Errorf("the ledger says %q, the file is %q", text, b)
				}
			})
		}
	}
}

// A second live process: its intents are not touched, both write at once, and
// when it is killed its intents, and only they, are settled.
func TestTwoProcesses(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	holder := start(t, script{Do: "hold", Dir: dir, Root: root, Run: "other"})
	holder.until("AT hold")

	l := openAt(t, dir)
	if s := l.Settled(); len(s) != 0 {
		t.Fatalf("a live owner's intents were settled: %+v", s)
	}
	must(t, l.StartRun(Run{ID: "mine"}))
	must(t, l.Intent(ctx, Intent{Key: key("mine", 1, 1000), Tool: "tf-bash"})) // stays open

	streamer := start(t, script{Do: "stream", Dir: dir, Root: root, Run: "third", N: 150})
	for i := range 150 {
		k := key("mine", 1, i+1)
		must(t, l.Intent(ctx, Intent{Key: k, Tool: "tf-bash"}))
		must(t, l.Outcome(Outcome{Key: k, Status: StatusApplied}))
	}
	streamer.until("DONE 150")
	must(t, streamer.cmd.Wait())
	streamer.done = true
	verify(t, l)

	counts := func(l *Ledger) string {
		runs, err := l.Runs(ctx, RunFilter{})
		must(t, err)
		var b strings.Builder
		for _, r := range runs {
			fmt.Fprintln(&b, r.ID, r.State, r.Counts)
		}
		return b.String()
	}
	// The streamer closed without ending its run: it is interrupted as soon as
	// somebody opens.
	if got, want := counts(l), "third running map[applied:150]\nmine running map[applied:150 intent:1]\nother running map[intent:1]\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	holder.kill()
	late := openAt(t, dir)
	if s := late.Settled(); len(s) != 1 || s[0].Run != "other" || s[0].Status != StatusUncertain {
		t.Fatalf("%+v", s)
	}
	if got, want := counts(late), "third interrupted map[applied:150]\nmine running map[applied:150 intent:1]\nother interrupted map[uncertain:1]\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	verify(t, late)
	left, err := os.ReadDir(filepath.Join(dir, ownersDir))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("%d owner files, want mine alone", len(left))
	}
	must(t, late.Close())
	must(t, l.Close())
	if s := openAt(t, dir).Settled(); len(s) != 1 || s[0].ID != 1000 {
		t.Errorf("%+v", s)
	}
}

// Several open at once: only one makes the file or settles, all get a ledger.
func TestOpenAtOnce(t *testing.T) {
	dir, root := filepath.Join(t.TempDir(), "new"), t.TempDir()
	var kids []*running
	for i := range 4 {
		kids = append(kids, start(t, script{Do: "hold", Dir: dir, Root: root, Run: fmt.Sprint("r", i)}))
	}
	for _, k := range kids {
		k.until("AT hold")
	}
	for _, k := range kids {
		must(t, k.in.Close())
		must(t, k.cmd.Wait())
		k.done = true
	}
	l := openAt(t, dir)
	if n := len(l.Settled()); n != 4 {
		t.Errorf("%d settled, want 4", n)
	}
	verify(t, l)
}

func TestOpenIsCancelled(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockOpening(ctx, dir)
	must(t, err)
	defer unlock()
	c, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Open(c, Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
