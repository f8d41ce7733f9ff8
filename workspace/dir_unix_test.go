//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenPerComponent: where the kernel cannot refuse links by itself, every
// component is opened without following one, and what is no link opens alike.
func TestOpenPerComponent(t *testing.T) {
	dir, err := filepath.EvalSymlinks(tree(t, map[string]string{"a/b/c.txt": "text", "outside/secret": "s"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "a", "a/up": "../outside", "a/b/last": "c.txt", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, opens := range map[string]bool{
		"a/b/c.txt": true, "a/b": true, "": true, "link/b/c.txt": false, "a/up/secret": false, "a/b/last": false, "loop": false, "a/none": false, "a/b/c.txt/x": false,
	} {
		abs := filepath.Join(dir, filepath.FromSlash(name))
		for way, open := range map[string]func(string, int) (int, error){"per component": openPerComponent, "as ever": openNoFollow} {
			fd, err := open(abs, unix.O_RDONLY)
			if (err == nil) != opens {
				t.Errorf("%s, %s: %v, want it opened: %v", name, way, err, opens)
			}
			if err == nil {
				unix.Close(fd)
			}
		}
	}
	fd, err := openPerComponent("/", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}
