//go:build unix

package ledger

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Folders that may not be written are clear errors. The superuser may write
// everywhere, so the child becomes nobody first.
func TestReadOnlyFolders(t *testing.T) {
	base := t.TempDir()
	for dir := base; dir != filepath.Dir(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o005 != 0o005 {
			_ = os.Chmod(dir, fi.Mode().Perm()|0o055)
		}
	}
	const nobody = 65534
	root := os.Getuid() == 0
	own := func(path string) {
		if root {
			must(t, filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Chown(p, nobody, nobody)
			}))
		}
	}
	existing := filepath.Join(base, "existing")
	filled(t, existing, 2)
	own(existing)
	must(t, os.Chmod(existing, 0o500))
	file := filepath.Join(base, "file")
	filled(t, file, 2)
	must(t, os.RemoveAll(filepath.Join(file, ownersDir)))
	own(file)
	must(t, os.Chmod(filepath.Join(file, fileName), 0o400))
	parent := filepath.Join(base, "parent")
	must(t, os.Mkdir(parent, 0o555))
	own(parent)
	t.Cleanup(func() {
		_ = os.Chmod(existing, 0o700)
		_ = os.Chmod(parent, 0o700)
	})
	for _, c := range []struct{ name, dir, path string }{
		{"a folder that cannot be made", filepath.Join(parent, "new"), filepath.Join(parent, "new")},
		{"a ledger in a folder without the right to write", existing, existing},
		{"a file without the right to write", file, filepath.Join(file, fileName)},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+`={"Do":"readonly","Dir":"`+c.dir+`"}`)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines := bufio.NewScanner(out)
			var all []string
			for lines.Scan() {
				all = append(all, lines.Text())
			}
			must(t, cmd.Wait())
			text := strings.Join(all, "\n")
			if !strings.HasPrefix(text, "REFUSED") || !strings.Contains(text, c.path) || !strings.Contains(text, "permission") || !strings.Contains(text, EnvStateDir) {
				t.Errorf("got %q", text)
			}
		})
	}
}

// becomeNobody gives up the rights of the superuser.
func becomeNobody() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := syscall.Setgid(65534); err != nil {
		return err
	}
	return syscall.Setuid(65534)
}
