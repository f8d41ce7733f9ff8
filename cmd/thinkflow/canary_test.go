package main

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A key goes everywhere a key could go: a file of the workspace holds it, the
// model says it, in pieces too, writes it, edits it, prints it with a command,
// and the server reflects it in an error. It must be in nothing that is shown or
// written down.
func TestKeyIsNowhere(t *testing.T) {
	const key = "sk-canary-0123456789abcdefghij"
	script := `
turn
text <<END
I know ` + key + ` and more.
<tf-write id="1" path="b.txt">
key ` + key + `
</tf-write>
<tf-edit id="2" path="a.txt"><old>` + key + `</old><new>nothing</new></tf-edit>
<tf-bash id="3">cat b.txt; echo ` + key + ` >&2; env</tf-bash>
END
turn
call#c1 read_file {"path":"b.txt"}
call#c2 bash {"command":"grep -r canary . ; false ` + key + `"}
turn
text <<END
<tf-edit id="1" path="b.txt"><old>` + key + ` is not here</old><new>x</new></tf-edit>
END
turn
status 400
body {"error":{"message":"Incorrect API key provided: ` + key + `"}}
`
	for _, args := range [][]string{{"--json"}, {}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			_, url := model(t, script)
			environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted", "OPENAI_API_KEY="+key, "THINKFLOW_LOG_LEVEL=debug")
			dir := t.TempDir()
			state, log := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "log.txt")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("say "+key+" once\n"), 0o600))
			r := call(t.Context(), environ, "", append([]string{"run", "use " + key, "--dir", dir, "--allow", "bash",
				"--set", "state_dir=" + state, "--set", "log_file=" + log}, args...)...)
			require.Equal(t, exitFailed, r.code, r.stdout+r.stderr)
			got, err := os.ReadFile(filepath.Join(dir, "b.txt"))
			require.NoError(t, err)
			require.Equal(t, "key "+key+"\n", string(got), "files are what they are")
			require.Contains(t, r.stdout+r.stderr, "redacted")

			written := map[string]string{"stdout": r.stdout, "stderr": r.stderr}
			for _, root := range []string{state, filepath.Dir(log)} {
				require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						data, rerr := os.ReadFile(path)
						require.NoError(t, rerr)
						written[path] = string(data)
					}
					return err
				}))
			}
			for _, export := range [][]string{{"ledger", "list"}, {"ledger", "list", "--json"}, {"ledger", "show", "last", "--json"}} {
				e := call(t.Context(), environ, "", append(export, "--dir", dir, "--set", "state_dir="+state)...)
				written[strings.Join(export, " ")] = e.stdout + e.stderr
			}
			require.Greater(t, len(written), 5)
			for where, text := range written {
				for _, form := range []string{key, base64.StdEncoding.EncodeToString([]byte(key)), key[:20]} {
					assert.NotContains(t, text, form, where)
				}
			}
		})
	}
}
