package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"thinkflow/workspace"
)

// What a sandbox adds to a command that does nothing.
func BenchmarkTrue(b *testing.B) {
	for _, kind := range []Kind{Bubblewrap, Landlock, None} {
		b.Run(string(kind), func(b *testing.B) {
			s := Detect(b.Context(), Options{Only: kind})
			if s.Report().Kind != kind {
				b.Skip(s.Report().Missing)
			}
			spec := Spec{Line: "true", Roots: []string{b.TempDir()}, Env: []string{"PATH=" + os.Getenv("PATH")}, Unconfined: kind == None}
			for b.Loop() {
				c, err := s.Command(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Finish(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Looking for protected names in a workspace of 20,000 files.
func BenchmarkTakeStock(b *testing.B) {
	root := b.TempDir()
	for i := range 200 {
		dir := filepath.Join(root, fmt.Sprintf("p%d/src/deep", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.go", j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	w, err := workspace.New([]workspace.Root{{Dir: root}}, workspace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p := &plan{roots: []string{root}, spec: Spec{Classify: func(path string, dir bool) Class {
		if w.ClassifyName(path, dir) != workspace.NameFree {
			return Protected
		}
		return Free
	}}}
	for b.Loop() {
		if _, err := takeStock(p); err != nil {
			b.Fatal(err)
		}
	}
}
