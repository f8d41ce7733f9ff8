package workspace

import (
	"fmt"
	"io/fs"
	"strings"
)

// PatchFile is one file of a patch. From and To are paths with '/'; "" = the
// file is not there on that side.
type PatchFile struct {
	From, To      string
	Before, After string
	Mode          fs.FileMode // of the file that there is; 0 = 0644
}

// Patch renders files as a patch that `git apply` takes.
func Patch(files ...PatchFile) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.patch())
	}
	return b.String()
}

func (f PatchFile) patch() string {
	from, to := f.From, f.To
	if from == "" {
		from = to
	}
	if to == "" {
		to = from
	}
	mode := "100644"
	if f.Mode&0o111 != 0 {
		mode = "100755"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", quoteGit("a/"+from), quoteGit("b/"+to))
	switch {
	case f.From == "":
		fmt.Fprintf(&b, "new file mode %s\n", mode)
	case f.To == "":
		fmt.Fprintf(&b, "deleted file mode %s\n", mode)
	case from != to:
		fmt.Fprintf(&b, "rename from %s\nrename to %s\n", quoteGit(from), quoteGit(to))
	case f.Before == f.After:
		return ""
	}
	if f.Before == f.After {
		return b.String()
	}
	side := func(prefix, path string) string {
		if path == "" {
			return "/dev/null"
		}
		name := quoteGit(prefix + path)
		if strings.Contains(name, " ") {
			name += "\t" // where the name ends
		}
		return name
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", side("a/", f.From), side("b/", f.To))
	b.WriteString(unified(f.Before, DiffText(f.Before, f.After), 0))
	return b.String()
}

// quoteGit quotes a path the way git does, where it must.
func quoteGit(path string) string {
	plain := strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) < 0
	if plain {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
