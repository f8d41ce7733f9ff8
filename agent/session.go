package agent

import (
	"sync"

	"thinkflow/agent/thinking"
	"thinkflow/internal/config"
	"thinkflow/ledger"
	"thinkflow/parser"
)

// session is a conversation: what the model was told and has said, what it
// knows of files, what a person allowed for its duration.
type session struct {
	id string

	mu       sync.Mutex // guards all below
	running  bool       // one run at a time
	waits    bool       // its last run is suspended
	settings SessionSettings
	history  []Message // without the system message; append-only
	pending  []outcome // outcomes not yet told to the model
	notes    []string  // remarks for the next request, which none of them causes
	known    map[string]knowledge
	echo     echoMemory
	perms    *permissions
	key      string // strict tags: every command must carry it

	thoughts thinking.History
	plan     []PlanItem
	procs    *processes
	noTags   map[string]bool // models that broke the form of tags (protocol auto)
	memory   memory
	rules    []rule             // of the project, as the model was given them
	rates    map[string]float64 // tokens a byte, by model, as reported
	contexts map[string]int     // tokens, by model, as its server told
	sent     *Request           // the last request, for what the next one reuses of it
}

func newSession(id string, c *config.Config) *session {
	s := &session{id: id, known: map[string]knowledge{}, perms: newPermissions(), procs: &processes{}, echo: echoMemory{legacy: c.LegacyTags}}
	if c.StrictTags {
		s.key = token()
	}
	return s
}

// knowledge is the text of a file as the model last knew it.
type knowledge struct{ hash string }

// outcome is what became of one command, as the model and the ledger learn it.
type outcome struct {
	id      int
	channel parser.Channel
	name    string
	path    string
	dest    string
	cmd     string
	status  string // see ledger.Status
	code    string
	message string // why, and what to do
	nearest string // nearest real text, for a failed edit
	notes   []string
	rung    string
	diff    string
	created bool
	added   int
	removed int
	bytes   int64
	via     string
	output  string // what came back, in a few words
	stdout  string
	exit    *int
	key     ledger.Key // for the ledger's injected mark
}

// know notes that the model has seen the text with this hash.
func (s *session) know(abs, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[abs] = knowledge{hash}
}

// knownHash is the hash of the text that the model last knew, if it ever did.
func (s *session) knownHash(abs string) (hash string, ever bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[abs]
	return k.hash, ok
}

// wrote updates what the model knows after an own change. A whole write is
// known by itself; an edit or append only if the text before it was known.
func (s *session) wrote(abs, before, after string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after == "" {
		delete(s.known, abs)
		return
	}
	if k, ok := s.known[abs]; whole || ok && k.hash == before {
		s.known[abs] = knowledge{after}
	}
}

// forget drops what the model knows of a file that is gone.
func (s *session) forget(abs string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, abs)
}

// learn puts text that the model is given into the echo memory.
func (s *session) learn(text, origin string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echo.learn(text, origin)
}

func (s *session) isEcho(open string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.echo.echo(open)
}

func (s *session) append(m ...Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, m...)
}

// messages is the message list of the next request: the system message and the
// history. The slice is the caller's.
func (s *session) messages(system string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Message, 0, len(s.history)+1)
	out = append(out, Message{Role: RoleSystem, Content: system})
	return append(out, s.history...)
}

func (s *session) addOutcome(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, o)
}

func (s *session) addNote(n string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.notes {
		if have == n {
			return
		}
	}
	s.notes = append(s.notes, n)
}

// toldElsewhere shortens what the ledger message says of an outcome that the
// error message is about.
func (s *session) toldElsewhere(k ledger.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.pending {
		if s.pending[i].key == k && s.pending[i].status != string(ledger.StatusApplied) {
			s.pending[i].message = ""
		}
	}
}

// takePending hands over what the model has not been told.
func (s *session) takePending() ([]outcome, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, n := s.pending, s.notes
	s.pending, s.notes = nil, nil
	return o, n
}
