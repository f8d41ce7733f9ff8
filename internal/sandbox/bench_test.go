package sandbox

import (
	"os"
	"testing"
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
