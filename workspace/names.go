package workspace

import (
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// forbiddenNames is version control metadata: no operation touches it, at any
// depth, in any letter case (DESIGN, Safety).
var forbiddenNames = []string{".git", ".hg", ".svn", ".jj", ".bzr"}

// protectedPatterns are files whose change is code execution one step later, or
// switches off the approvals themselves. A person is asked, whatever the mode.
// gitignore syntax; compared without letter case; a folder covers what it holds.
var protectedPatterns = []string{
	// editors
	".vscode", ".idea", ".vs", ".fleet", ".zed", ".helix", ".nova", ".theia", ".settings",
	"*.code-workspace", "*.sublime-project", "*.sublime-workspace", ".editorconfig.lua",
	".vim", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lazy.lua", ".lvimrc", ".ideavimrc",
	".emacs", ".emacs.d", ".dir-locals.el", ".dir-locals-2.el", ".nanorc",
	// development containers
	".devcontainer", ".devcontainer.json", ".gitpod.yml", ".idx",
	// continuous integration and hooks
	"**/.github/workflows", "**/.github/actions", "**/.gitea/workflows", "**/.forgejo/workflows",
	".gitlab-ci.yml", ".gitlab-ci.yaml", "**/.gitlab/ci", ".circleci", ".buildkite", ".drone.yml", ".woodpecker", ".woodpecker.yml",
	".travis.yml", "appveyor.yml", ".appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
	"jenkinsfile", ".cirrus.yml", ".semaphore", ".teamcity",
	".husky", ".githooks", ".git-hooks", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook-local.yml",
	".pre-commit-config.yaml", ".pre-commit-config.yml", ".gitconfig", "**/.config/git",
	// agents and their rules
	"agents.md", "agents.override.md", "/agent.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "crush.md", "warp.md",
	".claude", ".claude.json", ".cursor", ".cursorrules", ".cursorignore", ".cursorindexingignore",
	".windsurf", ".windsurfrules", ".clinerules", ".cline", ".clineignore", ".roo", ".roorules", ".roomodes", ".rooignore",
	".kilocode", ".continue", ".continuerc.json", ".aider*", ".codex", ".gemini", ".qwen", ".goosehints", ".goose",
	".junie", ".kiro", ".amazonq", ".augment", ".augment-guidelines", ".opencode", "opencode.json", "opencode.jsonc",
	".crush", ".crush.json", "crush.json", ".trae", ".zencoder", ".agents", ".agent", ".copilot", ".mcp.json", "**/.github/copilot-instructions.md",
	"**/.github/instructions", "**/.github/prompts", "**/.github/agents", "**/.github/chatmodes", "**/.github/skills", "**/.github/hooks",
	// shells and login
	".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
	".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".xinitrc",
	".xprofile", ".xsession", ".pam_environment", "**/.config/fish", "**/.config/nushell", "**/.config/autostart", "**/.config/systemd",
	"**/.config/environment.d", "microsoft.powershell_profile.ps1", ".screenrc", ".tmux.conf", ".gdbinit", ".lldbinit", ".pythonstartup",
	".ssh", ".gnupg",
	// package managers and tool versions
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml", ".pypirc", "pip.conf", "pip.ini", ".condarc",
	".gemrc", "**/.bundle/config", "**/.cargo/config", "**/.cargo/config.toml", "**/.mvn", "nuget.config", ".netrc", "_netrc",
	".curlrc", ".wgetrc", ".bazelrc", ".mise.toml", "mise.toml", "mise.local.toml", ".mise.local.toml", "**/.config/mise", ".rtx.toml", ".asdfrc",
	// our own
	".thinkflow", ".thinkflow.toml", ".thinkflow.json", ".thinkflow.jsonc", "thinkflow.toml", "**/.config/thinkflow",
	"**/.local/state/thinkflow", "**/application support/thinkflow", "**/appdata/*/thinkflow",
}

// secretPatterns are files whose content nobody should send to a model without
// being asked.
var secretPatterns = []string{
	".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", "!.env.defaults", "*.env", ".envrc",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc.key",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
	".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".htpasswd", ".dockercfg", ".terraformrc",
	"**/.docker/config.json", "**/.aws/credentials", "**/.kube/config", "**/.azure", "**/.config/gcloud", "**/.config/gh/hosts.yml",
	".ssh", ".gnupg", "*.tfvars.secret", "*service-account*.json", "*service_account*.json", "client_secret*.json",
}

// deviceNames open devices on Windows, whatever extension follows.
var deviceNames = []string{"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}

// rules is what the configuration and the tables above come to.
type rules struct {
	deny, protected, secret patternSet
	// stems are the first six letters of hidden names as 8.3 aliases carry them:
	// ".vscode" is VSCODE~1.
	stems map[string]string
}

func newRules(o Options) rules {
	r := rules{
		deny:      parsePatterns(o.Deny, true),
		protected: parsePatterns(append(append([]string{}, protectedPatterns...), o.Protected...), true),
		secret:    parsePatterns(append(append([]string{}, secretPatterns...), o.Secrets...), true),
		stems:     map[string]string{},
	}
	for _, name := range forbiddenNames {
		r.addStem(name)
	}
	for _, set := range []patternSet{r.protected, r.secret, r.deny} {
		for _, p := range set {
			for _, c := range strings.Split(p.glob, "/") {
				if (p.kind == patternLiteral || p.kind == patternTail) && strings.HasPrefix(c, ".") && !p.negated {
					r.addStem(c)
				}
			}
		}
	}
	return r
}

func (r *rules) addStem(name string) {
	stem := strings.TrimLeft(name, ".")
	if i := strings.IndexByte(stem, '.'); i >= 0 {
		stem = stem[:i]
	}
	if len(stem) > 6 {
		stem = stem[:6]
	}
	if _, ok := r.stems[stem]; stem != "" && !ok {
		r.stems[stem] = name
	}
}

// nameProblem is why a component of a path is refused; code "" = it is not.
type nameProblem struct {
	code Code
	text string
}

// checkName looks at one component of a cleaned path.
func (r *rules) checkName(name string) nameProblem {
	plain := foldName(name)
	if isForbiddenName(plain) {
		return nameProblem{CodeForbidden, "version control metadata is never touched"}
	}
	canon := canonicalName(name)
	if isForbiddenName(canon) {
		return nameProblem{CodeForbidden, "this is another spelling of " + canon + ", and version control metadata is never touched"}
	}
	if stem, ok := shortAlias(plain); ok {
		if long, ok := r.stems[stem]; ok {
			return nameProblem{CodeForbidden, quote(name) + " is a short alias of " + long + "; use the full name"}
		}
	}
	last, _ := utf8.DecodeLastRuneInString(name)
	switch {
	case strings.ContainsRune(name, ':'):
		return nameProblem{CodeBadPath, "a colon is not allowed in a path (drive letters and streams of Windows); use a relative path with '/'"}
	case strings.ContainsRune(name, '\\'):
		return nameProblem{CodeBadPath, "a backslash is not allowed in a path; use '/'"}
	case last == '.' || unicode.IsSpace(last):
		return nameProblem{CodeBadPath, quote(name) + " ends in a dot or a blank, which other systems drop; use a name without it"}
	}
	if runtime.GOOS == "windows" && isDeviceName(plain) {
		return nameProblem{CodeBadPath, quote(name) + " is a device name on Windows"}
	}
	return nameProblem{}
}

// hidden reports whether rel holds invisible characters without which the path
// is protected, secret or denied.
func (r *rules) hidden(rel string) (rule string, ok bool) {
	parts := strings.Split(rel, "/")
	changed := false
	for i, p := range parts {
		c := canonicalName(p)
		changed = changed || c != foldName(p)
		parts[i] = c
	}
	if !changed {
		return "", false
	}
	canon := strings.Join(parts, "/")
	for _, set := range []patternSet{r.deny, r.protected, r.secret} {
		if rule, ok := set.matchPath(canon, true); ok {
			return rule, true
		}
	}
	return "", false
}

func isForbiddenName(folded string) bool {
	for _, n := range forbiddenNames {
		if folded == n {
			return true
		}
	}
	return false
}

func isDeviceName(folded string) bool {
	stem, _, _ := strings.Cut(folded, ".")
	stem = strings.TrimRight(stem, " ")
	for _, d := range deviceNames {
		if stem == d {
			return true
		}
	}
	for _, port := range []string{"com", "lpt"} {
		if n, ok := strings.CutPrefix(stem, port); ok && utf8.RuneCountInString(n) == 1 && strings.Contains("0123456789¹²³", n) {
			return true
		}
	}
	return false
}

// shortAlias returns the stem of an 8.3 name: git~1 gives "git".
func shortAlias(folded string) (stem string, ok bool) {
	base, _, _ := strings.Cut(folded, ".")
	stem, num, ok := strings.Cut(base, "~")
	if !ok || num == "" || stem == "" || strings.Trim(num, "0123456789") != "" {
		return "", false
	}
	return stem, true
}

// foldName folds letter case the way that case-insensitive file systems do.
// It keeps everything else; ASCII names without capitals come back as they are.
func foldName(s string) string {
	ascii := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.Map(foldRune, s)
}

// foldRune maps all letters that differ only in case to one of them.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		return unicode.ToLower(r)
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f < least {
			least = f
		}
	}
	return unicode.ToLower(least)
}

// canonicalName is what a careless file system could take the name for:
// without stream, trailing dots and blanks, invisible characters; compatibility
// forms and letter case folded.
func canonicalName(s string) string {
	if i := strings.IndexByte(s, ':'); i >= 0 {
		s = s[:i]
	}
	s = strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, s)
	s = foldName(norm.NFKC.String(s))
	return strings.TrimRightFunc(s, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

// isInvisible reports code points that file systems or eyes ignore.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
