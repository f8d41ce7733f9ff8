package experiment

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// toolDef is a tool that a request offers.
type toolDef struct {
	name   string
	about  string
	schema schema
	custom bool
}

// schema is what the model looks at in a JSON schema.
type schema struct {
	Type        any               `json:"type"`
	Description string            `json:"description"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Items       *schema           `json:"items"`
	Enum        []any             `json:"enum"`
}

var (
	pathNames    = []string{"path", "file_path", "filePath", "absolute_path", "filepath", "file", "target_file"}
	contentNames = []string{"content", "contents", "file_text", "text"}
	oldNames     = []string{"old_string", "oldString", "old_text", "oldText", "old_str", "old"}
	newNames     = []string{"new_string", "newString", "new_text", "newText", "new_str", "new"}
	listNames    = []string{"edits", "replacements"}
	shellNames   = []string{"command", "cmd"}
)

func (s schema) pick(names []string) string {
	for _, n := range names {
		if _, ok := s.Properties[n]; ok {
			return n
		}
	}
	return ""
}

// callFor finds the tool for an action by the names of its arguments, and falls
// back to the shell.
func (rq *request) callFor(a *Action, dir string) (piece, error) {
	for _, t := range rq.tools {
		s := t.schema
		path := s.pick(pathNames)
		args := map[string]any{}
		low := strings.ToLower(t.name)
		switch {
		case a.Kind == Read && path != "" && strings.Contains(low, "read") && !strings.Contains(low, "many"):
		case a.Kind == Read && strings.Contains(low, "read") && s.Properties["files"].Items != nil:
			item := *s.Properties["files"].Items
			name := item.pick(pathNames)
			if name == "" {
				continue
			}
			args["files"] = []map[string]string{{name: spelled(item.Properties[name], name, dir, a.Path)}}
			return finishCall(t, args), nil
		case a.Kind == Write && path != "" && s.pick(contentNames) != "" && (strings.Contains(low, "write") || strings.Contains(low, "create")):
			args[s.pick(contentNames)] = a.Body
		case a.Kind == Edit && path != "" && s.pick(oldNames) != "" && s.pick(newNames) != "":
			args[s.pick(oldNames)], args[s.pick(newNames)] = a.Old, a.New
		case a.Kind == Write && path != "" && s.pick(newNames) != "" && s.pick(oldNames) != "" && !slices.Contains(s.Required, s.pick(oldNames)) && strings.Contains(strings.ToLower(t.about), "creat"):
			args[s.pick(newNames)] = a.Body // one tool edits and creates
		case a.Kind == Edit && path != "" && s.pick(listNames) != "" && s.Properties[s.pick(listNames)].Items != nil:
			item := *s.Properties[s.pick(listNames)].Items
			old, repl := item.pick(oldNames), item.pick(newNames)
			if old == "" || repl == "" {
				continue
			}
			args[s.pick(listNames)] = json.RawMessage(fmt.Sprintf("[{%s:%s,%s:%s}]", plainJSON(old), plainJSON(a.Old), plainJSON(repl), plainJSON(a.New)))
		case a.Kind == Bash && s.pick(shellNames) != "" && shellLike(low):
			shellArg(s, args, a.Cmd)
		case a.Kind == Bash && s.Properties["commands"].Items != nil && shellLike(low):
			args["commands"] = []string{a.Cmd}
		default:
			continue
		}
		if a.Kind != Bash {
			args[path] = spelled(s.Properties[path], path, dir, a.Path)
		}
		return finishCall(t, args), nil
	}
	if c, ok := rq.patchFor(a); ok {
		return c, nil
	}
	var cmd string
	switch a.Kind {
	case Read:
		cmd = "cat " + a.Path
	case Write:
		cmd = "mkdir -p \"$(dirname " + a.Path + ")\" && cat > " + a.Path + " <<'END_OF_FILE'\n" + a.Body + "END_OF_FILE"
	case Edit: // agents that know patches take them from the shell
		cmd = "apply_patch <<'END_OF_PATCH'\n" + patch(a) + "END_OF_PATCH"
	}
	if a.Kind != Bash {
		return rq.callFor(&Action{Kind: Bash, Cmd: cmd}, dir)
	}
	return piece{}, fmt.Errorf("no tool for %s is offered", a.Kind)
}

func shellLike(name string) bool {
	for _, w := range []string{"bash", "shell", "exec", "terminal", "command"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

func shellArg(s schema, args map[string]any, cmd string) {
	name := s.pick(shellNames)
	if s.Properties[name].Type == "array" {
		args[name] = []string{"bash", "-lc", cmd}
		return
	}
	args[name] = cmd
}

// patchFor is for agents whose only way to write is a patch.
func (rq *request) patchFor(a *Action) (piece, bool) {
	i := slices.IndexFunc(rq.tools, func(t toolDef) bool { return t.name == "apply_patch" })
	if i < 0 || a.Kind != Write && a.Kind != Edit {
		return piece{}, false
	}
	t := rq.tools[i]
	if t.custom {
		return piece{call: t.name, custom: true, args: patch(a)}, true
	}
	return finishCall(t, map[string]any{t.schema.pick([]string{"input", "patch"}): patch(a)}), true
}

// patch is the action in the form of apply_patch.
func patch(a *Action) string {
	prefixed := func(by, s string) string {
		return by + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+by) + "\n"
	}
	p := "*** Begin Patch\n"
	if a.Kind == Write {
		p += "*** Add File: " + a.Path + "\n" + prefixed("+", a.Body)
	} else {
		p += "*** Update File: " + a.Path + "\n@@\n" + prefixed("-", a.Old) + prefixed("+", a.New)
	}
	return p + "*** End Patch\n"
}

// spelled is the path as the tool wants it.
func spelled(s schema, name, dir, path string) string {
	if strings.Contains(strings.ToLower(s.Description+name), "absolute") {
		return dir + "/" + path
	}
	return path
}

// finishCall fills in what else is required and writes the arguments with the
// short ones first.
func finishCall(t toolDef, args map[string]any) piece {
	for _, r := range t.schema.Required {
		if _, ok := args[r]; ok {
			continue
		}
		p := t.schema.Properties[r]
		switch {
		case len(p.Enum) > 0:
			args[r] = p.Enum[0]
		case p.Type == "boolean":
			args[r] = false
		case p.Type == "number" || p.Type == "integer":
			args[r] = 1
		case p.Type == "array":
			args[r] = []any{}
		default:
			args[r] = "as the task says"
		}
	}
	names := make([]string, 0, len(args))
	for n := range args {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if slices.Contains(pathNames, a) != slices.Contains(pathNames, b) {
			if slices.Contains(pathNames, a) {
				return -1
			}
			return 1
		}
		if slices.Contains(oldNames, a) && slices.Contains(newNames, b) {
			return -1
		}
		if slices.Contains(newNames, a) && slices.Contains(oldNames, b) {
			return 1
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	b.WriteByte('{')
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(plainJSON(n) + ":" + plainJSON(args[n]))
	}
	b.WriteByte('}')
	return piece{call: t.name, args: b.String()}
}

// plainJSON is JSON as models write it: no escapes for <, > and &.
func plainJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // of strings, numbers and lists: cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
