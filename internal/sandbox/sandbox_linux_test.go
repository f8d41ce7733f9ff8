package sandbox

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/internal/need"
)

// eachKind runs a test in every mechanism that this machine has: at least in one.
// Which ones there are is the kernel's matter.
func eachKind(t *testing.T, f func(t *testing.T, s *Sandbox)) {
	found := 0
	for _, kind := range []Kind{Bubblewrap, Landlock} {
		s := Detect(t.Context(), Options{Only: kind})
		t.Run(string(kind), func(t *testing.T) {
			if kind == Bubblewrap {
				need.Program(t, "bwrap")
			}
			if !s.Report().Confines() {
				need.Right(t, strings.Join(s.Report().Missing, "; "))
			}
			found++
			f(t, s)
		})
	}
	if found == 0 {
		need.Right(t, "a sandbox (bubblewrap or Landlock)")
	}
}

// yard is a workspace in a folder of its own, with something outside of it.
type yard struct {
	t       *testing.T
	s       *Sandbox
	root    string
	outside string
	spec    Spec
}

func newYard(t *testing.T, s *Sandbox) *yard {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	// Not below /tmp, where the sandbox has its own.
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	far, err := os.MkdirTemp(home, ".thinkflow-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(far) })
	y := &yard{t: t, s: s, root: filepath.Join(base, "ws"), outside: filepath.Join(far, "outside")}
	for _, d := range []string{"bin", "src/deep", "sub", ".git/hooks", ".git/objects", ".vscode"} {
		require.NoError(t, os.MkdirAll(filepath.Join(y.root, d), 0o755))
	}
	require.NoError(t, os.Mkdir(y.outside, 0o755))
	for name, text := range map[string]string{
		"src/a.txt": "a\n", ".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".vscode/settings.json": "{}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(y.root, name), []byte(text), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(y.outside, "f"), []byte("outside\n"), 0o644))
	exe, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(y.helper(), data, 0o755))
	y.spec = Spec{
		Roots: []string{y.root},
		Env:   []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
		Classify: func(path string, dir bool) Class {
			switch filepath.Base(path) {
			case ".git":
				return VCS
			case ".vscode", ".envrc", "AGENTS.md":
				return Protected
			}
			return Free
		},
	}
	return y
}

func (y *yard) helper() string { return filepath.Join(y.root, "bin", "thinkflow-helper") }

type ended struct {
	out   string
	code  int
	found Findings
}

func (y *yard) run(line string, change ...func(*Spec)) ended {
	y.t.Helper()
	spec := y.spec
	spec.Line = line
	for _, f := range change {
		f(&spec)
	}
	c, err := y.s.Command(y.t.Context(), spec)
	require.NoError(y.t, err)
	var out bytes.Buffer
	c.Cmd.Stdout, c.Cmd.Stderr = &out, &out
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(y.t, err)
	}
	found, err := c.Finish()
	require.NoError(y.t, err)
	return ended{out.String(), c.Cmd.ProcessState.ExitCode(), found}
}

func (y *yard) read(path string) string {
	data, err := os.ReadFile(path)
	require.NoError(y.t, err)
	return string(data)
}

func TestWhatMayBeDone(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		got := y.run(`set -e
echo changed > src/a.txt; echo new > src/deep/n; mkdir src/d; mv src/deep/n src/d/n; ln -s a.txt src/link; rm -r src/d
echo x > "$TMPDIR/t"; cat "$TMPDIR/t"; echo x > /dev/null; cat /etc/passwd > /dev/null; git status > /dev/null 2>&1 || true
cat .git/HEAD; exit 7`)
		require.Equal(t, 7, got.code, got.out)
		require.Equal(t, "x\nref: refs/heads/main\n", got.out)
		require.Equal(t, "changed\n", y.read(filepath.Join(y.root, "src/a.txt")))
		require.Empty(t, got.found.Violations)
	})
}

func TestWhatIsHeld(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	abstract, err := net.Listen("unix", "@thinkflow-sandbox-test-"+strconv.Itoa(os.Getpid()))
	require.NoError(t, err)
	defer abstract.Close()

	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		home, err := os.UserHomeDir()
		require.NoError(t, err)
		bin := y.helper()
		pid := strconv.Itoa(os.Getpid())
		// A socket of a local service, below the place where services keep them.
		var service string
		if dir, err := os.MkdirTemp("/run", "thinkflow-test-"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			service = filepath.Join(dir, "s")
			l, err := net.Listen("unix", service)
			require.NoError(t, err)
			defer l.Close()
		}
		for _, c := range []struct{ name, line string }{
			{"write outside", `echo x > ` + y.outside + `/new`},
			{"append outside", `echo x >> ` + y.outside + `/f`},
			// What cannot be seen, because home is in /tmp, cannot be removed either.
			{"remove outside", `test -e ` + y.outside + `/f && rm -f ` + y.outside + `/f && ! test -e ` + y.outside + `/f`},
			{"empty a file outside", `truncate -s 0 ` + y.outside + `/f`},
			{"change modes outside", `chmod 777 ` + y.outside + `/f`},
			{"write through a link", `ln -s ` + y.outside + ` src/out && echo x > src/out/new`},
			{"write through a dangling link", `ln -s ` + y.outside + `/new2 src/dangling && echo x > src/dangling`},
			{"hard link to a file outside", `ln ` + y.outside + `/f src/hard && echo x > src/hard`},
			{"move a file in from outside", `mv ` + y.outside + `/f src/taken && ! test -e ` + y.outside + `/f`},
			{"write in home", `echo x > ` + home + `/.thinkflow-sandbox-test`},
			{"write in /etc", `echo x > /etc/thinkflow-sandbox-test`},
			{"read a disk", `test -b /dev/vda && head -c 1 /dev/vda`},
			{"kernel settings", `echo 1 > /proc/sys/kernel/dmesg_restrict`},
			{"git hook", `echo evil > .git/hooks/pre-commit`},
			{"new git hook", `echo evil > .git/hooks/post-checkout`},
			{"git config", `echo evil >> .git/config`},
			{"git config by git", `git config core.fsmonitor evil`},
			{"git config by replacement", `echo evil > src/c && mv -f src/c .git/config`},
			{"remove git", `rm -rf .git && ! test -e .git`},
			{"move git away", `mv .git src/git`},
			{"protected file", `echo evil > .vscode/settings.json`},
			{"protected file by replacement", `echo evil > src/s && mv -f src/s .vscode/settings.json`},
			{"new file in a protected folder", `echo evil > .vscode/tasks.json`},
			{"remove a protected folder", `rm -rf .vscode && ! test -e .vscode`},
			{"protected through a link", `ln -s ../.vscode src/v && echo evil > src/v/tasks.json`},
			{"protected through a hard link", `ln .vscode/settings.json src/h && echo evil > src/h`},
			{"connect to a server", bin + ` dial tcp ` + listener.Addr().String()},
			{"connect by the shell", `echo x > /dev/tcp/127.0.0.1/` + port(listener.Addr())},
			{"connect to an abstract socket", bin + ` dial unix ` + abstract.Addr().String()},
			{"connect to a local service", bin + ` dial unix ` + service},
			{"vsock", bin + ` socket 40`},
			{"io_uring", bin + ` uring x`},
			{"type into the terminal", bin + ` type-ahead x`},
			{"environment of thinkflow", bin + ` environ ` + pid},
			{"trace thinkflow", bin + ` trace ` + pid},
			{"signal to thinkflow", bin + ` signal ` + pid},
			{"mount", bin + ` mount /mnt`},
			{"remount", bin + ` remount ` + y.root + `/.git`},
			{"remount in a namespace of its own", bin + ` namespace ` + y.root + `/.git`},
			{"device node", bin + ` mknod ` + y.root + `/src/disk`},
			{"capabilities", bin + ` capabilities x`},
		} {
			if strings.HasSuffix(c.line, "dial unix ") {
				continue // no right to make the service
			}
			t.Run(c.name, func(t *testing.T) {
				if c.name == "change modes outside" && s.Report().Kind == Landlock {
					t.Skip("Landlock has no right for it: one of its reported limits")
				}
				y.t = t
				got := y.run(c.line)
				require.NotEqual(t, 0, got.code, "it got out: %s", got.out)
				require.NotContains(t, got.out, "got out")
				require.Empty(t, got.found.Violations)
			})
		}
		t.Run("datagrams", func(t *testing.T) {
			y.t = t
			_ = y.run(bin + ` dial udp ` + udp.LocalAddr().String())
			// In a network of its own the datagram can be sent, but not arrive:
			// ours is the first that does.
			c, err := net.Dial("udp", udp.LocalAddr().String())
			require.NoError(t, err)
			_, err = c.Write([]byte("ours"))
			require.NoError(t, err)
			buf := make([]byte, 100)
			n, _, err := udp.ReadFrom(buf)
			require.NoError(t, err)
			require.Equal(t, "ours", string(buf[:n]))
		})
		require.Equal(t, "outside\n", y.read(filepath.Join(y.outside, "f")))
		left, err := os.ReadDir(y.outside)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, "[core]\n", y.read(filepath.Join(y.root, ".git/config")))
		require.Equal(t, "{}\n", y.read(filepath.Join(y.root, ".vscode/settings.json")))
		require.NoFileExists(t, filepath.Join(home, ".thinkflow-sandbox-test"))
	})
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// Programs that talk to themselves go on working.
func TestWhatStaysPossible(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		require.Contains(t, y.run(y.helper()+" socketpair x").out, "got out")
		if s.Report().Kind == Bubblewrap {
			require.Contains(t, y.run(y.helper()+" loopback x").out, "got out")
		}
	})
}

func TestEnvironmentIsWhatWasGiven(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-test-0123456789")
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		got := y.run(`env; cat /proc/self/environ; tr '\0' '\n' < /proc/$PPID/environ`)
		require.NotContains(t, got.out, "sk-test")
		require.NotContains(t, got.out, "OPENAI")
		got = y.run("env", func(s *Spec) { s.Env = []string{"PATH=.:/usr/bin::/bin:rel"} })
		require.Contains(t, got.out, "\nPATH=/usr/bin:/bin\n")
	})
}

func TestHidden(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		secret := filepath.Join(y.root, "src", "key")
		require.NoError(t, os.WriteFile(secret, []byte("sk-hidden"), 0o600))
		private := filepath.Join(y.root, "private")
		require.NoError(t, os.Mkdir(private, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(private, "k"), []byte("sk-hidden"), 0o600))
		hide := func(s *Spec) { s.Hidden = []string{secret, private, y.outside, "/nowhere"} }
		got := y.run(`cat src/key private/k `+y.outside+`/f; ln -s ../private src/p; cat src/p/k; cp -r private src/copy; cat src/copy/k`, hide)
		require.NotContains(t, got.out, "sk-hidden")
		require.NotContains(t, got.out, "outside\n")

		got = y.run(`cat src/key private/k`, func(s *Spec) {
			s.Classify = func(path string, _ bool) Class {
				if filepath.Base(path) == "key" || filepath.Base(path) == "private" {
					return Hide
				}
				return Free
			}
		})
		require.NotContains(t, got.out, "sk-hidden")
	})
}

func TestMissingProtectedPathsAreReported(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		got := y.run(`mkdir -p sub/.vscode && echo evil > sub/.vscode/tasks.json; ln -s /bin/sh sub/.envrc; mkdir sub/n && echo x > sub/n/AGENTS.md; mkdir -p sub/node_modules/p/.vscode; git init -q sub/repo; echo x > sub/watched`,
			func(sp *Spec) { sp.Watch = []string{filepath.Join(y.root, "sub/watched")} })
		var names []string
		for _, v := range got.found.Violations {
			rel, err := filepath.Rel(y.root, v.Path)
			require.NoError(t, err)
			names = append(names, v.What+" "+rel)
		}
		require.Equal(t, []string{"created sub/.envrc", "created sub/.vscode", "created sub/n/AGENTS.md", "created sub/repo/.git", "created sub/watched"}, names)
		for _, v := range got.found.Violations {
			require.Equal(t, strings.HasSuffix(v.Path, ".git"), v.VCS)
			require.NoError(t, v.Remove())
			require.NoFileExists(t, v.Path)
		}
		require.DirExists(t, filepath.Join(y.root, "sub/n"))
	})
}

// A folder above a protected path can be renamed in a mount namespace; what
// then stands at the old place is another thing, and is named.
func TestRenamedAbove(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		require.NoError(t, os.MkdirAll(filepath.Join(y.root, "pkg/in/.vscode"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(y.root, "pkg/in/.vscode/tasks.json"), []byte("{}"), 0o644))
		got := y.run(`mv pkg/in pkg/old && mkdir -p pkg/in/.vscode && echo evil > pkg/in/.vscode/tasks.json`)
		if got.code != 0 {
			require.Empty(t, got.found.Violations)
			return
		}
		require.NotEmpty(t, got.found.Violations)
	})
}

func TestGrants(t *testing.T) {
	need.Program(t, "git")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		require.NoError(t, os.RemoveAll(filepath.Join(y.root, ".git")))
		cmd := exec.Command("git", "init", "-q", y.root)
		require.NoError(t, cmd.Run())
		commit := `git -c user.name=a -c user.email=a@example.org add src && git -c user.name=a -c user.email=a@example.org commit -q -m x`
		require.NotEqual(t, 0, y.run(commit).code)

		git := func(s *Spec) { s.Grants.Git = true }
		got := y.run(commit, git)
		require.Equal(t, 0, got.code, got.out)
		require.Empty(t, got.found.Violations)

		// Hooks and configuration are not in the grant.
		got = y.run(`git config core.fsmonitor evil; echo evil > .git/hooks/post-commit`, git)
		if s.Report().Kind == Bubblewrap {
			require.Empty(t, got.found.Violations, got.out)
			require.NotEqual(t, 0, got.code)
		} else {
			require.Len(t, got.found.Violations, 2, got.found.Violations)
		}
		got = y.run(`git config core.editor true`, func(s *Spec) { s.Grants.GitConfig = true })
		require.Equal(t, 0, got.code, got.out)
		require.Empty(t, got.found.Violations)

		net := func(s *Spec) { s.Grants.Net = true }
		got = y.run(y.helper()+` dial tcp `+listener.Addr().String(), net)
		require.Contains(t, got.out, "got out")
		require.NotEqual(t, 0, y.run(`echo x > .git/config`, net).code)
	})
}

// What forks away and leaves session and group does not outlive the command.
func TestForkAway(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		pipe := filepath.Join(y.root, "src", "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		got := y.run(y.helper() + " stay " + pipe)
		require.Contains(t, got.out, "started")
		if s.Report().Kind == Landlock {
			require.Equal(t, 1, got.found.Killed)
		}
		// Nobody reads the pipe any more.
		_, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		require.ErrorIs(t, err, syscall.ENXIO)
	})
}

// A killed command takes all that it started with it.
func TestKill(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		pipe := filepath.Join(y.root, "src", "pipe")
		require.NoError(t, syscall.Mkfifo(pipe, 0o600))
		spec := y.spec
		spec.Line = "setsid " + y.helper() + " wait " + pipe + " & echo on; wait"
		c, err := s.Command(t.Context(), spec)
		require.NoError(t, err)
		out, err := c.Cmd.StdoutPipe()
		require.NoError(t, err)
		c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, c.Start())
		buf := make([]byte, 3)
		_, err = out.Read(buf)
		require.NoError(t, err)
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // it waits there
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, syscall.Kill(-c.Cmd.Process.Pid, syscall.SIGKILL))
		require.Error(t, c.Cmd.Wait())
		_, err = c.Finish()
		require.NoError(t, err)
		require.NoFileExists(t, pipe+".woke")
		_, err = f.Write(make([]byte, 1))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestTemporaryFolderGoes(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		before, err := filepath.Glob(filepath.Join(os.TempDir(), "thinkflow-tmp-*"))
		require.NoError(t, err)
		y.run(`mkdir -p "$TMPDIR/a/b" && echo x > "$TMPDIR/a/b/c" && chmod -R a-w "$TMPDIR/a"`)
		after, err := filepath.Glob(filepath.Join(os.TempDir(), "thinkflow-tmp-*"))
		require.NoError(t, err)
		require.LessOrEqual(t, len(after), len(before))
	})
}

func TestUnconfinedStillCompares(t *testing.T) {
	y := newYard(t, Detect(t.Context(), Options{Only: None}))
	_, err := y.s.Command(t.Context(), y.spec)
	require.ErrorIs(t, err, ErrNone)
	got := y.run(`echo evil > .vscode/settings.json; echo evil >> .git/config; rm .git/hooks/pre-commit; echo x > .envrc; echo x > `+y.outside+`/g`, func(s *Spec) { s.Unconfined = true })
	var names []string
	for _, v := range got.found.Violations {
		names = append(names, v.What+" "+strings.TrimPrefix(v.Path, y.root+"/"))
	}
	require.Equal(t, []string{"created .envrc", "changed .git/config", "removed .git/hooks/pre-commit", "changed .vscode/settings.json"}, names)
	require.FileExists(t, filepath.Join(y.outside, "g"))
}

// A bare repository in disguise, made of files that nobody protects, runs nothing.
func TestRepositoryInDisguise(t *testing.T) {
	need.Program(t, "git")
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		got := y.run(`mkdir -p src/evil/objects src/evil/refs && cd src/evil && echo 'ref: refs/heads/main' > HEAD &&
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch '$PWD'/ran; false"\n' > config && git status; git diff; ls`)
		require.NotContains(t, got.out, "ran\n", got.out)
		require.NoFileExists(t, filepath.Join(y.root, "src/evil/ran"))
	})
}

func TestCacheIsWritable(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Sandbox) {
		y := newYard(t, s)
		cache := filepath.Join(t.TempDir(), "cache")
		got := y.run(`mkdir -p "$GOCACHE" && echo x > "$GOCACHE/f" && echo $XDG_CACHE_HOME`, func(s *Spec) { s.Cache = cache })
		require.Equal(t, 0, got.code, got.out)
		require.FileExists(t, filepath.Join(cache, "go-build", "f"))
	})
}

func TestSpecErrors(t *testing.T) {
	s := Detect(t.Context(), Options{})
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name, want string
		spec       Spec
	}{
		{"no root", "no folder may be written", Spec{}},
		{"root is relative", "not absolute", Spec{Roots: []string{"a"}}},
		{"root is missing", "no such file", Spec{Roots: []string{"/nowhere"}}},
		{"root is a file", "not a folder", Spec{Roots: []string{file}}},
		{"root is everything", "a whole file system", Spec{Roots: []string{"/"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Unconfined = true
			_, err := s.Command(t.Context(), c.spec)
			require.ErrorContains(t, err, c.want)
		})
	}
}
