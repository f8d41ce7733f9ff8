//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/internal/scripted"

	"thinkflow/internal/need"
)

func TestChatNeedsATerminal(t *testing.T) {
	r := call(t.Context(), home(t, "THINKFLOW_MODEL=m"), "", "chat")
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stderr, "thinkflow run")
}

// pane is a terminal (tmux) that the chat runs in.
type pane struct {
	t      *testing.T
	socket string
	dir    string
	server *scripted.Server
	base   []string // the command without arguments
}

// openPane starts the chat in a folder with a.txt and old.txt.
func openPane(t *testing.T, cols, rows int, script string, env []string, args ...string) *pane {
	t.Helper()
	tmux := need.Program(t, "tmux")
	server, url := model(t, script)
	environ := home(t, append([]string{"OPENAI_BASE_URL=" + url, "OPENAI_API_KEY=k", "THINKFLOW_MODEL=scripted-demo", "TERM=tmux-256color", "LANG=C.UTF-8"}, env...)...)
	environ = append(environ, asProgram+"=1", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &pane{t: t, socket: filepath.Join(t.TempDir(), "s"), dir: t.TempDir(), server: server}
	write(t, p.dir, "a.txt", "hello\n")
	write(t, p.dir, "old.txt", "old\n")
	p.base = append([]string{"env", "-i"}, append(environ, exe, "chat")...)
	cmd := exec.CommandContext(t.Context(), tmux, "-S", p.socket, "-f", "/dev/null", "-u", "new-session", "-d",
		"-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows), "-c", p.dir, p.line(args))
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", p.socket, "kill-server").Run()
		assert.Empty(t, server.Failures())
	})
	return p
}

// TestChatGoesOn: a conversation of an earlier process, its unfinished task and
// its undo.
func TestChatGoesOn(t *testing.T) {
	const script = `
model scripted-demo
turn
text <<END
<tf-write id="1" path="first.txt">
one
</tf-write>
More:
END
hang
turn
expect contains "begin"
text <<END
<tf-write id="1" path="second.txt">
two
</tf-write>
END
`
	p := openPane(t, 80, 24, script, nil, "begin")
	p.see(`More:`)
	p.keys("C-c")
	p.see(`■ cancelled`)
	p.keys("C-d")
	session := regexp.MustCompile(`chat --resume ([0-9a-v]{20})`).FindStringSubmatch(p.see(`chat --resume`))[1]
	assert.Equal(t, "0", p.ended())

	p.again("--resume", session[:12])
	p.see(`▌ begin\n▌ the last task of 1 in this conversation · cancelled`)
	p.typed("/resume")
	p.keys("Enter")
	p.see(`new \+1(.*\n)*.*✓ done`)
	assert.FileExists(t, filepath.Join(p.dir, "second.txt"))
	p.typed("/undo")
	p.keys("Enter")
	p.see(`! undone: first\.txt, second\.txt`)
	assert.NoFileExists(t, filepath.Join(p.dir, "first.txt"))
	p.keys("C-d")
	assert.Equal(t, "0", p.ended())
}

func quoted(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// line is what the pane's shell runs: the program, whose id goes into a file,
// and then its exit code.
func (p *pane) line(args []string) string {
	var words []string
	for _, w := range append(slices.Clip(p.base), args...) {
		words = append(words, quoted(w))
	}
	program := "echo $$ > " + quoted(p.socket+".pid") + "; exec " + strings.Join(words, " ")
	return "sh -c " + quoted(program) + `; echo "exit=$?"; exec sleep 600`
}

// again starts the chat anew in the same pane, after its end.
func (p *pane) again(args ...string) {
	p.tmux("clear-history")
	p.tmux("respawn-pane", "-k", p.line(args))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	require.NoError(p.t, err, "tmux %v: %s", args, out)
	return string(out)
}

// keys presses keys as tmux names them; a word that is no name is typed.
func (p *pane) keys(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }

// typed types a text as it is.
func (p *pane) typed(text string) { p.tmux("send-keys", "-l", text) }

// screen is what a person sees, and what they find when they scroll up.
func (p *pane) screen() string {
	out := p.tmux("capture-pane", "-p", "-S", "-500")
	var lines []string
	for line := range strings.SplitSeq(out, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// see waits until the screen matches.
func (p *pane) see(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	last := ""
	if !assert.Eventually(p.t, func() bool { last = p.screen(); return re.MatchString(last) }, 30*time.Second, 30*time.Millisecond) {
		p.t.Fatalf("the screen does not show %s:\n%s", pattern, last)
	}
	return last
}

// ended waits until the program has ended, and returns its exit code.
func (p *pane) ended() string {
	p.t.Helper()
	re := regexp.MustCompile(`\nexit=(\d+)\n`)
	return re.FindStringSubmatch(p.see(re.String()))[1]
}

const workScript = `
model scripted-demo
turn
expect contains "greet"
reasoning <<END
What is there now?
It says hello.
END
text <<END
# Plan

I change the **greeting**:

<tf-edit id="1" path="a.txt">
<old>hello
</old>
<new>hello, world
</new>
</tf-edit>

and remove what is old.

<tf-delete id="2" path="old.txt" />
END
usage 100 20

turn
expect contains "another"
rate 40
text <<END
One two three four five six seven eight nine ten eleven twelve thirteen fourteen.
END
await go
text <<END

The end of it.
END
usage 200 30

turn
expect last-contains "make it blue"
text <<END
Blue it is, 世界.
END
usage 300 10

turn
text <<END
<tf-write id="1" path="kept.txt">
whole
</tf-write>
And now something long:
END
hang
`

// TestChatWorks is a session as a person has it: a task with an edit and a
// deletion that asks, a message to a run that goes on, a run that is stopped,
// commands, and the end.
func TestChatWorks(t *testing.T) {
	p := openPane(t, 90, 30, workScript, nil)
	p.see(`scripted-demo in .*\n[^›]*\n› *\n  scripted-demo · mode edit`)

	p.typed("greet in @a.t")
	p.see(`› @a\.txt`)
	p.keys("Tab", "Enter")
	p.see(`The model wants to delete\n.*/old\.txt\n(.*\n)*\? allow this\?`)
	assert.FileExists(t, filepath.Join(p.dir, "old.txt"))
	require.Eventually(t, func() bool { // keys count once the question has stood for a moment
		p.keys("y")
		return strings.Contains(p.screen(), "✓ yes, once")
	}, 30*time.Second, 900*time.Millisecond)
	p.see(`✓ done .*\n  2 files changed \+1 −2\n    a\.txt +\+1 −1\n    old\.txt +gone −1`)
	assert.NoFileExists(t, filepath.Join(p.dir, "old.txt"))
	p.keys("C-u") // what was pressed too early
	screen := p.see(`▌ greet in @a\.txt\n\n∴ reasoned for [^\n]*, 2 lines · ctrl-o shows\n\n  Plan\n\n  I change the greeting:\n\n✓ edit   a\.txt  \+1 −1`)
	assert.Equal(t, 1, strings.Count(screen, "I change the greeting"), "nothing is drawn twice")

	p.keys("C-o")
	p.see(`\n  What is there now\?\n  It says hello\.\n`)

	p.typed("another one")
	p.keys("Enter")
	p.see(`thirteen fourteen\.(.*\n)*.*turn 1 .* esc stops`)
	p.typed("make it blue")
	p.keys("Enter")
	p.see(`▌ next: make it blue`)
	p.server.Release("go")
	p.see(`The end of it\.\n\n▌ make it blue\n  turn 2\n\n  Blue it is, 世界\.\n\n✓ done`)

	p.typed("/usa")
	p.see(`› /usage +tokens and cost`)
	p.keys("Enter")
	p.see(`› /usage\n! 2 tasks, 3 API calls, 600 tokens in, 60 out`)

	p.typed("go on")
	p.keys("Enter")
	p.see(`And now something long:`)
	p.keys("Escape")
	p.see(`■ cancelled`)
	assert.FileExists(t, filepath.Join(p.dir, "kept.txt"))

	p.typed("/diff kept.txt")
	p.keys("Enter")
	p.see(`kept\.txt  \+1\n +1 \+ whole`)
	p.typed("/undo")
	p.keys("Enter")
	p.see(`! undone: kept\.txt`)
	assert.NoFileExists(t, filepath.Join(p.dir, "kept.txt"))
	p.typed("/ledger")
	p.keys("Enter")
	p.see(`applied +−1 +undo kept\.txt`)
	p.keys("Up", "Up", "Up")
	p.see(`› /diff kept\.txt\n  scripted-demo`)
	p.keys("C-c")
	p.keys("C-c")
	p.see(`ctrl-c once more quits`)
	p.keys("C-c")
	assert.Equal(t, "0", p.ended())

	history, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "*", "*", "*", "chat-history.jsonl"))
	require.NoError(t, err)
	require.Len(t, history, 1)
	info, err := os.Stat(history[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestChatWhenTheWindowChanges: narrower and wider again, at rest and while it
// works; what is drawn at the bottom stands there once.
func TestChatWhenTheWindowChanges(t *testing.T) {
	p := openPane(t, 100, 30, "model scripted-demo\nturn\nrate 30\ntext <<END\nOne two three four five six seven eight nine ten eleven twelve.\nEND\nawait go\ntext <<END\n\n| a | b |\n|-|-|\n| 1 | 2 |\nEND\n", []string{"NO_COLOR=1"}, "do it")
	p.see(`eleven twelve\.`)
	for _, size := range [][2]int{{60, 20}, {40, 14}, {80, 24}, {41, 30}, {100, 30}} {
		p.tmux("resize-window", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
		p.see(`esc stops|the model answers`)
	}
	p.server.Release("go")
	p.see(`  a │ b\n  ──┼──\n  1 │ 2\n\n✓ done`)
	p.typed("a draft that is longer than the window will be in a moment")
	p.see(`in a moment\n`)
	p.tmux("resize-window", "-x", "40", "-y", "16")
	screen := p.see(`› a draft that is longer than the\n +window will be in a moment\n`)
	assert.Equal(t, 1, strings.Count(screen, "› a draft"), screen)
	assert.NotContains(t, p.tmux("capture-pane", "-e", "-p"), "\x1b[3", "NO_COLOR")
	p.keys("C-u", "C-d")
	assert.Equal(t, "0", p.ended())
}

// TestChatAfterATermination: the signal ends the session, after its run.
func TestChatAfterATermination(t *testing.T) {
	p := openPane(t, 80, 24, hanging, nil, "go")
	p.see(`✓ write  whole\.txt`)
	pid, err := os.ReadFile(p.socket + ".pid")
	require.NoError(t, err)
	require.NoError(t, exec.Command("kill", "-TERM", strings.TrimSpace(string(pid))).Run())
	p.see(`■ cancelled`)
	p.ended()
	assert.NoFileExists(t, filepath.Join(p.dir, "torn.txt"))
}
