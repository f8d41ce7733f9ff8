// Package nvim_test runs the plugin in a real Neovim against the real server and
// a scripted model.
//
// A scenario is a txtar file in testdata/scenarios:
//
//	-- script --       what the model says (see internal/scripted); may be absent
//	-- test.lua --     runs inside Neovim; testdata/harness.lua is T
//	-- options --      Lua table for setup, when the scenario needs other options
//	-- env --          further environment, a variable a line; an empty value removes one
//	-- files/NAME --   the workspace before
//	-- want/NAME --    files on disk afterwards; `absent` alone: there must be none
package nvim_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"thinkflow/editors/internal/rig"
)

// limit bounds one Neovim; a scenario takes about a second.
const limit = 90 * time.Second

func neovim(t testing.TB) string {
	return rig.Fetched(t, "Neovim", "THINKFLOW_NVIM", "get-neovim.sh")
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// nvim runs a Lua file in a Neovim that has nothing but our plugin, in dir, and
// fails the test unless the file says that it passed.
func nvim(t *testing.T, dir, home, lua string, env []string, onRelease func(string)) {
	t.Helper()
	var verdict string
	cmd := exec.Command(neovim(t), "--headless", "--clean", "-n", "-i", "NONE",
		"--cmd", "set runtimepath^="+filepath.Dir(testdata(t, "")),
		"-c", "luafile "+lua)
	cmd.Dir = dir
	cmd.Env = rig.CleanEnv(home, append(env, "HARNESS="+testdata(t, "harness.lua"))...)
	p := rig.Start(t, cmd, limit, func(line string) {
		switch word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\r"), " "); word {
		case "passed", "failed":
			verdict = word
		case "release":
			if onRelease != nil {
				onRelease(rest)
			}
		case "number":
			t.Log(rest)
		}
	})
	if err := p.Wait(); err != nil || verdict != "passed" {
		t.Fatalf("Neovim: %v\n%s\n--- server log\n%s", err, p.Output(), serverLog(home))
	}
}

// serverLog is the end of Neovim's LSP log, where the server's stderr goes.
func serverLog(home string) string {
	b, err := os.ReadFile(filepath.Join(home, ".local/state/nvim/lsp.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-8<<10):])
}

// parts of a scenario by name.
func parts(a *txtar.Archive) map[string][]byte {
	m := make(map[string][]byte)
	for _, f := range a.Files {
		m[f.Name] = f.Data
	}
	return m
}

func under(files map[string][]byte, prefix string) map[string]string {
	m := make(map[string]string)
	for name, data := range files {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			m[rest] = string(data)
		}
	}
	return m
}

func TestScenarios(t *testing.T) {
	neovim(t)
	binary := rig.Build(t)
	paths, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			scenario(t, binary, parts(archive))
		})
	}
}

func scenario(t *testing.T, binary string, files map[string][]byte) {
	home, dir := t.TempDir(), t.TempDir()
	rig.WriteFiles(t, dir, under(files, "files/"))
	env := []string{"THINKFLOW_BINARY=" + binary, "SETUP=return " + orEmptyTable(files["options"])}
	var release func(string)
	if script, ok := files["script"]; ok {
		model := rig.Serve(t, t.Name(), script)
		env = append(env, model.Env()...)
		release = model.Release
	}
	for line := range strings.Lines(string(files["env"])) {
		env = append(env, strings.TrimSpace(line))
	}
	lua := filepath.Join(home, "test.lua")
	head := fmt.Sprintf("T = dofile(%q)\nT.setup()\nT.run(function() ", testdata(t, "harness.lua"))
	body := bytes.TrimRight(files["test.lua"], "\n")
	// On one line with the head, so that line numbers in messages are the scenario's.
	text := strings.ReplaceAll(head, "\n", " ") + string(body) + "\nend)\n"
	if err := os.WriteFile(lua, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	nvim(t, dir, home, lua, env, release)
	for name, want := range under(files, "want/") {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case strings.TrimSpace(want) == "absent":
			if err == nil {
				t.Errorf("%s should not be on disk; it has:\n%s", name, got)
			}
		case err != nil:
			t.Error(err)
		case string(got) != want:
			t.Errorf("%s on disk:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

func orEmptyTable(b []byte) string {
	if len(bytes.TrimSpace(b)) == 0 {
		return "{}"
	}
	return string(b)
}

// TestEdits applies random edits to buffers, without a server.
func TestEdits(t *testing.T) {
	neovim(t)
	for seed := range 3 {
		nvim(t, t.TempDir(), t.TempDir(), testdata(t, "edit_property.lua"),
			[]string{fmt.Sprintf("SEED=%d", seed), "CASES=700"}, nil)
	}
}

// TestRebase moves edits along what a user changes meanwhile.
func TestRebase(t *testing.T) {
	neovim(t)
	nvim(t, t.TempDir(), t.TempDir(), testdata(t, "rebase_property.lua"), []string{"SEED=1", "CASES=2000"}, nil)
}

// TestPlaces checks refusals, and that cursors, views, marks and undo are kept.
func TestPlaces(t *testing.T) {
	neovim(t)
	nvim(t, t.TempDir(), t.TempDir(), testdata(t, "edit_places.lua"), nil, nil)
}
