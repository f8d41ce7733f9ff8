package agent_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"thinkflow/agent"
	"thinkflow/internal/trust"
	"thinkflow/ledger"
)

var update = flag.Bool("update", false, "rewrite the golden sections of the scenarios")

// TestScenarios runs testdata/agent/*.txtar. A scenario is a comment and these
// sections (those marked * are golden, rewritten by -update):
//
//	config        settings, as in the configuration file
//	script        the model's side: see internal/scripted
//	task          tasks, one a line, each a run in the same session
//	drive         what happens meanwhile, a step a line (see driver)
//	trust         what of the workspace is trusted before, a line "KIND PATH" each
//	in/PATH       files before
//	after/PATH  * files afterwards, all of them
//	result      * how each run ended
//	events      * what was told to whoever watches
//	requests    * what each request added to the conversation
//	ledger      * commands as recorded
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../testdata/agent/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScenario(t, file)
		})
	}
}

func runScenario(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	require.NoError(t, err)
	in := map[string]string{}
	for _, f := range ar.Files {
		in[f.Name] = string(f.Data)
	}

	dir := t.TempDir()
	for name, data := range in {
		if path, ok := strings.CutPrefix(name, "in/"); ok {
			writeFile(t, filepath.Join(dir, path), data)
		}
	}
	rig := newRig(t, dir, in["config"], in["script"])
	for line := range strings.Lines(in["trust"]) {
		kind, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.NoError(t, rig.trust.Grant(trust.Kind(kind), filepath.Join(dir, path), trust.Hash(in["in/"+path])))
	}
	var results strings.Builder
	var events eventLog
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	steps := strings.Split(strings.TrimSpace(in["drive"]), "\n")
	driven := make(chan error, 1)
	go func() { driven <- rig.drive(ctx, steps) }()

	session := rig.inSession()
	for i, task := range strings.Split(strings.TrimSpace(in["task"]), "\n") {
		run := fmt.Sprintf("run%d", i+1)
		rig.setRun(run)
		res, err := rig.engine.Run(ctx, agent.RunRequest{
			Run: run, Session: session, Task: task, DryRun: rig.dryRun,
			Events: func(ev agent.Event) { events.add(rig, ev) },
		})
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "the run did not end in time")
		session = res.Session
		fmt.Fprintf(&results, "%s exit %d, turns %d, requests %d, applied %d, failed %d, skipped %d, files %v\n",
			res.State, res.State.ExitCode(), res.Turns, res.Usage.Requests, res.Applied, res.Failed, res.Skipped, res.Files)
		if res.Reason != "" {
			results.WriteString("  " + rig.clean(res.Reason) + "\n")
		}
		if res.Verify != "" {
			results.WriteString("  verify " + rig.clean(res.Verify) + "\n")
		}
		if res.Text != "" {
			results.WriteString("  text " + rig.clean(fmt.Sprintf("%q", res.Text)) + "\n")
		}
	}
	for _, n := range rig.notices {
		results.WriteString("notice " + rig.clean(n) + "\n")
	}
	require.NoError(t, <-driven)
	require.Empty(t, rig.server.Failures(), "the script's expectations")

	got := &txtar.Archive{Comment: ar.Comment}
	for _, f := range ar.Files {
		if !golden(f.Name) {
			got.Files = append(got.Files, f)
		}
	}
	for _, name := range rig.tree(t) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got.Files = append(got.Files, txtar.File{Name: "after/" + name, Data: quoteUnfit(data)})
	}
	got.Files = append(got.Files,
		txtar.File{Name: "result", Data: []byte(results.String())},
		txtar.File{Name: "events", Data: []byte(events.String())},
		txtar.File{Name: "requests", Data: []byte(rig.requests(t))},
		txtar.File{Name: "ledger", Data: []byte(rig.ledgerRows(t))},
	)
	if *update {
		require.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
		return
	}
	require.Equal(t, string(txtar.Format(ar)), string(txtar.Format(got)))
}

func golden(name string) bool {
	return strings.HasPrefix(name, "after/") || slices.Contains([]string{"result", "events", "requests", "ledger"}, name)
}

// quoteUnfit makes a file's bytes fit into a text archive: what has a carriage
// return, no final line break, or a line like a section's head is quoted.
func quoteUnfit(data []byte) []byte {
	s := string(data)
	if s == "" || strings.HasSuffix(s, "\n") && !strings.Contains(s, "\r") && !strings.Contains("\n"+s, "\n-- ") {
		return data
	}
	return fmt.Appendf(nil, "%q\n", s)
}

var (
	reToken  = regexp.MustCompile(`(until |^--- )[0-9a-f]{8}(\)|$)`)
	reTokens = regexp.MustCompile(`about \d+( to \d+)?( tokens)|\d+( fit)`)
	rePort   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	reWait   = regexp.MustCompile(`trying again in \S+`)
)

// clean removes from a text what differs from run to run.
func (r *rig) clean(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = reToken.ReplaceAllString(l, "${1}TOKEN$2")
	}
	s = strings.Join(lines, "\n")
	s = strings.ReplaceAll(s, r.dir, "DIR")
	s = rePort.ReplaceAllString(s, "HOST")
	s = reTokens.ReplaceAllString(s, "about N$2$3")
	return reWait.ReplaceAllString(s, "trying again in WAIT")
}

// ledgerRows lists the commands as recorded, and checks the chain.
func (r *rig) ledgerRows(t *testing.T) string {
	if r.ledger == nil {
		return ""
	}
	_, err := r.ledger.Verify(context.Background())
	require.NoError(t, err)
	cmds, err := r.ledger.List(context.Background(), ledger.Filter{})
	require.NoError(t, err)
	var b strings.Builder
	for _, c := range cmds {
		told := ""
		if c.Injected != nil {
			told = " told"
		}
		fmt.Fprintf(&b, "%s %s %s %s%s\n", c.Key, c.Tool, strings.TrimSpace(c.Path+" "+c.Dest+" "+c.Cmd), strings.TrimSpace(string(c.Status)+" "+c.Code), told)
	}
	return b.String()
}

// tree lists the files of the workspace.
func (r *rig) tree(t *testing.T) []string {
	var out []string
	require.NoError(t, filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(r.dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	}))
	slices.Sort(out)
	return out
}
