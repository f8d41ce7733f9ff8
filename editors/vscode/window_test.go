package vscode_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thinkflow/editors/internal/rig"

	"thinkflow/internal/need"
)

// limit bounds the whole life of one VS Code.
const limit = 8 * time.Minute

// window is a real VS Code with a folder open, a browser window that shows it,
// and the extension's test socket.
type window struct {
	page      *peer
	extension *peer
	dir       string // the folder
	model     *rig.Model
	shots     string // folder for screenshots; "" = none
	server    string // path of the server's program, which nothing else runs
}

// document is an open document as VS Code has it.
type document struct {
	Path    string
	Text    string
	Dirty   bool
	Version int
}

// open starts everything. The files are the workspace's; the script is for the
// one model that all tests of this window share.
func open(t *testing.T, files map[string]string, script string) *window {
	t.Helper()
	repo := rig.RepoDir(t)
	vscode := filepath.Join(repo, "editors/vscode")
	codeServer := rig.Fetched(t, "VS Code", "THINKFLOW_CODE_SERVER", "get-vscode.sh")
	chromium := rig.Installed(t, "THINKFLOW_CHROMIUM", "chromium", "chromium-browser", "google-chrome")
	if _, err := os.Stat(filepath.Join(vscode, "node_modules/playwright-core")); err != nil {
		need.Missing(t, "editors/vscode/node_modules")
	}
	binary := rig.Build(t)
	w := &window{model: rig.Serve(t, "vscode", []byte(script)), shots: os.Getenv("THINKFLOW_SCREENSHOTS")}

	// Short names: paths of sockets are limited to about 100 bytes.
	base, err := os.MkdirTemp("", "tfvs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	home, data, socket := filepath.Join(base, "h"), filepath.Join(base, "d"), filepath.Join(base, "s")
	w.dir = filepath.Join(base, "ws")
	rig.WriteFiles(t, w.dir, files)
	w.server = filepath.Join(base, "thinkflow")
	if err := copyProgram(binary, w.server); err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(object{
		"thinkflow.path":                               w.server,
		"thinkflow.model":                              "scripted",
		"thinkflow.baseUrl":                            w.model.URL,
		"workbench.startupEditor":                      "none",
		"workbench.tips.enabled":                       false,
		"files.autoSave":                               "off",
		"telemetry.telemetryLevel":                     "off",
		"extensions.autoCheckUpdates":                  false,
		"chat.commandCenter.enabled":                   false,
		"workbench.secondarySideBar.defaultVisibility": "hidden",
	})
	if err != nil {
		t.Fatal(err)
	}
	rig.WriteFiles(t, base, map[string]string{
		"config.yaml":             "auth: none\n",
		"d/User/settings.json":    string(settings),
		"d/Machine/settings.json": string(settings), // where a remote window looks for machine settings
		"h/.keep":                 "",
	})
	extension := filepath.Join(base, "x/thinkflow.thinkflow-0.1.0")
	manifest, err := os.ReadFile(filepath.Join(vscode, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	rig.WriteFiles(t, extension, map[string]string{"package.json": string(manifest)})
	build := exec.Command("npm", "run", "--silent", "build:test", "--", "--outfile="+filepath.Join(extension, "dist/extension.js"))
	build.Dir = vscode
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("npm run build:test: %v\n%s", err, out)
	}

	port := freePort(t)
	server := exec.Command(codeServer,
		"--config", filepath.Join(base, "config.yaml"), "--bind-addr", fmt.Sprintf("127.0.0.1:%d", port),
		"--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust",
		"--disable-getting-started-override", "--user-data-dir", data, "--extensions-dir", filepath.Dir(extension), w.dir)
	server.Dir = w.dir
	server.Env = rig.CleanEnv(home, "OPENAI_API_KEY=test-key", "THINKFLOW_TEST_SOCKET="+socket)
	serverProcess := rig.Start(t, server, limit, nil)
	url := fmt.Sprintf("http://127.0.0.1:%d/?folder=%s", port, w.dir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("code-server:\n%s\n%s", serverProcess.Output(), logs(data))
		}
	})
	eventually(t, "code-server listens", time.Minute, func() error {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err
	})

	w.page = browser(t, filepath.Dir(codeServer), vscode, chromium, base)
	w.page.ask(t, "goto", object{"url": url}, nil)
	t.Cleanup(func() {
		if t.Failed() {
			w.screenshot(t, "failure")
		}
	})
	eventually(t, "the extension runs", 4*time.Minute, func() error {
		c, err := net.Dial("unix", socket)
		if err != nil {
			return err
		}
		w.extension = newPeer("extension", c, c)
		return nil
	})
	return w
}

// browser starts Chromium under its driver.
func browser(t *testing.T, codeServerDir, vscode, chromium, base string) *peer {
	t.Helper()
	node := filepath.Join(codeServerDir, "bin/node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	cmd := exec.Command(node, filepath.Join(vscode, "testdata/page.mjs"), chromium, filepath.Join(base, "c"))
	cmd.Env = rig.CleanEnv(filepath.Join(base, "h"))
	p, stdin, stdout := rig.StartPiped(t, cmd, limit)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("browser:\n%s", p.Output())
		}
	})
	page := newPeer("browser", bufio.NewReader(stdout), stdin)
	page.mu.Lock()
	ready := page.waiting[0]
	page.mu.Unlock()
	if ready != nil {
		if err := await("browser start", ready, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
	}
	return page
}

func copyProgram(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o777)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually waits until check succeeds.
func eventually(t testing.TB, what string, limit time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
		<-tick.C
	}
}

// logs of the extension host, the end of each.
func logs(data string) string {
	var b strings.Builder
	_ = filepath.WalkDir(filepath.Join(data, "logs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "xthost") && !strings.Contains(path, "hinkFlow") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 {
			fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(path), text[max(0, len(text)-4<<10):])
		}
		return nil
	})
	return b.String()
}

// screenshot saves what a person sees now, if a folder for that is given.
func (w *window) screenshot(t testing.TB, name string) {
	t.Helper()
	if w.shots == "" {
		return
	}
	path := filepath.Join(w.shots, "vscode-"+name+".png")
	if err := await("screenshot", w.page.send("screenshot", object{"path": path}), time.Minute, nil); err != nil {
		t.Log(err)
	}
}

func (w *window) show(t testing.TB, name string) {
	t.Helper()
	w.extension.ask(t, "open", object{"path": filepath.Join(w.dir, name)}, nil)
}

// document is the open document; the test fails when it is not open.
func (w *window) document(t testing.TB, name string) document {
	t.Helper()
	var all []document
	w.extension.ask(t, "documents", nil, &all)
	for _, d := range all {
		if d.Path == filepath.Join(w.dir, name) {
			return d
		}
	}
	t.Fatalf("%s is not open; open are %+v", name, all)
	return document{}
}

// hasText waits until the open document has this text.
func (w *window) hasText(t testing.TB, name, want string) {
	t.Helper()
	eventually(t, name+" to change", 30*time.Second, func() error {
		if got := w.document(t, name).Text; got != want {
			return fmt.Errorf("it has:\n%s\nwant:\n%s", got, want)
		}
		return nil
	})
}

// says waits until the status has each of the words.
func (w *window) says(t testing.TB, words ...string) {
	t.Helper()
	eventually(t, "the status to change", 30*time.Second, func() error {
		var doing string
		w.extension.ask(t, "status", nil, &doing)
		for _, word := range words {
			if !strings.Contains(doing, word) {
				return fmt.Errorf("it is %q, without %q", doing, word)
			}
		}
		return nil
	})
}

func (w *window) onDisk(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// result of a task, as far as we look at it.
type result struct {
	State   string
	Reason  string
	Applied int
	Failed  int
	Files   []string
	Verify  string
	Usage   struct{ Requests int }
}

// run starts a task; finish waits for its end.
func (w *window) run(task string) <-chan answer {
	return w.extension.send("run", object{"text": task})
}

func finish(t testing.TB, c <-chan answer, state string) result {
	t.Helper()
	var r result
	if err := await("the task", c, time.Minute, &r); err != nil {
		t.Fatal(err)
	}
	if r.State != state {
		t.Fatalf("the task ended %s (%s), want %s", r.State, r.Reason, state)
	}
	return r
}
