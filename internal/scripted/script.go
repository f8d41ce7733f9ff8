package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Script is a parsed script.
type Script struct {
	Name    string
	Model   string // name in answers and in /models
	Context int    // context size that /models reports, in tokens; 0 = not reported
	Turns   []Turn

	defaults []step
}

// Turn is one answer of the model.
type Turn struct {
	Name string
	Line int // line of the script, from 1

	when   []string
	repeat bool
	expect []expectation
	status int
	header http.Header
	body   *string
	steps  []step
}

type expectation struct {
	kind, arg string
	line      int
}

// step is one action of a turn; which fields count depends on verb.
type step struct {
	verb  string
	text  string
	name  string
	id    string
	n     int
	dur   time.Duration
	usage usage
	line  int
}

type usage struct {
	in, out, cached, reasoning int
	none, inFinish             bool
}

// Load reads and parses a script file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return Parse(filepath.Base(path), data)
}

// Parse parses a script; name is used in messages only. The format is described
// in the package documentation. Errors name the line.
func Parse(name string, data []byte) (*Script, error) {
	s := &Script{Name: name, Model: "scripted"}
	p := &scriptParser{script: s, lines: strings.Split(string(data), "\n")}
	for p.next < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.next])
		p.next++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		p.at = p.next
		if err := p.directive(verb, strings.TrimSpace(rest)); err != nil {
			return nil, fmt.Errorf("script %s, line %d: %w", name, p.at, err)
		}
	}
	return s, nil
}

type scriptParser struct {
	script *Script
	lines  []string
	next   int // index of the next line
	at     int // line of the directive being parsed, from 1
}

func (p *scriptParser) turn() *Turn {
	if len(p.script.Turns) == 0 {
		return nil
	}
	return &p.script.Turns[len(p.script.Turns)-1]
}

func (p *scriptParser) directive(verb, rest string) error {
	switch verb {
	case "model":
		p.script.Model = rest
		return nil
	case "context":
		n, err := number(rest)
		p.script.Context = n
		return err
	case "turn":
		p.script.Turns = append(p.script.Turns, Turn{
			Name: rest, Line: p.at, header: http.Header{}, steps: append([]step(nil), p.script.defaults...),
		})
		return nil
	}
	st, err := p.step(verb, rest)
	if err != nil {
		return err
	}
	t := p.turn()
	if t == nil {
		switch verb {
		case "chunk", "rate", "wire":
			p.script.defaults = append(p.script.defaults, *st)
			return nil
		}
		return fmt.Errorf("%q before the first turn; begin one with a line `turn`", verb)
	}
	if st != nil {
		t.steps = append(t.steps, *st)
		return nil
	}
	return p.turnDirective(t, verb, rest)
}

// step parses what becomes a step; nil for what belongs to the turn as a whole.
func (p *scriptParser) step(verb, rest string) (*step, error) {
	st := &step{verb: verb, line: p.at}
	var err error
	call, id, hasID := strings.Cut(verb, "#")
	switch {
	case hasID && call == "call":
		st.verb, st.id = "call", id
		fallthrough
	case verb == "call":
		var args string
		st.name, args, _ = strings.Cut(rest, " ")
		if st.name == "" {
			return nil, fmt.Errorf("call needs a name: call NAME {json}")
		}
		st.text, err = p.text(strings.TrimSpace(args))
		return st, err
	}
	switch verb {
	case "text", "reasoning", "reasoning-alt", "data", "raw", "comment", "error", "error-event":
		st.text, err = p.text(rest)
	case "tool-delta", "delta":
		st.text, err = p.text(rest)
		if err == nil && !json.Valid([]byte(st.text)) {
			err = fmt.Errorf("%s needs valid JSON; use `data` or `raw` for broken chunks", verb)
		}
	case "ttft", "sleep", "keepalive":
		st.dur, err = time.ParseDuration(rest)
	case "chunk", "rate", "wire":
		st.n, err = number(rest)
	case "await":
		if st.name = rest; rest == "" {
			err = fmt.Errorf("await needs a name: await NAME")
		}
	case "hang", "cut", "eof":
		st.name = rest
	case "finish", "done":
		if st.name = rest; rest == "" {
			err = fmt.Errorf("%s needs a word", verb)
		}
	case "usage":
		st.usage, err = parseUsage(rest)
	case "when", "repeat", "expect", "status", "header", "body":
		return nil, nil
	default:
		err = fmt.Errorf("unknown directive %q", verb)
	}
	return st, err
}

func (p *scriptParser) turnDirective(t *Turn, verb, rest string) (err error) {
	switch verb {
	case "repeat":
		t.repeat = true
	case "when":
		var s string
		s, err = p.text(rest)
		t.when = append(t.when, s)
	case "status":
		t.status, err = number(rest)
	case "header":
		k, v, ok := strings.Cut(rest, ":")
		if !ok {
			return fmt.Errorf("header needs `Name: value`")
		}
		t.header.Add(strings.TrimSpace(k), strings.TrimSpace(v))
	case "body":
		var s string
		s, err = p.text(rest)
		t.body = &s
	case "expect":
		kind, arg, _ := strings.Cut(rest, " ")
		switch kind {
		case "contains", "not-contains", "last-contains", "body-contains":
			arg, err = p.text(strings.TrimSpace(arg))
		case "messages":
			_, err = number(arg)
		case "roles", "last", "tool", "no-tools", "model", "header":
			arg = strings.TrimSpace(arg)
		default:
			return fmt.Errorf("unknown expectation %q", kind)
		}
		t.expect = append(t.expect, expectation{kind: kind, arg: arg, line: p.at})
	}
	return err
}

// text reads a quoted string, a here-block or the rest of the line.
func (p *scriptParser) text(rest string) (string, error) {
	if strings.HasPrefix(rest, `"`) {
		s, err := strconv.Unquote(rest)
		if err != nil {
			return "", fmt.Errorf("not a Go string: %s", rest)
		}
		return s, nil
	}
	if !strings.HasPrefix(rest, "<<") {
		return rest, nil
	}
	token, opt, _ := strings.Cut(rest[2:], " ")
	if token == "" || opt != "" && opt != "chomp" {
		return "", fmt.Errorf("a block begins with <<TOKEN or <<TOKEN chomp, not %s", rest)
	}
	var b strings.Builder
	for ; p.next < len(p.lines); p.next++ {
		if strings.TrimSpace(p.lines[p.next]) == token {
			p.next++
			s := b.String()
			if opt == "chomp" {
				s = strings.TrimSuffix(s, "\n")
			}
			return s, nil
		}
		b.WriteString(p.lines[p.next])
		b.WriteByte('\n')
	}
	return "", fmt.Errorf("block is not closed by a line %s", token)
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}

func parseUsage(rest string) (usage, error) {
	var u usage
	u.cached, u.reasoning = -1, -1
	if rest == "none" {
		u.none = true
		return u, nil
	}
	words := strings.Fields(rest)
	if len(words) < 2 {
		return u, fmt.Errorf("usage needs two numbers: usage IN OUT")
	}
	var err error
	if u.in, err = number(words[0]); err != nil {
		return u, err
	}
	if u.out, err = number(words[1]); err != nil {
		return u, err
	}
	for _, w := range words[2:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "cached":
			u.cached, err = number(v)
		case "reasoning":
			u.reasoning, err = number(v)
		case "in-finish":
			u.inFinish = true
		default:
			err = fmt.Errorf("unknown word %q after usage", w)
		}
		if err != nil {
			return u, err
		}
	}
	return u, nil
}
