package shellrules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	const allow, ask = true, false
	for _, c := range []struct {
		name    string
		list    []string
		line    string
		allowed bool
		reason  string
	}{
		// SE-13: whole words of every simple command count.
		{"a word more", []string{"ls", "echo", "git status"}, "ls -la", allow, ""},
		{"second command", []string{"ls", "echo", "git status"}, "ls; rm -rf d", ask, "rm -rf d is not on the allow list"},
		{"and", []string{"ls", "echo", "git status"}, "echo hi && curl x", ask, "curl x is not on"},
		{"substitution", []string{"ls", "echo", "git status"}, "echo $(id)", ask, "substitution"},
		{"backquotes", []string{"ls", "echo", "git status"}, "echo `id`", ask, "substitution"},
		{"second line", []string{"ls", "echo", "git status"}, "echo hi\nrm -rf d", ask, "rm -rf d"},
		{"redirection", []string{"ls", "echo", "git status"}, "echo hi > .git/hooks/pre-commit", ask, "redirects"},
		{"several words", []string{"ls", "echo", "git status"}, "git status --porcelain", allow, ""},
		{"longer word", []string{"ls", "echo", "git status"}, "git statusx", ask, "git statusx is not on"},
		{"operator in quotes", []string{"ls", "echo", "git status"}, `echo "a && b"`, allow, ""},

		{"pipe", []string{"go test", "tail"}, "go test ./... | tail -5", allow, ""},
		{"pipe to another", []string{"go test"}, "go test ./... | sh", ask, "sh is not on"},
		{"or", []string{"go vet", "echo"}, "go vet || echo failed", allow, ""},
		{"several lines", []string{"go vet", "go test"}, "go vet ./...\ngo test ./...\n", allow, ""},
		{"comment", []string{"ls"}, "ls # ; rm -rf d", allow, ""},
		{"errors joined", []string{"go test", "tail"}, "go test ./... 2>&1 | tail", allow, ""},
		{"output thrown away", []string{"go test"}, "go test ./... >/dev/null 2>&1", allow, ""},
		{"descriptor of another number", []string{"ls"}, "ls 1>&3", ask, "redirects"},
		{"both to a file", []string{"ls"}, "ls &> f", ask, "redirects"},
		{"dup to a file name", []string{"ls"}, "ls >&f", ask, "redirects"},
		{"null by another path", []string{"ls"}, "ls > /dev/null/../x", ask, "redirects"},
		{"null by quotes", []string{"ls"}, `ls > "/dev/null"`, ask, "redirects"},
		{"append to null", []string{"ls"}, "ls >> /dev/null", ask, "redirects"},
		{"named descriptor", []string{"ls"}, "ls {fd}>/dev/null", ask, "redirects"},
		{"input", []string{"cat"}, "cat < f", ask, "redirects"},
		{"here document", []string{"cat"}, "cat <<E\nx\nE", ask, "redirects"},
		{"here string", []string{"cat"}, "cat <<< x", ask, "redirects"},
		{"both piped", []string{"ls", "cat"}, "ls |& cat", ask, "joins"},
		{"background", []string{"ls"}, "ls &", ask, "background"},
		{"background in the middle", []string{"ls"}, "ls & ls", ask, "background"},
		{"assignment", []string{"ls"}, "PATH=/tmp/x ls", ask, "sets a variable"},
		{"assignment alone", []string{"ls"}, "PATH=/tmp/x; ls", ask, "sets a variable"},
		{"export", []string{"ls"}, "export PATH=/tmp/x; ls", ask, "sets variables"},
		{"variable", []string{"ls"}, "ls $HOME", ask, "variable"},
		{"variable in quotes", []string{"ls"}, `ls "${HOME}"`, ask, "variable"},
		{"arithmetic", []string{"echo"}, "echo $((1+1))", ask, "variable or substitution"},
		{"process substitution", []string{"cat"}, "cat <(id)", ask, "substitution"},
		{"dollar quotes", []string{"echo"}, `echo $'\x41'`, ask, "$'"},
		{"translated string", []string{"echo"}, `echo $"a"`, ask, `$"`},
		{"braces", []string{"echo"}, "echo {a,b}", ask, "brace"},
		{"range", []string{"echo"}, "echo {1..9}", ask, "brace"},
		{"braces that are none", []string{"git show"}, "git show stash@{0}", allow, ""},
		{"braces over quotes", []string{"echo"}, `echo {a","b}`, ask, "brace"},
		{"function", []string{"ls"}, "ls() { rm -rf d; }; ls", ask, "function"},
		{"group", []string{"ls"}, "{ ls; }", ask, "group"},
		{"subshell", []string{"ls"}, "(ls)", ask, "group"},
		{"if", []string{"ls"}, "if ls; then ls; fi", ask, "loop or condition"},
		{"negation", []string{"ls"}, "! ls", ask, "negates"},
		{"time", []string{"ls"}, "time ls", ask, "time"},
		{"test brackets", []string{"ls"}, "[[ -v 'a[$(id)]' ]]", ask, "[[ ]]"},
		{"coprocess", []string{"ls"}, "coproc ls", ask, ""},
		{"parse error", []string{"ls"}, "ls 'x", ask, "cannot be parsed"},
		{"empty", []string{"ls"}, "  \n# nothing\n", ask, "no command"},
		{"carriage return", []string{"ls"}, "ls\r\nls", ask, "control character"},
		{"null byte", []string{"ls"}, "ls\x00", ask, "control character"},
		{"escape", []string{"echo"}, "echo \x1b[2J", ask, "control character"},
		{"no-break space", []string{"ls"}, "ls\u00a0-la", ask, "invisible"},
		{"bidi", []string{"echo"}, "echo \u202e", ask, "invisible"},
		{"not UTF-8", []string{"echo"}, "echo \xff", ask, "UTF-8"},
		{"other letters", []string{"git commit"}, `git commit -m "Übung – fertig"`, allow, ""},
		{"quoted program", []string{"ls"}, `'l's -la`, allow, ""},
		{"escaped program", []string{"ls"}, `\ls -la`, allow, ""},
		{"line continued", []string{"ls"}, "ls \\\n -la", allow, ""},
		{"program by path", []string{"ls"}, "/bin/ls", ask, "/bin/ls is not on"},
		{"program in the workspace", []string{"ls"}, "./ls", ask, "./ls is not on"},
		{"program as pattern", []string{"ls"}, "l?", ask, "expands"},
		{"pattern in the entry's place", []string{"git status"}, "git stat*", ask, "not on"},
		{"too long", []string{"echo"}, "echo " + strings.Repeat("a", 40<<10), ask, "bytes"},

		// Programs that run programs.
		{"sh", []string{"sh"}, "sh -c id", ask, "runs other programs"},
		{"sh spelled out", []string{"sh build.sh"}, "sh build.sh", allow, ""},
		{"sh with more", []string{"sh build.sh"}, "sh build.sh x", ask, "runs other programs"},
		{"bash by path", []string{"/bin/bash"}, "/bin/bash -c id", ask, "runs other programs"},
		{"env", []string{"env"}, "env id", ask, "runs other programs"},
		{"env alone", []string{"env"}, "env", allow, ""},
		{"xargs", []string{"ls", "xargs"}, "ls | xargs rm", ask, "runs other programs"},
		{"sudo", []string{"sudo"}, "sudo ls", ask, "runs other programs"},
		{"eval", []string{"eval"}, "eval ls", ask, "changes the shell"},
		{"hash", []string{"hash", "ls"}, "hash -p /tmp/x ls; ls", ask, "changes the shell"},
		{"read", []string{"read"}, "read PATH", ask, "changes the shell"},
		{"printf into a variable", []string{"printf", "ls"}, "printf -v PATH /tmp/x; ls", ask, "printf -v"},
		{"printf joined", []string{"printf"}, "printf -vPATH /tmp/x", ask, "printf"},
		{"printf", []string{"printf"}, `printf '%s\n' a`, allow, ""},
		{"test that evaluates", []string{"test"}, "test -v 'a[$(id)]'", ask, "test -v"},
		{"test", []string{"test"}, "test -f go.mod", allow, ""},
		{"tee", []string{"ls", "tee"}, "ls | tee ~/.bashrc", ask, "tee"},
		{"awk", []string{"awk"}, `awk 'BEGIN{system("id")}'`, ask, "awk"},
		{"sed that prints", []string{"sed"}, "sed -n '1,20p' a.go", allow, ""},
		{"sed to the end", []string{"sed"}, "sed -n '10,$p' a.go", allow, ""},
		{"sed that runs", []string{"sed"}, "sed '1e id' a.go", ask, "sed"},
		{"sed that writes", []string{"sed"}, "sed -n 'w /tmp/x' a", ask, "sed"},
		{"sed in place", []string{"sed"}, "sed -i 1d a.go", ask, "sed -i"},
		{"sed with two scripts", []string{"sed"}, "sed -n 1p -e '1e id'", ask, "sed -e"},
		{"find", []string{"find"}, "find . -name '*.go'", allow, ""},
		{"find -exec", []string{"find"}, "find . -exec id ';'", ask, "find -exec"},
		{"find -delete", []string{"find"}, "find . -delete", ask, "find -delete"},
		{"find with a pattern", []string{"find"}, "find * -name x", ask, "may turn into an option"},
		{"fd -x", []string{"fd"}, "fd -Hx id", ask, "fd -Hx"},
		{"rg --pre", []string{"rg"}, "rg --pre=./x y", ask, "rg --pre"},
		{"rg", []string{"rg"}, "rg -n 'func .*' --type go", allow, ""},
		{"git -c", []string{"git"}, "git -c core.pager=id log", ask, "git -c"},
		{"git joined -c", []string{"git"}, "git -ccore.pager=id log", ask, "git -c"},
		{"git -C", []string{"git"}, "git -C evil status", ask, "git -C"},
		{"git config", []string{"git"}, "git config core.pager id", ask, "git config"},
		{"git alias by option", []string{"git"}, "git --exec-path=/tmp/x status", ask, "git --exec-path"},
		{"git abbreviated", []string{"git"}, "git fetch --upload-pa=id .", ask, "git --upload-pa"},
		{"git transport", []string{"git"}, "git ls-remote 'ext::sh -c id'", ask, "git ext::"},
		{"git grep in a pager", []string{"git"}, "git grep -Oid x", ask, "git -Oid"},
		{"git rebase --exec", []string{"git"}, "git rebase -x id HEAD~1", ask, "git -x"},
		{"git bisect", []string{"git"}, "git bisect run id", ask, "git bisect"},
		{"git output", []string{"git diff"}, "git diff --output=/home/u/.bashrc", ask, "git --output"},
		{"git diff", []string{"git diff"}, "git diff -u --stat HEAD~1 -- a.go", allow, ""},
		{"git add", []string{"git add"}, "git add -u", allow, ""},
		{"git clone template", []string{"git clone"}, "git clone --template=/tmp/x a b", ask, "git --template"},
		{"spelled out", []string{"git -c color.ui=never log"}, "git -c color.ui=never log", allow, ""},
		{"go test", []string{"go test"}, "go test -race -run 'TestX/y$' ./...", allow, ""},
		{"go test -exec", []string{"go test"}, "go test -exec ./x ./...", ask, "go -exec"},
		{"go test --exec", []string{"go test"}, "go test --exec=./x ./...", ask, "go --exec"},
		{"go build with a linker", []string{"go build"}, "go build -ldflags='-linkmode=external -extld=./x'", ask, "go -ldflags"},
		{"go run is another word", []string{"go test"}, "go run .", ask, "go run . is not on"},
		{"make", []string{"make"}, "make test", allow, ""},
		{"make with a shell", []string{"make"}, "make SHELL=./x", ask, "make SHELL"},
		{"make --eval", []string{"make"}, "make --eval='x:;id' x", ask, "make --eval"},
		{"tar", []string{"tar"}, "tar tf a.tar", allow, ""},
		{"tar checkpoint", []string{"tar"}, "tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=id", ask, "tar --checkpoint"},
		{"tar -I", []string{"tar"}, "tar xIf ./x a.tar", ask, "tar xIf"},
		{"sort -o", []string{"sort"}, "sort -ro f g", ask, "sort -ro"},
		{"uniq into a file", []string{"uniq"}, "uniq a b", ask, "uniq b"},
		{"python", []string{"python3"}, "python3 -c 'import os'", ask, "runs whatever code"},
		{"python script", []string{"python3 tool.py"}, "python3 tool.py -x", allow, ""},
		{"python module", []string{"python3 -m pytest"}, "python3 -m pytest tests", allow, ""},
		{"python any module", []string{"python3 -m"}, "python3 -m http.server", ask, "must name the script"},
		{"python of a version", []string{"python3.12"}, "python3.12 x.py", ask, "must name the script"},
		{"node", []string{"node"}, "node -e 1", ask, "runs whatever code"},
		{"npx", []string{"npx"}, "npx cowsay", ask, "must name the script"},
		{"npx program", []string{"npx eslint"}, "npx eslint src", allow, ""},
		{"npm test", []string{"npm test"}, "npm test -- --watch=false", allow, ""},
		{"npm exec", []string{"npm"}, "npm exec x", ask, "npm exec"},
		{"npm shell", []string{"npm run"}, "npm run x --script-shell=./x", ask, "npm --script-shell"},
		{"curl", []string{"curl"}, "curl https://example.org", ask, "curl"},
		{"listing by pattern", []string{"ls"}, "ls *.go", allow, ""},
		{"cat from home", []string{"cat"}, "cat ~/x", allow, ""},
		{"patterns that may be options", []string{"rg"}, "rg x *", ask, "may turn into an option"},
		{"patterns behind --", []string{"go vet"}, "go vet -- *", allow, ""},
		{"patterns with a folder", []string{"rg"}, "rg x src/*", allow, ""},
		{"change of folder", []string{"cd", "./run", "ls"}, "cd web && ls", allow, ""},
		{"another program after it", []string{"cd", "./run"}, "cd web && ./run", ask, "another program"},
		{"git after it", []string{"cd", "git status"}, "cd evil && git status", ask, "git after a change"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := NewList(c.list)
			require.NoError(t, err)
			d := l.Decide(c.line)
			require.Equal(t, c.allowed, d.Allowed, d.Reason)
			if c.allowed {
				require.Empty(t, d.Reason)
			} else {
				require.NotEmpty(t, d.Reason)
				require.Contains(t, d.Reason, c.reason)
			}
		})
	}
}

func TestListErrors(t *testing.T) {
	for entry, want := range map[string]string{
		"":             "no command",
		"ls; rm":       "2 commands",
		"ls > f":       "redirects",
		"go test $X":   "variable",
		"ls *":         "expanded by the shell",
		"FOO=1 go":     "sets a variable",
		"npm run &":    "background",
		"git commit '": "cannot be parsed",
	} {
		_, err := NewList([]string{"ls", entry})
		require.ErrorContains(t, err, want, entry)
		require.ErrorContains(t, err, "allow entry", entry)
	}
}

func TestMentions(t *testing.T) {
	push := []string{"git", "push"}
	for line, want := range map[string]bool{
		"git push":                      true,
		"git push origin main":          true,
		"ls && git push":                true,
		"echo $(git push)":              true,
		"x=`git push`":                  true,
		"sudo git push":                 true,
		"sh -c 'git push -f'":           true,
		`bash -c "cd x; git push"`:      true,
		"f() { git push; }; f":          true,
		"if true; then git push; fi":    true,
		`g'i't "push"`:                  true,
		"git push '":                    true, // cannot be parsed
		"git pull":                      false,
		"git pushx":                     false,
		"git status; echo push":         false,
		"git -C x push":                 false, // not the words in a row
		"echo done # git push":          false,
		"git $(echo push)":              false, // not written plainly
		"cat <<E\ngit push\nE":          false,
		"git commit -m 'then git push'": true, // may be too much, never too little
	} {
		require.Equal(t, want, Mentions(line, push), line)
	}
	require.False(t, Mentions("ls", nil))
}
