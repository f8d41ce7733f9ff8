package parser

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// streamCase is one line of testdata/tag-stream. The files hold cases in two
// forms: what the parser must deliver as ops, and (in extra.jsonl) as commands,
// errors and notes.
type streamCase struct {
	ID    string `json:"id"`
	About string `json:"about"`
	Input struct {
		Chunks  []string `json:"chunks"`
		Hex     []string `json:"chunks_hex"`
		Deltas  []delta  `json:"deltas"`
		Finish  string   `json:"finish_reason"`
		Setting string   `json:"setting"`

		Reasoning *bool `json:"reasoning_commands"`
		Legacy    bool  `json:"legacy"`
		InThink   bool  `json:"start_in_think"`
		Channel   bool  `json:"reasoning_channel"`
		MaxTag    int   `json:"max_tag"`
		MaxBody   int   `json:"max_body"`
	} `json:"input"`
	Expected struct {
		Ops       *[]op    `json:"ops"`
		Text      *string  `json:"text"`
		Reasoning *string  `json:"reasoning"`
		Errors    []failed `json:"errors"`
		Notes     []string `json:"notes"`
	} `json:"expected"`
}

type delta struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
}

// op is a command, or with a status an error of one.
type op struct {
	Tag, ID, Path, Dest, Cmd string
	Body                     *string
	Edits                    []struct{ Old, New string }
	Status                   string
	Received                 *int
	End                      string
	Repeated                 bool
	All                      bool
	Line                     int
	Empty                    bool
	NeedResult               bool `json:"need_result"`
	Channel                  string
	Block                    *bool
}

// failed is an error that is no op, or the details of one that is.
type failed struct {
	Code     Code
	ID       int
	Name     string
	Line     int
	Cut      int
	Received *int
	Lines    *int
	Says     []string
}

// extraErrors are the errors of the given cases that their ops do not list: an
// orphan closing tag belongs to a command that was delivered before.
var extraErrors = map[string][]failed{
	"TS-04": {{Code: CodeOrphanClose, ID: 4, Cut: 4, Line: 5, Says: []string{"line 3"}}},
	"TS-36": {{Code: CodeOrphanClose, ID: 42, Cut: 42, Line: 6}},
}

// said are the words that the given cases want in the messages to the model.
var said = map[string][]string{
	"TS-15": {"command 15 was cut off after 1 whole line (24 bytes of body) and was not applied"},
	"TS-26": {"malformed edit", "<new> is not closed by </new>"},
	"TS-27": {"unknown command tf-create: nothing was done (known: tf-write, tf-edit, tf-append, tf-mkdir, tf-touch, tf-copy, tf-move, tf-delete, tf-read, tf-bash)"},
	"TS-29": {"lost.txt: attribute id is missing, not executed", "tf-touch: attribute values must be quoted, not executed"},
}

// notes are those of the given cases.
var notes = map[string][]string{
	"TS-13": {"fenced_text tf-bash 14"},
	"TS-19": {"forbidden_channel tf-bash 18"},
	"TS-21": {"forbidden_channel tf-touch 21", "think_unclosed"},
	"TS-33": {"lookalike tf-touch"},
}

func loadCases(t testing.TB, name string) []streamCase {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "tag-stream", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []streamCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c streamCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (c *streamCase) options() Options {
	o := Options{ReasoningCommands: true, Legacy: c.Input.Legacy, StartInThink: c.Input.InThink, MaxTag: c.Input.MaxTag, MaxBody: c.Input.MaxBody}
	if c.Input.Setting == "reasoning commands: off" || c.Input.Reasoning != nil && !*c.Input.Reasoning {
		o.ReasoningCommands = false
	}
	if c.Input.Channel {
		o.Channel = ChannelReasoning
	}
	return o
}

// chunks returns the text of the channel under test.
func (c *streamCase) chunks(t testing.TB) []string {
	chunks := c.Input.Chunks
	for _, h := range c.Input.Hex {
		b, err := hex.DecodeString(h)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, string(b))
	}
	for _, d := range c.Input.Deltas {
		if d.Content != "" {
			chunks = append(chunks, d.Content)
		}
	}
	return chunks
}

func TestCases(t *testing.T) {
	n := 0
	for _, file := range []string{"cases.jsonl", "extra.jsonl"} {
		for _, c := range loadCases(t, file) {
			n++
			t.Run(c.ID, func(t *testing.T) {
				chunks := c.chunks(t)
				got := parse(c.options(), c.Input.Finish, chunks...)
				c.compare(t, got)
				if t.Failed() {
					t.Fatalf("%s\nstream: %q\ngot: %s", c.About, strings.Join(chunks, ""), got.dump())
				}
				checkSplits(t, c.options(), c.Input.Finish, strings.Join(chunks, ""), got)
			})
		}
	}
	if n < 36+60 {
		t.Errorf("%d cases, want all", n)
	}
}

// TestChannelsApart is case TS-32: half a tag in each channel is text in both.
func TestChannelsApart(t *testing.T) {
	for _, c := range loadCases(t, "cases.jsonl") {
		for _, d := range c.Input.Deltas {
			if d.Reasoning == "" {
				continue
			}
			o := c.options()
			o.Channel = ChannelReasoning
			r := parse(o, "", d.Reasoning)
			if r.Thought != d.Reasoning || len(r.Commands)+len(r.Errors) > 0 {
				t.Errorf("%s: reasoning channel: %s", c.ID, r.dump())
			}
		}
	}
}

// checkSplits parses the stream cut in every way that is tried.
func checkSplits(t *testing.T, o Options, finish, stream string, want *record) {
	t.Helper()
	try := func(how string, chunks ...string) {
		if r := parse(o, finish, chunks...); !r.same(want) || len(r.bad) > 0 {
			t.Fatalf("cut %s: %q\n%s", how, chunks, difference(r, want))
		}
	}
	for i := range len(stream) + 1 {
		try(fmt.Sprint("at ", i), stream[:i], stream[i:])
	}
	try("into characters", strings.Split(stream, "")...)
	try("into bytes", singleBytes(stream)...)
	rnd := rand.New(rand.NewPCG(1, uint64(len(stream))))
	for i := range 200 {
		try(fmt.Sprint("at random, ", i), randomSplit(rnd, stream)...)
	}
}

func singleBytes(s string) []string {
	chunks := make([]string, len(s))
	for i := range len(s) {
		chunks[i] = s[i : i+1]
	}
	return chunks
}

func randomSplit(rnd *rand.Rand, s string) []string {
	var chunks []string
	most := 1 + rnd.IntN(40)
	for s != "" {
		n := min(len(s), rnd.IntN(most+1))
		chunks = append(chunks, s[:n])
		s = s[n:]
	}
	return chunks
}

// statusOf says how an error counts among the ops.
func statusOf(c Code) string {
	switch c {
	case CodeUnclosed:
		return "incomplete"
	case CodeUnknownCommand:
		return "unknown"
	case CodeOrphanClose, CodeFenced:
		return ""
	}
	return "malformed"
}

func (c *streamCase) compare(t *testing.T, got *record) {
	t.Helper()
	for _, b := range got.bad {
		t.Error(b)
	}
	if want := c.Expected.Text; want != nil && got.Shown != *want {
		t.Errorf("text %q, want %q", got.Shown, *want)
	}
	if want := c.Expected.Reasoning; want != nil && got.Thought != *want {
		t.Errorf("reasoning %q, want %q", got.Thought, *want)
	}
	c.compareOps(t, got)
	c.compareErrors(t, got)
	c.compareNotes(t, got)
}

// compareOps compares commands and errors with the ops, in stream order.
func (c *streamCase) compareOps(t *testing.T, got *record) {
	t.Helper()
	if c.Expected.Ops == nil {
		return
	}
	commands, errors := got.Commands, got.Errors
	for i, want := range *c.Expected.Ops {
		if want.Status != "" {
			for len(errors) > 0 && statusOf(errors[0].Code) == "" {
				errors = errors[1:]
			}
			if len(errors) == 0 {
				t.Errorf("op %d: no error, want %+v", i, want)
				continue
			}
			want.compareError(t, &errors[0])
			errors = errors[1:]
			continue
		}
		if len(commands) == 0 {
			t.Errorf("op %d: no command, want %+v", i, want)
			continue
		}
		want.compareCommand(t, &commands[0])
		commands = commands[1:]
	}
	for _, x := range commands {
		t.Errorf("command %s %d is not expected", x.Name, x.ID)
	}
	for _, x := range errors {
		if statusOf(x.Code) != "" {
			t.Errorf("error %s is not expected", x.Message)
		}
	}
}

func (want *op) compareError(t *testing.T, e *Error) {
	t.Helper()
	if e.Name != want.Tag || statusOf(e.Code) != want.Status || want.Path != "" && e.Path != want.Path ||
		want.ID != "" && strconv.Itoa(e.ID) != want.ID || want.Received != nil && e.Received != *want.Received {
		t.Errorf("error %+v, want %+v", e, want)
	}
}

func (want *op) compareCommand(t *testing.T, c *Command) {
	t.Helper()
	body := c.Body
	if c.Name == Bash {
		body = c.Cmd
	}
	if want.Body == nil && want.Cmd != "" {
		want.Body = &want.Cmd
	}
	end, _ := attr(c.Attrs, "end")
	if string(c.Name) != want.Tag || strconv.Itoa(c.ID) != want.ID || c.Path != want.Path || c.Dest != want.Dest ||
		end != want.End || c.Repeated != want.Repeated || c.All != want.All || c.Line != want.Line ||
		c.Empty != want.Empty || c.NeedResult != want.NeedResult ||
		want.Channel != "" && string(c.Channel) != want.Channel || want.Block != nil && c.Block != *want.Block {
		t.Errorf("command %+v, want %+v", c, want)
	}
	if want.Body != nil && body != *want.Body || want.Body == nil && body != "" {
		t.Errorf("command %d: body %q, want %+v", c.ID, body, want)
	}
	if len(c.Pairs) != len(want.Edits) {
		t.Errorf("command %d: pairs %q, want %q", c.ID, c.Pairs, want.Edits)
		return
	}
	for i, p := range c.Pairs {
		if p.Old != want.Edits[i].Old || p.New != want.Edits[i].New {
			t.Errorf("command %d: pair %q, want %q", c.ID, p, want.Edits[i])
		}
	}
}

func (c *streamCase) compareErrors(t *testing.T, got *record) {
	t.Helper()
	want := append(extraErrors[c.ID], c.Expected.Errors...)
	errors := got.Errors
	if len(c.Expected.Errors) == 0 {
		// The ops cover the others.
		errors = nil
		for _, e := range got.Errors {
			if statusOf(e.Code) == "" {
				errors = append(errors, e)
			}
		}
	}
	if len(errors) != len(want) {
		t.Errorf("%d errors, want %d: %+v", len(errors), len(want), errors)
		return
	}
	for i, w := range want {
		e := errors[i]
		if e.Code != w.Code || w.ID != 0 && e.ID != w.ID || w.Line != 0 && e.Line != w.Line || e.Cut != w.Cut ||
			w.Name != "" && e.Name != w.Name ||
			w.Received != nil && e.Received != *w.Received || w.Lines != nil && e.Lines != *w.Lines {
			t.Errorf("error %+v, want %+v", e, w)
		}
		for _, s := range w.Says {
			if !strings.Contains(e.Message, s) {
				t.Errorf("message %q does not say %q", e.Message, s)
			}
		}
	}
	for _, s := range said[c.ID] {
		found := false
		for _, e := range got.Errors {
			found = found || strings.Contains(e.Message, s)
		}
		if !found {
			t.Errorf("no message says %q: %+v", s, got.Errors)
		}
	}
}

func (c *streamCase) compareNotes(t *testing.T, got *record) {
	t.Helper()
	want := append(notes[c.ID], c.Expected.Notes...)
	var have []string
	for _, n := range got.Notes {
		s := string(n.Kind)
		if n.Name != "" {
			s += " " + n.Name
		}
		if n.ID != 0 {
			s += " " + strconv.Itoa(n.ID)
		}
		have = append(have, s)
	}
	if strings.Join(have, "; ") != strings.Join(want, "; ") {
		t.Errorf("notes %q, want %q", have, want)
	}
}
