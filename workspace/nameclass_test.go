package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// ClassifyName agrees with Resolve wherever a walk would come by.
func TestClassifyName(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.go": "", "sub/.vscode/settings.json": "", ".git/config": "", "sub/.GIT/x": "", ".github/workflows/x.yml": "", ".github/dependabot.yml": "",
		"secret/k": "", "docs/AGENTS.md": "", "agents/x.md": "", "own/f": "", "x/jenkinsfile": "", "deep/a/b/.envrc": "",
	})
	w := newSpace(t, dir, Options{Deny: []string{"secret/"}, Own: []string{filepath.Join(dir, "own")}})
	free := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		want := NameFree
		target, err := w.Resolve(path, AccessWrite)
		ref, refused := AsRefusal(err)
		switch {
		case refused && ref.Code == CodeForbidden:
			want = NameForbidden
		case refused && ref.Code == CodeDenied:
			want = NameDenied
		case err == nil && target.Protected:
			want = NameProtected
		case err != nil:
			t.Fatal(err)
		}
		if got := w.ClassifyName(path, d.IsDir()); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if want != NameFree {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		free++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if free < 10 {
		t.Errorf("only %d free entries", free)
	}
	if got := w.ClassifyName(filepath.Dir(dir), true); got != NameFree {
		t.Errorf("outside: %d", got)
	}
}
