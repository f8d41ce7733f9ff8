package term

import (
	"os"

	"golang.org/x/term"
)

// ReadSecret reads a line from a terminal that does not show what is typed.
func ReadSecret(in *os.File) (string, error) {
	b, err := term.ReadPassword(int(in.Fd()))
	return string(b), err
}
