package parser

import "strings"

// tagPrefix starts the name of every canonical command tag.
const tagPrefix = "tf-"

// known lists the commands in the order in which the model is told about them.
var known = [...]Name{Write, Edit, Append, Mkdir, Touch, Copy, Move, Delete, Read, Bash}

// commandOf returns the command that a tag name stands for and its place in
// known. The name is as written; only the legacy form lacks the prefix.
func commandOf(written string) (Name, int) {
	bare := strings.TrimPrefix(written, tagPrefix)
	for i, n := range known {
		if string(n[len(tagPrefix):]) == bare {
			return n, i
		}
	}
	return "", -1
}

// bareAlive reports whether s starts a legacy name, and whether it is one.
func bareAlive(s string) (alive, whole bool) {
	for _, n := range known {
		bare := string(n[len(tagPrefix):])
		if strings.HasPrefix(bare, s) {
			alive = true
			whole = whole || len(bare) == len(s)
		}
	}
	return alive, whole
}

// knownNames lists all commands for a message.
func knownNames() string {
	var b strings.Builder
	for i, n := range known {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(n))
	}
	return b.String()
}

// hasBody reports whether the body of the command means anything.
func (n Name) hasBody() bool {
	switch n {
	case Write, Append, Edit, Bash:
		return true
	}
	return false
}

// hasDest reports whether the command needs a dest attribute.
func (n Name) hasDest() bool { return n == Copy || n == Move }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

func isSpace(c byte) bool { return isBlank(c) || c == '\n' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' || c == '_' }

func isAttrByte(c byte) bool { return isNameByte(c) || c == ':' || c == '.' }

// allSpace reports whether s holds nothing but blanks and line breaks.
func allSpace(s string) bool {
	for i := range len(s) {
		if !isSpace(s[i]) {
			return false
		}
	}
	return true
}
