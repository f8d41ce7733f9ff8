package parser

import (
	"fmt"
	"strconv"
	"strings"
)

// maxQuoted bounds what a message quotes of the model's own text, in bytes.
const maxQuoted = 60

// err is an error of this opening tag.
func (o *opening) err(code Code, reason string) *Error {
	e := &Error{Code: code, Name: o.written, ID: o.id, Channel: o.l.channel, Path: o.path, Line: o.line, Start: o.start, End: o.end}
	switch code {
	case CodeUnknownCommand:
		e.Message = fmt.Sprintf("line %d: unknown command %s: nothing was done (known: %s)", o.line, o.written, knownNames())
	case CodeUnclosed:
		e.Message = fmt.Sprintf("line %d: the opening tag of %s was cut off, nothing was executed", o.line, named(o.written, o.path))
	default:
		e.Message = fmt.Sprintf("line %d: %s: %s, not executed. %s", o.line, named(o.written, o.path), reason, advice(code))
	}
	return e
}

// describe says why the tag cannot be parsed.
func describe(t *tagScanner, o *opening) (Code, string) {
	which := "it"
	if a := t.whyAttr; a.nameEnd > a.name && a.nameEnd <= len(o.raw) {
		which = o.raw[a.name:a.nameEnd]
	}
	switch t.why {
	case problemTooLong:
		return CodeTooLarge, fmt.Sprintf("the opening tag is longer than %s", size(t.max))
	case problemCut:
		return CodeUnclosed, ""
	case problemUnquoted:
		return CodeMalformedAttribute, "attribute values must be quoted"
	case problemNoValue:
		return CodeMalformedAttribute, "attribute " + which + " has no value"
	case problemNoBlank:
		return CodeMalformedAttribute, "a blank is missing after the value of attribute " + which + ", or a quote inside it must be written as &quot;"
	case problemLineBreak:
		return CodeMalformedAttribute, "the value of attribute " + which + " runs over the end of its line, its closing quote is missing"
	case problemOpenQuote:
		return CodeMalformedAttribute, "the closing quote of attribute " + which + " is missing"
	case problemTooMany:
		return CodeMalformedAttribute, "the tag has more than " + strconv.Itoa(maxAttrs) + " attributes"
	case problemSlash:
		return CodeMalformedAttribute, `"/" may only stand before ">"`
	}
	return CodeMalformedAttribute, "the tag cannot be parsed"
}

// advice says what to do about an opening tag that does not run.
func advice(code Code) string {
	switch code {
	case CodeMissingAttribute, CodeBadID:
		return "Send it again with the attribute; every command needs an id, a number that was not used in this answer"
	case CodeDuplicateID:
		return "Send it again with a number that was not used in this answer"
	case CodeTooLarge:
		return "Put long content into the body, not into attributes"
	}
	return `Write attributes as name="value" or name='value'`
}

func missing(name string, present bool) string {
	if present {
		return "attribute " + name + " is empty"
	}
	return "attribute " + name + " is missing"
}

func duplicateReason(id int) string {
	return fmt.Sprintf("id %d was used for another command", id)
}

// named is how a message names a command: its tag and its path.
func named(name, path string) string {
	if path == "" {
		return name
	}
	return name + " " + clip(path)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return plural(n, "byte")
}

// clip shortens text that a message quotes.
func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}

func forbiddenNote(o *opening) Note {
	what := o.written
	if o.id > 0 {
		what = fmt.Sprintf("%s %d", o.written, o.id)
	}
	why := "tf-read, tf-bash and tf-delete run only from the answer itself"
	if !o.l.p.opts.ReasoningCommands {
		why = "commands run only from the answer itself"
	}
	return Note{Kind: NoteForbiddenChannel, Name: o.written, ID: o.id,
		Message: fmt.Sprintf("%s stood in the reasoning and did not run: %s", what, why)}
}

func (l *lane) noteLookalike() {
	name := string(l.tag.name[:l.tag.nameLen])
	l.note(Note{Kind: NoteLookalike, Name: name,
		Message: fmt.Sprintf("line %d: text that looks like <%s …> holds an invisible character, so it is no command and did not run", l.line, name)})
}

// unclosed is the error of a command whose end had not come at offset end.
func (b *body) unclosed(end int) *Error {
	e := b.err(CodeUnclosed, b.base+int64(end))
	e.Received = int(b.base-b.first) + end
	e.Lines = b.lineAt(end) - b.firstLine
	cut := fmt.Sprintf("line %d: %s: command %d was cut off after %s (%s of body) and was not applied",
		e.Line, named(e.Name, e.Path), e.ID, plural(e.Lines, "whole line"), plural(e.Received, "byte"))
	closing := b.closeTag()
	switch {
	case b.follow.count == 1:
		e.Message = fmt.Sprintf("%s: its closing tag %s on line %d was followed by text on the same line, so it counted as content. Put nothing after the closing tag on its line",
			cut, closing, b.follow.first)
	case b.follow.count > 1:
		e.Message = fmt.Sprintf("%s: its closing tags %s on lines %d to %d were followed by text on the same line, so they counted as content. Put nothing after the closing tag on its line",
			cut, closing, b.follow.first, b.follow.last)
	case b.inner > 0:
		e.Message = fmt.Sprintf("%s: its body holds %s of %s, which takes a closing tag of its own. Send it with a new id and end=\"TOKEN\" in its opening and closing tag",
			cut, plural(b.inner, "opening tag"), b.name)
	case !b.cmd.Name.hasBody():
		e.Message = fmt.Sprintf("%s: its closing tag %s never came. %s has no body: end its tag with \"/>\"", cut, closing, b.name)
	default:
		e.Message = fmt.Sprintf("%s: its closing tag %s never came", cut, closing)
	}
	return e
}

// tooLarge is the error of a body beyond the limit.
func (b *body) tooLarge() *Error {
	max := b.l.p.opts.MaxBody
	e := b.err(CodeTooLarge, b.first+int64(max))
	e.Received = max
	e.Lines = b.lineAt(max) - b.firstLine
	e.Message = fmt.Sprintf("line %d: %s: the body of command %d is longer than %s, not executed. Write the file in parts: tf-write for the first, tf-append for the others",
		e.Line, named(e.Name, e.Path), e.ID, size(max))
	return e
}

// wrongBody is the error of a command whose body means nothing.
func (b *body) wrongBody() *Error {
	e := b.err(CodeMalformedAttribute, b.base+int64(b.closeEnd))
	switch b.cmd.Name {
	case Bash:
		e.Message = fmt.Sprintf("line %d: tf-bash: command %d has both the attribute cmd and a body, not executed. Give the shell command once", e.Line, e.ID)
	default:
		e.Message = fmt.Sprintf("line %d: %s: command %d has a body, which %s does not take, not executed. End its tag with \"/>\"; nothing inside it ran",
			e.Line, named(e.Name, e.Path), e.ID, e.Name)
	}
	return e
}

// noCommand is the error of a tf-bash without a shell command.
func (b *body) noCommand() *Error {
	e := b.err(CodeMissingAttribute, b.base+int64(b.closeEnd))
	e.Message = fmt.Sprintf("line %d: tf-bash: command %d has neither the attribute cmd nor a body, not executed", e.Line, e.ID)
	return e
}

// err is an error of the open command that was known at offset end.
func (b *body) err(code Code, end int64) *Error {
	c := b.cmd
	return &Error{Code: code, Name: b.name, ID: c.ID, Channel: c.Channel, Path: c.Path, Line: b.openLine, Start: c.Start, End: end}
}
