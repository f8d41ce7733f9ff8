//go:build unix

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thinkflow/internal/fakeeditor"
	"thinkflow/internal/need"
	"thinkflow/ledger"
)

// patch writes over a part of a file.
func patch(t *testing.T, path string, off int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(data, off)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// damages are the states in which the ledger's file is found; says is what a
// person is told, "" = nothing; keeps: what was there is kept under another name.
var damages = []struct {
	name   string
	damage func(t *testing.T, file string)
	says   string
	keeps  bool
}{
	{"garbage", func(t *testing.T, f string) {
		require.NoError(t, os.WriteFile(f, []byte(strings.Repeat("no database ", 1000)), 0o600))
	}, "was damaged", true},
	{"garbage header", func(t *testing.T, f string) { patch(t, f, 0, bytes.Repeat([]byte{0xa5}, 100)) }, "was damaged", true},
	{"truncated", func(t *testing.T, f string) { require.NoError(t, os.Truncate(f, 5000)) }, "was damaged", true},
	{"garbage pages in the middle", func(t *testing.T, f string) {
		fi, err := os.Stat(f)
		require.NoError(t, err)
		patch(t, f, 4096, bytes.Repeat([]byte{0xff}, int(fi.Size()-4096)))
	}, "was damaged", true},
	{"zero bytes", func(t *testing.T, f string) { require.NoError(t, os.Truncate(f, 0)) }, "", false},
	{"a folder", func(t *testing.T, f string) {
		require.NoError(t, os.Remove(f))
		require.NoError(t, os.MkdirAll(filepath.Join(f, "sub"), 0o755))
	}, "was not a file", true},
	{"a newer schema", func(t *testing.T, f string) { patch(t, f, 60, binary.BigEndian.AppendUint32(nil, 4711)) }, "newer version", false},
	{"a garbage log", func(t *testing.T, f string) {
		require.NoError(t, os.WriteFile(f+"-wal", bytes.Repeat([]byte("log "), 5000), 0o600))
	}, "", false},
	{"garbage shared memory", func(t *testing.T, f string) {
		require.NoError(t, os.WriteFile(f+"-shm", bytes.Repeat([]byte("shm "), 8192), 0o600))
	}, "", false},
	{"nothing", func(*testing.T, string) {}, "", false},
}

// damagedWorkspace has a ledger of one run, and then the damage.
func damagedWorkspace(t *testing.T, damage func(*testing.T, string)) (dir, file string, environ []string) {
	t.Helper()
	_, url := model(t, oneWrite+"turn\ntext <<END\n<tf-write id=\"1\" path=\"b.txt\">\nafter it\n</tf-write>\nEND\n")
	dir = quickDir(t)
	environ = quickHome(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m")
	r := call(t.Context(), environ, "", "run", "x", "--dir", dir)
	require.Equal(t, exitOK, r.code, r.stderr)
	state, err := ledger.StateDir(dir)
	require.NoError(t, err)
	file = filepath.Join(state, "ledger.db")
	require.FileExists(t, file)
	damage(t, file)
	return dir, file, environ
}

// TestDamagedLedger through the program and through an editor: it is kept, never
// deleted; work goes on, recorded; and it is said.
func TestDamagedLedger(t *testing.T) {
	for _, d := range damages {
		check := func(t *testing.T, dir, file string, environ []string, said string) {
			t.Helper()
			assert.FileExists(t, filepath.Join(dir, "b.txt"))
			if d.says == "" {
				assert.NotContains(t, said, "the ledger")
			} else {
				assert.Contains(t, said, d.says)
			}
			kept, err := filepath.Glob(file + ".damaged-*")
			require.NoError(t, err)
			assert.Equal(t, d.keeps, len(kept) > 0, "%v", kept)
			if d.says == "newer version" {
				assert.FileExists(t, file)
			}
			r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir)
			assert.Equal(t, exitOK, r.code, r.stderr)
			assert.Contains(t, r.stdout, "b.txt", "what was done is recorded")
			r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
			assert.Equal(t, exitOK, r.code, r.stderr+r.stdout)
		}
		t.Run("program/"+d.name, func(t *testing.T) {
			dir, file, environ := damagedWorkspace(t, d.damage)
			cmd, out := startProgram(t, environ, "run", "x", "--dir", dir)
			require.NoError(t, cmd.Wait(), out.text())
			check(t, dir, file, environ, out.text())
		})
		t.Run("editor/"+d.name, func(t *testing.T) {
			dir, file, environ := damagedWorkspace(t, d.damage)
			exe, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), exe, "lsp")
			cmd.Dir, cmd.Env = dir, append(environ, asProgram+"=1", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"))
			dead := make(chan error, 1)
			e := startServer(t, "vscode", dir, fakeeditor.Options{}, cmd, dead)
			var res struct{ State string }
			e.Request("thinkflow/run", map[string]any{"task": "x"}, &res)
			assert.Equal(t, "done", res.State)
			e.Request("shutdown", nil, nil)
			e.Notify("exit", nil)
			require.NoError(t, <-dead)
			<-e.Conn().Done()
			var said strings.Builder
			for _, method := range []string{"window/showMessage", "window/logMessage"} {
				for _, m := range e.Received(method) {
					said.Write(m.Params)
				}
			}
			check(t, dir, file, environ, said.String())
		})
	}
}

// TestReadOnlyState: without a place for its records nothing is done, and the
// message says which folder and what to do. The superuser may write everywhere,
// but not on a file system that is read-only.
func TestReadOnlyState(t *testing.T) {
	state, err := ownDisk(t, "ro,size=1m")
	if err != nil {
		if os.Geteuid() == 0 {
			need.Right(t, err.Error())
		}
		require.NoError(t, os.Chmod(state, 0o500))
		t.Cleanup(func() { _ = os.Chmod(state, 0o700) })
	}
	played, url := model(t, oneWrite+"turn\ntext \"Well.\"\n")
	dir := quickDir(t)
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_STATE_DIR="+state)
	cmd, out := startProgram(t, environ, "run", "x", "--dir", dir)
	_ = cmd.Wait()
	assert.Equal(t, exitFailed, cmd.ProcessState.ExitCode(), out.text())
	assert.Len(t, played.Requests(), 1, "the model cannot mend it, so it is not asked again")
	assert.Contains(t, out.text(), state)
	assert.Regexp(t, "read-only|permission", out.text())
	assert.Contains(t, out.text(), "THINKFLOW_STATE_DIR")
	assert.NoFileExists(t, filepath.Join(dir, "a.txt"))
}

// TestStateDiskFillsUp in the middle of a run: no effect is without its record,
// the run says why it stopped, and with room again all is well.
func TestStateDiskFillsUp(t *testing.T) {
	small, err := ownDisk(t, "size=512k")
	if err != nil {
		need.Right(t, err.Error())
	}
	var script strings.Builder
	script.WriteString("turn\ntext <<END\n")
	for i := range 16 {
		noise := make([]byte, 32<<10)
		_, _ = rand.Read(noise)
		fmt.Fprintf(&script, "<tf-write id=\"%d\" path=\"f%d.txt\">\n%x\n</tf-write>\n", i+1, i, noise)
	}
	script.WriteString("END\nturn\ntext \"Well.\"\n")
	_, url := model(t, script.String())
	dir := quickDir(t)
	environ := home(t, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=m", "THINKFLOW_STATE_DIR="+small)
	cmd, out := startProgram(t, environ, "run", "x", "--dir", dir)
	_ = cmd.Wait()
	assert.Contains(t, out.text(), "no space left")
	require.NoError(t, exec.Command("mount", "-o", "remount,size=8m", small).Run())

	r := call(t.Context(), environ, "", "ledger", "list", "--dir", dir, "--json", "-n", "0", "--status", "applied")
	require.Equal(t, exitOK, r.code, r.stderr)
	applied := map[string]bool{}
	for line := range strings.Lines(r.stdout) {
		var c ledger.Command
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		applied[c.Path] = true
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	assert.Equal(t, applied, there, "what is there is recorded, and what is recorded is there")
	assert.NotEmpty(t, there)
	assert.Less(t, len(there), 16)
	r = call(t.Context(), environ, "", "ledger", "verify", "--dir", dir)
	assert.Equal(t, exitOK, r.code, r.stderr+r.stdout)
	r = call(t.Context(), environ, "", "run", "go on", "--dir", dir)
	assert.Contains(t, r.stdout+r.stderr, "501", "the scripted model has no more turns")
}
