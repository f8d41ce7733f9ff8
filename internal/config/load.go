package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options says where Load looks. The zero value reads the process environment
// and the user's file at its usual place.
type Options struct {
	// Env looks up environment variables; nil means os.LookupEnv.
	Env func(name string) (string, bool)
	// Environ lists the environment as os.Environ does, for remarks on
	// misspelt THINKFLOW_ variables; nil means that there are none.
	Environ []string
	// File is the file named by --config; it must exist. Empty means
	// THINKFLOW_CONFIG (must exist), else the user's file (may be missing).
	File string
	// NoFile reads no file at all.
	NoFile bool
	// Editor holds the editor's settings by key, as JSON decodes them. null
	// means that the key is not set.
	Editor map[string]any
	// Flags holds values of the command line by key, as text.
	Flags map[string]string
	// KeyRing looks up the key of an endpoint, and says where it was; "" = there
	// is none. It is asked only when neither the variable nor the file has a key;
	// nil = there is no key ring.
	KeyRing func(baseURL string) (key, source string, err error)
	// GOOS replaces runtime.GOOS in tests.
	GOOS string
}

// Source says where a value came from.
type Source string

// The sources, from weak to strong. A Source carries its place after a blank:
// "file /home/me/.config/thinkflow/config.toml:3", "environment OPENAI_BASE_URL".
const (
	SourceDefault Source = "default"
	SourceFile    Source = "file"
	SourceEditor  Source = "editor"
	SourceEnv     Source = "environment"
	SourceFlag    Source = "flag"
)

// Loaded is the result of Load.
type Loaded struct {
	Config Config
	// Sources says for each key where its value came from.
	Sources map[string]Source
	// KeySource says where the API key came from; "" when there is none.
	KeySource Source
	// File is the path of the user's file, whether it exists or not.
	File string
	// FileRead reports whether the file exists and was read.
	FileRead bool
	// Warnings are remarks that stop nothing.
	Warnings []string
}

// Error is one thing wrong with a setting: what, where and what to do.
type Error struct {
	Where string // "path:line", "environment X", "flag --x", "editor settings"
	Key   string
	Msg   string
}

func (e *Error) Error() string {
	if e.Key == "" {
		return e.Where + ": " + e.Msg
	}
	return e.Where + ": " + e.Key + ": " + e.Msg
}

// Defaults is the configuration without file, environment, editor and flags.
func Defaults() Config {
	var c Config
	for _, k := range Keys() {
		if k.Default == "" {
			continue
		}
		if err := setText(&c, k, k.Default); err != nil {
			panic("config: default of " + k.Name + ": " + err.Error()) // a test loads every default
		}
	}
	return c
}

// Load reads all sources. The error joins every *Error that was found; what was
// read without error is set all the same, so that an editor's server can go on.
func Load(o Options) (*Loaded, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.GOOS == "" {
		o.GOOS = runtime.GOOS
	}
	l := &loader{o: o, keys: Keys(), out: &Loaded{Config: Defaults(), Sources: map[string]Source{}}}
	for _, k := range l.keys {
		l.out.Sources[k.Name] = SourceDefault
	}
	l.file()
	l.editor()
	l.environment()
	l.flags()
	l.check()
	l.key()
	return l.out, errors.Join(l.errs...)
}

type loader struct {
	o    Options
	keys []Key
	out  *Loaded
	errs []error
}

func (l *loader) fail(where, key, format string, args ...any) {
	l.errs = append(l.errs, &Error{Where: where, Key: key, Msg: fmt.Sprintf(format, args...)})
}

// env is the value of a variable; an empty one counts as absent.
func (l *loader) env(name string) string {
	v, _ := l.o.Env(name)
	return v
}

func (l *loader) find(name string) (Key, bool) {
	i := slices.IndexFunc(l.keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return l.keys[i], true
}

func (l *loader) store(k Key, v any, where string, src Source) {
	if err := set(&l.out.Config, k, v); err != nil {
		l.fail(where, k.Name, "%v", err)
		return
	}
	l.out.Sources[k.Name] = src
}

func (l *loader) unknown(where, name string) {
	switch strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name)) {
	case "key", "apikey", "openaiapikey", "token":
		l.fail(where, name, "keys do not belong here; set the variable %s, or key_file to a file with mode 0600", "OPENAI_API_KEY")
		return
	}
	if n := nearest(name, l.keys); n != "" {
		l.fail(where, name, "unknown key; did you mean %s?", n)
		return
	}
	l.fail(where, name, "unknown key; `thinkflow config` lists all keys")
}

// DefaultFile is the path of the user's file: thinkflow/config.toml in
// $XDG_CONFIG_HOME if that is set, else in the configuration folder of the
// operating system (~/.config, ~/Library/Application Support, %AppData%).
func DefaultFile(env func(string) (string, bool), goos string) (string, error) {
	get := func(name string) string { v, _ := env(name); return v }
	dir := get("XDG_CONFIG_HOME")
	if filepath.IsAbs(dir) { // the XDG specification: relative paths are ignored
		return filepath.Join(dir, "thinkflow", "config.toml"), nil
	}
	home := get("HOME")
	switch goos {
	case "windows":
		if dir = get("AppData"); dir == "" {
			dir = get("APPDATA")
		}
	case "darwin", "ios":
		if home != "" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	default:
		dir = ""
		if home != "" {
			dir = filepath.Join(home, ".config")
		}
	}
	if dir == "" {
		return "", errors.New("no home folder: set HOME or THINKFLOW_CONFIG")
	}
	return filepath.Join(dir, "thinkflow", "config.toml"), nil
}

func (l *loader) file() {
	if l.o.NoFile {
		return
	}
	path, must := l.o.File, true
	asked := "--config"
	if path == "" {
		path, asked = l.env("THINKFLOW_CONFIG"), "environment THINKFLOW_CONFIG"
	}
	if path == "" {
		var err error
		if path, err = DefaultFile(l.o.Env, l.o.GOOS); err != nil {
			return // no home, no file: that is fine
		}
		must = false
	}
	l.out.File = path
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return
	}
	if err != nil {
		if must {
			l.fail(asked, "", "cannot read the configuration: %v", err)
		} else {
			l.fail(path, "", "cannot read the configuration: %v", errors.Unwrap(err))
		}
		return
	}
	values, lines, err := parseFile(path, data)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	l.out.FileRead = true
	for _, name := range sortedByLine(values, lines) {
		where := fmt.Sprintf("%s:%d", path, lines[name])
		k, ok := l.find(name)
		if !ok {
			l.unknown(where, name)
			continue
		}
		l.store(k, values[name], where, SourceFile+Source(" "+where))
	}
}

func (l *loader) editor() {
	for _, name := range slices.Sorted(maps.Keys(l.o.Editor)) {
		v := l.o.Editor[name]
		if v == nil {
			continue
		}
		k, ok := l.find(name)
		if !ok {
			l.unknown("editor settings", name)
			continue
		}
		l.store(k, v, "editor settings", SourceEditor)
	}
}

func (l *loader) environment() {
	known := map[string]bool{"THINKFLOW_CONFIG": true}
	names := []string{"THINKFLOW_CONFIG"}
	for _, k := range l.keys {
		done := false
		for _, name := range k.Env {
			known[name] = true
			names = append(names, name)
			v := l.env(name)
			if v == "" || done {
				continue
			}
			done = true
			where := "environment " + name
			if err := setText(&l.out.Config, k, v); err != nil {
				l.fail(where, "", "%v", err)
				continue
			}
			l.out.Sources[k.Name] = Source(where)
		}
	}
	for _, kv := range l.o.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "THINKFLOW_") || known[name] {
			continue
		}
		best, dist := "", 4
		for _, n := range names {
			if d := distance(name, n); d < dist {
				best, dist = n, d
			}
		}
		if best != "" {
			l.out.Warnings = append(l.out.Warnings, fmt.Sprintf("environment %s: unknown variable; did you mean %s?", name, best))
		}
	}
}

func (l *loader) flags() {
	for _, name := range slices.Sorted(maps.Keys(l.o.Flags)) {
		where := "flag --" + strings.ReplaceAll(name, "_", "-")
		k, ok := l.find(name)
		if !ok {
			l.unknown(where, name)
			continue
		}
		if err := setText(&l.out.Config, k, l.o.Flags[name]); err != nil {
			l.fail(where, "", "%v", err)
			continue
		}
		l.out.Sources[name] = Source(where)
	}
}

// where names the place of a key's value for an error message.
func (l *loader) where(key string) string {
	return strings.TrimPrefix(string(l.out.Sources[key]), "file ")
}

func (l *loader) check() {
	c := &l.out.Config
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		l.fail(l.where("base_url"), "base_url", "expected a URL like https://host/v1 or http://localhost:11434/v1")
	case u.User != nil:
		l.fail(l.where("base_url"), "base_url", "credentials do not belong in the URL; use key_env or key_file")
	case u.RawQuery != "" || u.Fragment != "":
		l.fail(l.where("base_url"), "base_url", "must end with its path; queries and fragments are not supported")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		value := c.Headers[name]
		if secretHeader(name) && value != "" && !strings.Contains(value, "${") {
			l.fail(l.where("headers"), "headers."+name, "secrets do not belong here; write ${NAME} and set that environment variable")
			delete(c.Headers, name)
			continue
		}
		c.Headers[name] = os.Expand(keepDollars(value), func(v string) string {
			if v == "$" {
				return "$"
			}
			got, ok := l.o.Env(v)
			if !ok {
				l.fail(l.where("headers"), "headers."+name, "the environment variable %s is not set", v)
			}
			c.secrets = append(c.secrets, got)
			return got
		})
	}
}

// keepDollars doubles every dollar sign that does not begin ${NAME}, so that
// os.Expand leaves it alone.
func keepDollars(s string) string {
	parts := strings.Split(s, "$")
	for i := range parts[1:] {
		if !strings.HasPrefix(parts[i+1], "{") {
			parts[i+1] = "$" + parts[i+1]
		}
	}
	return strings.Join(parts, "$")
}

func secretHeader(name string) bool {
	n := strings.ToLower(name)
	for _, word := range []string{"authorization", "api-key", "apikey", "token", "secret", "cookie"} {
		if strings.Contains(n, word) {
			return true
		}
	}
	return false
}

// key resolves the API key: the variable that key_env names, else key_file, else
// the key ring.
func (l *loader) key() {
	c := &l.out.Config
	if v := strings.TrimSpace(l.env(c.KeyEnv)); v != "" {
		c.APIKey, l.out.KeySource = NewSecret(v), Source("environment "+c.KeyEnv)
		return
	}
	if c.KeyFile == "" {
		l.keyRing()
		return
	}
	path := c.KeyFile
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(l.env("HOME"), rest)
	}
	c.keyPath = path
	info, err := os.Stat(path)
	if err != nil {
		l.fail(l.where("key_file"), "key_file", "cannot read the key: %v", err)
		return
	}
	if l.o.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		l.fail(l.where("key_file"), "key_file", "others can read %s (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.fail(l.where("key_file"), "key_file", "cannot read the key: %v", err)
		return
	}
	v := strings.TrimSpace(string(data))
	if v == "" || strings.ContainsAny(v, "\r\n") {
		l.fail(l.where("key_file"), "key_file", "%s must hold the key and nothing else", path)
		return
	}
	c.APIKey, l.out.KeySource = NewSecret(v), Source("file "+path)
}

// keyRing takes the key that is filed under the endpoint.
func (l *loader) keyRing() {
	if l.o.KeyRing == nil || len(l.errs) > 0 {
		return
	}
	key, source, err := l.o.KeyRing(l.out.Config.BaseURL)
	if err != nil {
		l.out.Warnings = append(l.out.Warnings, err.Error())
		return
	}
	if key != "" {
		l.out.Config.APIKey, l.out.KeySource = NewSecret(key), Source(source)
	}
}

// Value is the key's value in c as one would write it, for display. Values of
// headers and of extra_body are not shown.
func (k Key) Value(c *Config) string {
	f := reflect.ValueOf(c).Elem().Field(k.field)
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return ""
		}
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.Map:
		names := make([]string, 0, f.Len())
		for _, n := range f.MapKeys() {
			names = append(names, n.String())
		}
		slices.Sort(names)
		for i, n := range names {
			names[i] = n + " = (set)"
		}
		return strings.Join(names, ", ")
	case reflect.Slice:
		var s []string
		for i := range f.Len() {
			s = append(s, f.Index(i).String())
		}
		return strings.Join(s, ", ")
	}
	if d, ok := f.Interface().(time.Duration); ok {
		s := d.String()
		s = strings.TrimSuffix(s, "0s") // 2m0s is 2m, 1h0m0s is 1h
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		if s == "" || s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
			s = d.String()
		}
		return s
	}
	return fmt.Sprint(f.Interface())
}
