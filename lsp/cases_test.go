package lsp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"thinkflow/agent"
	"thinkflow/internal/fakeeditor"
	"thinkflow/workspace"
)

// leCase is one failure case of kind lsp-editor, as far as this layer plays it.
type leCase struct {
	ID    string
	Input struct {
		Buffer struct {
			URI      string
			Version  int32
			Text     string
			ReadOnly bool
		}
		Encodings []string `json:"client_positionEncodings"`
		Files     map[string]string
		Disk      map[string]string
		Symlinks  map[string]string
		Op        leOp
		Ops       []leOp
		Setting   string
	}
	Expected struct {
		TextEdits     json.RawMessage `json:"text_edits"`
		WorkspaceEdit json.RawMessage `json:"workspace_edit"`
		EditURI       string          `json:"edit_uri"`
		Versions      map[string]*int32
		FilesAfter    map[string]string `json:"files_after"`
	}
}

type leOp struct {
	Tag, Path, Body string
	Edits           []struct{ Old, New string }
}

func (o leOp) op() workspace.Op {
	op := workspace.Op{Kind: workspace.OpKind(strings.TrimPrefix(o.Tag, "tf-")), Path: o.Path, Body: o.Body}
	for _, e := range o.Edits {
		op.Pairs = append(op.Pairs, workspace.Pair{Old: e.Old, New: e.New})
	}
	return op
}

func leCases(t *testing.T) map[string]leCase {
	data, err := os.ReadFile(filepath.Join(testdataDir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]leCase{}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var c leCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			// Inputs of cases for other layers have other shapes.
			continue
		}
		out[c.ID] = c
	}
	return out
}

// TestCases plays the lsp-editor cases that belong to this layer. The others
// are played by the scenarios (LE-08, LE-11, LE-20), by the agent (LE-10, LE-12)
// and by the workspace (LE-21 to LE-27), or have rows of their own (LE-13, LE-14
// in uri_test.go, LE-18 in edit_test.go).
func TestCases(t *testing.T) {
	all := leCases(t)
	for _, id := range []string{"LE-01", "LE-02", "LE-03", "LE-04", "LE-05", "LE-06", "LE-07", "LE-09", "LE-15", "LE-16", "LE-17", "LE-19"} {
		c, ok := all[id]
		if !ok {
			t.Errorf("%s is not in cases.jsonl", id)
			continue
		}
		t.Run(id, func(t *testing.T) { c.play(t) })
	}
}

func (c leCase) play(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(files map[string]string) {
		for name, text := range files {
			path := filepath.Join(root, name)
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(c.Input.Files)
	write(c.Input.Disk)
	for name, to := range c.Input.Symlinks {
		if err := os.Symlink(filepath.Join(root, to), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	ws := fakeeditor.FileURI(root)
	s := start(t, config{root: root, profile: "strict", editor: fakeeditor.Options{Encodings: c.Input.Encodings}})
	buffer := strings.TrimPrefix(c.Input.Buffer.URI, "file:///ws/")
	if buffer != "" {
		s.OpenVersion(ws+"/"+buffer, c.Input.Buffer.Text, c.Input.Buffer.Version)
	}
	ops := c.Input.Ops
	if len(ops) == 0 {
		ops = []leOp{c.Input.Op}
	}
	versions := map[string]*int32{}
	var last json.RawMessage
	for _, op := range ops {
		change := s.plan(op.op())
		if !change.Open && c.Input.Setting != "apply: editor" {
			t.Fatalf("%s is not seen as open", op.Path)
		}
		out, err := s.apply(change)
		if err != nil || out.Verdict != agent.EditApplied {
			t.Fatalf("%s: %+v, %v", op.Path, out, err)
		}
		last = s.Edits()[len(s.Edits())-1]
		var sent sentEdit
		_ = json.Unmarshal(last, &sent)
		for _, dc := range sent.Edit.DocumentChanges {
			if dc.TextDocument.URI != "" {
				versions[op.Path] = dc.TextDocument.Version
			}
		}
	}
	// The expected values speak of file:///ws.
	last = bytes.ReplaceAll(last, []byte(ws), []byte("file:///ws"))
	var sent sentEdit
	if err := json.Unmarshal(last, &sent); err != nil {
		t.Fatal(err)
	}
	text := sent.Edit.DocumentChanges[len(sent.Edit.DocumentChanges)-1]
	if want := c.Expected.TextEdits; want != nil && !otherEdits[c.ID] {
		sameJSON(t, "text edits", text.Edits, want)
	}
	if want := c.Expected.WorkspaceEdit; want != nil && !otherEdits[c.ID] {
		sameJSON(t, "workspace edit", sent.Raw(t, last), want)
	}
	if c.Expected.EditURI != "" && text.TextDocument.URI != c.Expected.EditURI {
		t.Errorf("URI %s, want %s", text.TextDocument.URI, c.Expected.EditURI)
	}
	if c.Expected.Versions != nil && !reflect.DeepEqual(versions, c.Expected.Versions) {
		t.Errorf("versions %v, want %v", versions, c.Expected.Versions)
	}
	s.drain()
	for name, want := range c.Expected.FilesAfter {
		if got := s.Text(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if bytes.Contains(last, []byte(`"kind"`)) && c.ID != "LE-07" {
		t.Errorf("a resource operation for a file that exists: %s", last)
	}
}

// otherEdits are the cases whose expected edits are one right answer of several:
// ours go before the final line break (LE-03) or are smaller (the others). The
// text afterwards is checked all the same.
var otherEdits = map[string]bool{"LE-03": true, "LE-06": true, "LE-17": true, "LE-19": true}

// sentEdit is what of an applyEdit is looked at.
type sentEdit struct {
	Edit struct {
		DocumentChanges []struct {
			Kind         string
			TextDocument struct {
				URI     string
				Version *int32
			}
			Edits json.RawMessage
		}
	}
}

// Raw is the edit member.
func (sentEdit) Raw(t *testing.T, params json.RawMessage) json.RawMessage {
	t.Helper()
	var p struct{ Edit json.RawMessage }
	if err := json.Unmarshal(params, &p); err != nil {
		t.Fatal(err)
	}
	return p.Edit
}

func sameJSON(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}
