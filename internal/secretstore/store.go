package secretstore

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which keys are filed in the key ring.
const service = "thinkflow"

// answerTime bounds a look into the key ring: a locked one asks a person.
const answerTime = 30 * time.Second

// Errors of a store. Others are those of the key ring.
var (
	// ErrNotFound: there is no key for the endpoint.
	ErrNotFound = errors.New("the key ring holds no key for this endpoint")
	// ErrUnavailable: there is no key ring, or it did not answer.
	ErrUnavailable = errors.New("no key ring is available")
)

// ring is what we need of a key ring.
type ring interface {
	Get(service, account string) (string, error)
	Set(service, account, secret string) error
	Delete(service, account string) error
}

// Store keeps keys in a key ring. It is safe for concurrent use.
type Store struct {
	ring    ring
	present func() bool
	wait    time.Duration
}

// OS is the key ring of the operating system.
func OS() *Store { return &Store{ring: osRing{}, present: ringPresent, wait: answerTime} }

type osRing struct{}

func (osRing) Get(s, a string) (string, error) { return keyring.Get(s, a) }
func (osRing) Set(s, a, v string) error        { return keyring.Set(s, a, v) }
func (osRing) Delete(s, a string) error        { return keyring.Delete(s, a) }

// ringPresent looks before the library does: on Linux that would start a message
// bus where there is none.
func ringPresent() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// Account is the name under which the key of an endpoint is filed: host and
// port, in small letters. Paths do not count, since the whole host sees the key.
func Account(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil, u.Hostname() == "":
		return "", fmt.Errorf("%q is no URL of an endpoint", baseURL)
	case u.User != nil:
		return "", errors.New("credentials do not belong in the URL of the endpoint")
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	default:
		return "", fmt.Errorf("%q is neither an http nor an https URL", baseURL)
	}
	// The scheme counts: a key for https is not sent in the clear.
	return u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port, nil
}

// Get returns the key of the endpoint: [ErrNotFound], [ErrUnavailable], or an
// error of the key ring.
func (s *Store) Get(baseURL string) (string, error) {
	account, err := Account(baseURL)
	if err != nil {
		return "", err
	}
	var key string
	err = s.ask(func() (err error) { key, err = s.ring.Get(service, account); return err })
	if err != nil {
		return "", err
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", ErrNotFound
	}
	return key, nil
}

// Lookup is Get for the loader of the configuration: no key, or no key ring, is
// no error. The source names where the key was.
func (s *Store) Lookup(baseURL string) (key, source string, err error) {
	key, err = s.Get(baseURL)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrUnavailable):
		return "", "", nil
	case err != nil:
		return "", "", err
	}
	account, err := Account(baseURL)
	return key, "key ring " + account, err
}

// Set stores the key of the endpoint, in place of an earlier one.
func (s *Store) Set(baseURL, key string) error {
	account, err := Account(baseURL)
	if err != nil {
		return err
	}
	if key, err = oneLine(key); err != nil {
		return err
	}
	return s.ask(func() error { return s.ring.Set(service, account, key) })
}

// Delete removes the key of the endpoint; that there is none is [ErrNotFound].
func (s *Store) Delete(baseURL string) error {
	account, err := Account(baseURL)
	if err != nil {
		return err
	}
	return s.ask(func() error { return s.ring.Delete(service, account) })
}

// ask does not wait for ever, and words the errors.
func (s *Store) ask(f func() error) error {
	if !s.present() {
		return ErrUnavailable
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case err := <-done:
		switch {
		case errors.Is(err, keyring.ErrNotFound):
			return ErrNotFound
		case errors.Is(err, keyring.ErrUnsupportedPlatform):
			return ErrUnavailable
		case err != nil:
			return fmt.Errorf("key ring: %w", err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: it did not answer within %s; unlock it, or set the key in the environment", ErrUnavailable, s.wait)
	}
}

func oneLine(key string) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return "", errors.New("the key is empty")
	case strings.ContainsAny(key, "\r\n\x00"):
		return "", errors.New("a key is one line")
	}
	return key, nil
}

// WriteFile stores a key in a file that only its owner can read (mode 0600), in
// place of an earlier one, for machines without a key ring: the setting key_file
// names it. Missing folders are made (mode 0700).
func WriteFile(path, key string) error {
	key, err := oneLine(key)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(key + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	return nil
}
