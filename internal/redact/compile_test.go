package redact

import "testing"

// TestPatternsCompile: they are compiled when they are first needed, which must
// not be the moment in which a wrong one is found.
func TestPatternsCompile(t *testing.T) {
	for _, s := range shapes {
		if s.keep > s.re().NumSubexp() {
			t.Errorf("%s has no submatch %d", s.hint, s.keep)
		}
	}
	keyLine()
}
