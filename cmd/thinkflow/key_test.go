package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/secretstore"
)

// fakeRing is a key ring that notes what it was asked for.
type fakeRing struct {
	keys  map[string]string
	looks int
}

func (f *fakeRing) Lookup(url string) (string, string, error) {
	f.looks++
	account, err := secretstore.Account(url)
	if err != nil || f.keys[account] == "" {
		return "", "", err
	}
	return f.keys[account], "key ring " + account, nil
}

func (f *fakeRing) Set(url, key string) error {
	account, err := secretstore.Account(url)
	if err == nil {
		f.keys[account] = key
	}
	return err
}

func (f *fakeRing) Delete(url string) error {
	account, _ := secretstore.Account(url)
	if f.keys[account] == "" {
		return secretstore.ErrNotFound
	}
	delete(f.keys, account)
	return nil
}

func callWith(t *testing.T, ring keyRing, environ []string, stdin string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{ctx: t.Context(), stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr, environ: environ, keys: ring}
	code := runWith(a, args)
	return ran{code, stdout.String(), stderr.String()}
}

func TestKeyRing(t *testing.T) {
	ring := &fakeRing{keys: map[string]string{}}
	environ := home(t)
	r := callWith(t, ring, environ, "sk-from-the-ring\n", "key", "set", "--base-url", "https://api.example.org/v1")
	require.Equal(t, exitOK, r.code, r.stderr)
	require.Equal(t, "sk-from-the-ring", ring.keys["https://api.example.org:443"])
	require.NotContains(t, r.stdout+r.stderr, "sk-from-the-ring")

	r = callWith(t, ring, environ, "", "config", "--base-url", "https://api.example.org/v1")
	require.Contains(t, r.stdout, "API key: set, from key ring https://api.example.org:443")
	r = callWith(t, ring, environ, "", "config", "--base-url", "https://evil.example/v1")
	require.Contains(t, r.stdout, "API key: not set", "another endpoint gets no key")

	ring.looks = 0
	r = callWith(t, ring, append(environ, "OPENAI_API_KEY=sk-of-the-environment"), "", "config")
	require.Contains(t, r.stdout, "environment OPENAI_API_KEY")
	require.Zero(t, ring.looks, "the ring is not asked when there is a key")

	r = callWith(t, ring, environ, "", "key", "delete", "--base-url", "https://api.example.org/v1")
	require.Equal(t, exitOK, r.code, r.stderr)
	r = callWith(t, ring, environ, "", "key", "delete", "--base-url", "https://api.example.org/v1")
	require.Equal(t, exitFailed, r.code)

	file := filepath.Join(t.TempDir(), "sub", "key")
	r = callWith(t, nil, environ, "sk-in-a-file\n", "key", "set", "--file", file)
	require.Equal(t, exitOK, r.code, r.stderr)
	info, err := os.Stat(file)
	require.NoError(t, err)
	if !isWindows {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	r = callWith(t, nil, environ, "", "config", "--set", "key_file="+file)
	require.Contains(t, r.stdout, "set, from file "+file)
}

func TestTrustCommand(t *testing.T) {
	environ := home(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	require.NoError(t, os.WriteFile(file, []byte("Use tabs.\n"), 0o600))
	_, url := model(t, "turn\nexpect contains \"Use tabs.\"\ntext ok\n")
	require.Equal(t, exitOK, callWith(t, nil, environ, "", "trust", "add", file).code)
	r := callWith(t, nil, environ, "", "trust")
	require.Regexp(t, `(?m)^trusted +rules +[0-9a-f]{12} +.*AGENTS\.md$`, r.stdout)
	r = callWith(t, nil, append(environ, "OPENAI_BASE_URL="+url, "THINKFLOW_MODEL=scripted"), "", "run", "x", "--dir", dir)
	require.Equal(t, exitOK, r.code, r.stdout+r.stderr)
	r = callWith(t, nil, environ, "", "trust", "remove", file)
	require.Contains(t, r.stdout, "1 answers forgotten")
	require.Empty(t, callWith(t, nil, environ, "", "trust").stdout)
}
