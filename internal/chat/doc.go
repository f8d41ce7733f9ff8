// Package chat is the interactive terminal session: thinkflow chat.
//
// What is finished is printed above and belongs to the terminal's scrollback;
// at the bottom a few lines are drawn anew: what is not finished yet, the
// status, a question, the input line. Package term decides how events look; this
// package decides what keys do. Text of the model, of files and of paths passes
// term's treatment before it reaches the terminal.
//
// The model (model.go) is a state machine after the manner of Bubble Tea:
// Update takes one message after the other on one goroutine, and whatever waits
// (the engine, the search for files) is a command on a goroutine of its own
// that sends a message when it is done. States: at rest, working on a run, a
// question open (while working), ending.
package chat
