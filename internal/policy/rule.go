package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"thinkflow/internal/shellrules"
	"thinkflow/workspace"
)

// Verdict is what a rule or a decision says. The larger one wins.
type Verdict uint8

// The verdicts.
const (
	Allow Verdict = iota
	Ask
	Deny
)

func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Layer is where a rule comes from. Of rules with one verdict the one of the
// highest layer is named.
type Layer uint8

// The layers.
const (
	Default   Layer = iota // no rule matched
	Workspace              // settings that a repository brings along
	Session                // mode and flags of this session
	User                   // the user's own configuration
)

func (l Layer) String() string {
	return [...]string{"default", "workspace", "session", "user"}[min(l, User)]
}

// Action is what a rule is about.
type Action string

// The actions. Subjects: for Read, Write, Delete, Protected and Secrets a path
// as shown to people, for Bash the command line, for Net host or host:port ("" = whatever a command
// reaches), for Git nothing.
const (
	Read      Action = "read"
	Write     Action = "write"
	Delete    Action = "delete"
	Bash      Action = "bash"
	Net       Action = "net"
	Git       Action = "git"       // a command changes version control metadata
	Protected Action = "protected" // a change of a protected path
	Secrets   Action = "secrets"   // the content of a secret file is used
)

// toolPrefix begins the actions that are calls of a tool.
const toolPrefix = "tool:"

// Tool is the action of calling the tool of that name; its subject is empty.
func Tool(name string) Action { return Action(toolPrefix + name) }

// defaults are the verdicts where no rule matches; the rest asks.
func defaultVerdict(a Action) Verdict {
	if a == Read || a == Write {
		return Allow
	}
	return Ask
}

// Rule is one line of a list.
type Rule struct {
	Verdict Verdict
	Layer   Layer
	Action  Action // of a tool: with a pattern in place of the name
	Pattern string // "" = everything
	// Source says where it stands, for messages: "config.toml:12".
	Source string
}

// String is the rule as one writes it, with its verdict.
func (r Rule) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Verdict, r.Action, r.Pattern))
}

// Error is a line that is not a rule.
type Error struct {
	Source string
	Line   string // as written
	Msg    string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("rule %q: %s", e.Line, e.Msg)
	if e.Source != "" {
		s = e.Source + ": " + s
	}
	return s
}

// Parse reads the lines of one list. The error joins an *Error for each line
// that is no rule; the others are returned all the same.
func Parse(layer Layer, v Verdict, source string, lines []string) ([]Rule, error) {
	var rules []Rule
	var errs []error
	for _, line := range lines {
		action, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		r := Rule{Verdict: v, Layer: layer, Action: Action(action), Pattern: strings.TrimSpace(pattern), Source: source}
		if msg := r.problem(); msg != "" {
			errs = append(errs, &Error{source, line, msg})
			continue
		}
		rules = append(rules, r)
	}
	return rules, errors.Join(errs...)
}

// problem says what is wrong with a rule; "" = nothing.
func (r Rule) problem() string {
	if name, ok := strings.CutPrefix(string(r.Action), toolPrefix); ok {
		switch _, err := path.Match(name, "x"); {
		case name == "":
			return "write the name of the tool behind the colon, like tool:github_search or tool:github_*"
		case err != nil:
			return "the name of the tool is not a valid pattern"
		case r.Pattern != "":
			return "a tool takes no pattern"
		}
		return ""
	}
	switch r.Action {
	case Read, Write, Delete, Protected, Secrets:
		if r.Pattern == "" {
			return ""
		}
		if _, err := workspace.NewPatterns([]string{r.Pattern}); err != nil {
			return err.Error()
		}
	case Bash:
		if r.Pattern == "" {
			return ""
		}
		if _, err := shellrules.Words(r.Pattern); err != nil {
			return err.Error()
		}
	case Git:
		if r.Pattern != "" {
			return "git takes no pattern"
		}
	case Net:
		if _, err := path.Match(r.Pattern, "x"); err != nil || strings.ContainsAny(r.Pattern, "/ ") {
			return "write a host, like example.org, *.example.org or example.org:8080"
		}
	default:
		return unknownAction(string(r.Action))
	}
	return ""
}

func unknownAction(got string) string {
	known := []string{"read", "write", "delete", "bash", "net", "git", "protected", "secrets", "tool:NAME"}
	msg := "unknown action " + got + "; use one of " + strings.Join(known, ", ")
	if got == "" {
		msg = "it is empty; write an action and a pattern, like \"write docs/**\""
	}
	if i := slices.Index([]string{"edit", "shell", "network", "remove", "exec", "run"}, strings.ToLower(got)); i >= 0 {
		msg += " (" + []string{"write", "bash", "net", "delete", "bash", "bash"}[i] + " is the word here)"
	}
	return msg
}
