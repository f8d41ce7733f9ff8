package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thinkflow/agent"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// TestCases plays the failure cases that are about streams and edits through
// the whole engine, onto a real folder: what counts is the files afterwards.
func TestCases(t *testing.T) {
	for _, file := range []string{"../testdata/tag-stream/cases.jsonl", "../testdata/edit-match/cases.jsonl"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		sc := bufio.NewScanner(bytes.NewReader(data))
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			if id := sc.Bytes(); !bytes.Contains(id, []byte(`"id": "TS-`)) && !bytes.Contains(id, []byte(`"id": "EM-`)) {
				continue // about buffers, paths, …: played where those live
			}
			var c streamCase
			require.NoError(t, json.Unmarshal(sc.Bytes(), &c))
			t.Run(c.ID, func(t *testing.T) { c.run(t) })
		}
	}
}

type caseOp struct {
	Tag   string
	ID    string
	Path  string
	Body  string
	Edits []struct{ Old, New string }
}

type streamCase struct {
	ID    string
	Input struct {
		Chunks    []string
		ChunksHex []string `json:"chunks_hex"`
		Deltas    []struct {
			Content   string
			Reasoning string `json:"reasoning_content"`
		}
		Files   map[string]string
		Finish  string `json:"finish_reason"`
		Setting string
		Op      *caseOp
		Ops     []caseOp
		Read    map[string]string `json:"read_by_model"`
		OnSave  string            `json:"editor_on_save"`
	}
	Expected struct {
		Outcome string
		Ops     []struct {
			caseOp
			Status string
		}
		FilesAfter map[string]string `json:"files_after"`
	}
}

// answers is a model that plays answers in turn, then says that it is done.
type answers struct {
	turns []deltas
	next  int
}

func (a *answers) Stream(context.Context, *agent.Request) (agent.Stream, error) {
	d := deltas{{Text: "ok", Finish: "stop"}}
	if a.next < len(a.turns) {
		d = a.turns[a.next]
		a.next++
	}
	return &deltaStream{left: d}, nil
}

func (c *streamCase) run(t *testing.T) {
	if c.Input.OnSave != "" || c.Input.Read != nil {
		return // an editor that formats; a file that changed since it was read: scenarios of their own
	}
	dir := t.TempDir()
	for name, text := range c.Input.Files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	loaded, err := config.Load(config.Options{NoFile: true, Env: func(string) (string, bool) { return "", false }})
	require.NoError(t, err)
	cfg := loaded.Config
	cfg.ReasoningCommands = c.Input.Setting != "reasoning commands: off"
	ws, err := workspace.New([]workspace.Root{{Name: "ws", Dir: dir}}, workspace.Options{})
	require.NoError(t, err)
	state := t.TempDir()
	e := agent.New(agent.Options{Config: cfg, Model: &answers{turns: c.turns(t)}, Workspace: ws, Ledger: func(ctx context.Context) (*ledger.Ledger, error) {
		return ledger.Open(ctx, ledger.Options{Dir: state, Workspace: dir, Probe: workspace.ProbeFile, RemoveTemp: workspace.RemoveTemp})
	}})
	defer e.Close()
	session := ""
	for range max(len(c.Input.Ops), 1) {
		res, err := e.Run(t.Context(), agent.RunRequest{Task: "play it", Session: session})
		require.NoError(t, err)
		session = res.Session
	}

	want := map[string]string{}
	for name, text := range c.Input.Files {
		want[name] = text
	}
	if c.Expected.FilesAfter == nil && c.Expected.Outcome == "applied" {
		for _, op := range c.Expected.Ops {
			switch op.Tag {
			case "tf-write", "tf-append":
				want[op.Path] += op.Body
			case "tf-touch":
				want[op.Path] += ""
			}
		}
	}
	if op := c.Input.Op; op != nil && op.Tag == "tf-write" && c.Expected.Outcome == "applied" {
		want[op.Path] = op.Body
	}
	for name, text := range c.Expected.FilesAfter {
		want[name] = text
	}
	got := map[string]string{}
	r := &rig{dir: dir}
	for _, name := range r.tree(t) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got[name] = string(data)
	}
	if c.Expected.Outcome == "mixed" && c.Expected.FilesAfter == nil {
		return // which of them run is the parser's table
	}
	require.Equal(t, want, got)
}

// turns is the case as answers of a model: the chunks as they are, or its
// operations, each in a message of its own.
func (c *streamCase) turns(t *testing.T) []deltas {
	var d deltas
	for _, s := range c.Input.Chunks {
		d = append(d, agent.Delta{Text: s})
	}
	for _, s := range c.Input.ChunksHex {
		raw, err := hex.DecodeString(s)
		require.NoError(t, err)
		d = append(d, agent.Delta{Text: string(raw)})
	}
	for _, x := range c.Input.Deltas {
		d = append(d, agent.Delta{Text: x.Content, Reasoning: x.Reasoning})
	}
	if d != nil {
		finish := c.Input.Finish
		if finish == "" {
			finish = "stop"
		}
		return []deltas{append(d, agent.Delta{Finish: finish})}
	}
	ops := c.Input.Ops
	if c.Input.Op != nil {
		ops = []caseOp{*c.Input.Op}
	}
	var out []deltas
	for i, op := range ops {
		out = append(out, deltas{{Text: op.tag(i + 1)}, {Finish: "stop"}})
	}
	return out
}

// tag writes the operation as a model would, with a token that its texts lack.
func (o caseOp) tag(id int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<%s id=\"%d\" path=\"%s\" end=\"Zq9\">\n", o.Tag, id, o.Path)
	for _, p := range o.Edits {
		fmt.Fprintf(&b, "<old>\n%s</old>\n<new>\n%s</new>\n", p.Old, p.New)
	}
	b.WriteString(o.Body)
	fmt.Fprintf(&b, "</%s end=\"Zq9\">\n", o.Tag)
	return b.String()
}
