package agent

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"thinkflow/workspace"
)

// named finds what may be a path in a task: @file, or a word with a dot or a
// slash in it.
var named = sync.OnceValue(func() *regexp.Regexp { // not at every start of the program: it takes 0.4 ms
	return regexp.MustCompile(`@?[\p{L}\p{N}_./\\~+-]*[\p{L}\p{N}_+-][./][\p{L}\p{N}_./+-]*|@[\p{L}\p{N}_+-]+`)
})

// maxNamed bounds how many names of a task are looked at.
const maxNamed = 20

// firstMessage puts the task and what is attached to it into the history.
// Outcomes of an earlier run that the model has not been told go first, in a
// message of their own.
func (r *run) firstMessage(req RunRequest) {
	r.tellPending()
	var b strings.Builder
	b.WriteString(r.rootRules())
	b.WriteString(req.Task)
	r.s.learn(req.Task, "the task")
	r.s.rememberTask(req.Task)
	budget := r.resultBudget(r.setup(), r.cfg.AttachBudget, attachShare)
	have := map[string]bool{}
	attach := func(title, name, text string) {
		budget -= len(text)
		r.s.learn(text, title)
		r.s.rememberAttached(name)
		b.WriteString("\n\n" + fenceData(title, text))
	}
	for _, a := range req.Attachments {
		if a.Kind != "selection" {
			have[a.Path] = true
		}
		title := a.Path
		if a.StartLine > 0 {
			title = fmt.Sprintf("%s, lines %d-%d", a.Path, a.StartLine, a.EndLine)
		}
		if a.Kind != "" {
			title = a.Kind + " " + title
		}
		r.knowAttached(a)
		attach(title, a.Path, a.Text)
	}
	for _, f := range r.namedFiles(req.Task, have, budget) {
		r.s.know(f.Target.Abs, f.Hash)
		r.attachRules(&b, f.Target)
		attach("file "+f.Header, f.Target.Display, f.Text)
	}
	for _, d := range r.namedFolders(req.Task, have, budget) {
		r.attachRules(&b, d.target)
		attach("folder "+d.target.Display, d.target.Display, d.text)
	}
	r.s.append(Message{Role: RoleUser, Content: b.String()})
}

// attachRules gives the rules of the folders of what is attached with it.
func (r *run) attachRules(b *strings.Builder, t workspace.Target) {
	if text := r.rulesFor(t); text != "" {
		b.WriteString("\n\n" + strings.TrimRight(text, "\n"))
	}
}

// knowAttached notes that the model has seen the file as it is now, if what was
// attached is a part of it.
func (r *run) knowAttached(a Attachment) {
	t, err := r.e.ws.Resolve(a.Path, workspace.AccessRead)
	if err != nil || t.IsDir {
		return
	}
	r.noteRules(t)
	if snap, err := r.e.ws.Snapshot(t); err == nil && snap.Exists && strings.Contains(snap.Text, a.Text) {
		r.s.know(t.Abs, snap.Hash)
	}
}

// namedFiles reads the files that the task names, whole and within the budget:
// then a typical edit is one API call. What does not fit, asks for permission
// or cannot be read as text is left to the model.
func (r *run) namedFiles(task string, have map[string]bool, budget int) []workspace.ReadResult {
	var out []workspace.ReadResult
	for _, word := range named().FindAllString(task, maxNamed) {
		path := strings.TrimRight(strings.TrimPrefix(word, "@"), ".,:;!?")
		if path == "" || budget <= 0 {
			continue
		}
		t, err := r.e.ws.Resolve(path, workspace.AccessRead)
		if err != nil || t.IsDir || !t.Exists || have[t.Display] {
			continue
		}
		if c := r.checkPaths(ActionRead, "", t); c.no != "" || len(c.needs) > 0 {
			continue
		}
		have[t.Display] = true
		got, err := r.e.ws.Read(context.WithoutCancel(r.ctx), workspace.ReadRequest{Path: path, MaxBytes: budget})
		if err != nil || got.Truncated {
			continue
		}
		budget -= len(got.Text)
		out = append(out, got)
	}
	return out
}

// folderBytes bounds the listing of one folder that a task names, in bytes.
const folderBytes = 4 << 10

// folder is a folder that the task names, with what is in it.
type folder struct {
	target workspace.Target
	text   string
}

// namedFolders lists the folders that the task names with an @.
func (r *run) namedFolders(task string, have map[string]bool, budget int) []folder {
	var out []folder
	for _, word := range named().FindAllString(task, maxNamed) {
		path, at := strings.CutPrefix(word, "@")
		path = strings.TrimRight(path, ".,:;!?")
		if !at || path == "" || budget <= 0 {
			continue
		}
		t, err := r.e.ws.Resolve(strings.TrimRight(path, "/"), workspace.AccessRead)
		if err != nil || !t.IsDir || have[t.Display] {
			continue
		}
		have[t.Display] = true
		got, err := r.e.ws.List(context.WithoutCancel(r.ctx), workspace.ListRequest{Path: t.Display, Depth: 2})
		if err != nil {
			continue
		}
		text := cutText(renderList(got), min(folderBytes, budget))
		budget -= len(text)
		out = append(out, folder{t, text})
	}
	return out
}
