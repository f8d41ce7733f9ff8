package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func store(t *testing.T) *Store {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Open(filepath.Join(t.TempDir(), "state"), func() time.Time { return now })
}

func state(t *testing.T, s *Store, k Kind, path, hash string) State {
	t.Helper()
	got, err := s.Trusted(k, path, hash)
	require.NoError(t, err)
	return got
}

func TestAskedOnceAndAgainOnChange(t *testing.T) {
	s := store(t)
	file := filepath.Join(t.TempDir(), "AGENTS.md")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	h1, h2, h3 := Hash("one"), Hash("two"), Hash("three")

	require.Equal(t, Unknown, state(t, s, Rules, file, h1))
	require.NoError(t, s.Grant(Rules, file, h1))
	require.Equal(t, Trusted, state(t, s, Rules, file, h1))
	require.Equal(t, Changed, state(t, s, Rules, file, h2), "other content")
	require.Equal(t, Unknown, state(t, s, Skill, file, h1), "another kind")
	require.Equal(t, Unknown, state(t, s, Rules, file+"2", h1), "another place")

	require.NoError(t, s.Refuse(Rules, file, h2))
	require.Equal(t, Refused, state(t, s, Rules, file, h2))
	require.Equal(t, Trusted, state(t, s, Rules, file, h1), "as it was before")
	require.Equal(t, Changed, state(t, s, Rules, file, h3))

	require.NoError(t, s.Grant(Rules, file, h2))
	require.Equal(t, Trusted, state(t, s, Rules, file, h2))
	require.Equal(t, Changed, state(t, s, Rules, file, h1), "the newer content took its place")

	require.NoError(t, s.Grant(MCP, file, h1))
	list, err := Open(filepath.Dir(s.File()), nil).List()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, MCP, list[0].Kind)

	n, err := s.Revoke("", file)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, Unknown, state(t, s, Rules, file, h2))
}

func TestLinksAreResolved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	s := store(t)
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(real, nil, 0o600))
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, s.Grant(Verify, link, Hash("make test")))
	require.Equal(t, Trusted, state(t, s, Verify, real, Hash("make test")))
}

func TestFileIsPrivate(t *testing.T) {
	s := store(t)
	require.NoError(t, s.Grant(Rules, "/a", Hash("x")))
	if runtime.GOOS != "windows" {
		fi, err := os.Stat(s.File())
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
		fi, err = os.Stat(filepath.Dir(s.File()))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())
	}
}

func TestWhatIsNotBelieved(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(t *testing.T, file string)
	}{
		{"others can write it", "chmod 600", func(t *testing.T, f string) { require.NoError(t, os.Chmod(f, 0o666)) }},
		{"a link", "not a regular file", func(t *testing.T, f string) {
			require.NoError(t, os.Rename(f, f+".real"))
			require.NoError(t, os.Symlink(f+".real", f))
		}},
		{"damaged", "is damaged", func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte("{"), 0o600)) }},
		{"another version", "version 9", func(t *testing.T, f string) {
			require.NoError(t, os.WriteFile(f, []byte(`{"version":9,"entries":[]}`), 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("modes and links are of Unix")
			}
			s := store(t)
			require.NoError(t, s.Grant(Rules, "/a", Hash("x")))
			c.spoil(t, s.File())
			got, err := s.Trusted(Rules, "/a", Hash("x"))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, Unknown, got)
			require.Error(t, s.Grant(Rules, "/b", Hash("x")), "it is not overwritten either")
		})
	}
}

func TestBadRequests(t *testing.T) {
	s := store(t)
	_, err := s.Trusted("hook", "/a", Hash("x"))
	require.ErrorContains(t, err, "unknown kind")
	_, err = s.Trusted(Rules, "a", Hash("x"))
	require.ErrorContains(t, err, "not an absolute path")
	for _, hash := range []string{"", "abc", "zz"} {
		require.ErrorContains(t, s.Grant(Rules, "/a", hash), "not the hash")
	}
}

// Two processes are played by two stores.
func TestConcurrentGrants(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 20 {
		s := Open(dir, nil)
		wg.Go(func() {
			if err := s.Grant(Rules, fmt.Sprintf("/p%d", i), Hash("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := Open(dir, nil).List()
	require.NoError(t, err)
	require.Len(t, list, 20)
}

func TestHash(t *testing.T) {
	require.Equal(t, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Hash("x"), "of one content: its sha256")
	require.NotEqual(t, Hash("a", "bc"), Hash("ab", "c"))
}
