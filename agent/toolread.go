package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"thinkflow/agent/registry"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/workspace"
)

// readTools are the tools that look and change nothing.
func readTools() []entry {
	facts := toolFacts{from: config.ModeAsk, permit: permitPath}
	return []entry{
		{registry.Define(registry.Tool[*turn]{
			Name: "read_file", Description: "Read a text file, whole or from a line on.",
		}, readFileTool), facts},
		{registry.Define(registry.Tool[*turn]{
			Name: "list_files", Description: "List a folder.",
		}, listFilesTool), facts},
		{registry.Define(registry.Tool[*turn]{
			Name: "glob", Description: "Find files by name, with a pattern such as **/*.go.",
		}, globTool), facts},
		{registry.Define(registry.Tool[*turn]{
			Name: "grep", Description: "Search file contents. Returns path, line number and line.",
		}, grepTool), facts},
		diagnosticsEntry(),
	}
}

type readFileArgs struct {
	Path  string `json:"path"`
	Line  int    `json:"line,omitempty" jsonschema:"first line, from 1"`
	Lines int    `json:"lines,omitempty" jsonschema:"number of lines"`
}

type listFilesArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"default: the workspace"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels of folders, default 1"`
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty" jsonschema:"folder to look in"`
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Regex      bool   `json:"regex,omitempty" jsonschema:"RE2; default: literal"`
	Path       string `json:"path,omitempty" jsonschema:"file or folder"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match"`
}

// permitPath asks for the path of a call that reads. A path that cannot be used
// at all is an error here too: then the handler never runs.
func permitPath(t *turn, at ledger.Key, raw json.RawMessage) error {
	var a struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	if a.Path == "" {
		return nil
	}
	_, err := t.r.mayRead(at, a.Path)
	var denied deniedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &denied):
		return err
	}
	if e := asToolError(err); e.Code != registry.Execution {
		return e
	}
	return nil // the handler says it better
}

func readFileTool(_ context.Context, c toolCall, a readFileArgs) (toolOutput, error) {
	t := c.Env
	req := workspace.ReadRequest{Path: a.Path, Line: a.Line, Lines: a.Lines, MaxBytes: c.Budget}
	text, header, err := t.r.readText(req)
	if err != nil {
		return toolOutput{}, asToolError(err)
	}
	return registry.Output{Text: header + "\n" + text, Shrink: t.r.shorterRead(req)}, nil
}

// shorterRead reads the same again in fewer bytes, so that the header says
// rightly where to go on.
func (r *run) shorterRead(req workspace.ReadRequest) func(int) string {
	return func(most int) string {
		req.MaxBytes = max(most-len(req.Path)-100, 1)
		text, header, err := r.readText(req)
		if err != nil {
			return err.Error()
		}
		return header + "\n" + text
	}
}

func listFilesTool(_ context.Context, c toolCall, a listFilesArgs) (toolOutput, error) {
	text, header, err := c.Env.r.listFiles(workspace.ListRequest{Path: a.Path, Depth: a.Depth})
	if err != nil {
		return toolOutput{}, asToolError(err)
	}
	return registry.Text(header + "\n" + cutText(text, c.Budget)), nil
}

func globTool(ctx context.Context, c toolCall, a globArgs) (toolOutput, error) {
	got, err := c.Env.r.e.ws.Glob(ctx, workspace.GlobRequest{Pattern: a.Pattern, Path: a.Path})
	if err != nil {
		return toolOutput{}, asToolError(err)
	}
	if len(got.Entries) == 0 {
		return registry.Text("no file matches " + a.Pattern), nil
	}
	return registry.Text(cutText(renderList(got), c.Budget)), nil
}

func (r *run) listFiles(req workspace.ListRequest) (text, header string, err error) {
	got, err := r.e.ws.List(r.ctx, req)
	if err != nil {
		return "", "", err
	}
	name := req.Path
	if name == "" {
		name = "workspace"
	}
	return renderList(got), fmt.Sprintf("%s: %d entries", name, len(got.Entries)), nil
}

func renderList(l workspace.ListResult) string {
	var b strings.Builder
	for _, e := range l.Entries {
		b.WriteString(e.Path)
		if e.IsLink {
			b.WriteString(" (link)")
		}
		b.WriteByte('\n')
	}
	if l.Truncated {
		b.WriteString("… and more; narrow it down\n")
	}
	return b.String()
}

func grepTool(ctx context.Context, c toolCall, a grepArgs) (toolOutput, error) {
	ws := c.Env.r.e.ws
	req := workspace.GrepRequest{
		Pattern: a.Pattern, Regex: a.Regex, Path: a.Path, Glob: a.Glob, IgnoreCase: a.IgnoreCase, Context: a.Context, MaxBytes: c.Budget,
	}
	if a.Path != "" {
		if target, err := ws.Resolve(a.Path, workspace.AccessRead); err == nil {
			req.AllowSecret = target.Secret // it was asked for
		}
	}
	got, err := ws.Grep(ctx, req)
	if err != nil {
		return toolOutput{}, asToolError(err)
	}
	if len(got.Matches) == 0 {
		return registry.Text("no match"), nil
	}
	return registry.Text(got.String()), nil
}

// asToolError words what the workspace says for a call.
func asToolError(err error) *registry.Error {
	var denied deniedError
	if errors.As(err, &denied) {
		return registry.Errorf(registry.Permission, "%v", err)
	}
	ref, ok := workspace.AsRefusal(err)
	if !ok {
		return registry.Errorf(registry.Execution, "%v", err)
	}
	code := registry.Execution
	switch ref.Code {
	case workspace.CodeBadPath, workspace.CodeOutside, workspace.CodeAmbiguousPath, workspace.CodeInvalid:
		code = registry.Invalid
	case workspace.CodeForbidden, workspace.CodeDenied, workspace.CodeSecret:
		code = registry.Permission
	}
	return registry.Errorf(code, "%v", ref)
}
