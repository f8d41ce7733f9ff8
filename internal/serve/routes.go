package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"thinkflow/agent"
	"thinkflow/ledger"
)

// route is one operation: what serves it, and what the description says of it.
type route struct {
	Method, Path string
	ID, Summary  string
	Body, Answer any // zero values of their types; nil = none
	Codes        map[int]string
	Media        string // of the answer; "" = JSON
	serve        func(*Server) http.HandlerFunc
}

// RunBody begins a run.
type RunBody struct {
	Task    string `json:"task"`
	Session string `json:"session,omitempty" jsonschema:"conversation to go on with"`
	Run     string `json:"runId,omitempty" jsonschema:"id for the new run; default: a new one"`
	DryRun  bool   `json:"dryRun,omitempty" jsonschema:"plan and show every change, make none"`
}

// Begun is the answer to a run that was begun.
type Begun struct {
	Run    string `json:"runId"`
	Events string `json:"events" jsonschema:"path of its events"`
}

// ApproveBody answers a question.
type ApproveBody struct {
	Approval string         `json:"approvalId"`
	Decision agent.Decision `json:"decision" jsonschema:"once, session or no"`
}

// SteerBody is a further message.
type SteerBody struct {
	Text string `json:"text"`
}

// ResumeBody goes on with a run.
type ResumeBody struct {
	Message string `json:"message,omitempty"`
}

// Cancelled says whether there was something to cancel.
type Cancelled struct {
	Cancelled bool `json:"cancelled"`
}

// RunView is a run as it stands.
type RunView struct {
	ledger.Run
	Live    bool                    `json:"live"` // this process works on it
	Seq     int64                   `json:"seq"`  // number of its newest event
	Waiting []agent.WaitingApproval `json:"waiting,omitempty"`
}

// RunList is the answer to GET /runs.
type RunList struct {
	Runs []ledger.Run `json:"runs"`
}

// TicketView is a new ticket.
type TicketView struct {
	Ticket string `json:"ticket"`
	Path   string `json:"path" jsonschema:"to be opened in a browser, once, within two minutes"`
}

// codes adds the answers that every route may give.
func codes(m map[int]string) map[int]string {
	m[401], m[403] = "no or a wrong token", "another host or origin"
	return m
}

// routes are all operations.
func routes() []route {
	return []route{
		{Method: "GET", Path: "/{$}", ID: "page", Summary: "A page that follows runs live", Media: "text/html", Codes: codes(map[int]string{200: "the page"}), serve: asset("page.html", "text/html; charset=utf-8")},
		{Method: "GET", Path: "/page.js", ID: "script", Summary: "The page's script", Media: "text/javascript", Codes: codes(map[int]string{200: "the script"}), serve: asset("page.js", "text/javascript; charset=utf-8")},
		{Method: "GET", Path: "/page.css", ID: "style", Summary: "The page's style", Media: "text/css", Codes: codes(map[int]string{200: "the style"}), serve: asset("page.css", "text/css; charset=utf-8")},
		{Method: "GET", Path: "/openapi.json", ID: "describe", Summary: "This description", Answer: map[string]any{}, Codes: codes(map[int]string{200: "the description"}), serve: (*Server).openapi},
		{Method: "POST", Path: "/tickets", ID: "ticket", Summary: "A one-time ticket for a browser", Answer: TicketView{}, Codes: codes(map[int]string{201: "the ticket"}), serve: (*Server).postTicket},
		{Method: "GET", Path: "/runs", ID: "list", Summary: "Runs, newest first", Answer: RunList{}, Codes: codes(map[int]string{200: "the runs"}), serve: (*Server).getRuns},
		{Method: "POST", Path: "/runs", ID: "run", Summary: "Begin a run", Body: RunBody{}, Answer: Begun{}, Codes: codes(map[int]string{202: "it was begun", 400: "it cannot be a run", 409: "the session or the id is in use"}), serve: (*Server).postRun},
		{Method: "GET", Path: "/runs/{id}", ID: "show", Summary: "A run as it stands", Answer: RunView{}, Codes: codes(map[int]string{200: "the run", 404: "there is none"}), serve: (*Server).getRun},
		{Method: "GET", Path: "/runs/{id}/events", ID: "events", Summary: "The events of a run as they come; Last-Event-ID, or ?after=, replays from there", Media: "text/event-stream", Codes: codes(map[int]string{
			200: "events: id is the number, event the type, data the JSON of the event", 204: "the run has ended and all was sent", 404: "there is no such run", 410: "the events behind Last-Event-ID are no longer kept; begin without it"}), serve: (*Server).getEvents},
		{Method: "POST", Path: "/runs/{id}/cancel", ID: "cancel", Summary: "Cancel a run, or give a suspended one up", Answer: Cancelled{}, Codes: codes(map[int]string{200: "whether there was something to cancel"}), serve: (*Server).postCancel},
		{Method: "POST", Path: "/runs/{id}/approve", ID: "approve", Summary: "Answer what a run asks; a suspended run goes on", Body: ApproveBody{}, Codes: codes(map[int]string{204: "it was answered", 400: "the decision is none", 409: "nothing waits for that answer"}), serve: (*Server).postApprove},
		{Method: "POST", Path: "/runs/{id}/steer", ID: "steer", Summary: "Give a running task a further message", Body: SteerBody{}, Codes: codes(map[int]string{204: "the model sees it with its next turn", 400: "it is empty", 409: "the run is not going on"}), serve: (*Server).postSteer},
		{Method: "POST", Path: "/runs/{id}/resume", ID: "resume", Summary: "Go on with a run that ended without being done", Body: ResumeBody{}, Answer: Begun{}, Codes: codes(map[int]string{202: "it goes on", 409: "it cannot be gone on with"}), serve: (*Server).postResume},
	}
}

func (s *Server) postTicket() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		t := s.guard.newTicket()
		s.answer(w, http.StatusCreated, TicketView{t, "/?ticket=" + t})
	}
}

func (s *Server) getRuns() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		led, err := s.o.Engine.Ledger()
		var runs []ledger.Run
		if err == nil {
			runs, err = led.Runs(r.Context(), ledger.RunFilter{Limit: 100})
		}
		if err != nil {
			s.fail(w, http.StatusInternalServerError, "ledger", err.Error())
			return
		}
		s.answer(w, http.StatusOK, RunList{append([]ledger.Run{}, runs...)})
	}
}

func (s *Server) postRun() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b RunBody
		if err := read(w, r, &b); err != nil {
			s.fail(w, http.StatusBadRequest, "body", err.Error())
			return
		}
		if strings.TrimSpace(b.Task) == "" {
			s.fail(w, http.StatusBadRequest, "task", "the task is empty: say what is to be done")
			return
		}
		if b.Run == "" {
			b.Run = agent.NewID()
		}
		f := s.follow(b.Run)
		if f.newest() > 0 {
			s.fail(w, http.StatusConflict, "run", "this runId was used; leave it out for a new one")
			return
		}
		begun := make(chan struct{}, 1)
		req := agent.RunRequest{Run: b.Run, Session: b.Session, Task: b.Task, DryRun: b.DryRun, Events: func(ev agent.Event) {
			s.heard(f, ev)
			select {
			case begun <- struct{}{}:
			default:
			}
		}}
		failed := make(chan error, 1)
		s.work.Go(func() {
			defer s.ended(b.Run)
			if _, err := s.o.Engine.Run(s.ctx, req); err != nil {
				failed <- err
			}
		})
		select {
		case <-begun:
			s.answer(w, http.StatusAccepted, Begun{b.Run, "/runs/" + b.Run + "/events"})
		case err := <-failed:
			s.fail(w, http.StatusConflict, "run", err.Error())
		}
	}
}

// find finds a run by id, unique prefix or "last"; it answers when there is none.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (*ledger.Ledger, ledger.Run, bool) {
	led, err := s.o.Engine.Ledger()
	if err != nil {
		s.fail(w, http.StatusInternalServerError, "ledger", err.Error())
		return nil, ledger.Run{}, false
	}
	run, err := led.FindRun(r.Context(), r.PathValue("id"))
	if err != nil {
		s.fail(w, http.StatusNotFound, "run", err.Error())
		return nil, ledger.Run{}, false
	}
	return led, run, true
}

func (s *Server) getRun() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		led, run, ok := s.find(w, r)
		if !ok {
			return
		}
		v := RunView{Run: run, Live: slices.ContainsFunc(s.o.Engine.Runs(), func(i agent.RunInfo) bool { return i.Run == run.ID })}
		var err error
		if v.Seq, err = led.LastSeq(r.Context(), run.ID); err != nil {
			s.fail(w, http.StatusInternalServerError, "ledger", err.Error())
			return
		}
		waiting, err := s.o.Engine.Waiting(r.Context())
		if err != nil {
			s.log.Warn("what runs wait for cannot be read", "err", err)
		}
		for _, q := range waiting {
			if q.Run == run.ID {
				v.Waiting = append(v.Waiting, q)
			}
		}
		s.answer(w, http.StatusOK, v)
	}
}

func (s *Server) postCancel() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		done := s.o.Engine.Cancel(id)
		if !done {
			done = s.o.Engine.Abandon(r.Context(), id) == nil
		}
		s.answer(w, http.StatusOK, Cancelled{done})
	}
}

func (s *Server) postApprove() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b ApproveBody
		if err := read(w, r, &b); err != nil {
			s.fail(w, http.StatusBadRequest, "body", err.Error())
			return
		}
		if !slices.Contains(agent.Decisions, b.Decision) {
			s.fail(w, http.StatusBadRequest, "decision", fmt.Sprintf("the decision is none of %v", agent.Decisions))
			return
		}
		id := r.PathValue("id")
		err := s.o.Engine.Approve(id, b.Approval, b.Decision)
		if errors.Is(err, agent.ErrNoRun) { // suspended, here or by another process
			err = s.goOn(r.Context(), agent.ResumeRequest{Run: id, Answers: map[string]agent.Decision{b.Approval: b.Decision}})
		}
		if err != nil {
			s.fail(w, http.StatusConflict, "approval", err.Error())
			return
		}
		s.answer(w, http.StatusNoContent, nil)
	}
}

// goOn resumes a run in the background.
func (s *Server) goOn(_ context.Context, req agent.ResumeRequest) error {
	led, err := s.o.Engine.Ledger()
	if err != nil {
		return err
	}
	run, err := led.FindRun(s.ctx, req.Run)
	if err != nil {
		return err
	}
	f := s.follow(run.ID)
	req.Run, req.By, req.Events = run.ID, "http", func(ev agent.Event) { s.heard(f, ev) }
	work, err := s.o.Engine.BeginResume(s.ctx, req)
	if err != nil {
		return err
	}
	s.work.Go(func() {
		defer s.ended(run.ID)
		if _, err := work(); err != nil {
			s.log.Warn("a run could not be gone on with", "run", run.ID, "err", err)
		}
	})
	return nil
}

func (s *Server) postSteer() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b SteerBody
		err := read(w, r, &b)
		if err != nil || strings.TrimSpace(b.Text) == "" {
			s.fail(w, http.StatusBadRequest, "text", "the message is empty or unreadable")
			return
		}
		if err := s.o.Engine.Steer(r.PathValue("id"), b.Text); err != nil {
			s.fail(w, http.StatusConflict, "run", err.Error())
			return
		}
		s.answer(w, http.StatusNoContent, nil)
	}
}

func (s *Server) postResume() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b ResumeBody
		if err := read(w, r, &b); err != nil {
			s.fail(w, http.StatusBadRequest, "body", err.Error())
			return
		}
		id := r.PathValue("id")
		if err := s.goOn(r.Context(), agent.ResumeRequest{Run: id, Message: b.Message}); err != nil {
			s.fail(w, http.StatusConflict, "run", err.Error())
			return
		}
		s.answer(w, http.StatusAccepted, Begun{id, "/runs/" + id + "/events"})
	}
}
