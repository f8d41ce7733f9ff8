// Package notify tells a person who does not look that a run ended or asks: by
// the terminal (bell, OSC 9, OSC 777) and by a command of the user's own
// configuration, which gets what happened in its environment.
package notify
