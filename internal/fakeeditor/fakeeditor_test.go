package fakeeditor

import (
	"fmt"
	"testing"
	"time"
)

// TestClock: timers fire in order of time, then of setting; stopped ones do not.
func TestClock(t *testing.T) {
	var c Clock
	var got []string
	fire := func(name string) func() {
		return func() { got = append(got, fmt.Sprint(name, "@", c.Now())) }
	}
	c.AfterFunc(2*time.Second, fire("b"))
	c.AfterFunc(time.Second, fire("a"))
	c.AfterFunc(2*time.Second, fire("c"))
	stop := c.AfterFunc(time.Second, fire("stopped"))
	stop()
	c.AfterFunc(3*time.Second, func() { c.AfterFunc(time.Second, fire("nested")) })
	c.Advance(2 * time.Second)
	if want := "[a@1s b@2s c@2s]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	for c.Step() {
	}
	if got[len(got)-1] != "nested@4s" {
		t.Errorf("%v", got)
	}
}

// TestPositions: offset and position are inverse, in every encoding.
func TestPositions(t *testing.T) {
	const text = "a😀b\r\nü\n\nend"
	for _, enc := range []string{"utf-8", "utf-16", "utf-32"} {
		for i := range len(text) + 1 {
			if !boundary(text, i) {
				continue
			}
			p := position(text, i, enc)
			if back, err := offset(text, p, enc); err != nil || back != i {
				t.Errorf("%s: %d -> %+v -> %d, %v", enc, i, p, back, err)
			}
		}
	}
	for _, p := range []Position{{0, 99}, {9, 0}, {0, 2}} {
		if off, err := offset(text, p, "utf-16"); err == nil {
			t.Errorf("%+v is %d", p, off)
		}
	}
}

// TestProfiles: every recording is there and names are unique.
func TestProfiles(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Profiles() {
		if seen[p.Name] {
			t.Errorf("%s twice", p.Name)
		}
		seen[p.Name] = true
		if _, err := p.InitializeParams("../../testdata/capabilities", "file:///ws"); err != nil {
			t.Error(err)
		}
	}
}
