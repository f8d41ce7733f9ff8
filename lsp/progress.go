package lsp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// progress shows what a run is doing now, by LSP's work-done progress. A nil
// *progress shows nothing. One goroutine sends, so that a slow client never
// holds the run up: of several messages that wait only the last is sent.
type progress struct {
	wake chan struct{} // capacity 1
	done chan struct{}

	mu      sync.Mutex // guards what follows
	message string
	ended   bool
}

// startProgress begins the progress of a run: with the client's own token, or
// with one that the client is asked to create, only if it advertises that.
func (s *Server) startProgress(a *activeRun, f clientFacts, task string, token any) {
	var t protocol.ProgressToken
	switch tok := token.(type) {
	case string:
		t = protocol.String(tok)
	case float64:
		t = protocol.Integer(int32(tok))
	default:
		if !f.progress {
			return
		}
		t = protocol.String("thinkflow/" + a.id)
	}
	p := &progress{wake: make(chan struct{}, 1), done: make(chan struct{}), message: "starting"}
	a.progress = p
	s.mu.Lock()
	a.token = fmt.Sprint(t)
	s.mu.Unlock()
	go func() {
		defer close(p.done)
		if token == nil {
			if err := s.client.WorkDoneProgressCreate(s.ctx, &protocol.WorkDoneProgressCreateParams{Token: t}); err != nil {
				s.log.Info("the client creates no progress", "error", err)
				return
			}
		}
		p.send(s.ctx, s.client, t, title(task))
	}()
}

// title names the run by its task.
func title(task string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	const most = 60
	if utf8.RuneCountInString(line) > most {
		line = string([]rune(line)[:most-1]) + "…"
	}
	return "ThinkFlow: " + line
}

// send reports until the progress has ended.
func (p *progress) send(ctx context.Context, c protocol.Client, t protocol.ProgressToken, title string) {
	yes := true
	first, ended := p.take()
	report := func(v any) bool {
		raw, err := protocol.Marshal(v)
		return err == nil && c.Progress(ctx, &protocol.ProgressParams{Token: t, Value: raw}) == nil
	}
	ok := report(&protocol.WorkDoneProgressBegin{Kind: "begin", Title: title, Cancellable: &yes, Message: &first})
	last := first
	for ok && !ended {
		select {
		case <-p.wake:
		case <-ctx.Done():
			return
		}
		var m string
		if m, ended = p.take(); m != last && !ended {
			ok = report(&protocol.WorkDoneProgressReport{Kind: "report", Message: &m})
			last = m
		}
	}
	if ok {
		m, _ := p.take()
		report(&protocol.WorkDoneProgressEnd{Kind: "end", Message: &m})
	}
}

func (p *progress) take() (message string, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.message, p.ended
}

// set changes the message; the run goes on at once.
func (p *progress) set(message string, ended bool) {
	p.mu.Lock()
	if message != "" {
		p.message = message
	}
	p.ended = p.ended || ended
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// end closes the progress; the last message stays.
func (p *progress) end() {
	if p != nil {
		p.set("", true)
	}
}

// event words what is happening now.
func (p *progress) event(ev agent.Event) {
	if p == nil {
		return
	}
	if m := happening(ev); m != "" {
		p.set(m, false)
	}
}

// happening is what an event says about the present; "" = nothing new.
func happening(ev agent.Event) string {
	switch ev.Type {
	case agent.TurnStarted, agent.ReasoningDelta, agent.CommandCompleted, agent.ToolCompleted:
		return "thinking"
	case agent.TurnRestarted:
		return "asking the model again"
	case agent.TextDelta:
		return "answering"
	case agent.CommandStarted:
		return doing(ev.Command)
	case agent.ToolStarted:
		return "using " + ev.Tool.Name
	case agent.ApprovalRequested:
		return "waiting for approval: " + verb(ev.Approval.Action) + " " + ev.Approval.Target
	case agent.RunSuspended:
		return "suspended"
	case agent.Compaction:
		return "making room in the context"
	case agent.RunCompleted, agent.RunFailed, agent.RunCancelled:
		if ev.Result != nil {
			return summary(*ev.Result)
		}
	}
	return ""
}

func doing(c *agent.CommandEvent) string {
	switch c.Name {
	case "tf-write", "tf-append", "tf-touch":
		return "writing " + c.Path
	case "tf-mkdir":
		return "creating " + c.Path
	case "tf-edit":
		return "editing " + c.Path
	case "tf-copy":
		return "copying " + c.Path
	case "tf-move":
		return "moving " + c.Path
	case "tf-delete":
		return "deleting " + c.Path
	case "tf-read":
		return "reading " + c.Path
	case "tf-bash":
		return "running " + c.Cmd
	}
	return c.Name
}

// summary is one line on how a run ended.
func summary(res agent.RunResult) string {
	s := string(res.State)
	switch n := len(res.Files); {
	case n == 1:
		s += ", 1 file changed: " + res.Files[0]
	case n > 1:
		s += fmt.Sprintf(", %d files changed", n)
	}
	if res.Reason != "" {
		s += ": " + res.Reason
	}
	return s
}

// WorkDoneProgressCancel cancels the run of that progress.
func (s *Server) WorkDoneProgressCancel(_ context.Context, p *protocol.WorkDoneProgressCancelParams) error {
	token := fmt.Sprint(p.Token)
	s.mu.Lock()
	id := ""
	for _, r := range s.runs {
		if r.token != "" && r.token == token {
			id = r.id
		}
	}
	s.mu.Unlock()
	if id != "" {
		s.stop(id)
	}
	return nil
}
