package parser

// Name is the name of a command tag, with its prefix.
type Name string

// The commands of the protocol (DESIGN: the tag protocol).
const (
	Write  Name = "tf-write"
	Append Name = "tf-append"
	Mkdir  Name = "tf-mkdir"
	Touch  Name = "tf-touch"
	Copy   Name = "tf-copy"
	Move   Name = "tf-move"
	Edit   Name = "tf-edit"
	Delete Name = "tf-delete"
	Read   Name = "tf-read"
	Bash   Name = "tf-bash"
)

// Predictable reports whether the result of the command is known to the model
// beforehand, and whether it can be undone: such commands run while the model
// is still streaming, and they are the only ones that run from reasoning.
func (n Name) Predictable() bool {
	switch n {
	case Write, Append, Mkdir, Touch, Copy, Move, Edit:
		return true
	}
	return false
}

// Blocking reports whether the command ends the model's stream: its result is
// what matters (read, bash), or it waits for a person (delete).
func (n Name) Blocking() bool {
	switch n {
	case Read, Bash, Delete:
		return true
	}
	return false
}

// Channel says where in the model's answer a command stood. Ids are unique per
// turn and channel.
type Channel string

// The two channels. A think block inside the text counts as reasoning.
const (
	ChannelText      Channel = "text"
	ChannelReasoning Channel = "reasoning"
)

// Pair is one <old>/<new> pair of a tf-edit. Both texts are raw bytes.
type Pair struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Command is one complete, valid command tag. It is emitted only once its
// closing tag (or "/>") has been recognised.
type Command struct {
	Name    Name
	ID      int
	Channel Channel

	Path string // every command but bash
	Dest string // copy, move
	Cmd  string // bash: attribute cmd, or the body when the attribute is absent

	Body  string // write, append: raw, without the one framing line break
	Pairs []Pair // edit: at least one

	All        bool // edit: all="true"
	Line       int  // edit: line="120", 1-based; 0 when absent
	Empty      bool // write: empty="true"
	NeedResult bool
	Attrs      []Attr // every attribute as written (values decoded), in order; for strict keys and future ones

	Block bool   // a line break followed the opening tag
	Open  string // the opening tag byte for byte as it came, for the echo guard

	// Repeated: same id and same content as an earlier command of this channel;
	// it has already been done and must not run again (case LR-10).
	Repeated bool

	// Start and End are byte offsets in the channel's stream, from 0: the first
	// byte of the opening tag and the first byte after the closing tag.
	Start, End int64
}

// Attr is one attribute of an opening tag; entities are decoded.
type Attr struct {
	Name, Value string
}

// Opening describes an opening tag that is complete and in order, self-closing
// ones included. Its command or an error follows. It is for progress display
// only: nothing may be executed for it.
type Opening struct {
	Name    Name
	ID      int
	Channel Channel
	Path    string
	Dest    string
	Start   int64
}

// Part names the piece of a body that a Progress belongs to.
type Part uint8

// The parts: the body of a write, append or bash; <old> and <new> of an edit.
const (
	PartBody Part = iota
	PartOld
	PartNew
)

// Progress carries the bytes of an open command's body that are new. Joined,
// the deltas of one part are exactly that part's text.
type Progress struct {
	ID    int
	Part  Part
	Pair  int    // index of the pair, from 0; for edits
	Delta string // new bytes; may end inside a UTF-8 sequence
	Total int    // bytes of this part so far, Delta included
	// Closed: the part is complete (set on an event of its own or on the last delta).
	Closed bool
}

// Code names the kind of a parse error. The set is closed.
type Code string

// The codes of the tag protocol.
const (
	CodeUnclosed           Code = "unclosed"
	CodeMissingAttribute   Code = "missing_attribute"
	CodeBadID              Code = "bad_id"
	CodeDuplicateID        Code = "duplicate_id"
	CodeUnknownCommand     Code = "unknown_command"
	CodeMalformedAttribute Code = "malformed_attribute"
	CodeMissingOldNew      Code = "missing_old_new"
	CodeEmptyBody          Code = "empty_body"
	CodeTooLarge           Code = "too_large"
	CodeOrphanClose        Code = "orphan_close"
	CodeFenced             Code = "fenced"
)

// Error is a tag that looked like a command and is not one that can run. It
// counts as a failed command; Message is for the model and says what to do.
type Error struct {
	Code    Code
	Name    string // tag name as written, e.g. "tf-create"
	ID      int    // 0 when unknown
	Channel Channel
	Path    string // when known
	Message string
	// Line is where the trouble stands in the channel's stream, from 1: the line
	// of the opening tag, of an orphan closing tag, of what is wrong in an edit.
	Line int

	// Received counts the bytes of body that had arrived (unclosed, too_large)
	// and Lines the whole lines among them.
	Received int
	Lines    int

	// Cut is set for orphan_close: the id of the command that was cut, which
	// must be rolled back together with all that ran after it.
	Cut int

	// Start and End are byte offsets in the channel's stream: the first byte of
	// the tag, and where the error was known. The error is told there and then;
	// the body that the tag owns goes on to its closing tag without a sound.
	Start, End int64
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// NoteKind names something the model should hear about with the next request,
// which no note ever causes.
type NoteKind string

// The notes.
const (
	// NoteForbiddenChannel: a command that may not run from reasoning stood there.
	NoteForbiddenChannel NoteKind = "forbidden_channel"
	// NoteFencedText: a command stood in a fence with text around it; it was text.
	NoteFencedText NoteKind = "fenced_text"
	// NoteThinkUnclosed: a think block was still open when the stream ended.
	NoteThinkUnclosed NoteKind = "think_unclosed"
	// NoteLookalike: something looked like a tag but holds an invisible character.
	NoteLookalike NoteKind = "lookalike"
)

// Note is one remark; Name and ID are set where a tag is meant.
type Note struct {
	Kind    NoteKind
	Name    string
	ID      int
	Message string
}

// Sink receives what the parser recognises, in stream order, on the caller's
// goroutine. Strings may alias the chunk given to Write and stay valid for as
// long as that string does.
type Sink interface {
	// Text is visible text of the answer, without executed tags.
	Text(s string)
	// Reasoning is text of a think block (or all text of the reasoning channel).
	Reasoning(s string)
	Opened(o Opening)
	Progress(p Progress)
	Command(c *Command)
	Error(e *Error)
	Note(n Note)
}

// Options configures one parser. The zero value is the text channel of an
// ordinary model with commands off in reasoning.
type Options struct {
	Channel Channel // "" means ChannelText
	// ReasoningCommands lets predictable commands run from think blocks and
	// from the reasoning channel (setting "reasoning commands", on by default).
	ReasoningCommands bool
	// StartInThink begins inside a think block, for models whose server eats
	// the opening tag (case TS-20).
	StartInThink bool
	// Legacy also recognises the bare names (<write …>).
	Legacy bool
	// NoCommands: tags are text, only think blocks are told apart from the answer.
	// For models that give their commands as native calls.
	NoCommands bool
	// MaxTag and MaxBody bound one opening tag and one body, in bytes;
	// 0 means 8 KiB and 16 MiB.
	MaxTag, MaxBody int
}
