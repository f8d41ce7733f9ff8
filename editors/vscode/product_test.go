package vscode_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"thinkflow/editors/internal/rig"

	"thinkflow/internal/need"
)

// TestProduct builds the extension as people get it: the types are right, and the
// tests' socket is not in it.
func TestProduct(t *testing.T) {
	vscode := filepath.Join(rig.RepoDir(t), "editors/vscode")
	npm := rig.Installed(t, "THINKFLOW_NPM", "npm")
	if _, err := os.Stat(filepath.Join(vscode, "node_modules/esbuild")); err != nil {
		need.Missing(t, "editors/vscode/node_modules")
	}
	bundle := filepath.Join(t.TempDir(), "extension.js")
	build := exec.Command(npm, "run", "--silent", "build", "--", "--outfile="+bundle, "--log-level=warning")
	build.Dir = vscode
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("npm run build: %v\n%s", err, out)
	}
	b, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "THINKFLOW_TEST_SOCKET") {
		t.Error("the test socket is in the product")
	}
}

// TestManifest: nothing that a workspace can set says which program runs, or
// where texts and key are sent.
func TestManifest(t *testing.T) {
	b, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Capabilities struct {
			UntrustedWorkspaces struct {
				Supported                any
				RestrictedConfigurations []string
			}
			VirtualWorkspaces struct{ Supported bool }
		}
		Contributes struct {
			Commands      []struct{ Command string }
			Configuration struct {
				Properties map[string]struct{ Scope string }
			}
		}
	}
	if err := json.Unmarshal(b, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Capabilities.UntrustedWorkspaces.Supported != "limited" || manifest.Capabilities.VirtualWorkspaces.Supported {
		t.Errorf("capabilities: %+v", manifest.Capabilities)
	}
	harmless := []string{"thinkflow.sendCurrentFile"}
	for name, property := range manifest.Contributes.Configuration.Properties {
		switch {
		case slices.Contains(harmless, name):
		case property.Scope != "machine":
			t.Errorf("%s has scope %q: a workspace can set it", name, property.Scope)
		case !slices.Contains(manifest.Capabilities.UntrustedWorkspaces.RestrictedConfigurations, name):
			t.Errorf("%s is not among the restricted configurations", name)
		}
	}
	for _, command := range manifest.Contributes.Commands {
		if strings.HasPrefix(command.Command, "thinkflow.server.") {
			t.Errorf("%s: VS Code registers the server's own commands itself", command.Command)
		}
	}
}
