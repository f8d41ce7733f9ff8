package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.lsp.dev/protocol"

	"thinkflow/agent"
)

// Switcher is what an engine has besides if sessions can be switched while they
// go on; *agent.Engine has it.
type Switcher interface {
	Switch(session string, s agent.SessionSettings) (agent.SessionSettings, error)
	Settings(session string) agent.SessionSettings
	Runs() []agent.RunInfo
	// Models lists what there is to choose from; the error says why the endpoint
	// did not tell, and the rest of the list is good then.
	Models(ctx context.Context, current string) ([]agent.ModelChoice, error)
}

var _ Switcher = (*agent.Engine)(nil)

// switcher waits for the engine and returns that side of it.
func (s *Server) switcher(ctx context.Context) (Switcher, error) {
	release(ctx)
	b, err := s.engine(ctx)
	if err != nil {
		return nil, fmt.Errorf("the engine could not be set up: %w", err)
	}
	if w, ok := b.Engine.(Switcher); ok {
		return w, nil
	}
	return nil, errors.New("this engine cannot be switched")
}

// talks are the conversations of a connection and what was switched for all of
// them. It belongs to Server and is guarded by its mutex.
type talks struct {
	settings agent.SessionSettings // what a person chose for this editor
	sessions map[string]bool       // begun, gone on with or switched here: they have it
}

// heard notes the session of a run that began.
func (s *Server) heard(ev agent.Event) {
	if ev.Type == agent.RunStarted && ev.Session != "" {
		s.know(ev.Session)
	}
}

func (s *Server) know(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talks.sessions == nil {
		s.talks.sessions = map[string]bool{}
	}
	s.talks.sessions[session] = true
}

func (s *Server) known(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talks.sessions[session]
}

// switched gives a run that begins what was chosen for this editor, unless its
// conversation has it already.
func (s *Server) switched(e Engine, req *agent.RunRequest) error {
	s.mu.Lock()
	chosen, known := s.talks.settings, s.talks.sessions[req.Session]
	s.mu.Unlock()
	w, ok := e.(Switcher)
	if !ok || known || chosen == (agent.SessionSettings{}) {
		return nil
	}
	if req.Session == "" {
		req.Session = agent.NewID()
	}
	_, err := w.Switch(req.Session, chosen)
	return err
}

// talkRef names a conversation; without session and run it is all that this
// connection has, and those that it will begin.
type talkRef struct {
	Session string `json:"session,omitempty"`
	Run     string `json:"runId,omitempty"` // the conversation of a run that is going on
}

// sessionOf is the session that is meant, "" = all of the connection.
func (p talkRef) sessionOf(w Switcher) (string, error) {
	if p.Run == "" {
		return p.Session, nil
	}
	runs := w.Runs()
	i := slices.IndexFunc(runs, func(r agent.RunInfo) bool { return r.Run == p.Run })
	switch {
	case i < 0:
		return "", badParams("run %q: %v", p.Run, agent.ErrNoRun)
	case p.Session != "" && p.Session != runs[i].Session:
		return "", badParams("run %s belongs to session %s, not %s", p.Run, runs[i].Session, p.Session)
	}
	return runs[i].Session, nil
}

// settle switches what is to be switched and returns what counts now.
func (s *Server) settle(w Switcher, p talkRef, change agent.SessionSettings) (session string, now agent.SessionSettings, err error) {
	if err := agent.CheckSettings(change); err != nil {
		return "", now, badParams("%v", err)
	}
	session, err = p.sessionOf(w)
	if err != nil {
		return "", now, err
	}
	if session != "" {
		if change == (agent.SessionSettings{}) {
			return session, w.Settings(session), nil
		}
		// What was chosen for all counts for this one, too, but for what is chosen
		// for it alone.
		if !s.known(session) {
			s.mu.Lock()
			change = s.talks.settings.Over(change)
			s.mu.Unlock()
		}
		if now, err = w.Switch(session, change); err == nil {
			s.know(session)
		}
		return session, now, err
	}
	s.mu.Lock()
	s.talks.settings = s.talks.settings.Over(change)
	chosen := s.talks.settings
	var all []string
	for id := range s.talks.sessions {
		all = append(all, id)
	}
	s.mu.Unlock()
	if change != (agent.SessionSettings{}) {
		for _, id := range all {
			if _, e := w.Switch(id, change); e != nil {
				err = errors.Join(err, fmt.Errorf("session %s: %w", id, e))
			}
		}
	}
	return "", w.Settings("").Over(chosen), err
}

// modeParams ask for the mode, or set it.
type modeParams struct {
	talkRef
	Mode string `json:"mode,omitempty"`
}

type modeResult struct {
	Session string   `json:"session,omitempty"`
	Mode    string   `json:"mode"`
	Modes   []string `json:"modes"` // the one that may least first
}

// mode serves thinkflow/mode. A new mode acts at once on what is executed.
func (s *Server) mode(ctx context.Context, p modeParams) (modeResult, error) {
	w, err := s.switcher(ctx)
	if err != nil {
		return modeResult{}, err
	}
	session, now, err := s.settle(w, p.talkRef, agent.SessionSettings{Mode: agent.Mode(p.Mode)})
	res := modeResult{Session: session, Mode: string(now.Mode)}
	for _, m := range agent.Modes() {
		res.Modes = append(res.Modes, string(m))
	}
	return res, err
}

// listTime bounds the question to the endpoint: a person waits for the list.
const listTime = 8 * time.Second

// modelsParams ask what there is, or set model and effort.
type modelsParams struct {
	talkRef
	Model           string `json:"model,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	Protocol        string `json:"protocol,omitempty"` // auto, tags, native
}

type modelsResult struct {
	Session         string `json:"session,omitempty"`
	Model           string `json:"model"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	Protocol        string `json:"protocol"`
	// Models is what there is to choose from; absent in the answer to a switch.
	Models []agent.ModelChoice `json:"models,omitempty"`
	// Problem says why the endpoint's models are not among them.
	Problem string `json:"problem,omitempty"`
}

// models serves thinkflow/models. What is switched counts from the next request
// to the model on.
func (s *Server) models(ctx context.Context, p modelsParams) (modelsResult, error) {
	w, err := s.switcher(ctx)
	if err != nil {
		return modelsResult{}, err
	}
	change := agent.SessionSettings{Model: p.Model, ReasoningEffort: p.ReasoningEffort, Protocol: agent.Protocol(p.Protocol)}
	session, now, err := s.settle(w, p.talkRef, change)
	res := modelsResult{Session: session, Model: now.Model, ReasoningEffort: now.ReasoningEffort, Protocol: string(now.Protocol)}
	if err != nil || change != (agent.SessionSettings{}) {
		return res, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	list, problem := w.Models(ctx, now.Model)
	res.Models = list
	if problem != nil {
		res.Problem = problem.Error()
	}
	return res, nil
}

// switchArgument lets the commands take a bare word.
func switchArgument(command string, arg json.RawMessage) json.RawMessage {
	var word string
	if json.Unmarshal(arg, &word) != nil {
		return arg
	}
	switch command {
	case commandMode:
		arg, _ = json.Marshal(modeParams{Mode: word})
	case commandModel:
		arg, _ = json.Marshal(modelsParams{Model: word})
	}
	return arg
}

// switchCommand runs one of the commands for clients without a plugin, which
// show no result: what counts now is shown as a message.
func (s *Server) switchCommand(name string) ownMethod {
	tell := func(format string, args ...any) {
		if !s.clientFacts().events {
			s.show(protocol.MessageTypeInfo, fmt.Sprintf("ThinkFlow: "+format, args...))
		}
	}
	if name == commandMode {
		return typed(func(ctx context.Context, p modeParams) (modeResult, error) {
			res, err := s.mode(ctx, p)
			if err == nil {
				tell("the mode is %s (of %v)", res.Mode, res.Modes)
			}
			return res, err
		})
	}
	return typed(func(ctx context.Context, p modelsParams) (modelsResult, error) {
		res, err := s.models(ctx, p)
		if err == nil {
			tell("the model is %s", res.Model)
		}
		return res, err
	})
}
