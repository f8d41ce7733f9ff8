package agent

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"thinkflow/workspace"
)

// named finds what may be a path in a task: @file, or a word with a dot or a
// slash in it.
var named = regexp.MustCompile(`@?[\p{L}\p{N}_./\\~+-]*[\p{L}\p{N}_+-][./][\p{L}\p{N}_./+-]*|@[\p{L}\p{N}_+-]+`)

// maxNamed bounds how many names of a task are looked at.
const maxNamed = 20

// firstMessage puts the task and what is attached to it into the history.
// Outcomes of an earlier run that the model has not been told go first, in a
// message of their own.
func (r *run) firstMessage(req RunRequest) {
	r.tellPending()
	var b strings.Builder
	b.WriteString(req.Task)
	r.s.learn(req.Task, "the task")
	r.s.rememberTask(req.Task)
	budget := r.resultBudget(r.setup(), r.cfg.AttachBudget, attachShare)
	have := map[string]bool{}
	for _, a := range req.Attachments {
		if a.Kind != "selection" {
			have[a.Path] = true
		}
		budget -= len(a.Text)
		title := a.Path
		if a.StartLine > 0 {
			title = fmt.Sprintf("%s, lines %d-%d", a.Path, a.StartLine, a.EndLine)
		}
		if a.Kind != "" {
			title = a.Kind + " " + title
		}
		r.s.learn(a.Text, title)
		r.s.rememberAttached(title)
		r.knowAttached(a)
		b.WriteString("\n\n" + fenceData(title, a.Text))
	}
	for _, f := range r.namedFiles(req.Task, have, budget) {
		r.s.know(f.Target.Abs, f.Hash)
		r.s.learn(f.Text, f.Target.Display)
		r.s.rememberAttached(f.Target.Display)
		b.WriteString("\n\n" + fenceData("file "+f.Header, f.Text))
	}
	r.s.append(Message{Role: RoleUser, Content: b.String()})
}

// knowAttached notes that the model has seen the file as it is now, if what was
// attached is a part of it.
func (r *run) knowAttached(a Attachment) {
	t, err := r.e.ws.Resolve(a.Path, workspace.AccessRead)
	if err != nil || t.IsDir {
		return
	}
	if snap, err := r.e.ws.Snapshot(t); err == nil && snap.Exists && strings.Contains(snap.Text, a.Text) {
		r.s.know(t.Abs, snap.Hash)
	}
}

// namedFiles reads the files that the task names, whole and within the budget:
// then a typical edit is one API call. What does not fit, asks for permission
// or cannot be read as text is left to the model.
func (r *run) namedFiles(task string, have map[string]bool, budget int) []workspace.ReadResult {
	var out []workspace.ReadResult
	for _, word := range named.FindAllString(task, maxNamed) {
		path := strings.TrimRight(strings.TrimPrefix(word, "@"), ".,:;!?")
		if path == "" || budget <= 0 {
			continue
		}
		t, err := r.e.ws.Resolve(path, workspace.AccessRead)
		if err != nil || t.IsDir || !t.Exists || have[t.Display] || len(r.s.perms.check(ActionRead, t)) > 0 {
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
