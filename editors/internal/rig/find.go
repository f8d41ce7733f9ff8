package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"thinkflow/internal/need"
)

// RepoDir is the root of the module.
func RepoDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}

// Fetched is the launcher of an editor that a script of ours fetches into the
// test cache, or that the environment variable names.
func Fetched(t testing.TB, what, variable, script string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			t.Fatalf("%s=%s: %v", variable, path, err)
		}
		return path
	}
	if runtime.GOOS == "windows" {
		need.Missing(t, what)
	}
	out, err := exec.Command(filepath.Join(RepoDir(t), "scripts", script), "--where").Output()
	path := strings.TrimSpace(string(out))
	if err != nil || path == "" {
		need.Missing(t, what)
	}
	return path
}

// Installed is the path of a program that a package manager installs: the first
// of the names that is there, or what the environment variable names.
func Installed(t testing.TB, variable string, names ...string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		names = []string{path}
	}
	return need.Program(t, names...)
}
