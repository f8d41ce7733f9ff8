package shellrules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// maxLine bounds the length of a line that is looked at, in bytes.
const maxLine = 32 << 10

// parse splits a line into its simple commands. why is set when there is
// anything in it but plain simple commands joined by &&, ||, |, ; or line breaks.
func parse(line string) (cmds []command, why string) {
	if why := oddText(line); why != "" {
		return nil, why
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, "it cannot be parsed: " + strings.TrimPrefix(err.Error(), ":")
	}
	for _, s := range file.Stmts {
		if why := statement(s, &cmds); why != "" {
			return nil, why
		}
	}
	if len(cmds) == 0 {
		return nil, "there is no command in it"
	}
	return cmds, ""
}

// oddText refuses characters that a shell and an eye read differently.
func oddText(line string) string {
	if len(line) > maxLine {
		return fmt.Sprintf("it has %d bytes", len(line))
	}
	if !utf8.ValidString(line) {
		return "it is not valid UTF-8"
	}
	for _, r := range line {
		switch {
		case r == '\n', r == '\t':
		case r < ' ', r == 0x7f:
			return fmt.Sprintf("it holds a control character (U+%04X)", r)
		case r >= utf8.RuneSelf && (!unicode.IsPrint(r) || unicode.IsSpace(r)):
			return fmt.Sprintf("it holds an invisible character (U+%04X)", r)
		}
	}
	return ""
}

// statement collects the simple commands of a statement.
func statement(s *syntax.Stmt, cmds *[]command) string {
	switch {
	case s.Negated:
		return "it negates a result"
	case s.Background:
		return "it runs a command in the background"
	case s.Coprocess, s.Disown:
		return "it runs a command beside the shell"
	}
	for _, r := range s.Redirs {
		if !harmless(r) {
			return "it redirects input or output"
		}
	}
	switch c := s.Cmd.(type) {
	case nil:
		return "it redirects input or output of nothing"
	case *syntax.CallExpr:
		return call(c, cmds)
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt && c.Op != syntax.Pipe {
			return "it joins commands by " + c.Op.String()
		}
		if why := statement(c.X, cmds); why != "" {
			return why
		}
		return statement(c.Y, cmds)
	default:
		return "it is more than plain commands: " + construct(c)
	}
}

// harmless lets the two redirections through that touch no file: joining
// standard error and standard output, and throwing either away.
func harmless(r *syntax.Redirect) bool {
	if r.Hdoc != nil || r.Word == nil || len(r.Word.Parts) != 1 {
		return false
	}
	lit, ok := r.Word.Parts[0].(*syntax.Lit)
	if !ok || r.N != nil && r.N.Value != "1" && r.N.Value != "2" {
		return false
	}
	switch r.Op {
	case syntax.DplOut:
		return lit.Value == "1" || lit.Value == "2"
	case syntax.RdrOut:
		return lit.Value == "/dev/null"
	}
	return false
}

func construct(c syntax.Command) string {
	switch c.(type) {
	case *syntax.Subshell, *syntax.Block:
		return "a group"
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return "a loop or condition"
	case *syntax.FuncDecl:
		return "a function"
	case *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd:
		return "it sets variables"
	case *syntax.TimeClause:
		return "time"
	case *syntax.TestClause:
		return "a test in [[ ]]"
	}
	return "a construct that is not looked into"
}

func call(c *syntax.CallExpr, cmds *[]command) string {
	if len(c.Assigns) > 0 {
		return "it sets a variable"
	}
	if len(c.Args) == 0 {
		return "there is no command in it"
	}
	var out command
	for _, a := range c.Args {
		w, why := plain(a)
		if why != "" {
			return why
		}
		out.words = append(out.words, w)
	}
	*cmds = append(*cmds, out)
	return ""
}

// plain evaluates a word that needs no shell to be evaluated. Patterns and a
// leading tilde make it not literal; all else that is expanded is refused.
func plain(w *syntax.Word) (word, string) {
	var b strings.Builder
	out := word{literal: true}
	braces := false
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if n := len(p.Value) - len(strings.TrimRight(p.Value, `\`)); n%2 == 1 {
				return out, "it ends in a backslash"
			}
			text, pattern, brace := unescape(p.Value)
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				out.literal = false
			}
			out.literal = out.literal && !pattern
			braces = braces || brace
			if b.Len() == 0 && len(p.Value) > 0 && !strings.ContainsRune("*?[~", rune(p.Value[0])) && text != "" {
				out.first = text[0]
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if p.Dollar {
				return out, "it holds a $'…' string"
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return out, "it holds a $\"…\" string"
			}
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					return out, "it holds a variable or substitution"
				}
				b.WriteString(unescapeQuoted(lit.Value))
			}
		case *syntax.ExtGlob:
			return out, "it holds an extended pattern"
		case *syntax.BraceExp:
			return out, "it holds a brace expansion"
		case *syntax.ProcSubst, *syntax.CmdSubst:
			return out, "it runs a command inside another (substitution)"
		default:
			return out, "it holds a variable or substitution"
		}
		if out.first == 0 && b.Len() > 0 && out.literal {
			out.first = b.String()[0]
		}
	}
	out.text = b.String()
	if braces && (strings.Contains(out.text, ",") || strings.Contains(out.text, "..")) {
		return out, "it holds a brace expansion"
	}
	return out, ""
}

// unescape evaluates unquoted text: a backslash takes the meaning from the next
// character. pattern and brace report unescaped characters of patterns and { }.
func unescape(s string) (text string, pattern, brace bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) {
				i++
				if s[i] != '\n' {
					b.WriteByte(s[i])
				}
			}
			continue
		case '*', '?', '[':
			pattern = true
		case '{', '}':
			brace = true
		}
		b.WriteByte(s[i])
	}
	return b.String(), pattern, brace
}

// unescapeQuoted evaluates text in double quotes.
func unescapeQuoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
