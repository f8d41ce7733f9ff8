package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// foundPath is what resolveLinks found.
type foundPath struct {
	path   string // without links, but for a last component not to be followed
	exists bool
	mode   fs.FileMode // by lstat; 0 when it does not exist
}

// maxLinks is how many symbolic links one path may go through.
const maxLinks = 40

// resolveLinks walks from base, which has no links, along the components and
// follows links by their text, so that the end of a dangling one is known too.
func resolveLinks(base string, parts []string, followLast bool, shown string) (foundPath, *Refusal) {
	cur := foundPath{path: base, exists: true, mode: fs.ModeDir}
	links := 0
	for len(parts) > 0 {
		c := parts[0]
		parts = parts[1:]
		if c == ".." {
			cur.path = filepath.Dir(cur.path)
			cur.mode = fs.ModeDir
			continue
		}
		next := filepath.Join(cur.path, c)
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			for _, p := range parts {
				if p == ".." {
					return cur, refuse(CodeOutside, shown, "this leads through a symbolic link to a folder that does not exist")
				}
			}
			return foundPath{path: filepath.Join(append([]string{next}, parts...)...)}, nil
		case err != nil && !cur.mode.IsDir():
			return cur, refuse(CodeNotFound, shown, "%s is a file, not a folder", filepath.Base(cur.path))
		case err != nil:
			return cur, &Refusal{Code: CodeIO, Path: shown, Message: "cannot look at " + next + ": " + plainError(err), Err: err}
		}
		if fi.Mode()&fs.ModeSymlink == 0 || len(parts) == 0 && !followLast {
			cur.path, cur.mode = next, fi.Mode()
			continue
		}
		if links++; links > maxLinks {
			return cur, refuse(CodeBadPath, shown, "more than %d symbolic links; they probably form a circle", maxLinks)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return cur, &Refusal{Code: CodeIO, Path: shown, Message: "cannot read the link " + next + ": " + plainError(err), Err: err}
		}
		to = filepath.ToSlash(to)
		if filepath.IsAbs(to) {
			vol := filepath.VolumeName(to)
			cur.path, cur.mode = vol+string(filepath.Separator), fs.ModeDir
			to = to[len(vol):]
		}
		parts = append(splitRel(to), parts...)
	}
	return cur, nil
}

// insideGitDir reports whether the path is in (or is) a git directory that does
// not carry its usual name: the target of a `.git` file (worktrees, submodules,
// --separate-git-dir), or a folder that has the shape of one.
func insideGitDir(rootReal, rel string) bool {
	parts := splitRel(rel)
	dir := rootReal
	full := filepath.Join(rootReal, filepath.FromSlash(rel))
	for i := 0; ; i++ {
		if g := linkedGitDir(dir); g != "" {
			if _, ok := within(g, full); ok && g != rootReal {
				return true
			}
		}
		if i >= len(parts) {
			return false
		}
		dir = filepath.Join(dir, parts[i])
		if looksLikeGitDir(dir) {
			return true
		}
	}
}

// linkedGitDir reads a `.git` file in dir and returns the real folder it names.
func linkedGitDir(dir string) string {
	file := filepath.Join(dir, ".git")
	fi, err := os.Lstat(file)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxPath {
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if !ok {
		return ""
	}
	to = strings.TrimSpace(to)
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	if real, err := filepath.EvalSymlinks(to); err == nil {
		return real
	}
	return filepath.Clean(to)
}

// looksLikeGitDir applies git's own test: HEAD, objects and refs; a linked
// worktree's folder has commondir instead of the latter two.
func looksLikeGitDir(dir string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir") && has("gitdir"))
}

// plainError is the reason of an error without path and call.
func plainError(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return err.Error()
}
