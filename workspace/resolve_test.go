package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveRefusals(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a", "sub/b.txt": "b", "vendor/.git": "gitdir: ../meta\n", "meta/config": "", "other/HEAD": "", "other/objects/": "", "other/refs/": "",
		"wt/HEAD": "", "wt/commondir": "", "wt/gitdir": ""})
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", filepath.Join(dir, "notgit")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{Deny: []string{"*.secret", "/private/"}})
	for path, code := range map[string]Code{
		"":                                CodeBadPath,
		"a\nb":                            CodeBadPath,
		"a\x00b":                          CodeBadPath,
		"a\u0085b":                        CodeBadPath,
		"a\u2028b":                        CodeBadPath,
		"a\xff":                           CodeBadPath,
		strings.Repeat("a/", 3000):        CodeBadPath,
		"src\\main.go":                    CodeBadPath,
		"C:/x":                            CodeBadPath,
		"c:x":                             CodeBadPath,
		"\\\\host\\share":                 CodeBadPath,
		"file:///etc/passwd":              CodeBadPath,
		"http://x/y":                      CodeBadPath,
		"a.txt:stream":                    CodeBadPath,
		"a.":                              CodeBadPath,
		"sub./b.txt":                      CodeBadPath,
		"sub /b.txt":                      CodeBadPath,
		"sub\u00a0/b.txt":                 CodeBadPath,
		"a...":                            CodeBadPath,
		"~":                               CodeOutside,
		"~root/x":                         CodeOutside,
		"..":                              CodeOutside,
		"../" + filepath.Base(dir) + "/x": CodeOutside,
		"sub/../../x":                     CodeOutside,
		"/":                               CodeOutside,
		"/etc/passwd":                     CodeOutside,
		dir + "x":                         CodeOutside,
		dir + "/../x":                     CodeOutside,
		"a.txt/x":                         CodeNotFound,
		"loop/x":                          CodeBadPath,
		"notgit/config":                   CodeForbidden,
		"sub/.GIT/x":                      CodeForbidden,
		".hg/hgrc":                        CodeForbidden,
		".SVN":                            CodeForbidden,
		".ſvn/x":                          CodeForbidden,
		".git.":                           CodeForbidden,
		".git...":                         CodeForbidden,
		".git \u00a0":                     CodeForbidden,
		".git:x":                          CodeForbidden,
		".g\u200dit":                      CodeForbidden,
		"\ufeff.git/x":                    CodeForbidden,
		".gi\u00adt":                      CodeForbidden,
		".ｇｉｔ/config":                     CodeForbidden,
		"git~1":                           CodeForbidden,
		"GIT~22/x":                        CodeForbidden,
		"VSCODE~1/settings.json":          CodeForbidden,
		".vs\u200bcode/settings.json":     CodeBadPath,
		".e\u200bnv":                      CodeBadPath,
		"private\u200b/x":                 CodeBadPath,
		"vendor/.git":                     CodeForbidden,
		"other/config":                    CodeForbidden,
		"wt/x":                            CodeForbidden,
		"x.secret":                        CodeDenied,
		"X.SECRET":                        CodeDenied,
		"x.secret/y":                      CodeDenied,
		"private/x/y":                     CodeDenied,
		"sub/../Private/x":                CodeDenied,
	} {
		for _, access := range []Access{AccessRead, AccessWrite, AccessCreate, AccessDelete} {
			target, err := w.Resolve(path, access)
			if r, ok := AsRefusal(err); !ok || r.Code != code {
				t.Errorf("%q: %+v, %v; want %s", path, target, err, code)
			} else if strings.ContainsAny(r.Error(), "\n\x00") {
				t.Errorf("%q: the message holds it raw: %q", path, r.Error())
			}
		}
	}
}

func TestResolveAccepts(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a", "src/x/y.go": ""})
	if err := os.Symlink("src", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "src/missing.go"), filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, dir, Options{Protected: []string{"/deploy/**"}})
	for _, row := range []struct {
		path, display     string
		exists, protected bool
		secret            bool
	}{
		{path: "a.txt", display: "a.txt", exists: true},
		{path: "./src//x/./y.go", display: "src/x/y.go", exists: true},
		{path: "nothing/../a.txt", display: "a.txt", exists: true},
		{path: dir + "/a.txt", display: "a.txt", exists: true},
		{path: ".", display: ".", exists: true},
		{path: "new/deep/file", display: "new/deep/file"},
		{path: "s/x/y.go", display: "src/x/y.go", exists: true},
		{path: "s/new.go", display: "src/new.go"},
		{path: "dangling", display: "src/missing.go"},
		{path: "secrets%2fa", display: "secrets%2fa"},
		{path: "a b#c?d.txt", display: "a b#c?d.txt"},
		{path: "ü/日.md", display: "ü/日.md"},
		{path: "👩\u200d💻.md", display: `\U0001f469\u200d\U0001f4bb.md`},
		{path: "~backup", display: "~backup"},
		{path: "x~", display: "x~"},
		{path: "report~1.txt", display: "report~1.txt"},
		{path: ".gitignore", display: ".gitignore"},
		{path: ".github/ISSUE_TEMPLATE.md", display: ".github/ISSUE_TEMPLATE.md"},
		{path: "git/config", display: "git/config"},
		{path: ".git-blame-ignore-revs", display: ".git-blame-ignore-revs"},
		{path: "..a/b", display: "..a/b"},
		{path: ".vscode/tasks.json", display: ".vscode/tasks.json", protected: true},
		{path: "sub/.VSCode/x", display: "sub/.VSCode/x", protected: true},
		{path: ".vscode", display: ".vscode", protected: true},
		{path: ".github/workflows/x.yml", display: ".github/workflows/x.yml", protected: true},
		{path: "pkg/.github/workflows/x.yml", display: "pkg/.github/workflows/x.yml", protected: true},
		{path: "AGENTS.md", display: "AGENTS.md", protected: true},
		{path: "docs/claude.md", display: "docs/claude.md", protected: true},
		{path: "docs/agent.md", display: "docs/agent.md"},
		{path: ".cursor/rules/x.mdc", display: ".cursor/rules/x.mdc", protected: true},
		{path: "x/.npmrc", display: "x/.npmrc", protected: true},
		{path: ".bashrc", display: ".bashrc", protected: true},
		{path: ".thinkflow/config.toml", display: ".thinkflow/config.toml", protected: true},
		{path: "deploy/x/y", display: "deploy/x/y", protected: true},
		{path: ".envrc", display: ".envrc", protected: true, secret: true},
		{path: ".env", display: ".env", secret: true},
		{path: "a/.ENV.production", display: "a/.ENV.production", secret: true},
		{path: ".env.example", display: ".env.example"},
		{path: "certs/server.key", display: "certs/server.key", secret: true},
		{path: ".ssh/config", display: ".ssh/config", secret: true, protected: true},
		{path: "home/.aws/credentials", display: "home/.aws/credentials", secret: true},
		{path: "keys/id_rsa", display: "keys/id_rsa", secret: true},
		{path: "keys/id_rsa.pub", display: "keys/id_rsa.pub"},
		{path: "environment.go", display: "environment.go"},
	} {
		target, err := w.Resolve(row.path, AccessWrite)
		if err != nil || target.Display != row.display || target.Exists != row.exists || target.Protected != row.protected || target.Secret != row.secret {
			t.Errorf("%q: %+v, %v", row.path, target, err)
		}
		if (target.ProtectedRule != "") != row.protected || (target.SecretRule != "") != row.secret {
			t.Errorf("%q: rules %q, %q", row.path, target.ProtectedRule, target.SecretRule)
		}
	}
}

// A link with a harmless name does not hide what it leads to.
func TestProtectedThroughLink(t *testing.T) {
	dir := tree(t, map[string]string{".vscode/settings.json": "{}", ".env": "x"})
	for from, to := range map[string]string{"notes": ".vscode", "plain.json": ".vscode/settings.json", "e.txt": ".env"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	w := newSpace(t, dir, Options{})
	for path, access := range map[string]Access{"notes/tasks.json": AccessWrite, "plain.json": AccessWrite, "notes": AccessDelete} {
		if target, err := w.Resolve(path, access); err != nil || !target.Protected {
			t.Errorf("%s: %+v, %v", path, target, err)
		}
	}
	if target, err := w.Resolve("e.txt", AccessRead); err != nil || !target.Secret {
		t.Errorf("%+v, %v", target, err)
	}
	if _, err := w.Read(t.Context(), ReadRequest{Path: "e.txt"}); err == nil {
		t.Error("a secret was read through a link")
	}
}

// The root may itself be a link, or be reached through one.
func TestLinkedRoot(t *testing.T) {
	ws := tree(t, map[string]string{"real/a.txt": "a"})
	if err := os.Symlink("real", filepath.Join(ws, "root")); err != nil {
		t.Fatal(err)
	}
	w := newSpace(t, filepath.Join(ws, "root"), Options{})
	for _, path := range []string{"a.txt", filepath.Join(ws, "root/a.txt"), filepath.Join(ws, "real/a.txt")} {
		target, err := w.Resolve(path, AccessWrite)
		if err != nil || target.Abs != filepath.Join(ws, "real/a.txt") || target.Display != "a.txt" {
			t.Errorf("%s: %+v, %v", path, target, err)
		}
	}
}

func TestRoots(t *testing.T) {
	ws := tree(t, map[string]string{"x/app/": "", "y/app/": "", "file": ""})
	w, err := New([]Root{{Dir: filepath.Join(ws, "x/app")}, {Dir: filepath.Join(ws, "y/app")}, {Name: "a/b", Dir: ws}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range w.Roots() {
		got = append(got, r.Name)
	}
	if strings.Join(got, " ") != "app app-2 a-b" {
		t.Errorf("%q", got)
	}
	if target, err := w.Resolve(filepath.Join(ws, "y/app/f"), AccessCreate); err != nil || target.Display != "app-2/f" || target.Root != 1 {
		t.Errorf("the innermost root: %+v, %v", target, err)
	}
	for _, bad := range []string{filepath.Join(ws, "none"), filepath.Join(ws, "file")} {
		if err := w.SetRoots([]Root{{Dir: bad}}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if len(w.Roots()) != 3 {
		t.Error("a failed SetRoots changed the roots")
	}
	if err := w.SetRoots(nil); err != nil {
		t.Error(err)
	}
	if _, err := w.Resolve("a", AccessRead); err == nil {
		t.Error("resolved without a root")
	}
}

func FuzzResolve(f *testing.F) {
	for _, p := range []string{"a.txt", "../x", "/etc/passwd", "l/../../x", "out/x", "in/../out/x", ".git/x", "up/up/up", "a\u200b/.git", "C:\\x", "dangling/x", "..\u2215x"} {
		f.Add(p)
	}
	ws := tree(f, map[string]string{"app/a.txt": "a", "app/src/b.txt": "b", "outside/secret": "s", "app/.git/config": "c"})
	root := filepath.Join(ws, "app")
	for from, to := range map[string]string{"out": "../outside", "in": "src", "up": "..", "self": ".", "dangling": "../nothing", "g": ".git", "abs": filepath.Join(ws, "outside")} {
		if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
			f.Fatal(err)
		}
	}
	w := newSpace(f, root, Options{})
	f.Fuzz(func(t *testing.T, path string) {
		for _, access := range []Access{AccessRead, AccessWrite, AccessCreate, AccessDelete} {
			target, err := w.Resolve(path, access)
			if err != nil {
				if _, ok := AsRefusal(err); !ok {
					t.Errorf("%q: %v is no refusal", path, err)
				}
				continue
			}
			if target.Abs != root && !strings.HasPrefix(target.Abs, root+"/") {
				t.Errorf("%q escapes to %s", path, target.Abs)
			}
			for _, c := range strings.Split(target.Rel, "/") {
				if strings.EqualFold(c, ".git") || c == ".." {
					t.Errorf("%q reaches %s", path, target.Rel)
				}
			}
			dir := target.Abs
			if access == AccessDelete && dir != root {
				dir = filepath.Dir(dir)
			}
			for ; strings.HasPrefix(dir, root+"/"); dir = filepath.Dir(dir) {
				if fi, err := os.Lstat(dir); err == nil && fi.Mode()&os.ModeSymlink != 0 {
					t.Errorf("%q: %s is a link in a resolved path", path, dir)
				}
			}
			again, err := w.Resolve(target.Abs, access)
			if err != nil || again.Abs != target.Abs {
				t.Errorf("%q: %s resolves to %s, %v", path, target.Abs, again.Abs, err)
			}
		}
	})
}
