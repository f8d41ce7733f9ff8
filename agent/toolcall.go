package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// callList joins the pieces of the native calls of one answer. The zero value
// is ready. Which piece belongs to which call was settled by the provider's
// adapter: see CallDelta.
type callList struct {
	calls []callParts
}

type callParts struct {
	id, name string
	args     []byte
	extra    string
}

func (l *callList) add(d CallDelta) {
	for d.Call >= len(l.calls) {
		l.calls = append(l.calls, callParts{})
	}
	c := &l.calls[d.Call]
	if d.ID != "" {
		c.id = d.ID
	}
	if d.Name != "" {
		c.name = d.Name
	}
	if d.Extra != "" {
		c.extra = d.Extra
	}
	c.args = append(c.args, d.Args...)
}

// at returns call n, arguments as they came; ok is false for one without a name:
// nothing can be done with it, not even an error result, since the history needs a
// name.
func (l *callList) at(n int) (c ToolCall, ok bool) {
	p := &l.calls[n]
	return ToolCall{ID: p.id, Name: p.name, Arguments: string(p.args), Extra: p.extra}, strings.TrimSpace(p.name) != ""
}

// PreparedCall is a finished call, made ready for execution and for the history.
type PreparedCall struct {
	// Name is the tool's name as the model gave it, without blanks around it.
	Name string
	// Arguments is a JSON object; nil when there is a Problem.
	Arguments json.RawMessage
	// Problem is the error result for the model: the call must not run.
	Problem string
	// History is the call as it goes back to the provider: a name of the allowed
	// characters, and arguments that are a JSON object whatever the model sent.
	History ToolCall
	// N is the number of the call in its answer, from 1; calls that were dropped
	// count.
	N int
}

// InvalidToolName stands in the history for a name that no provider would take
// back.
const InvalidToolName = "invalid_tool"

// maxBadArguments bounds, in bytes, what the history keeps of arguments that
// are no JSON object.
const maxBadArguments = 1000

// PrepareCall normalises a finished call. Blank arguments and null mean an empty
// object, an object wrapped in a string is unwrapped one level (TC-09, TC-24).
// Broken JSON is never repaired: a repaired value is a plausible lie (TC-10,
// TC-23). finish is the answer's finish reason.
func PrepareCall(c ToolCall, finish string) PreparedCall {
	p := PreparedCall{Name: strings.TrimSpace(c.Name)}
	p.History = ToolCall{ID: c.ID, Name: HistoryToolName(p.Name), Extra: c.Extra}
	args, problem := objectArguments(c.Arguments)
	if problem != "" {
		if finish == "length" && incompleteJSON(c.Arguments) {
			problem = "not executed: the response hit the output limit; send a shorter call"
		}
		p.Problem = problem
		p.History.Arguments = badArguments(c.Arguments)
		return p
	}
	p.Arguments = json.RawMessage(args)
	p.History.Arguments = args
	return p
}

// HistoryToolName returns a name that providers accept back: the name itself if
// it has 1 to 64 of the characters A-Z a-z 0-9 _ -, else InvalidToolName (TC-25).
func HistoryToolName(name string) string {
	if len(name) == 0 || len(name) > 64 {
		return InvalidToolName
	}
	for _, r := range name {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return InvalidToolName
		}
	}
	return name
}

// objectArguments returns the arguments as the text of a JSON object, or what is
// wrong with them.
func objectArguments(s string) (object, problem string) {
	s = strings.TrimSpace(s)
	if s == "" || s == "null" {
		return "{}", ""
	}
	if problem := jsonProblem(s); problem != "" {
		return "", "arguments are not valid JSON: " + problem
	}
	switch s[0] {
	case '{':
		return s, ""
	case '"':
		var inner string
		if json.Unmarshal([]byte(s), &inner) == nil {
			inner = strings.TrimSpace(inner)
			if strings.HasPrefix(inner, "{") && json.Valid([]byte(inner)) {
				return inner, ""
			}
		}
		return "", `arguments must be an object, like {"name": "value"}, not a string`
	case '[':
		return "", `arguments must be an object, like {"name": "value"}, not an array`
	}
	return "", `arguments must be an object, like {"name": "value"}, not ` + clip(s, 20)
}

// jsonProblem says what is wrong with a JSON text and where; "" when it is valid.
// Positions count characters from 1.
func jsonProblem(s string) string {
	if json.Valid([]byte(s)) {
		return ""
	}
	var v json.RawMessage
	err := json.Unmarshal([]byte(s), &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "it cannot be read"
	}
	if incompleteJSON(s) {
		return fmt.Sprintf("it ends too early, at character %d, after %s; send the call again, complete", utf8.RuneCountInString(s), quoteTail(s))
	}
	at := min(max(int(syntax.Offset)-1, 0), len(s))
	return fmt.Sprintf("%s at character %d, after %s; send the call again with valid JSON", syntax.Error(), utf8.RuneCountInString(s[:at])+1, quoteTail(s[:at]))
}

// incompleteJSON tells whether the text is the beginning of a JSON value that
// was cut off.
func incompleteJSON(s string) bool {
	dec := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	err := dec.Decode(&v)
	return err != nil && err.Error() == "unexpected EOF"
}

// quoteTail shows the last characters before a position.
func quoteTail(s string) string {
	const tail = 24
	if len(s) > tail {
		return "`…" + strings.ToValidUTF8(s[len(s)-tail:], "") + "`"
	}
	return "`" + s + "`"
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// badArguments keeps what the model sent, bounded, as an object: servers decode
// the arguments of the history and refuse the whole request otherwise.
func badArguments(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string{"invalid_arguments": clip(s, maxBadArguments)}); err != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
