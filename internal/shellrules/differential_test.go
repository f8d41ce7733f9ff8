//go:build unix

package shellrules

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/sandbox"

	"thinkflow/internal/need"
)

// shims are programs that only write down how they were called; nothing else is
// in PATH. The fuzzer may find a way to call one that is not allowed.
var shims = []string{"aa", "bb", "cc", "git", "env", "sh", "find", "xargs", "sudo", "rm", "id", "tee", "ls", "make", "python3"}

// allowedThere is the list that a line is decided against.
var allowedThere = []string{"aa", "bb sub", "git status", "git log", "find", "ls", "make"}

// rig runs lines in a real bash.
type rig struct {
	box    *sandbox.Sandbox
	root   string
	list   *List
	before []string // what is in the folder
}

func newRig(tb testing.TB) *rig {
	need.Program(tb, "bash")
	r := &rig{box: sandbox.Detect(tb.Context(), sandbox.Options{Only: sandbox.Landlock})}
	if !r.box.Report().Confines() {
		r.box = sandbox.Detect(tb.Context(), sandbox.Options{})
	}
	root, err := filepath.EvalSymlinks(tb.TempDir())
	require.NoError(tb, err)
	r.root = root
	for _, d := range []string{"shims", "cwd/dir"} {
		require.NoError(tb, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, name := range []string{"cwd/a.txt", "cwd/-exec", "cwd/dir/f"} {
		require.NoError(tb, os.WriteFile(filepath.Join(root, name), []byte("x"), 0o644))
	}
	// One printf is one write: programs of a pipe write to the log at once.
	script := "#!/bin/sh\nprintf '%s\\0' $(($#+1)) \"${0##*/}\" \"$@\" >> '" + root + "/log'\n"
	for _, s := range shims {
		require.NoError(tb, os.WriteFile(filepath.Join(root, "shims", s), []byte(script), 0o755))
	}
	r.list, err = NewList(allowedThere)
	require.NoError(tb, err)
	r.before = r.tree(tb)
	return r
}

func (r *rig) tree(tb testing.TB) []string {
	var out []string
	require.NoError(tb, filepath.WalkDir(r.root, func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) != "log" {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// ran lists the programs that bash started for the line.
func (r *rig) ran(tb testing.TB, line string) [][]string {
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	bash, err := exec.LookPath("bash")
	require.NoError(tb, err)
	_ = os.Remove(filepath.Join(r.root, "log"))
	c, err := r.box.Command(ctx, sandbox.Spec{
		Line: line, Shell: []string{bash, "--norc", "--noprofile", "-c"}, Dir: filepath.Join(r.root, "cwd"), Roots: []string{r.root},
		Env: []string{"PATH=" + filepath.Join(r.root, "shims"), "HOME=" + r.root},
	})
	require.NoError(tb, err)
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cmd.Cancel = func() error { return syscall.Kill(-c.Cmd.Process.Pid, syscall.SIGKILL) }
	c.Cmd.WaitDelay = time.Second
	_ = c.Run()
	_, err = c.Finish()
	require.NoError(tb, err)
	data, _ := os.ReadFile(filepath.Join(r.root, "log"))
	var out [][]string
	fields := strings.Split(string(data), "\x00")
	for len(fields) > 1 {
		n, err := strconv.Atoi(fields[0])
		require.NoError(tb, err)
		out = append(out, fields[1:1+n])
		fields = fields[1+n:]
	}
	return out
}

// check runs an allowed line and sees that only allowed programs were started,
// with the words that were looked at, and that nothing was written.
func (r *rig) check(tb testing.TB, line string) {
	if len(line) > 2000 || !r.list.Decide(line).Allowed {
		return // longer ones would not fit into one write
	}
	cmds, why := parse(line)
	require.Empty(tb, why)
	for _, argv := range r.ran(tb, line) {
		require.True(tb, slices.ContainsFunc(allowedThere, func(e string) bool {
			words := strings.Fields(e)
			return len(argv) >= len(words) && slices.Equal(argv[:len(words)], words)
		}), "%q ran %q", line, argv)
		require.True(tb, slices.ContainsFunc(cmds, func(c command) bool { return c.explains(argv) }), "%q ran %q, which was not looked at", line, argv)
		if argv[0] == "find" { // a pattern must not have become an option
			require.NotContains(tb, argv, "-exec", "%q", line)
		}
	}
	require.Equal(tb, r.before, r.tree(tb), "%q wrote something", line)
}

// explains reports whether the command is what was run; words that the shell
// expands may have become any number of words.
func (c command) explains(argv []string) bool {
	for i, w := range c.words {
		if !w.literal {
			return true
		}
		if i >= len(argv) || argv[i] != w.text {
			return false
		}
	}
	return len(argv) == len(c.words)
}

// The words that Decide looks at are the words that bash runs.
func TestSameWordsAsBash(t *testing.T) {
	r := newRig(t)
	if !r.box.Report().Confines() {
		need.Right(t, "a sandbox to run lines in")
	}
	for _, line := range []string{
		`aa`, `aa b  c`, `aa 'b c' "d e" f\ g`, `a'a' ""`, `aa "a\"b\\c\d\$"`, `aa 'a\b'`, `aa \\ \' \"`, "aa a\\\nb", "aa \"a\\\nb\"", `aa "" '' x`,
		`aa a=b`, `aa {`, `aa }`, `aa {a}`, `aa @{u}`, `aa a{b`, `aa '{a,b}'`, `aa "*"`, `aa \*`, `aa a#b`, `aa 'é ü'`, `aa -- -x`, `aa "a` + "\n" + `b"`,
		"aa x\nbb sub y", `aa && bb sub || git status`, `aa | bb sub | aa`, `aa; aa;`, `aa 2>&1`, `aa >/dev/null`, `aa # x`, `aa [`, `aa ]`, `aa !`, `aa %`, `aa ^`,
		`aa ~x`, `aa a~`, `aa "~"`, `aa a:b`, `aa +x`, `aa 'a'"b"c`, `aa "'"`, `aa '"'`, `aa -`, `aa .`, `aa ..`, `aa ,`, `aa a,b`, `aa 1`, `aa 1 2>&1 3`,
	} {
		d := r.list.Decide(line)
		if strings.ContainsAny(line, "[") || line == `aa ~x` {
			continue // patterns and tildes are expanded by the shell
		}
		require.True(t, d.Allowed, "%q: %s", line, d.Reason)
		cmds, _ := parse(line)
		ran := r.ran(t, line)
		require.NotEmpty(t, ran, line)
		for _, argv := range ran {
			require.True(t, slices.ContainsFunc(cmds, func(c command) bool { return c.explains(argv) }), "%q ran %q", line, argv)
		}
		r.check(t, line)
	}
}

// Whatever the line: if it is allowed, bash starts nothing that is not.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{
		"aa b", "bb sub x; cc", "aa && bb sub", "aa $(cc)", "aa `cc`", "aa\ncc", "aa > f", "aa 2>&1 | bb sub", "git status -c x", "git -c x status", "find . -exec cc ;",
		"find * x", "ls *", "aa *", "aa 'x", `aa "$(cc)"`, "aa <(cc)", "aa & cc", "aa {b,c}", "a\\\na; cc", "aa #\ncc", "aa;#x\ncc", "aa \\\n; cc", "aa '\n' cc", "aa() { cc; }; aa",
		"aa ~/x", "aa $'\\n' cc", "aa <<x\n$(cc)\nx\n", "if aa; then cc; fi", "aa || cc", "! aa", "time aa", "aa\rcc", "aa\u00a0cc", "aa\u2028cc", "\\aa", "'aa'", "\"a\"a", "make SHELL=cc",
		"aa [a-z]*", "aa a[`cc`]", "aa a[$(cc)]", "aa ${x:=cc}", "aa $((a[$(cc)]))", "[[ -v a ]]", "((cc))", "let x=cc", "aa 2>&1 cc", "aa >/dev/null cc", "aa >&2 cc", "aa 1>&2;cc",
		"aa \"\\\n$(cc)\"", "aa '\\'; cc; ''", "aa \\'; cc; \\'", "aa \"\\\"; cc; \"", "alias aa=cc\naa", "aa @(cc)", "aa !(cc)", "aa \\`cc\\`", "aa \"\\`cc\\`\"", "{ aa; }", "(aa)", "coproc aa", "aa |& cc",
	} {
		f.Add(s)
	}
	r := newRig(f)
	if !r.box.Report().Confines() {
		f.Skip("no sandbox to run lines in")
	}
	f.Fuzz(func(t *testing.T, line string) { r.check(t, line) })
}

// Whatever the line, no panic; and an allowed line has only listed commands.
func FuzzParse(f *testing.F) {
	f.Add("aa b | bb sub")
	f.Add("a{b,c} $(x)")
	l, err := NewList(allowedThere)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		d := l.Decide(line)
		if d.Allowed == (d.Reason != "") {
			t.Fatalf("allowed %v, reason %q", d.Allowed, d.Reason)
		}
		Mentions(line, []string{"git", "push"})
	})
}
