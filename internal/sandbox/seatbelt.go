package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
)

// profile is the text of a sandbox profile. The last rule that fits decides.
func profile(p *plan) string {
	var b strings.Builder
	rule := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	rule("(version 1)")
	rule("(allow default)")
	rule("(deny file-write*)")
	rule(`(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))`)
	for _, dir := range append(append([]string{}, p.roots...), p.temp, p.cache) {
		if dir != "" {
			rule("(allow file-write* (subpath %s))", quoteScheme(dir))
		}
	}
	for _, g := range p.guard {
		rule("(deny file-write* (subpath %s))", quoteScheme(g))
	}
	for _, w := range p.spec.Watch {
		rule("(deny file-write* (subpath %s))", quoteScheme(filepath.Clean(w)))
	}
	// Renaming a folder above a guarded path would move it out of its rule.
	for _, dir := range waysTo(p) {
		rule("(deny file-write-unlink (literal %s))", quoteScheme(dir))
	}
	for _, h := range p.hidden {
		rule("(deny file-read* file-write* (subpath %s))", quoteScheme(h))
	}
	if !p.spec.Grants.Net {
		rule("(deny network*)")
	} else {
		rule(`(deny network-outbound (subpath "/"))`) // sockets of local services
		rule(`(allow network-outbound (literal "/private/var/run/mDNSResponder"))`)
	}
	rule("(deny signal (target others))")
	rule("(deny appleevent-send)")
	return b.String()
}

// waysTo lists the folders of the roots that lie above a guarded path.
func waysTo(p *plan) []string {
	var out []string
	for _, g := range p.guard {
		for _, r := range p.roots {
			for dir := filepath.Dir(g); dir != r && inside(r, dir); dir = filepath.Dir(dir) {
				out = append(out, dir)
			}
		}
	}
	return compact(out)
}

// quoteScheme is a string literal of the profile language.
func quoteScheme(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
