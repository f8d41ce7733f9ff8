package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// EnvStateDir names the environment variable that overrides the folder under
// which the state of all workspaces lies.
const EnvStateDir = "THINKFLOW_STATE_DIR"

// StateRoot is the folder under which ThinkFlow keeps the state of all
// workspaces: $THINKFLOW_STATE_DIR; else %LOCALAPPDATA%\thinkflow on Windows,
// ~/Library/Application Support/thinkflow on macOS, and elsewhere
// $XDG_STATE_HOME/thinkflow or ~/.local/state/thinkflow (XDG base directories;
// a relative XDG_STATE_HOME is to be ignored).
func StateRoot() (string, error) {
	if d := os.Getenv(EnvStateDir); d != "" {
		abs, err := filepath.Abs(d)
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", EnvStateDir, d, err)
		}
		return abs, nil
	}
	switch runtime.GOOS {
	case "windows":
		if d := os.Getenv("LOCALAPPDATA"); d != "" {
			return filepath.Join(d, "thinkflow"), nil
		}
	case "darwin", "ios":
	default:
		if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
			return filepath.Join(d, "thinkflow"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return "", errors.New("no home folder for the ledger: set " + EnvStateDir + " to a folder that only you can read")
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(home, "AppData", "Local", "thinkflow"), nil
	case "darwin", "ios":
		return filepath.Join(home, "Library", "Application Support", "thinkflow"), nil
	}
	return filepath.Join(home, ".local", "state", "thinkflow"), nil
}

// StateDir is the state folder of one workspace: below StateRoot, a readable
// name and a short hash of the resolved path, so that a workspace reached
// through a link has one ledger. The folder need not exist yet.
func StateDir(workspaceDir string) (string, error) {
	root, err := StateRoot()
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(workspaceDir)
	if err != nil {
		return "", fmt.Errorf("workspace %s: %w", workspaceDir, err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	id := abs
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		id = strings.ToLower(id)
	}
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(root, "workspaces", readable(filepath.Base(abs))+"-"+hex.EncodeToString(sum[:5])), nil
}

// readable keeps letters, digits, dot, dash and underscore of a folder's name,
// at most 32 of them; the hash beside it tells workspaces apart.
func readable(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	s = strings.Trim(s, "._")
	if len(s) > 32 {
		s = s[:32]
	}
	if s == "" {
		return "workspace"
	}
	return s
}
