package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Kind is what content would be used as.
type Kind string

// The kinds.
const (
	Rules    Kind = "rules"    // text that becomes part of the prompt
	Skill    Kind = "skill"    // instructions and programs that the model may take up
	Workflow Kind = "workflow" // a task with steps
	MCP      Kind = "mcp"      // the definition of an MCP server: a program that is started
	Verify   Kind = "verify"   // a command that is run after changes
)

func (k Kind) valid() bool {
	return slices.Contains([]Kind{Rules, Skill, Workflow, MCP, Verify}, k)
}

// State is the answer for one content.
type State string

// The states. Only Trusted allows anything.
const (
	Unknown State = "unknown" // never asked
	Changed State = "changed" // other content of this path was trusted; ask again
	Refused State = "refused" // a person said no to exactly this; do not ask again
	Trusted State = "trusted"
)

// Entry is one answer.
type Entry struct {
	Kind Kind      `json:"kind"`
	Path string    `json:"path"` // real and absolute
	Hash string    `json:"hash"` // sha256 of the content, hex
	No   bool      `json:"no,omitempty"`
	At   time.Time `json:"at"`
}

// Store is the file of answers. It is safe for concurrent use, also by several
// processes.
type Store struct {
	file string
	now  func() time.Time

	mu sync.Mutex // serialises access to the file within the process
}

// fileName is the store in the state folder.
const fileName = "trust.json"

// version of the file's format.
const version = 1

type document struct {
	Version int     `json:"version"`
	Entries []Entry `json:"entries"`
}

// Open uses the store in the user's state folder, which need not exist. now may
// be nil.
func Open(stateDir string, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{file: filepath.Join(stateDir, fileName), now: now}
}

// File is the path of the store.
func (s *Store) File() string { return s.file }

// Hash is the hash of content as the store wants it. Content of several files
// (a skill) is given piece by piece, names too, in a fixed order.
func Hash(content ...string) string {
	h := sha256.New()
	for _, c := range content {
		if len(content) > 1 {
			fmt.Fprintf(h, "%d\n", len(c))
		}
		h.Write([]byte(c))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Trusted says whether content with the hash may be used as the kind. The path
// is absolute; links are resolved. An error comes with Unknown.
func (s *Store) Trusted(kind Kind, path, hash string) (State, error) {
	path, err := check(kind, path, hash)
	if err != nil {
		return Unknown, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := s.read()
	if err != nil {
		return Unknown, err
	}
	state := Unknown
	for _, e := range doc.Entries {
		switch {
		case e.Kind != kind || e.Path != path:
		case e.Hash == hash && e.No:
			return Refused, nil
		case e.Hash == hash:
			return Trusted, nil
		case !e.No:
			state = Changed
		}
	}
	return state, nil
}

// Grant trusts exactly this content, in place of what was trusted at the path
// before.
func (s *Store) Grant(kind Kind, path, hash string) error { return s.put(kind, path, hash, false) }

// Refuse remembers a no to exactly this content; what was trusted at the path
// before stays trusted, should it come back.
func (s *Store) Refuse(kind Kind, path, hash string) error { return s.put(kind, path, hash, true) }

func (s *Store) put(kind Kind, path, hash string, no bool) error {
	path, err := check(kind, path, hash)
	if err != nil {
		return err
	}
	return s.change(func(doc *document) {
		doc.Entries = slices.DeleteFunc(doc.Entries, func(e Entry) bool {
			return e.Kind == kind && e.Path == path && (e.Hash == hash || e.No == no)
		})
		doc.Entries = append(doc.Entries, Entry{kind, path, hash, no, s.now().UTC().Truncate(time.Second)})
	})
}

// Revoke forgets every answer for the path, of one kind or, with kind "", of
// all. It reports how many there were.
func (s *Store) Revoke(kind Kind, path string) (int, error) {
	path, err := realPath(path)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.change(func(doc *document) {
		before := len(doc.Entries)
		doc.Entries = slices.DeleteFunc(doc.Entries, func(e Entry) bool {
			return e.Path == path && (kind == "" || e.Kind == kind)
		})
		n = before - len(doc.Entries)
	})
	return n, err
}

// List returns every answer, by path and kind.
func (s *Store) List() ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := s.read()
	slices.SortFunc(doc.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), a.At.Compare(b.At))
	})
	return doc.Entries, err
}

func check(kind Kind, path, hash string) (string, error) {
	if !kind.valid() {
		return "", fmt.Errorf("trust: unknown kind %q", kind)
	}
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("trust: %q is not the hash of any content", hash)
	}
	return realPath(path)
}

// realPath resolves links; a path that is gone is taken as it is, so that its
// answers can be revoked.
func realPath(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("trust: %q is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Clean(path), nil
	}
	if err != nil {
		return "", fmt.Errorf("trust: %w", err)
	}
	return real, nil
}

// read takes the file as it is; a missing one is empty.
func (s *Store) read() (document, error) {
	fi, err := os.Lstat(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return document{Version: version}, nil
	}
	if err != nil {
		return document{}, fmt.Errorf("trust: %w", err)
	}
	if err := believable(s.file, fi); err != nil {
		return document{}, err
	}
	data, err := os.ReadFile(s.file)
	if err != nil {
		return document{}, fmt.Errorf("trust: %w", err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return document{}, fmt.Errorf("trust: %s is damaged (%v); nothing is trusted until it is removed", s.file, err)
	}
	if doc.Version != version {
		return document{}, fmt.Errorf("trust: %s has version %d, and this program knows %d; nothing in it is trusted", s.file, doc.Version, version)
	}
	return doc, nil
}

// change rewrites the file under a lock, atomically.
func (s *Store) change(f func(*document)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Dir(s.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	lock := flock.New(s.file + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("trust: lock: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	doc, err := s.read()
	if err != nil {
		return err
	}
	f(&doc)
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	tmp, err := os.CreateTemp(dir, fileName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), s.file)
	}
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	return nil
}
