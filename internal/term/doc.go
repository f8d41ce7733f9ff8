// Package term shows the events of a run to a person: text as it comes, each
// command as one line, diffs, a status line that is alive, and a summary.
//
// On a terminal it wraps to the width, colours, and redraws the status line
// below the text without ever touching the text. Anywhere else it writes the
// same content as plain lines: no escape sequences, no carriage returns.
//
// Whatever comes from a model, a file or a path is untrusted: control
// characters, escape sequences and direction overrides are made visible before
// they are written, so that nothing a model says can drive the terminal.
//
// Units: widths and columns are terminal cells, columns from 0.
package term
