package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite golden files")

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestDefaults(t *testing.T) {
	c := Defaults()
	assert.Equal(t, 50, c.MaxTurns)
	assert.Equal(t, 24*1024, c.AttachBudget)
	assert.Equal(t, 64*1024, c.ResultBudget)
	assert.Equal(t, 2*time.Minute, c.FirstTokenTimeout)
	assert.Equal(t, ProtocolAuto, c.Protocol)
	assert.True(t, c.ReasoningCommands)
	assert.Nil(t, c.Temperature)
}

func TestEveryKeyIsDocumented(t *testing.T) {
	seen := map[string]string{}
	for _, k := range Keys() {
		assert.NotEmpty(t, k.Doc, k.Name)
		assert.NotEmpty(t, k.Group, k.Name)
		assert.NotEmpty(t, k.Env, k.Name)
		assert.Equal(t, strings.ToLower(k.Name), k.Name)
		for _, e := range append([]string{k.Name}, k.Env...) {
			assert.Empty(t, seen[e], "%s twice", e)
			seen[e] = k.Name
		}
	}
}

func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	require.NoError(t, os.WriteFile(file, []byte("model = \"from-file\"\nretries = 1\n"), 0o600))
	o := Options{Env: lookup(map[string]string{"THINKFLOW_CONFIG": file})}

	step := func(want, source string) {
		t.Helper()
		l, err := Load(o)
		require.NoError(t, err)
		assert.Equal(t, want, l.Config.Model)
		assert.Equal(t, source, string(l.Sources["model"]))
		assert.Equal(t, 1, l.Config.Retries)
	}
	step("from-file", "file "+file+":1")
	o.Editor = map[string]any{"model": "from-editor", "retries": nil}
	step("from-editor", "editor")
	o.Env = lookup(map[string]string{"THINKFLOW_CONFIG": file, "THINKFLOW_MODEL": "from-env"})
	step("from-env", "environment THINKFLOW_MODEL")
	o.Flags = map[string]string{"model": "from-flag"}
	step("from-flag", "flag --model")
}

// TestErrors runs testdata/errors.txtar: each "NAME/config.toml", "NAME/env"
// or "NAME/editor.json" is input, "NAME/want" what Load says.
func TestErrors(t *testing.T) {
	const name = "testdata/errors.txtar"
	arch, err := txtar.ParseFile(name)
	require.NoError(t, err)
	var order []string
	cases := map[string]map[string]*txtar.File{}
	for i := range arch.Files {
		dir, base := filepath.Split(arch.Files[i].Name)
		if cases[dir] == nil {
			cases[dir] = map[string]*txtar.File{}
			order = append(order, dir)
		}
		cases[dir][base] = &arch.Files[i]
	}
	for _, dir := range order {
		files := cases[dir]
		t.Run(strings.TrimSuffix(dir, "/"), func(t *testing.T) {
			tmp := t.TempDir()
			env := map[string]string{"HOME": tmp}
			o := Options{GOOS: "linux"}
			if f := files["config.toml"]; f != nil {
				o.File = filepath.Join(tmp, "config.toml")
				require.NoError(t, os.WriteFile(o.File, f.Data, 0o600))
			}
			if f := files["env"]; f != nil {
				for line := range strings.SplitSeq(strings.TrimSpace(string(f.Data)), "\n") {
					k, v, _ := strings.Cut(line, "=")
					env[k] = v
					o.Environ = append(o.Environ, line)
				}
			}
			if f := files["editor.json"]; f != nil {
				require.NoError(t, json.Unmarshal(f.Data, &o.Editor))
			}
			o.Env = lookup(env)
			l, err := Load(o)
			got := ""
			if err != nil {
				got = err.Error() + "\n"
			}
			for _, w := range l.Warnings {
				got += "warning: " + w + "\n"
			}
			got = strings.ReplaceAll(got, tmp, "TMP")
			if *update {
				files["want"].Data = []byte(got)
				return
			}
			assert.Equal(t, string(files["want"].Data), got)
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(name, txtar.Format(arch), 0o644))
	}
}

func TestValuesOfEverySource(t *testing.T) {
	temp := float32(0.5)
	want := Defaults()
	want.Model, want.Temperature, want.MaxWall = "m", &temp, 90*time.Second
	want.AttachBudget, want.Allow = 1<<20, []Class{AllowBash, AllowDelete}
	want.ExtraBody = map[string]any{"n": float64(2), "nested": map[string]any{"x": true}}
	want.Headers = map[string]string{"X-A": "1"}
	want.StrictTags = true

	file := filepath.Join(t.TempDir(), "c.toml")
	require.NoError(t, os.WriteFile(file, []byte("\ufeff"+`model = "m"
temperature = 0.5
max_wall = 90
attach_budget = "1MiB"
allow = ["bash", "delete"]
strict_tags = true
headers = { X-A = "1" }
[extra_body]
n = 2.0
nested.x = true
`), 0o600))
	env := map[string]string{
		"THINKFLOW_MODEL": "m", "THINKFLOW_TEMPERATURE": "0.5", "THINKFLOW_MAX_WALL": "1m30s",
		"THINKFLOW_ATTACH_BUDGET": "1048576", "THINKFLOW_ALLOW": "bash, delete", "THINKFLOW_STRICT_TAGS": "true",
		"THINKFLOW_HEADERS": `{"X-A":"1"}`, "THINKFLOW_EXTRA_BODY": `{"n":2,"nested":{"x":true}}`,
	}
	editor := map[string]any{
		"model": "m", "temperature": 0.5, "max_wall": "90s", "attach_budget": float64(1 << 20),
		"allow": []any{"bash", "delete"}, "strict_tags": true, "headers": map[string]any{"X-A": "1"},
		"extra_body": map[string]any{"n": float64(2), "nested": map[string]any{"x": true}},
	}
	flags := map[string]string{}
	for _, k := range Keys() {
		if v := env[k.Env[0]]; v != "" {
			flags[k.Name] = v
		}
	}
	for name, o := range map[string]Options{
		"file":   {File: file, Env: lookup(nil)},
		"env":    {Env: lookup(env)},
		"editor": {Editor: editor, Env: lookup(nil)},
		"flags":  {Flags: flags, Env: lookup(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Load(o)
			require.NoError(t, err)
			assert.Equal(t, want, l.Config)
		})
	}
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(keyFile, []byte("sk-file\n"), 0o600))

	l, err := Load(Options{Env: lookup(map[string]string{"OPENAI_API_KEY": "sk-env"}), Flags: map[string]string{"key_file": keyFile}})
	require.NoError(t, err)
	assert.Equal(t, "sk-env", l.Config.APIKey.Reveal())

	l, err = Load(Options{Env: lookup(map[string]string{"HOME": dir}), Flags: map[string]string{"key_file": "~/key"}})
	require.NoError(t, err)
	assert.Equal(t, "sk-file", l.Config.APIKey.Reveal())
	assert.Equal(t, "file "+keyFile, string(l.KeySource))

	l, err = Load(Options{Env: lookup(map[string]string{"OPENAI_API_KEY": "sk-env", "OTHER": "sk-other"}), Flags: map[string]string{"key_env": "OTHER"}})
	require.NoError(t, err)
	assert.Equal(t, "sk-other", l.Config.APIKey.Reveal())

	require.NoError(t, os.Chmod(keyFile, 0o644))
	_, err = Load(Options{Env: lookup(nil), GOOS: "linux", Flags: map[string]string{"key_file": keyFile}})
	var ce *Error
	require.True(t, errors.As(err, &ce))
	assert.Contains(t, ce.Msg, "chmod 600")
}

func TestSecretIsNeverPrinted(t *testing.T) {
	c := Defaults()
	c.APIKey = NewSecret("sk-very-secret")
	c.Headers = map[string]string{"Authorization": "sk-very-secret"}
	j, err := json.Marshal(struct{ S Secret }{c.APIKey})
	require.NoError(t, err)
	out := []string{string(j), c.APIKey.LogValue().String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out = append(out, fmt.Sprintf(verb, c.APIKey), fmt.Sprintf(verb, struct{ APIKey Secret }{c.APIKey}))
	}
	for _, k := range Keys() {
		out = append(out, k.Value(&c))
	}
	assert.NotContains(t, strings.Join(out, "\n"), "very-secret")
}

func TestDurationsAreShownAsOneWritesThem(t *testing.T) {
	i := slices.IndexFunc(Keys(), func(k Key) bool { return k.Name == "max_wall" })
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", 2 * time.Minute: "2m", 90 * time.Second: "1m30s", time.Hour: "1h", 61 * time.Minute: "1h1m",
	} {
		c := Config{MaxWall: d}
		assert.Equal(t, want, Keys()[i].Value(&c))
	}
}

func TestHeadersTakeVariables(t *testing.T) {
	l, err := Load(Options{
		Env:    lookup(map[string]string{"AZURE": "k$1"}),
		Editor: map[string]any{"headers": map[string]any{"api-key": "${AZURE}", "X-Price": "$5 or $", "X-Plain": "a"}},
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"api-key": "k$1", "X-Price": "$5 or $", "X-Plain": "a"}, l.Config.Headers)
}

func TestDefaultFile(t *testing.T) {
	for _, tt := range []struct {
		name, goos string
		env        map[string]string
		want       string
	}{
		{"xdg", "linux", map[string]string{"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/thinkflow/config.toml"},
		{"relative xdg is ignored", "linux", map[string]string{"XDG_CONFIG_HOME": "x", "HOME": "/h"}, "/h/.config/thinkflow/config.toml"},
		{"macos", "darwin", map[string]string{"HOME": "/h"}, "/h/Library/Application Support/thinkflow/config.toml"},
		{"windows", "windows", map[string]string{"AppData": "/a"}, "/a/thinkflow/config.toml"},
		{"nothing", "linux", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DefaultFile(lookup(tt.env), tt.goos)
			assert.Equal(t, tt.want, filepath.ToSlash(got))
			assert.Equal(t, tt.want == "", err != nil)
		})
	}
}

func TestReferenceIsFresh(t *testing.T) {
	const file = "../../docs/configuration.md"
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(Reference()), 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, Reference(), strings.ReplaceAll(string(got), "\r\n", "\n"), "run: go generate ./internal/config")
}
