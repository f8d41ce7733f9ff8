package secretstore

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zalando/go-keyring"
)

// fakeRing is a key ring in memory.
type fakeRing struct {
	keys map[string]string
	err  error
	hang chan struct{}
}

func (f *fakeRing) Get(s, a string) (string, error) {
	if f.hang != nil {
		<-f.hang
	}
	v, ok := f.keys[s+"|"+a]
	if !ok && f.err == nil {
		return "", keyring.ErrNotFound
	}
	return v, f.err
}

func (f *fakeRing) Set(s, a, v string) error { f.keys[s+"|"+a] = v; return f.err }

func (f *fakeRing) Delete(s, a string) error {
	if _, ok := f.keys[s+"|"+a]; !ok {
		return keyring.ErrNotFound
	}
	delete(f.keys, s+"|"+a)
	return f.err
}

func fake() (*Store, *fakeRing) {
	f := &fakeRing{keys: map[string]string{}}
	return &Store{ring: f, present: func() bool { return true }, wait: time.Minute}, f
}

func TestKeyBelongsToItsEndpoint(t *testing.T) {
	s, _ := fake()
	require.NoError(t, s.Set("https://api.example.org/v1", " sk-1 \n"))
	for url, found := range map[string]bool{
		"https://api.example.org/v1":          true,
		"https://API.example.org:443/v2":      true,
		"https://api.example.org./v1":         true,
		"https://api.example.org.evil.com/v1": false,
		"https://evil.com/api.example.org":    false,
		"http://api.example.org/v1":           false,
		"https://api.example.org:8443/v1":     false,
	} {
		key, err := s.Get(url)
		if found {
			require.NoError(t, err, url)
			require.Equal(t, "sk-1", key)
			continue
		}
		require.ErrorIs(t, err, ErrNotFound, url)
	}
	for _, url := range []string{"", "api.example.org", "ftp://x/", "https://me:pw@api.example.org/"} {
		_, err := s.Get(url)
		require.Error(t, err, url)
		require.Error(t, s.Set(url, "sk-1"), url)
		require.Error(t, s.Delete(url), url)
	}
	require.NoError(t, s.Delete("https://api.example.org/"))
	require.ErrorIs(t, s.Delete("https://api.example.org/"), ErrNotFound)
}

func TestLookup(t *testing.T) {
	s, ring := fake()
	key, source, err := s.Lookup("https://h/v1")
	require.NoError(t, err)
	require.Empty(t, key+source)

	require.NoError(t, s.Set("https://h/v1", "sk-1"))
	key, source, err = s.Lookup("https://h/v1")
	require.NoError(t, err)
	require.Equal(t, "sk-1", key)
	require.Equal(t, "key ring https://h:443", source)

	ring.err = errors.New("broken")
	_, _, err = s.Lookup("https://h/v1")
	require.ErrorContains(t, err, "key ring: broken")

	s.present = func() bool { return false }
	_, _, err = s.Lookup("https://h/v1")
	require.NoError(t, err, "no key ring is no error")
	require.ErrorIs(t, s.Set("https://h/v1", "x"), ErrUnavailable)
}

func TestLockedRingIsNotWaitedFor(t *testing.T) {
	s, ring := fake()
	ring.hang = make(chan struct{})
	defer close(ring.hang)
	s.wait = time.Millisecond
	_, err := s.Get("https://h/v1")
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "did not answer")
}

func TestBadKeys(t *testing.T) {
	s, _ := fake()
	for _, key := range []string{"", "  \n", "a\nb", "a\x00b"} {
		require.Error(t, s.Set("https://h/", key))
		require.Error(t, WriteFile(filepath.Join(t.TempDir(), "k"), key))
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "key")
	require.NoError(t, WriteFile(path, "sk-1"))
	require.NoError(t, WriteFile(path, "sk-2"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "sk-2\n", string(data))
	if runtime.GOOS != "windows" {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
