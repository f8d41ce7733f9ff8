// Package parser recognises the commands (tf-write, tf-edit, …) in the text
// that a model streams: bytes of one channel go in, in chunks cut anywhere;
// visible text, progress, complete commands, errors and notes come out. It
// knows nothing of files, models or editors, and it executes nothing. It is the
// tag protocol of the design, complete.
//
// # What holds always
//
//   - The result is the same for every way of cutting the bytes.
//   - One pass, linear time: a byte is looked at a small, fixed number of times.
//   - Text waits only while it may be the start of a tag or of </think>, at most
//     MaxTag bytes; content of a body only while it may be its closing tag or a
//     nested opening one, at most MaxTag + 4 KiB. A body that a command wants
//     is stored in at most twice its size (and 64 KiB); one that nothing wants
//     is skipped in constant memory.
//   - What was not closed is never delivered as a command.
//   - Bodies are raw bytes: nothing is decoded, unescaped or trimmed but the one
//     line break directly after an opening tag.
//
// # Where it decides
//
// A tag is live in visible text outside of fences and inline code. Fences are
// those of CommonMark, in list items and quotes too; inline code ends with its
// line. An opening tag without attributes is a mention, also when an ellipsis
// stands in their place (<tf-write ...>), and a name that is no command is one
// until an attribute=… follows. Any other opening tag owns a body, good or
// not, up to its closing tag.
//
// In block form (the rest of the opening tag's line is blank) a closing tag
// counts when the rest of its line is blank, the stream ends or another command
// tag follows; else the first one at depth 0 closes. In the open <old> or <new>
// of an edit, </tf-edit> always needs that, unless </old> or </new> stands
// directly before it. Blanks that are looked through for this are at most
// 1 KiB.
//
// A line break in a value other than that of cmd means that a quote was
// forgotten: the tag ends at its first ">".
//
// Commands without a body (mkdir, touch, copy, move, delete, read) may have a
// blank one; anything else in it is refused, since it would be lost.
//
// A think block ends at its closing tag wherever it stands in plain text; in
// code, in a fence or in a command's body only where it ends its line, and a
// command that it cuts is unclosed. <thinking> is <think> by another name.
//
// A closing tag alone on its line is an orphan after a block-form command that
// the same closing tag (with or without that token) could have closed. In a
// fence it counts only when the command's body ended within an open fence: then
// the fences of the text are those of the body.
package parser
