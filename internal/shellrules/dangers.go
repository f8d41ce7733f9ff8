package shellrules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dangers says why a command that begins with an entry asks all the same: it
// would run another program, or load code, by the words behind the entry.
// entry is how many words the entry has.
func dangers(c command, entry int) string {
	name := programName(c.words[0].text)
	switch {
	case slices.Contains(wrappers, name):
		return fmt.Sprintf("%s runs other programs or changes the shell; the allow list must spell the command out", name)
	case slices.Contains(interpreters, name):
		if !namesScript(c.words, entry) {
			return fmt.Sprintf("%s runs whatever code it is given; the allow list must name the script", name)
		}
		return ""
	case name == "sed":
		return sedDangers(c)
	}
	p, known := programs[name]
	if why := patternDangers(c, name, known); why != "" {
		return why
	}
	if !known {
		return ""
	}
	return p.check(name, c)
}

// programName is the name of a program without folder, extension and version.
func programName(s string) string {
	s = strings.ToLower(path.Base(strings.ReplaceAll(s, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		s = strings.TrimSuffix(s, ext)
	}
	if base := strings.TrimRight(s, "0123456789.-"); base != "" && slices.Contains(interpreters, base) {
		return base
	}
	return s
}

// wrappers run what their arguments name, reach out, or change the shell that
// reads the rest of the line.
var wrappers = []string{
	// shells and what starts programs
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "nu", "elvish", "pwsh", "powershell", "cmd", "busybox", "toybox",
	"env", "xargs", "parallel", "sudo", "doas", "su", "pkexec", "runuser", "nohup", "nice", "ionice", "renice", "chrt", "taskset", "timeout",
	"time", "setsid", "setpriv", "capsh", "stdbuf", "unbuffer", "watch", "entr", "script", "expect", "screen", "tmux", "at", "batch", "crontab",
	"systemd-run", "systemctl", "launchctl", "start-stop-daemon", "flock", "chroot", "unshare", "nsenter", "bwrap", "firejail", "flatpak", "proot",
	"fakeroot", "strace", "ltrace", "gdb", "lldb", "valgrind", "perf", "ld.so", "run-parts", "dbus-run-session", "xvfb-run", "direnv", "mise", "asdf",
	"docker", "podman", "nerdctl", "kubectl", "helm", "vagrant", "ansible", "ansible-playbook", "terraform", "tofu", "nix", "nix-shell", "guix",
	"awk", "gawk", "mawk", "nawk", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "emacsclient", "nano", "less", "more", "most", "man", "info",
	"open", "xdg-open", "start", "code", "tee", "dd", "sqlite3", "psql", "mysql", "m4", "bc", "dc", "rpm", "dpkg", "apt", "apt-get", "brew",
	// over the network
	"ssh", "scp", "sftp", "rsync", "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "lftp", "mail", "sendmail",
	// built into the shell
	"eval", "exec", "source", ".", "command", "builtin", "trap", "alias", "unalias", "enable", "hash", "export", "declare", "typeset", "local",
	"readonly", "unset", "set", "shopt", "read", "mapfile", "readarray", "getopts", "let", "bind", "complete", "compgen", "compopt", "fc", "history",
	"jobs", "wait", "coproc",
}

// interpreters run a script that is named behind them.
var interpreters = []string{
	"python", "pypy", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua", "luajit", "tclsh", "wish", "guile", "racket", "julia", "rscript", "r",
	"osascript", "java", "jshell", "groovy", "scala", "kotlin", "elixir", "erl", "escript", "ghc", "runghc", "ts-node", "tsx",
	"npx", "bunx", "pnpx", "uvx", "pipx", "uv", "poetry", "pipenv", "pdm", "hatch", "bundle",
}

// namesScript reports whether the entry itself says what is run: a script right
// behind the interpreter, a module for python -m, a program for npx or uv run.
// What follows then are arguments of that.
func namesScript(words []word, entry int) bool {
	if entry < 2 {
		return false
	}
	if words[1].text == "-m" {
		return entry >= 3
	}
	if strings.HasPrefix(words[1].text, "-") {
		return false
	}
	switch words[1].text {
	case "run", "exec", "x", "eval", "dlx", "repl":
		return entry >= 3 && !strings.HasPrefix(words[2].text, "-")
	}
	return true
}

// readers print and have no option that runs or writes anything: a pattern may
// stand for whatever it likes among their arguments.
var readers = []string{
	"ls", "cat", "head", "tail", "wc", "stat", "du", "echo", "basename", "dirname", "realpath", "readlink", "sha256sum", "sha1sum", "md5sum",
	"nl", "tac", "rev", "cut", "tr", "diff", "cmp", "comm", "grep", "egrep", "fgrep", "true", "false", "pwd",
}

// patternDangers refuses patterns that may turn into options: a file can have
// the name of one.
func patternDangers(c command, name string, known bool) string {
	if slices.Contains(readers, name) && !known {
		return ""
	}
	for _, w := range c.words[1:] {
		if w.literal && w.text == "--" {
			return ""
		}
		if !w.literal && (w.first == 0 || w.first == '-') && !strings.HasPrefix(w.text, "~/") {
			return fmt.Sprintf("the pattern %s may turn into an option of %s; write ./%s", w.text, name, w.text)
		}
	}
	return ""
}

// program lists the arguments by which a program runs another one, or writes
// where it is told.
type program struct {
	// long options with two dashes; abbreviations count.
	long []string
	// short options with one dash and one letter, also among others (-xO).
	short string
	// global are those of them that count before the subcommand only, subShort
	// those that count behind one.
	global   string
	subShort map[string]string
	// single are whole words, also followed by "=": find's -exec, go's -toolexec.
	single []string
	// sub are subcommands: the first words that are no options.
	sub []string
	// assign: NAME=value among the arguments changes what is run.
	assign bool
	// cluster: the first argument is a group of letters even without a dash.
	cluster bool
	// twoNames: a second file name is written.
	twoNames bool
}

var programs = map[string]program{
	"git": {
		long: []string{
			"config-env", "exec-path", "git-dir", "work-tree", "upload-pack", "receive-pack", "exec", "ext-diff", "textconv", "open-files-in-pager",
			"extcmd", "tool", "output", "output-directory", "template", "config", "separate-git-dir", "remote", "super-prefix",
		},
		global:   "cC",
		subShort: map[string]string{"grep": "O", "rebase": "x", "clone": "uc", "fetch-pack": "u", "archive": "o", "format-patch": "o", "bundle": "o"},
		sub: []string{
			"config", "filter-branch", "bisect", "submodule", "difftool", "mergetool", "daemon", "instaweb", "send-email", "credential", "hook",
			"upload-pack", "receive-pack", "upload-archive", "shell", "http-backend", "remote-ext", "remote-fd", "web--browse", "maintenance", "for-each-repo",
		},
	},
	"find":     {single: []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}},
	"fd":       {long: []string{"exec", "exec-batch"}, short: "xX"},
	"fdfind":   {long: []string{"exec", "exec-batch"}, short: "xX"},
	"rg":       {long: []string{"pre", "hostname-bin", "search-zip"}, short: "z"},
	"ag":       {long: []string{"pager"}},
	"ack":      {long: []string{"pager", "ackrc"}},
	"sort":     {long: []string{"output", "compress-program", "temporary-directory"}, short: "oT"},
	"uniq":     {twoNames: true},
	"tree":     {short: "oR"},
	"file":     {long: []string{"compile", "magic-file"}, short: "Cm"},
	"date":     {long: []string{"set", "file"}, short: "sf"},
	"hostname": {short: "Fb"},
	"printf":   {single: []string{"-v"}, short: "v"},
	"test":     {single: []string{"-v", "-R"}},
	"[":        {single: []string{"-v", "-R"}},
	"make":     {long: []string{"eval", "file", "makefile", "directory", "include-dir"}, short: "fCIE", assign: true},
	"gmake":    {long: []string{"eval", "file", "makefile", "directory", "include-dir"}, short: "fCIE", assign: true},
	"ninja":    {short: "fCt"},
	"just":     {long: []string{"justfile", "shell", "shell-arg", "set", "working-directory", "command", "chooser", "edit", "choose"}, short: "fdc", assign: true},
	"cmake":    {long: []string{"build"}, short: "PED"},
	"meson":    {long: []string{"native-file", "cross-file"}},
	"go": {
		single: []string{
			"-exec", "-toolexec", "-vettool", "-ldflags", "-gcflags", "-asmflags", "-gccgoflags", "-overlay", "-modfile", "-o", "-C", "-w", "-pkgdir", "-compiler",
		},
		sub: []string{"generate", "tool"},
	},
	"gofmt": {short: "r"},
	"cargo": {long: []string{"config", "manifest-path", "target-dir", "lockfile-path", "artifact-dir", "out-dir"}, short: "CZ", sub: []string{"script"}},
	"rustc": {short: "CLo", long: []string{"codegen", "out-dir"}},
	"gcc":   {short: "Bo", single: []string{"-wrapper", "-fplugin", "-specs", "--specs"}},
	"clang": {short: "Bo", single: []string{"-fplugin", "-fpass-plugin", "--config"}},
	"npm":   {long: npmOptions, short: "cC", sub: npmCommands},
	"pnpm":  {long: npmOptions, short: "cC", sub: npmCommands},
	"yarn":  {long: append([]string{"cwd", "use-yarnrc"}, npmOptions...), sub: npmCommands},
	"pip":   {long: []string{"python", "target", "prefix", "root", "editable", "config-settings", "global-option", "log"}, short: "te", sub: []string{"config"}},
	"mvn":   {short: "Dfs", long: []string{"define", "file", "settings"}},
	"gradle": {
		long: []string{"init-script", "build-file", "project-dir", "system-prop", "include-build", "settings-file"}, short: "IbpDc",
	},
	"dotnet": {sub: []string{"exec", "fsi", "script", "tool", "msbuild"}, short: "p"},
	"tar": {
		long:  []string{"to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command", "absolute-names", "directory", "files-from"},
		short: "IFPCTV", cluster: true,
	},
	"zip":   {long: []string{"test", "unzip-command"}, short: "T"},
	"unzip": {short: "d:"},
	"gh":    {sub: []string{"alias", "extension", "codespace", "cs", "config", "api", "auth", "secret", "ssh-key"}},
	"yq":    {long: []string{"inplace", "split-exp"}, short: "is"},
	"patch": {long: []string{"output", "directory", "reject-file", "ed"}, short: "odre"},
}

var npmOptions = []string{
	"script-shell", "node-options", "userconfig", "globalconfig", "git", "shell", "editor", "viewer", "browser", "prefix", "dir", "cwd", "call", "init-module",
	"config", "location", "cache", "registry", "use-node-version", "shell-mode", "pnpmfile", "global-pnpmfile",
}

var npmCommands = []string{"exec", "x", "dlx", "explore", "edit", "config", "set", "init", "create", "start-shell", "node", "env", "plugin", "set-script", "pkg"}

// check looks for a dangerous argument.
func (p program) check(name string, c command) string {
	ask := func(arg string) string {
		return fmt.Sprintf("%s %s can run or overwrite something else; the allow list must spell the command out", name, arg)
	}
	names, sub := 0, ""
	for i, w := range c.words[1:] {
		arg := w.text
		head, _, _ := strings.Cut(arg, "=")
		switch {
		case slices.Contains(p.single, head), strings.HasPrefix(head, "--") && slices.Contains(p.single, head[1:]):
			return ask(head)
		case strings.HasPrefix(arg, "--") && len(arg) > 2:
			opt := strings.ToLower(head[2:])
			for _, l := range p.long {
				if strings.HasPrefix(l, opt) {
					return ask(head)
				}
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1, p.cluster && i == 0:
			if strings.ContainsAny(arg, p.short) || sub == "" && strings.ContainsAny(arg, p.global) || strings.ContainsAny(arg, p.subShort[sub]) {
				return ask(arg)
			}
		case p.assign && strings.Contains(arg, "="):
			return ask(arg)
		default:
			names++
			if sub == "" {
				if sub = arg; slices.Contains(p.sub, arg) {
					return ask(arg)
				}
			}
			if name == "git" && strings.Contains(arg, "::") {
				return ask(arg) // ext::sh -c …: a transport that is a program
			}
			if p.twoNames && names > 1 {
				return ask(arg)
			}
		}
	}
	return ""
}

// sedPrints is a sed script that only prints or leaves out lines.
var sedPrints = regexp.MustCompile(`^(\d+|\$)?(,(\d+|\$))?[pdq=]$`)

// sedDangers lets sed print lines by number: its scripts can run programs (e)
// and write files (w), and -i writes too.
func sedDangers(c command) string {
	script := false
	for _, w := range c.words[1:] {
		switch {
		case !w.literal:
			return "sed with a pattern among its arguments is not looked into"
		case w.text == "-n", w.text == "-E", w.text == "-r", w.text == "-s", w.text == "-u":
		case strings.HasPrefix(w.text, "-") && w.text != "-":
			return fmt.Sprintf("sed %s is not looked into; the allow list must spell the command out", w.text)
		case !script:
			script = true
			if !sedPrints.MatchString(w.text) {
				return "a sed script can run programs and write files; only printing lines by number is allowed"
			}
		}
	}
	return ""
}
