package sandbox

import "path/filepath"

// HomeSecrets lists files and folders of a home folder that hold credentials, for
// Spec.Hidden. Commands that were granted both git and the network keep those
// that pushing needs.
func HomeSecrets(home string, g Grants) []string {
	if home == "" {
		return nil
	}
	names := []string{
		".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".config/gcloud", ".config/op", ".password-store", ".local/share/keyrings",
		".terraform.d/credentials.tfrc.json", ".pgpass", ".my.cnf", ".pypirc", ".gem/credentials", ".cargo/credentials.toml", ".cargo/credentials",
		".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird", ".bash_history", ".zsh_history", ".python_history", ".psql_history",
		"Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
	}
	if !g.Git || !g.Net {
		names = append(names, ".ssh", ".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli")
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = filepath.Join(home, filepath.FromSlash(n))
	}
	return out
}
