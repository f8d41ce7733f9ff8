// Package need is for tests that need a program or a right which the machine may
// lack: on a developer's machine they are skipped, with CI=true they fail, so
// that nothing is left untested unseen.
package need

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Missing skips the test, or fails it with CI=true: there nothing may be missing.
// What says what is not there, and why if that is known.
func Missing(t testing.TB, what string) {
	t.Helper()
	message := what + " is missing; scripts/test-deps.sh installs what the tests need"
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip("SKIPPED: " + message)
}

// Right skips the test, with CI=true too: what the kernel or a container does not
// allow, no script can install. What says what is not allowed, and why if that is
// known.
func Right(t testing.TB, what string) {
	t.Helper()
	t.Skip("SKIPPED: " + what + " is not to be had on this machine")
}

// Program is the path of the first of the programs that is installed. Where none
// is, the test is skipped or fails as with [Missing].
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, strings.Join(names, " or "))
	return ""
}
