package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"thinkflow/internal/scripted"
)

// Build builds the real binary into a temporary folder and returns its path. The
// variable THINKFLOW_TEST_BINARY names one that is there already.
func Build(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("THINKFLOW_TEST_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "thinkflow")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/thinkflow")
	cmd.Dir = RepoDir(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/thinkflow: %v\n%s", err, out)
	}
	return path
}

// Model is a scripted model on a loopback port.
type Model struct {
	*scripted.Server
	URL string
}

// Serve plays the script until the test ends; what went against it is an error.
func Serve(t testing.TB, name string, script []byte) *Model {
	t.Helper()
	parsed, err := scripted.Parse(name, script)
	if err != nil {
		t.Fatal(err)
	}
	server := scripted.New(parsed, scripted.Options{})
	url, stop, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		for _, failure := range server.Failures() {
			t.Errorf("scripted model: %s", failure)
		}
	})
	return &Model{server, url}
}

// Env tells the server under test to use the model.
func (m *Model) Env() []string {
	return []string{"OPENAI_BASE_URL=" + m.URL, "OPENAI_API_KEY=test-key", "THINKFLOW_MODEL=scripted"}
}

// WriteFiles makes the files, by their path relative to dir.
func WriteFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
