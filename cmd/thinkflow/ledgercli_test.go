package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledgerScript has something of everything that the ledger's commands show.
const ledgerScript = `
turn
call#c1 grep {"pattern":"two","path":"a.txt"}
turn
text <<END
<tf-edit id="1" path="a.txt"><old>two</old><new>2</new></tf-edit>
<tf-write id="2" path="new.txt">
key = ghp_0123456789abcdefghijklmnopqrstuvwxyz
</tf-write>
<tf-write id="4" path=".env">
COLOUR=blue
</tf-write>
<tf-edit id="3" path="a.txt"><old>nine</old><new>9</new></tf-edit>
END
turn
text <<END
<tf-copy id="1" path="a.txt" dest="b.txt"/>
<tf-bash id="2">echo out; echo err >&2; exit 3</tf-bash>
END
turn
text "Done."
turn
text <<END
<tf-delete id="1" path="a.txt"/>
END
turn
text "Then not."
`

// afterLedgerScript is a folder in which two runs were; the second one was
// refused a delete.
func afterLedgerScript(t *testing.T) (environ []string, dir string) {
	t.Helper()
	_, url := model(t, ledgerScript)
	environ = home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted", "OPENAI_API_KEY=sk-the-key-of-this-process")
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\nthree\n"), 0o644))
	r := call(t.Context(), environ, "", "run", "change a.txt", "--dir", dir, "--allow", "bash,secrets", "--set", "sandbox=none")
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	r = call(t.Context(), environ, "", "run", "delete it", "--dir", dir)
	require.Equal(t, 4, r.code, r.stdout+r.stderr)
	return environ, dir
}

// moving is what differs from run to run in what the ledger's commands print.
var moving = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\d(\.\d+)?)?Z?`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`[\d.,]+ m?s\b`), "LONG"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{12,16}(…|\b)`), "HASH"},
	{regexp.MustCompile(`(?m)^( +)\d+  `), "${1}N  "},
	{regexp.MustCompile(`(?m)^number +\d+$`), "number N"},
	{regexp.MustCompile(`(?m)^\d+  ID`), "N  ID"},
	{regexp.MustCompile(`(\d+) rows`), "N rows"},
	{regexp.MustCompile(`"(n|last_event|row|rows|at|run_n|seq|cmd|bytes|bytes_before|bytes_after)":\d+`), `"$1":0`},
	{regexp.MustCompile(`[\d,.]+ (in|out|cached|KiB|B)\b`), "N $1"},
	{regexp.MustCompile(`\([\d,]+ cached\)`), "(N cached)"},
	{regexp.MustCompile(`"usage":\{[^}]*\}`), `"usage":{}`},
	{regexp.MustCompile(` +(ID|TIME|LONG|HASH|N)\b`), " $1"},
}

// TestLedgerTranscript calls the ledger's commands one after the other and
// compares what a person, and a program, is shown: testdata/ledger.golden.
func TestLedgerTranscript(t *testing.T) {
	environ, dir := afterLedgerScript(t)
	environ = append(environ, "COLUMNS=80")
	other := t.TempDir()
	homeDir := strings.TrimPrefix(environ[0], "HOME=")
	ids := map[string]string{}
	id := regexp.MustCompile(`\b[0-9a-v]{20}\b`)
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(`
ledger runs
ledger list
ledger list --run last
ledger list --path a.txt --status applied,failed
ledger list --json --status failed
ledger show
ledger show --json
ledger show 999
ledger show last/9/9
ledger show nothing
ledger list --run PREFIX
ledger show RUN/3/2
ledger show RUN/2/2
ledger diff --run RUN
ledger diff RUN/2/1 --json
ledger stats
ledger stats --json
ledger verify
ledger verify --json
ledger verify NOFILE
ledger export --run nothing
ledger undo
ledger undo nothing
ledger undo RUN/3/1 --dry-run
ledger undo RUN/3/1
ledger undo RUN/3/1
ledger undo RUN/3/1 --json
ledger list --run RUN --last 2
ledger prune
ledger prune --older soon
ledger prune --larger much
ledger prune --older 1d --json
ledger runs --json --last 1
sessions
sessions --json
approve
approve --json
approve last maybe
approve nothing once
report nothing
resume nothing
ledger list --dir NOFOLDER
ledger list --dir OTHER
ledger list --dir OTHER --json
ledger show --dir OTHER
ledger diff --dir OTHER
ledger export --dir OTHER
ledger verify --dir OTHER
ledger undo last --dir OTHER
report --dir OTHER
approve --dir OTHER
`), "\n") {
		args := strings.Fields(line)
		prefix := common(ids)
		for i, a := range args {
			a = strings.ReplaceAll(a, "PREFIX", prefix)
			a = strings.ReplaceAll(a, "OTHER", other)
			a = strings.ReplaceAll(a, "NOFOLDER", filepath.Join(dir, "nofolder"))
			a = strings.ReplaceAll(a, "NOFILE", filepath.Join(dir, "nofile"))
			for run, name := range ids { // the newest run was named first
				if name == "ID2" {
					a = strings.ReplaceAll(a, "RUN", run)
				}
			}
			args[i] = a
		}
		if !strings.Contains(line, "--dir") {
			args = append(args, "--dir", dir)
		}
		r := call(t.Context(), environ, "", args...)
		text := r.stdout
		if r.stderr != "" {
			text += "# stderr\n" + r.stderr
		}
		text = strings.NewReplacer(dir, "$DIR", other, "$OTHER", homeDir, "$HOME").Replace(text)
		text = regexp.MustCompile(`\$HOME/state/thinkflow/workspaces/[^/\s]+/ledger\.db`).ReplaceAllString(text, "$$HOME/LEDGER")
		text = regexp.MustCompile(`(?s)\$HOME/state/thin\S*\s+\S*ledger\.db`).ReplaceAllString(text, "$$HOME/LEDGER")
		text = id.ReplaceAllStringFunc(text, func(s string) string {
			if ids[s] == "" {
				ids[s] = fmt.Sprintf("ID%d", len(ids)+1)
			}
			return ids[s]
		})
		if prefix != "" {
			text = strings.ReplaceAll(text, `"`+prefix+`"`, `"PREFIX"`)
		}
		for _, m := range moving {
			text = m.re.ReplaceAllString(text, m.by)
		}
		fmt.Fprintf(&out, "$ thinkflow %s\n%s", line, text)
		if r.code != 0 {
			fmt.Fprintf(&out, "[exit %d]\n", r.code)
		}
		out.WriteString("\n")
	}
	const golden = "testdata/ledger.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}

// common is how all ids begin.
func common(ids map[string]string) string {
	var prefix string
	for id := range ids {
		if prefix == "" {
			prefix = id
		}
		for !strings.HasPrefix(id, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}

// TestExportIsWholeAndHoldsNoSecrets: all of the ledger is in it, none of the
// secrets is, and whatever is changed in it is found.
func TestExportIsWholeAndHoldsNoSecrets(t *testing.T) {
	environ, dir := afterLedgerScript(t)
	file := filepath.Join(t.TempDir(), "export.jsonl")
	r := call(t.Context(), environ, "", "ledger", "export", "--dir", dir, "-o", file)
	require.Equal(t, exitOK, r.code, r.stderr)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(data)
	for _, secret := range []string{"ghp_0123456789", "sk-the-key-of-this-process", "COLOUR=blue"} {
		assert.NotContains(t, text, secret)
	}
	kinds := map[string]int{}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(l), &m), l)
		require.Len(t, m, 1)
		for k := range m {
			kinds[k]++
		}
	}
	var stats struct{ Runs, Commands int }
	r = call(t.Context(), environ, "", "ledger", "stats", "--json", "--dir", dir)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &stats))
	assert.Equal(t, stats.Runs, kinds["run"])
	assert.Equal(t, stats.Commands, kinds["command"])
	var v verified
	r = call(t.Context(), environ, "", "ledger", "verify", "--json", "--dir", dir)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &v))
	assert.Equal(t, int(v.Rows), kinds["event"])
	head := v.Head
	r = call(t.Context(), environ, "", "ledger", "verify", "--json", file)
	require.Equal(t, exitOK, r.code, r.stderr)
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &v))
	assert.Equal(t, head, v.Head, "the same chain")
	assert.True(t, v.Whole)
	assert.Positive(t, v.Redacted, "the diff of a file that may hold secrets")

	at := func(what string) int {
		for i, l := range lines {
			if strings.Contains(l, what) {
				return i
			}
		}
		t.Fatal("no line with " + what)
		return 0
	}
	without := func(i int) string {
		return strings.Join(append(append([]string(nil), lines[:i]...), lines[i+1:]...), "")
	}
	for _, row := range []struct{ name, text, want string }{
		{"cut off", strings.Join(lines[:len(lines)-1], ""), "cut off"},
		{"nothing", "", "cut off"},
		{"something else", "hello\n", "no line of an export"},
		{"another form", strings.Replace(text, `"format":1`, `"format":9`, 1), "form 9"},
		{"a command less", without(at(`{"command":`)), "7 commands instead of 8"},
		{"a row less", without(at(`"type":"ledger.outcome"`)), "does not follow"},
		{"a body changed", strings.Replace(text, `"status":"applied"`, `"status":"failed"`, 1), ""},
		{"the status of a command", strings.Replace(lines[at(`{"command":`)], `applied`, `failed`, 1), ""},
		{"a row's text", replaceIn(lines, at(`"type":"ledger.run.end"`), `"state":"done"`, `"state":"gone"`), "body was changed"},
		{"a row's type", replaceIn(lines, at(`"type":"ledger.run.end"`), `ledger.run.end`, `ledger.run.fin`), "it was changed"},
		{"more behind", text + "{}\n", "behind its end"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := call(t.Context(), environ, row.text, "ledger", "verify", "-")
			assert.Equal(t, exitFailed, r.code, r.stdout)
			assert.Contains(t, r.stderr, row.want)
		})
	}
	var one bytes.Buffer
	r = call(t.Context(), environ, "", "ledger", "export", "--run", "last", "--dir", dir)
	one.WriteString(r.stdout)
	r = call(t.Context(), environ, one.String(), "ledger", "verify", "-")
	assert.Equal(t, exitOK, r.code, r.stderr)
	assert.Contains(t, r.stdout, "complete and unchanged")
}

func replaceIn(lines []string, i int, old, new string) string {
	out := append([]string(nil), lines...)
	out[i] = strings.Replace(out[i], old, new, 1)
	return strings.Join(out, "")
}
