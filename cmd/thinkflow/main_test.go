package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"thinkflow/agent"
	"thinkflow/internal/scripted"
)

var update = flag.Bool("update", false, "rewrite golden files")

// asProgram makes the test binary be the program, for tests that need a process
// of its own to interrupt or kill.
const asProgram = "THINKFLOW_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// ran is what one call of the program left behind.
type ran struct {
	code           int
	stdout, stderr string
}

// home is an environment made from nothing, with folders of its own.
func home(t *testing.T, more ...string) []string {
	t.Helper()
	return homeIn(t, t.TempDir(), more...)
}

func homeIn(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	t.Setenv("HOME", dir) // the ledger asks the process for its folder
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("THINKFLOW_STATE_DIR", "")
	return append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, more...)
}

func call(ctx context.Context, environ []string, stdin string, args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr, environ)
	return ran{code, stdout.String(), stderr.String()}
}

// TestScenarios plays testdata/*.txtar. Files of an archive:
//
//	args        one argument a line; $DIR, $URL stand for folder and endpoint
//	script      the model (see internal/scripted)
//	env, stdin  what they say
//	before/…    the folder before
//	code, stdout, stderr, after/…   what must come out; those that are there are checked
//
// Times, ids and the places of temporary folders are replaced.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			arch, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := scenario(t, arch)
			hasAfter := false
			for i, f := range arch.Files {
				want, ok := got[f.Name]
				hasAfter = hasAfter || strings.HasPrefix(f.Name, "after/")
				if !ok {
					assert.False(t, strings.HasPrefix(f.Name, "after/"), "%s is not there", f.Name)
					continue
				}
				if *update {
					arch.Files[i].Data = []byte(want)
					continue
				}
				assert.Equal(t, string(f.Data), want, f.Name)
			}
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(arch), 0o644))
			}
			if !hasAfter {
				return
			}
			for name := range got { // nothing else may be there
				known := !strings.HasPrefix(name, "after/")
				for _, f := range arch.Files {
					known = known || f.Name == name
				}
				assert.True(t, known, "%s was not expected", name)
			}
		})
	}
}

func scenario(t *testing.T, arch *txtar.Archive) map[string]string {
	t.Helper()
	in := map[string]string{}
	environ := home(t)
	dir := filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, f := range arch.Files {
		in[f.Name] = string(f.Data)
		if rel, ok := strings.CutPrefix(f.Name, "before/"); ok {
			path := filepath.Join(dir, filepath.FromSlash(rel))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, f.Data, 0o644))
		}
	}
	url := "http://127.0.0.1:9/v1" // the discard port: nobody listens
	var server *scripted.Server
	if in["script"] != "" {
		script, err := scripted.Parse("script", []byte(in["script"]))
		require.NoError(t, err)
		server = scripted.New(script, scripted.Options{})
		u, stop, err := server.Listen("127.0.0.1:0")
		require.NoError(t, err)
		defer stop()
		url = u
	}
	expand := strings.NewReplacer("$DIR", dir, "$URL", url)
	environ = append(environ, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted")
	for line := range strings.Lines(expand.Replace(in["env"])) {
		environ = append(environ, strings.TrimSuffix(line, "\n"))
	}
	var args []string
	for line := range strings.Lines(expand.Replace(in["args"])) {
		args = append(args, strings.TrimSuffix(line, "\n"))
	}
	r := call(t.Context(), environ, in["stdin"], args...)
	if server != nil {
		assert.Empty(t, server.Failures())
	}
	homeDir, _ := strings.CutPrefix(environ[0], "HOME=")
	clean := func(s string) string {
		s = strings.NewReplacer(dir, "$DIR", homeDir, "$HOME", url, "$URL").Replace(s)
		for _, n := range normal {
			s = n.re.ReplaceAllString(s, n.by)
		}
		return s
	}
	got := map[string]string{
		"code": fmt.Sprintln(r.code), "stdout": clean(r.stdout), "stderr": clean(r.stderr),
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got["after/"+filepath.ToSlash(rel)] = string(data)
		return err
	}))
	return got
}

// normal is what differs from run to run.
var normal = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b\d+(\.\d+)? m?s\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-v]{20}\b`), "ID"},
	{regexp.MustCompile(`"time":"[^"]*"`), `"time":"TIME"`},
	{regexp.MustCompile(`"micros":\d+`), `"micros":0`},
	{regexp.MustCompile(`"hash":"[0-9a-f]+"`), `"hash":"HASH"`},
	{regexp.MustCompile(`(about )?[\d,.]+k? tokens in, [\d,.]+k? out`), "TOKENS"},
	{regexp.MustCompile(`"usage":\{[^}]*\}`), `"usage":{}`},
	{regexp.MustCompile(`\d\d-\d\d \d\d:\d\d:\d\d`), "DATE"},
}

func TestUsage(t *testing.T) {
	environ := home(t)
	for _, tt := range []struct {
		name, args, stderr string
	}{
		{"unknown command", "rnu x", `did you mean "run"?`},
		{"no task", "run", "task"},
		{"empty task", "run  ", "empty"},
		{"no model", "run x", "THINKFLOW_MODEL"},
		{"no such folder", "run x -m m --dir /no/such/folder", "/no/such/folder"},
		{"bad class", "run x -m m --allow everything", `"everything" is not one of bash, delete`},
		{"bad mode", "run x -m m --mode yolo", `"yolo" is not one of ask, plan, edit, auto`},
		{"bad setting", "run x -m m --set max_turns=0", "at least 1"},
		{"unknown setting", "run x -m m --set max_turn=1", "did you mean max_turns?"},
		{"no such config", "run x -m m --config /no/file.toml", "/no/file.toml"},
		{"no such script", "replay /no/script", "/no/script"},
		{"not loopback", "replay testdata/demo/script.txt --listen 0.0.0.0:1", "loopback"},
		{"bad status", "ledger list --status wrong", "wrong"},
		{"unknown flag", "run x --jsn", "unknown flag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := strings.Split(tt.args, " ")
			r := call(t.Context(), environ, "", args...)
			assert.Equal(t, exitUsage, r.code, r.stderr)
			assert.Contains(t, r.stderr, tt.stderr)
			assert.Empty(t, r.stdout)
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"run", "--help"}, {"version"}} {
		r := call(t.Context(), home(t), "", args...)
		assert.Equal(t, exitOK, r.code)
		assert.Contains(t, r.stdout, "thinkflow")
		assert.Empty(t, r.stderr)
	}
}

// TestJSONIsEventsAndNothingElse: every line on stdout is an event, numbered
// without gaps, of the closed list, the last one ends the run.
func TestJSONIsEventsAndNothingElse(t *testing.T) {
	r := call(t.Context(), home(t), "", "demo", "--fast", "--json")
	require.Equal(t, exitOK, r.code, r.stderr)
	known := map[agent.EventType]bool{}
	for _, k := range agent.EventTypes {
		known[k] = true
	}
	var last agent.Event
	n := int64(0)
	for sc := bufio.NewScanner(strings.NewReader(r.stdout)); sc.Scan(); {
		dec := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		dec.DisallowUnknownFields()
		last = agent.Event{}
		require.NoError(t, dec.Decode(&last), sc.Text())
		n++
		assert.Equal(t, n, last.Seq)
		assert.True(t, known[last.Type], last.Type)
	}
	assert.Equal(t, agent.RunCompleted, last.Type)
	assert.Equal(t, agent.StateDone, last.Result.State)
}

// TestDemoDoesWhatItSays plays the demo and compares the folder it leaves with
// testdata/demo/want.txtar.
func TestDemoDoesWhatItSays(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TEMP", tmp)
	t.Setenv("TMP", tmp)
	r := call(t.Context(), home(t), "", "demo", "--fast")
	require.Equal(t, exitOK, r.code, r.stderr+r.stdout)
	assert.NotContains(t, r.stdout, "\x1b")
	assert.NotContains(t, r.stdout, "\r")
	for _, want := range []string{
		"✓ read   todo.py", "✓ edit   todo.py", "✓ mkdir  tests", "✓ copy   examples/tasks.json → tests/tasks.json",
		"✓ write  tests/test_done.py  new", "✓ append README.md", "✗ edit   CHANGES.md", "Not released yet", "✓ done", "ledger list --set",
	} {
		assert.Contains(t, r.stdout, want)
	}
	dirs, err := filepath.Glob(filepath.Join(tmp, "tf-demo-*", "todo"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	var got txtar.Archive
	require.NoError(t, filepath.WalkDir(dirs[0], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dirs[0], path)
		got.Files = append(got.Files, txtar.File{Name: filepath.ToSlash(rel), Data: data})
		return err
	}))
	const golden = "testdata/demo/want.txtar"
	if *update {
		require.NoError(t, os.WriteFile(golden, txtar.Format(&got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(txtar.Format(&got)))
}
