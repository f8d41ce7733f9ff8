package agent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/agent/agenttest"
)

// shellRig plays a script with answers of a person (nil: nobody is there) and
// returns what the model was told.
func shellRig(t *testing.T, dir, settings, script string, answers []agent.Decision) (agent.RunResult, *agenttest.Person, string, *agent.Engine) {
	t.Helper()
	r := newRig(t, dir, settings, script)
	who := agenttest.NewPerson(answers)
	o := r.options
	o.Approver = nil
	if answers != nil {
		o.Approver = who
	}
	e := agent.New(o)
	t.Cleanup(func() { _ = e.Close() })
	res, err := e.Run(t.Context(), agent.RunRequest{Task: "do it"})
	require.NoError(t, err)
	require.Empty(t, r.server.Failures())
	var told strings.Builder
	reqs := r.server.Requests()
	for _, m := range reqs[len(reqs)-1].Messages() {
		told.WriteString(m.Text + "\n")
	}
	return res, who, told.String(), e
}

func bashTurn(tags ...string) string {
	return "turn\ntext <<END\n" + strings.Join(tags, "\n") + "\nEND\nturn\ntext ok\n"
}

func TestShellIsHeld(t *testing.T) {
	agenttest.Sandbox(t)
	outside := t.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	t.Setenv("SOME_API_KEY", "canary-key")
	for _, c := range []struct {
		name, line string
		told       string
	}{
		{"inside", "echo x > in.txt && cat in.txt", "exit status 0"},
		{"outside", "echo x > " + outside + "/f", "exit status 1"},
		{"existing protected file", "echo x > .vscode/tasks.json", "[sandbox]"},
		{"metadata", "echo x > .git/config", "exit status 1"},
		{"hooks", "echo x > .git/hooks/pre-commit", "exit status 1"},
		{"missing protected file", "mkdir -p sub/.vscode && echo x > sub/.vscode/tasks.json; true", "sub/.vscode was removed again"},
		{"network", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", ln.Addr().(*net.TCPAddr).Port), "exit status 1"},
		{"environment", "env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; true", "exit status 0"},
		{"state of ours", "cat STATE/*; ls -A STATE | wc -l", "exit status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range []string{".git/config", ".git/hooks/x", ".vscode/tasks.json"} {
				writeFile(t, filepath.Join(dir, f), "as it was\n")
			}
			writeFile(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
			res, _, told, _ := shellRig(t, dir, "allow = [\"bash\"]", bashTurn(`<tf-bash id="1">`+strings.ReplaceAll(c.line, "STATE", outside)+`</tf-bash>`), nil)
			require.Equal(t, agent.StateDone, res.State, res.Reason)
			require.Contains(t, told, c.told)
			require.NotContains(t, told, "canary-key")
			for _, f := range []string{".git/config", ".vscode/tasks.json"} {
				data, err := os.ReadFile(filepath.Join(dir, f))
				require.NoError(t, err)
				require.Equal(t, "as it was\n", string(data))
			}
			require.NoFileExists(t, filepath.Join(dir, ".git/hooks/pre-commit"))
			require.NoDirExists(t, filepath.Join(dir, "sub/.vscode"))
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestShellQuestions(t *testing.T) {
	agenttest.Sandbox(t)
	const once, session, no = agent.AllowOnce, agent.AllowSession, agent.Deny
	commit := `<tf-bash id="1">mkdir -p .git && echo x > .git/index</tf-bash>`
	for _, c := range []struct {
		name, settings string
		tags           []string
		answers        []agent.Decision
		state          agent.State
		asked          []string // part of each question's rule
		made           string   // exists afterwards
		not            string   // does not
	}{
		{"asks, yes", "", []string{`<tf-bash id="1">touch a</tf-bash>`}, []agent.Decision{once}, agent.StateDone, []string{"shell commands ask"}, "a", ""},
		{"asks, no", "", []string{`<tf-bash id="1">touch a</tf-bash>`}, []agent.Decision{no}, agent.StateDone, []string{"shell commands ask"}, "", "a"},
		{"an entry passes", `allow = ["bash touch"]`, []string{`<tf-bash id="1">touch a && touch b</tf-bash>`}, nil, agent.StateDone, nil, "b", ""},
		{"another command beside it asks", `allow = ["bash touch"]`, []string{`<tf-bash id="1">touch a; cp a b</tf-bash>`}, []agent.Decision{no}, agent.StateDone, []string{"cp a b is not on the allow list"}, "", "a"},
		{"nobody is there", `allow = ["bash touch"]`, []string{`<tf-bash id="1">touch a; cp a b</tf-bash>`}, nil, agent.StateRefused, nil, "", "a"},
		{"ask wins over allow", "allow = [\"bash\"]\nask = [\"bash touch\"]", []string{`<tf-bash id="1">touch a</tf-bash>`}, []agent.Decision{no}, agent.StateDone, []string{"ask bash touch"}, "", "a"},
		{"deny wins over all", "allow = [\"bash\"]\ndeny = [\"bash touch\"]\nmode = \"auto\"", []string{`<tf-bash id="1">touch a</tf-bash>`}, []agent.Decision{once}, agent.StateDone, nil, "", "a"},
		{"git is opened by the answer", "", []string{commit}, []agent.Decision{agent.AllowOnceGit}, agent.StateDone, []string{"shell"}, ".git/index", ""},
		{"git is not opened by a plain yes", "", []string{commit}, []agent.Decision{once}, agent.StateDone, []string{"shell"}, "", ".git/index"},
		{"git is opened by a rule", `allow = ["bash", "git"]`, []string{commit}, nil, agent.StateDone, nil, ".git/index", ""},
		{"a denied opening is no choice", "deny = [\"git\"]", []string{commit}, []agent.Decision{agent.AllowOnceGit}, agent.StateDone, []string{"shell"}, "", ".git/index"},
		{"with asks although bash is allowed", `allow = ["bash"]`, []string{strings.Replace(commit, `id="1"`, `id="1" with="git"`, 1)}, []agent.Decision{once}, agent.StateDone, []string{"to change version control metadata"}, ".git/index", ""},
		{"with and nobody there", `allow = ["bash"]`, []string{strings.Replace(commit, `id="1"`, `id="1" with="git"`, 1)}, nil, agent.StateRefused, nil, "", ".git/index"},
		{"mode auto opens nothing", `mode = "auto"`, []string{strings.Replace(commit, `id="1"`, `id="1" with="git"`, 1)}, []agent.Decision{no}, agent.StateDone, []string{"version control"}, "", ".git/index"},
		{"what a command made may stay", `allow = ["bash"]`, []string{`<tf-bash id="1">mkdir -p s/.vscode; touch s/.vscode/tasks.json</tf-bash>`}, []agent.Decision{once}, agent.StateDone, []string{"a no removes it"}, "s/.vscode/tasks.json", ""},
		{"what a command made goes", `allow = ["bash"]`, []string{`<tf-bash id="1">mkdir -p s/.vscode; touch s/.vscode/tasks.json</tf-bash>`}, []agent.Decision{session}, agent.StateDone, []string{"a no removes it"}, "s/.vscode/tasks.json", ""},
		{"unconfined on purpose", "allow = [\"bash\"]\nsandbox = \"none\"", []string{commit}, nil, agent.StateDone, nil, ".git/index", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n")
			res, who, _, _ := shellRig(t, dir, c.settings, bashTurn(c.tags...), c.answers)
			require.Equal(t, c.state, res.State, res.Reason)
			require.Len(t, who.Asked(), len(c.asked), "%+v", who.Asked())
			for i, part := range c.asked {
				require.Contains(t, who.Asked()[i].Rule, part)
				require.NotEmpty(t, who.Asked()[i].Hash)
			}
			if c.made != "" {
				require.FileExists(t, filepath.Join(dir, c.made))
			}
			if c.not != "" {
				require.NoFileExists(t, filepath.Join(dir, c.not))
			}
		})
	}
}

func TestPathRules(t *testing.T) {
	for _, c := range []struct {
		name, settings, tag string
		answers             []agent.Decision
		asked               []string
		applied             int
	}{
		{"deny", `deny = ["write docs/"]`, `<tf-write id="1" path="docs/a.md">` + "\nx\n</tf-write>", []agent.Decision{agent.AllowOnce}, nil, 0},
		{"deny, letter case", `deny = ["write docs/"]`, `<tf-write id="1" path="DOCS/a.md">` + "\nx\n</tf-write>", []agent.Decision{agent.AllowOnce}, nil, 0},
		{"deny through a link", `deny = ["write docs/"]`, `<tf-write id="1" path="link/a.md">` + "\nx\n</tf-write>", []agent.Decision{agent.AllowOnce}, nil, 0},
		{"deny of a move's end", `deny = ["write docs/"]`, `<tf-move id="1" path="x.sql" dest="docs/x.sql"/>`, []agent.Decision{agent.AllowOnce}, nil, 0},
		{"ask, no", `ask = ["write *.sql"]`, `<tf-edit id="1" path="x.sql"><old>a</old><new>b</new></tf-edit>`, []agent.Decision{agent.Deny}, []string{"ask write *.sql"}, 0},
		{"ask, yes", `ask = ["write *.sql"]`, `<tf-edit id="1" path="x.sql"><old>a</old><new>b</new></tf-edit>`, []agent.Decision{agent.AllowOnce}, []string{"ask write *.sql"}, 1},
		{"ask and copy away", `ask = ["read *.sql"]`, `<tf-copy id="1" path="x.sql" dest="y.txt"/>`, []agent.Decision{agent.Deny}, []string{"ask read *.sql"}, 0},
		{"allow one delete", `allow = ["delete x.sql"]`, `<tf-delete id="1" path="x.sql"/>`, nil, nil, 1},
		{"allow is not more", `allow = ["delete y.sql"]`, `<tf-delete id="1" path="x.sql"/>`, nil, nil, 0},
		{"read is denied to all", `deny = ["read *.sql"]`, `<tf-delete id="1" path="x.sql"/>`, []agent.Decision{agent.AllowOnce}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "x.sql"), "a\n")
			require.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o700))
			require.NoError(t, os.Symlink("docs", filepath.Join(dir, "link")))
			res, who, _, _ := shellRig(t, dir, c.settings, bashTurn(c.tag), c.answers)
			require.Equal(t, c.applied, res.Applied, res.Reason)
			require.Len(t, who.Asked(), len(c.asked))
			for i, part := range c.asked {
				require.Contains(t, who.Asked()[i].Rule, part)
				require.Contains(t, who.Asked()[i].Target, filepath.Join(dir, "x.sql"))
			}
		})
	}
}

// A grant for the session is bound: to the rule, to the class, to the command.
func TestSessionGrants(t *testing.T) {
	agenttest.Sandbox(t)
	dir := t.TempDir()
	script := "turn\ntext <<END\n<tf-bash id=\"1\" with=\"net\">touch a</tf-bash>\nEND\n" +
		"turn\ntext <<END\n<tf-bash id=\"2\" with=\"net\">touch a</tf-bash>\nEND\n" +
		"turn\ntext <<END\n<tf-bash id=\"3\" with=\"net\">touch b</tf-bash>\nEND\nturn\ntext ok\n"
	_, who, _, _ := shellRig(t, dir, `allow = ["bash"]`, script, []agent.Decision{agent.AllowSession, agent.Deny})
	require.Len(t, who.Asked(), 2, "the second time the same command runs, and another one asks")
	require.FileExists(t, filepath.Join(dir, "a"))
	require.NoFileExists(t, filepath.Join(dir, "b"))
}

func TestQuestionsHideNothing(t *testing.T) {
	_, who, _, _ := shellRig(t, t.TempDir(), "", bashTurn("<tf-bash id=\"1\">echo a\u202eb\x1b[2K</tf-bash>"), []agent.Decision{})
	require.Len(t, who.Asked(), 1)
	require.Equal(t, "echo a<U+202E>b␛[2K", who.Asked()[0].Target)
}

func TestBackgroundCommands(t *testing.T) {
	agenttest.Sandbox(t)
	dir := t.TempDir()
	script := `turn
call#c1 bash {"command":"echo begun; while ! test -f go; do sleep 0.05; done; echo gone on; sleep 600","background":true}
turn
text <<END
<tf-write id="1" path="go">
x
</tf-write>
END
call#c2 bash {"command":"while ! test -f go; do sleep 0.05; done"}
call#c3 process {"id":"p1","wait":1}
call#c4 process {"id":"p7"}
turn
call#c5 bash {"command":"sleep 600 & echo $! > pid; wait","background":true}
call#c6 process {"id":"p1","stop":true}
turn
text ok
`
	res, _, told, e := shellRig(t, dir, `allow = ["bash"]`, script, nil)
	require.Equal(t, agent.StateDone, res.State, res.Reason)
	require.Contains(t, told, "in the background as p1\np1: running\nbegun\n")
	require.Contains(t, told, "gone on")
	require.Contains(t, told, "there is no background command p7; there are p1")
	require.Contains(t, told, "p1: stopped")
	require.NoError(t, e.Close(), "ends what is left, and waits for it")
}
