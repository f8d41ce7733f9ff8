package workspace

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNeedle: it finds what strings.Index finds, in texts in which much is alike.
func TestNeedle(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 4000 {
		word := func(n int) string {
			var b strings.Builder
			for range n {
				b.WriteByte("aaab\t\n"[r.IntN(6)])
			}
			return b.String()
		}
		s := strings.Repeat(word(1+r.IntN(40)), 1+r.IntN(400)) + word(r.IntN(20))
		old := word(1 + r.IntN(30))
		if at := r.IntN(len(s)); r.IntN(2) == 0 {
			old = s[at:min(len(s), at+1+r.IntN(200))]
		}
		if got, want := newNeedle(s, old).index(s), strings.Index(s, old); got != want {
			t.Fatalf("%q in %q: %d, want %d", old, s, got, want)
		}
	}
}
