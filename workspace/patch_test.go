package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"thinkflow/internal/need"
)

// TestPatch: git applies what Patch writes, to exactly the texts after.
func TestPatch(t *testing.T) {
	git := need.Program(t, "git")
	long := strings.Repeat("a line of many\n", 40)
	files := []PatchFile{
		{From: "a.txt", To: "a.txt", Before: "one\ntwo\nthree\n", After: "one\nTWO\nthree\nfour"},
		{From: "no eol.txt", To: "no eol.txt", Before: "x", After: "x\ny"},
		{To: "new/file.txt", After: "fresh\n"},
		{From: "gone.txt", Before: "bye\n"},
		{From: "from.txt", To: "sub/to.txt", Before: long + "end\n", After: "start\n" + long + "end\n"},
		{From: "same.txt", To: "moved.txt", Before: "same\n", After: "same\n"},
		{From: "ü \"quoted\".txt", To: "ü \"quoted\".txt", Before: "1\r\n2\r\n", After: "1\r\n3\r\n"},
		{From: "unchanged.txt", To: "unchanged.txt", Before: "u\n", After: "u\n"},
	}
	dir := t.TempDir()
	for _, f := range files {
		if f.From != "" {
			fill(t, dir, map[string]string{f.From: f.Before})
		}
	}
	cmd := exec.CommandContext(t.Context(), git, "apply", "--whitespace=nowarn", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(Patch(files...))
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, Patch(files...))
	}
	for _, f := range files {
		if f.To != "" {
			if data, err := os.ReadFile(filepath.Join(dir, f.To)); err != nil || string(data) != f.After {
				t.Errorf("%s: %q, %v", f.To, data, err)
			}
		}
		if f.From != "" && f.From != f.To {
			if _, err := os.Stat(filepath.Join(dir, f.From)); err == nil {
				t.Errorf("%s is still there", f.From)
			}
		}
	}
}
