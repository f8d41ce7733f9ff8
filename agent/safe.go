package agent

import "thinkflow/internal/redact"

// safeEvent is the event without secrets. The keys of this process are taken out
// of everything. What merely looks like a secret is taken out of what programs
// and providers say, and left in what the model writes and a person is to judge:
// answers, diffs, questions.
func safeEvent(r *redact.Redactor, ev Event) Event {
	values := func(fields ...*string) {
		for _, f := range fields {
			*f = r.Values(*f)
		}
	}
	all := func(fields ...*string) {
		for _, f := range fields {
			if *f != "" {
				*f = r.String(*f)
			}
		}
	}
	if ev.Type == ToolOutput {
		all(&ev.Text)
	}
	values(&ev.Text, &ev.Task)
	all(&ev.Reason)
	if ev.Command != nil {
		c := *ev.Command
		all(&c.Error, &c.Output)
		values(&c.Path, &c.Dest, &c.Cmd, &c.Diff)
		c.Diff = redact.Visible(c.Diff)
		ev.Command = &c
	}
	if ev.Tool != nil {
		t := *ev.Tool
		all(&t.Error, &t.Summary)
		values(&t.Arguments)
		ev.Tool = &t
	}
	if ev.Approval != nil {
		a := safeApproval(r, *ev.Approval)
		ev.Approval = &a
	}
	if ev.Result != nil {
		res := safeResult(r, *ev.Result)
		ev.Result = &res
	}
	return ev
}

func safeApproval(r *redact.Redactor, a ApprovalEvent) ApprovalEvent {
	a.Target, a.Rule, a.Diff = r.Values(a.Target), r.Values(a.Rule), r.Values(a.Diff)
	return a
}

func safeResult(r *redact.Redactor, res RunResult) RunResult {
	res.Reason, res.Text = r.String(res.Reason), r.Values(res.Text)
	return res
}
