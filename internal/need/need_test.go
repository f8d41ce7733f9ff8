package need

import (
	"testing"
)

// told is a test that notes how it ends instead of ending.
type told struct {
	testing.TB
	fatal, skipped bool
}

func (t *told) Helper()      {}
func (t *told) Fatal(...any) { t.fatal = true }
func (t *told) Skip(...any)  { t.skipped = !t.fatal } // what fails does not come this far

func TestMissingFailsOnlyInCI(t *testing.T) {
	for _, c := range []struct {
		ci             string
		fatal, skipped bool
	}{{"true", true, false}, {"", false, true}} {
		t.Setenv("CI", c.ci)
		got := &told{TB: t}
		if path := Program(got, "no-program-of-this-name"); path != "" {
			t.Errorf("found %s", path)
		}
		if got.fatal != c.fatal || got.skipped != c.skipped {
			t.Errorf("CI=%q: failed %v, skipped %v", c.ci, got.fatal, got.skipped)
		}
		got = &told{TB: t}
		Right(got, "the right to fly")
		if got.fatal || !got.skipped {
			t.Errorf("a right, CI=%q: failed %v, skipped %v", c.ci, got.fatal, got.skipped)
		}
	}
	got := &told{TB: t}
	if path := Program(got, "no-program-of-this-name", "go"); path == "" || got.fatal || got.skipped {
		t.Errorf("go: %q, failed %v, skipped %v", path, got.fatal, got.skipped)
	}
}
