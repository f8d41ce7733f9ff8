package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The profile can only be run on macOS; its text is checked everywhere.
func TestSeatbeltProfile(t *testing.T) {
	p := &plan{
		spec:   Spec{Watch: []string{"/ws/.envrc"}},
		roots:  []string{"/ws"},
		guard:  []string{"/ws/.git", `/ws/a b/.vsc"ode`},
		hidden: []string{"/Users/me/.ssh"},
		temp:   "/private/tmp/t",
	}
	require.Equal(t, `(version 1)
(allow default)
(deny file-write*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))
(allow file-write* (subpath "/ws"))
(allow file-write* (subpath "/private/tmp/t"))
(deny file-write* (subpath "/ws/.git"))
(deny file-write* (subpath "/ws/a b/.vsc\"ode"))
(deny file-write* (subpath "/ws/.envrc"))
(deny file-write-unlink (literal "/ws/a b"))
(deny file-read* file-write* (subpath "/Users/me/.ssh"))
(deny network*)
(deny signal (target others))
(deny appleevent-send)
`, profile(p))
	p.spec.Grants.Net = true
	require.Contains(t, profile(p), `(deny network-outbound (subpath "/"))`)
	require.NotContains(t, profile(p), "(deny network*)")
}
