package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// markName is the variable by which a command's processes are known.
const markName = "THINKFLOW_SANDBOX"

// plan is a checked spec: real paths, existing and sorted.
type plan struct {
	spec   Spec
	argv   []string
	dir    string
	roots  []string // links resolved, none inside another
	guard  []string // existing paths inside roots that stay read-only
	carve  []string // those of them that lie in no folder that must be writable
	hidden []string
	temp   string // private temporary folder
	cache  string
	env    []string
	mark   string // markName=value
	before stock
}

func newPlan(spec Spec, t tools) (*plan, error) {
	p := &plan{spec: spec}
	if len(spec.Roots) == 0 {
		return nil, errors.New("sandbox: no folder may be written: name at least one root")
	}
	for _, r := range spec.Roots {
		real, err := realDir(r)
		if err != nil {
			return nil, fmt.Errorf("sandbox: root %s: %w", r, err)
		}
		if filepath.Dir(real) == real {
			return nil, fmt.Errorf("sandbox: root %s is a whole file system; open a folder in it", r)
		}
		p.roots = append(p.roots, real)
	}
	p.roots = outermost(p.roots)

	p.dir = p.roots[0]
	if real, err := realDir(spec.Roots[0]); err == nil {
		p.dir = real
	}
	if spec.Dir != "" {
		real, err := realDir(spec.Dir)
		if err != nil {
			return nil, fmt.Errorf("sandbox: folder %s: %w", spec.Dir, err)
		}
		p.dir = real
	}
	p.argv = append(slices.Clone(spec.Shell), spec.Line)
	if len(spec.Shell) == 0 {
		p.argv = append(slices.Clone(t.shell), spec.Line)
	}

	var err error
	if p.before, err = takeStock(p); err != nil {
		return nil, err
	}
	for _, h := range slices.Concat(spec.Hidden, p.before.hide) {
		if real, err := filepath.EvalSymlinks(h); err == nil {
			p.hidden = append(p.hidden, real)
		}
	}
	p.hidden = outermost(p.hidden)
	p.guard = p.guarded(func(entry) bool { return true })
	p.carve = p.guarded(func(e entry) bool { return e.in == "" })

	if spec.Cache != "" {
		if err := os.MkdirAll(spec.Cache, 0o700); err != nil {
			return nil, fmt.Errorf("sandbox: cache folder: %w", err)
		}
		if p.cache, err = realDir(spec.Cache); err != nil {
			return nil, fmt.Errorf("sandbox: cache folder %s: %w", spec.Cache, err)
		}
	}
	if p.temp, err = os.MkdirTemp("", "thinkflow-tmp-"); err != nil {
		return nil, fmt.Errorf("sandbox: temporary folder: %w", err)
	}
	if p.temp, err = filepath.EvalSymlinks(p.temp); err != nil {
		return nil, fmt.Errorf("sandbox: temporary folder: %w", err)
	}
	p.mark = markName + "=" + rand.Text()
	p.env = p.environment(p.temp)
	return p, nil
}

// guarded lists what exists in the roots and must not be changed, as far as
// wanted: the real paths, and for links also what they lead to inside a root.
func (p *plan) guarded(want func(entry) bool) []string {
	var out []string
	add := func(path string) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return // a dangling link: compared afterwards
		}
		for _, r := range p.roots {
			if real != r && inside(r, real) {
				out = append(out, real)
			}
		}
	}
	for path, e := range p.before.entries {
		if e.guard && want(e) {
			add(path)
		}
	}
	for _, path := range p.spec.ReadOnly {
		add(path)
	}
	return outermost(out)
}

// environment is Spec.Env with the temporary folder, the caches, what keeps git
// from repositories in disguise, and a PATH that has absolute entries only: "." or an empty entry would let the workspace stand
// in for any program.
func (p *plan) environment(temp string) []string {
	set := map[string]string{
		"TMPDIR": temp, "TEMP": temp, "TMP": temp,
		// A folder with files named HEAD, config, objects and refs is a repository
		// to git, whose configuration names programs to run. None of these names
		// is protected; so only what is given as a repository counts as one.
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit",
	}
	if p.cache != "" {
		set["XDG_CACHE_HOME"] = p.cache
		set["GOCACHE"] = filepath.Join(p.cache, "go-build")
		set["npm_config_cache"] = filepath.Join(p.cache, "npm")
		set["PIP_CACHE_DIR"] = filepath.Join(p.cache, "pip")
		set["UV_CACHE_DIR"] = filepath.Join(p.cache, "uv")
	}
	env := []string{p.mark}
	for _, kv := range p.spec.Env {
		name, value, ok := strings.Cut(kv, "=")
		if _, ours := set[name]; !ok || ours || name == markName {
			continue
		}
		if name == "PATH" {
			kv = "PATH=" + absolutePath(value)
		}
		env = append(env, kv)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// absolutePath drops the entries of a PATH that are not absolute.
func absolutePath(path string) string {
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator))
}

func realDir(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errors.New("the path is not absolute")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", errors.New("this is not a folder")
	}
	return real, nil
}

// inside reports whether path is dir or lies in it; both are clean.
func inside(dir, path string) bool {
	if dir == path {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// outermost sorts the paths and drops those that lie in another one.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var out []string
	for _, p := range slices.Compact(paths) {
		if !slices.ContainsFunc(out, func(o string) bool { return inside(o, p) }) {
			out = append(out, p)
		}
	}
	return out
}

// compact sorts the paths and drops repeated ones.
func compact(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
