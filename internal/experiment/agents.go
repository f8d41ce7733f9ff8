package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Launch is what an agent is started with.
type Launch struct {
	Dir    string // to work in
	Home   string // fresh, for this run alone
	URL    string // of the endpoint, without a version
	Model  string
	Key    string
	Prompt string
	Bash   bool // shell commands are part of the task
}

// Agent is a program that works on a task. One prompt is one process.
type Agent struct {
	Name    string
	Package string // of npm; "" = ours
	Bin     string
	Ours    bool
	Node22  bool
	// Tags: our commands come as tags, so the calling style only concerns what
	// must be seen.
	Tags bool
	Note string
	// Start gives arguments and environment, and writes what must stand in the
	// home.
	Start func(l Launch) (args, env []string, err error)
}

// Ours are the ways in which ThinkFlow can be set.
func Ours() []Agent {
	way := func(name, protocol, history string) Agent {
		return Agent{
			Name: name, Bin: "thinkflow", Ours: true, Tags: protocol == "tags",
			Start: func(l Launch) ([]string, []string, error) {
				args := []string{"run", "--json"}
				if l.Bash {
					args = append(args, "--allow", "bash")
				}
				return append(args, "-C", l.Dir, "--", l.Prompt), []string{
					"OPENAI_BASE_URL=" + l.URL + "/v1", "OPENAI_API_KEY=" + l.Key, "THINKFLOW_MODEL=" + l.Model,
					"THINKFLOW_PROTOCOL=" + protocol, "THINKFLOW_HISTORY=" + history,
					"THINKFLOW_STATE_DIR=" + filepath.Join(l.Home, "state"),
				}, nil
			},
		}
	}
	return []Agent{
		way("thinkflow tags strip", "tags", "strip"),
		way("thinkflow tags stub", "tags", "stub"),
		way("thinkflow tags keep", "tags", "keep"),
		way("thinkflow native", "native", "strip"),
	}
}

// Peers are the other agents, as their documentation says to run them without a
// person.
func Peers() []Agent {
	home := func(l Launch, path string, v any) (string, error) {
		full := filepath.Join(l.Home, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			return "", err
		}
		data, ok := v.(string)
		if !ok {
			raw, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				return "", err
			}
			data = string(raw)
		}
		return full, os.WriteFile(full, []byte(data), 0o600)
	}
	return []Agent{
		{Name: "Claude Code", Package: "@anthropic-ai/claude-code", Bin: "claude", Start: func(l Launch) ([]string, []string, error) {
			return []string{"-p", "--allowedTools", "Read,Write,Edit,Bash", "--", l.Prompt}, []string{
				"ANTHROPIC_BASE_URL=" + l.URL, "ANTHROPIC_API_KEY=" + l.Key, "CLAUDE_CONFIG_DIR=" + filepath.Join(l.Home, "claude"),
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			}, nil
		}},
		{Name: "Codex", Package: "@openai/codex", Bin: "codex", Start: func(l Launch) ([]string, []string, error) {
			conf := "model = \"" + l.Model + "\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"" + l.URL + "/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\nsupports_websockets = false\n"
			_, err := home(l, "codex/config.toml", conf)
			return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-C", l.Dir, l.Prompt},
				[]string{"CODEX_HOME=" + filepath.Join(l.Home, "codex"), "MOCK_KEY=" + l.Key}, err
		}},
		{Name: "Continue", Package: "@continuedev/cli", Bin: "cn", Start: func(l Launch) ([]string, []string, error) {
			conf := "name: mock\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: mock\n    provider: openai\n    model: " + l.Model + "\n    apiBase: " + l.URL + "/v1\n    apiKey: " + l.Key + "\n    roles: [chat]\n    capabilities: [tool_use]\n"
			file, err := home(l, "continue.yaml", conf)
			return []string{"-p", "--config", file, "--auto", l.Prompt}, []string{"CONTINUE_TELEMETRY_ENABLED=0"}, err
		}},
		{Name: "opencode", Package: "opencode-ai", Bin: "opencode", Start: func(l Launch) ([]string, []string, error) {
			file, err := home(l, "opencode.json", m{"$schema": "https://opencode.ai/config.json", "provider": m{"mock": m{
				"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": m{"baseURL": l.URL + "/v1", "apiKey": l.Key},
				"models": m{l.Model: m{"name": l.Model, "tool_call": true, "limit": m{"context": 200000, "output": 32000}}}}}})
			return []string{"run", "--auto", "-m", "mock/" + l.Model, l.Prompt}, []string{
				"OPENCODE_CONFIG=" + file, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			}, err
		}},
		{Name: "Gemini CLI", Package: "@google/gemini-cli", Bin: "gemini", Start: func(l Launch) ([]string, []string, error) {
			_, err := home(l, ".gemini/settings.json", m{"security": m{"auth": m{"selectedType": "gemini-api-key"}}, "selectedAuthType": "gemini-api-key"})
			return []string{"--approval-mode", "yolo", "--skip-trust", "-m", l.Model, "-p", l.Prompt},
				[]string{"GEMINI_API_KEY=" + l.Key, "GOOGLE_GEMINI_BASE_URL=" + l.URL}, err
		}},
		{Name: "Qwen Code", Package: "@qwen-code/qwen-code", Bin: "qwen", Node22: true, Start: func(l Launch) ([]string, []string, error) {
			return []string{"--auth-type", "openai", "--approval-mode", "yolo", "-m", l.Model, "-p", l.Prompt},
				[]string{"OPENAI_API_KEY=" + l.Key, "OPENAI_BASE_URL=" + l.URL + "/v1", "OPENAI_MODEL=" + l.Model}, nil
		}},
		{Name: "Cline", Package: "cline", Bin: "cline", Start: func(l Launch) ([]string, []string, error) {
			_, err := home(l, "cline/settings/providers.json", m{"version": 1, "lastUsedProvider": "openai-compatible", "modes": m{}, "providers": m{"openai-compatible": m{
				"settings":  m{"provider": "openai-compatible", "apiKey": l.Key, "model": l.Model, "baseUrl": l.URL + "/v1"},
				"updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}})
			return []string{"--auto-approve", "true", "-P", "openai-compatible", "-m", l.Model, "-c", l.Dir, "--data-dir", filepath.Join(l.Home, "cline"), l.Prompt}, nil, err
		}},
		{Name: "pi", Package: "@earendil-works/pi-coding-agent", Bin: "pi", Node22: true, Start: func(l Launch) ([]string, []string, error) {
			_, err := home(l, "pi/models.json", m{"providers": m{"mock": m{"baseUrl": l.URL + "/v1", "api": "openai-completions", "apiKey": l.Key,
				"models": []m{{"id": l.Model, "name": l.Model, "reasoning": false, "input": []string{"text"}, "contextWindow": 200000, "maxTokens": 32000, "cost": m{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}}}}})
			return []string{"-p", "--offline", "--provider", "mock", "--model", l.Model, l.Prompt}, []string{"PI_CODING_AGENT_DIR=" + filepath.Join(l.Home, "pi")}, err
		}},
	}
}

// plainEnv is an environment made from nothing.
func plainEnv(home string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"), "XDG_DATA_HOME=" + filepath.Join(home, ".local/share"), "XDG_STATE_HOME=" + filepath.Join(home, ".local/state")}
	if runtime.GOOS == "windows" {
		for _, n := range []string{"SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP"} {
			env = append(env, n+"="+os.Getenv(n))
		}
		env = append(env, "USERPROFILE="+home, "APPDATA="+home, "LOCALAPPDATA="+home)
	}
	return env
}

// program is where an agent was found.
type program struct {
	path    string
	extra   string // folder that goes first in PATH
	version string
}

// find looks for the agent in the folder of installed peers, then in PATH; with
// install it asks npm for it.
func (a *Agent) find(ctx context.Context, folder string, install bool) (program, error) {
	dir := filepath.Join(folder, strings.ReplaceAll(strings.ToLower(a.Name), " ", "-"))
	bin := filepath.Join(dir, "node_modules", ".bin")
	local := filepath.Join(bin, a.Bin)
	if _, err := os.Stat(local); err != nil && install {
		args := []string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--loglevel=error", a.Package}
		if a.Node22 {
			args = append(args, "node@22")
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return program{}, err
		}
		cmd := exec.CommandContext(ctx, "npm", args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return program{}, &setupError{"npm install " + a.Package + ": " + tail(strings.TrimSpace(string(out)), 300)}
		}
	}
	p := program{path: local, extra: bin}
	if _, err := os.Stat(local); err != nil {
		path, err := exec.LookPath(a.Bin)
		if err != nil {
			return program{}, &setupError{a.Bin + " is not on this machine; --peers installs " + a.Package + " with npm"}
		}
		p = program{path: path}
	}
	home, err := os.MkdirTemp("", "experiment-version-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(home)
	cmd := exec.CommandContext(ctx, p.path, "--version")
	cmd.Env = p.env(home)
	var said, aside bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &aside
	err = cmd.Run()
	if err != nil {
		return p, &setupError{a.Bin + " --version: " + err.Error()}
	}
	if said.Len() == 0 { // pi says it there
		said = aside
	}
	p.version = strings.TrimSpace(firstLines(said.String()+"\n", 1))
	return p, nil
}

func (p program) env(home string) []string {
	env := plainEnv(home)
	if p.extra != "" {
		for i, e := range env {
			if rest, ok := strings.CutPrefix(e, "PATH="); ok {
				env[i] = "PATH=" + p.extra + string(os.PathListSeparator) + rest
			}
		}
	}
	return env
}

// setupError is why an agent could not be run at all.
type setupError struct{ text string }

func (e *setupError) Error() string { return e.text }
