// Package chromium shows pages in a real browser for tests: as a screenshot, or
// as the document that scripts and style left behind.
package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Browser is a Chromium that is there.
type Browser struct{ path string }

// Find looks for Chromium. Without one the test is skipped, but not in CI
// (CI=true), where a browser must be.
func Find(t testing.TB) Browser {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return Browser{path}
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium here: CI needs one (apt-get install chromium)")
	}
	t.Skip("no Chromium here")
	return Browser{}
}

// DOM is the document of an address after its scripts have run. Virtual time of
// 4 s passes before it is taken.
func (b Browser) DOM(ctx context.Context, dir, url string) (string, error) {
	return b.run(ctx, dir, "--dump-dom", "--virtual-time-budget=4000", url)
}

// Screenshot writes a picture of an address as PNG. dark: the person prefers
// dark pages.
func (b Browser) Screenshot(ctx context.Context, dir, url, file string, width, height int, dark bool) error {
	args := []string{"--virtual-time-budget=4000", "--hide-scrollbars", fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot=" + file}
	if dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	_, err := b.run(ctx, dir, append(args, url)...)
	return err
}

// run starts the browser with a profile of its own in dir.
func (b Browser) run(ctx context.Context, dir string, args ...string) (string, error) {
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + dir}, args...)
	var out, said strings.Builder
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("chromium: %w: %s", err, said.String())
	}
	return out.String(), nil
}
